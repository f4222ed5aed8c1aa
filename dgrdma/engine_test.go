package dgrdma

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/endpoint"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestConfigReachesTheEngine: every field, and the engine has no other one but Region.
func TestConfigReachesTheEngine(t *testing.T) {
	values := map[string]any{
		"Memory": Memory(perConnMemory{}), "Profile": new(Native()), "OnEvent": func(Event) {}, "NewController": func(int) Controller { return nil },
		"Logger": slog.Default(), "Service": "ping", "Trace": new(Trace), "Entropy": func() uint32 { return 7 },
		"Keys": new(Keys),
	}
	ours, engines := reflect.TypeFor[Config](), reflect.TypeFor[endpoint.Config]()
	if ours.NumField() != engines.NumField()-1 {
		t.Errorf("Config has %d fields, the engine's %d", ours.NumField(), engines.NumField())
	}
	for i := range ours.NumField() {
		var c Config
		name, f := ours.Field(i).Name, reflect.ValueOf(&c).Elem().Field(i)
		switch v, given := values[name]; {
		case given:
			f.Set(reflect.ValueOf(v))
		case f.Kind() == reflect.Bool:
			f.SetBool(true)
		case f.CanInt():
			f.SetInt(7)
		default:
			f.SetUint(2)
		}
		got := reflect.ValueOf(c.engine()).Elem()
		for k := range got.NumField() {
			if there := !got.Field(k).IsZero(); there != (engines.Field(k).Name == name) {
				t.Errorf("with %s the engine's %s is %v", name, engines.Field(k).Name, got.Field(k))
			}
		}
	}
	if (*Config)(nil).engine() != nil {
		t.Error("no configuration is one")
	}
}

// TestEventsReachTheProgram: every field of an event.
func TestEventsReachTheProgram(t *testing.T) {
	of := reflect.TypeFor[endpoint.Event]()
	for i := range of.NumField() {
		var e endpoint.Event
		switch f := reflect.ValueOf(&e).Elem().Field(i); of.Field(i).Name {
		case "Conn":
			f.Set(reflect.ValueOf(new(endpoint.Conn)))
		case "Peer":
			e.Peer.ID = 7
		case "Err":
			e.Err = ErrClosed
		default:
			f.Set(reflect.ValueOf(7).Convert(f.Type()))
		}
		got := reflect.ValueOf(ourEvent(e))
		for k := range got.NumField() {
			if there := !got.Field(k).IsZero(); there != (got.Type().Field(k).Name == of.Field(i).Name) {
				t.Errorf("with %s the event's %s is %v", of.Field(i).Name, got.Type().Field(k).Name, got.Field(k))
			}
		}
	}
}

// TestEventInWords: printed as it is, an event says all that is known of it.
func TestEventInWords(t *testing.T) {
	ev := Event{
		Kind: FrameRefused, Conn: new(Conn), Peer: PeerName{ID: 7, Addr: UDPAddr(netip.MustParseAddrPort("127.0.0.1:7100"))},
		Reason: RefusedSeal, Txn: 3, Frames: 4, Size: 5, Err: errors.New("no"),
	}
	if got := fmt.Sprint(ev); got != "frame refused: peer 7 at 127.0.0.1:7100, reason=seal, txn=3, frames=4, size=5, err=no" {
		t.Error(got)
	}
}

// perConnMemory gives each peer a memory of its own.
type perConnMemory map[*Conn]Memory

func (perConnMemory) Admit(EndpointID, *Message) ([]byte, error) { return nil, ErrBounds }
func (perConnMemory) Complete(EndpointID, *Message)              {}

// For implements [PerConn].
func (p perConnMemory) For(c *Conn) Memory {
	if p[c] == nil {
		r, _ := NewRegion(4096)
		p[c] = r
	}
	return p[c]
}

// TestMemoriesAreTheProgramsOwn: what a program gives for memory is what it gets back,
// and a connection is the same one wherever it is met.
func TestMemoriesAreTheProgramsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		each := make(perConnMemory)
		events := make(chan *Conn, 10)
		b, err := New(n.Attach(simnet.Addr(2), simnet.Config{}), &Config{
			ID: 2, Memory: each, OnEvent: func(e Event) {
				if e.Kind == PeerUp {
					events <- e.Conn
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		if _, ok := b.Memory().(perConnMemory); !ok {
			t.Errorf("the endpoint's memory is a %T", b.Memory())
		}
		toA, err := b.Connect(Peer{ID: 1, Addr: simnet.Addr(1)})
		if err != nil {
			t.Fatal(err)
		}
		region, err := NewRegion(64)
		if err != nil {
			t.Fatal(err)
		}
		a, err := New(n.Attach(simnet.Addr(1), simnet.Config{}), &Config{ID: 1, Memory: region})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		toB, err := a.Connect(Peer{ID: 2, Addr: simnet.Addr(2)})
		if err != nil {
			t.Fatal(err)
		}
		if err := toB.Write(t.Context(), &Transaction{Completion: Word(8, 5)}); err != nil {
			t.Fatal(err)
		}
		if a.Memory() != Memory(region) || toB.Memory() != Memory(region) {
			t.Errorf("a Region is given back as %T and %T", a.Memory(), toB.Memory())
		}
		if len(each) != 1 || each[toA] == nil || toA.Memory() != each[toA] || each[toA].(*Region).Load32(8) != 5 {
			t.Errorf("memories %v, of the connection %v", each, toA.Memory())
		}
		if c := <-events; c != toA || len(b.Conns()) != 1 || b.Conns()[0] != toA {
			t.Errorf("connection %p is told as %p, listed as %p", toA, c, b.Conns())
		}
	})
}

// TestEmbeddedRegionIsWaitedOn: who waits for a word of a Region within another memory
// drives the endpoint that has no goroutines.
func TestEmbeddedRegionIsWaitedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		region, err := NewRegion(64)
		if err != nil {
			t.Fatal(err)
		}
		b, err := New(n.Attach(simnet.Addr(2), simnet.Config{}), &Config{ID: 2, Memory: struct{ *Region }{region}, Manual: true, AcceptAny: true})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		a, err := New(n.Attach(simnet.Addr(1), simnet.Config{}), &Config{ID: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		toB, err := a.Connect(Peer{ID: 2, Addr: simnet.Addr(2)})
		if err != nil {
			t.Fatal(err)
		}
		if err := toB.Post(&Transaction{Completion: Word(8, 5)}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := region.WaitFor(ctx, 8, 5); err != nil {
			t.Error(err)
		}
	})
}

// shared is a memory of which each peer has a share, that embeds it.
type shared struct{ *Region }

// For implements [PerConn].
func (s *shared) For(*Conn) Memory { return &share{shared: s} }

type share struct {
	*shared
	placed []uint32
}

// Placed implements [Placed].
func (s *share) Placed(_ EndpointID, m *Message) { s.placed = append(s.placed, m.Addr) }

// TestShareOfAMemoryIsAskedItself: what For returns is not asked For again, and is told
// what is placed.
func TestShareOfAMemoryIsAskedItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		region, err := NewRegion(64)
		if err != nil {
			t.Fatal(err)
		}
		b, err := New(n.Attach(simnet.Addr(2), simnet.Config{}), &Config{ID: 2, Memory: &shared{region}, AcceptAny: true})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		a, err := New(n.Attach(simnet.Addr(1), simnet.Config{}), &Config{ID: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		toB, err := a.Connect(Peer{ID: 2, Addr: simnet.Addr(2)})
		if err != nil {
			t.Fatal(err)
		}
		if err := toB.Write(t.Context(), &Transaction{Segments: []Segment{{Addr: 8, Bytes: []byte("data")}}}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if s, ok := b.Conns()[0].Memory().(*share); !ok || len(s.placed) != 1 || s.placed[0] != 8 {
			t.Errorf("the peer's memory is %T: %+v", b.Conns()[0].Memory(), b.Conns()[0].Memory())
		}
	})
}

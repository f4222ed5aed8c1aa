package link

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/endpoint/space"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// parcels is another service like links. A peer that sends a parcel asks by letter how much room it
// has, is told where, and writes there, into what is its own.
type parcels struct {
	size  uint64
	block *space.Block

	mu   sync.Mutex
	met  []*dgrdma.Channel
	came []string
}

func (s *parcels) Name() string { return "parcels" }
func (s *parcels) Size() uint64 { return s.size }
func (s *parcels) Meet(ch *dgrdma.Channel) dgrdma.Handler {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.met = append(s.met, ch)
	return &parcelPeer{s: s, ch: ch, told: make(chan uint32, 1)}
}

type parcelPeer struct {
	s       *parcels
	ch      *dgrdma.Channel
	windows space.Table[*space.Span]
	told    chan uint32
}

func (p *parcelPeer) Admit(_ dgrdma.EndpointID, m *frame.Message) ([]byte, error) {
	w, ok := p.windows.Find(uint64(m.Addr))
	if !ok || uint64(m.Addr)+uint64(m.Len) > w.At+w.N {
		return nil, dgrdma.ErrBounds
	}
	return p.s.block.Bytes(*w)[uint64(m.Addr)-w.At:][:m.Len:m.Len], nil
}

func (p *parcelPeer) Complete(_ dgrdma.EndpointID, m *frame.Message) {
	if w, ok := p.windows.Find(uint64(m.CompletionAddr)); ok {
		p.s.mu.Lock()
		defer p.s.mu.Unlock()
		p.s.came = append(p.s.came, string(p.s.block.Bytes(*w)[:min(uint64(m.CompletionValue), w.N)]))
	}
}

func (p *parcelPeer) Letter(b []byte) {
	var n uint64
	var at uint32
	switch {
	case scan(b, "room for %d", &n):
		w, ok := p.s.block.Take(n)
		if !ok {
			return
		}
		p.windows.Add(w, &w)
		p.ch.Mail(dgrdma.Letter{Life: p.ch.Conn().Life(), Bytes: fmt.Appendf(nil, "at %d", w.At)})
	case scan(b, "at %d", &at):
		p.told <- at
	}
}

func scan(b []byte, format string, v any) bool {
	n, _ := fmt.Sscanf(string(b), format, v)
	return n == 1
}

func (p *parcelPeer) Event(dgrdma.Event) {}

// send sends a parcel to the service of the same name at the peer.
func (p *parcelPeer) send(flow *dgrdma.Flow, text string) error {
	p.ch.Mail(dgrdma.Letter{Life: p.ch.Conn().Life(), Bytes: fmt.Appendf(nil, "room for %d", len(text))})
	at := <-p.told
	done := make(chan error, 1)
	t := &dgrdma.Transaction{
		Segments: []dgrdma.Segment{{Addr: at, Bytes: []byte(text)}}, Completion: dgrdma.Word(at, uint32(len(text))),
		Done: func(_ *dgrdma.Transaction, err error) { done <- err },
	}
	if err := flow.Post(t); err != nil {
		return err
	}
	return <-done
}

// shared is an endpoint with memory, links and parcels.
type shared struct {
	ep      *dgrdma.Endpoint
	memory  *dgrdma.Region
	host    *Host
	parcels *parcels
}

func newShared(t *testing.T, sim *simnet.Network, id uint16) *shared {
	t.Helper()
	memory, err := dgrdma.NewRegion(1 << 16)
	if err != nil {
		t.Fatal(err)
	}
	s := &shared{memory: memory, parcels: &parcels{size: 1 << 20}}
	s.ep, err = dgrdma.New(sim.Attach(simnet.Addr(uint32(id)), simnet.Config{}), &dgrdma.Config{
		ID: dgrdma.EndpointID(id), Memory: memory, AcceptAny: true, GiveUp: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.host, err = On(s.ep, 1<<20); err != nil {
		t.Fatal(err)
	}
	base, err := s.ep.Serve(s.parcels)
	if err != nil {
		t.Fatal(err)
	}
	s.parcels.block = space.NewBlock(uint64(base)+dgrdma.MailSize, 1<<20-dgrdma.MailSize)
	return s
}

// TestMemoryLinksAndParcels checks memory, links and parcels on one endpoint, all at once, with loss:
// each takes what is its own. What is written at another's addresses changes nothing.
func TestMemoryLinksAndParcels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simnet.New(7)
		defer sim.Close()
		lossy := simnet.Link{Latency: 100 * time.Microsecond, Loss: 0.02, Duplicate: 0.02, Reorder: 0.02}
		sim.Link(simnet.Addr(1), simnet.Addr(2), lossy)
		sim.Link(simnet.Addr(2), simnet.Addr(1), lossy)
		a, b := newShared(t, sim, 1), newShared(t, sim, 2)
		defer a.ep.Close()
		defer b.ep.Close()
		port, err := b.host.Listen("port", &Options{Buffers: 4, Size: 2000})
		if err != nil {
			t.Fatal(err)
		}
		toB, err := a.ep.Connect(dgrdma.Peer{ID: 2, Addr: simnet.Addr(2)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		const times = 100
		var all sync.WaitGroup
		all.Go(func() {
			for i := range times {
				data := bytes.Repeat([]byte{byte(i)}, 5000)
				if err := toB.Write(ctx, &dgrdma.Transaction{Segments: []dgrdma.Segment{{Addr: 256, Bytes: data}}, Completion: dgrdma.Word(0, uint32(i+1))}); err != nil {
					t.Error(err)
				}
				if got := b.memory.Bytes()[256:5256]; b.memory.Load32(0) != uint32(i+1) || !bytes.Equal(got, data) {
					t.Errorf("write %d differs", i)
				}
			}
		})
		var in *Link
		all.Go(func() {
			var err error
			if in, err = port.Accept(ctx); err != nil {
				t.Error(err)
				return
			}
			for i := range times {
				m, err := in.In.Recv(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				if got := m.Bytes; !bytes.Equal(got, bytes.Repeat([]byte{byte(i)}, 1900)) {
					t.Errorf("message %d differs", i)
				}
				in.In.Release(m)
			}
		})
		all.Go(func() {
			out, err := a.host.peerOf(toB).dial(ctx, "port", &Options{Directions: Send})
			if err != nil {
				t.Error(err)
				return
			}
			for i := range times {
				if err := out.Out.Send(ctx, 0, bytes.Repeat([]byte{byte(i)}, 1900)); err != nil {
					t.Error(err)
				}
			}
			if err := out.Close(); err != nil {
				t.Error(err)
			}
		})
		var want []string
		all.Go(func() {
			ch := toB.Channel("parcels")
			flow := ch.Flow()
			for i := range times {
				want = append(want, fmt.Sprintf("parcel %d", i))
				if err := ch.Handler().(*parcelPeer).send(flow, want[i]); err != nil {
					t.Error(err)
				}
			}
		})
		all.Wait()
		if got := b.parcels.came; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("parcels: %q", got)
		}

		// A peer that was let in by all three, and writes elsewhere.
		before := bytes.Clone(b.memory.Bytes())
		links := b.host.block.Bytes(space.Span{At: 1<<16 + reserved, N: b.host.block.Size()})
		beforeLinks := bytes.Clone(links)
		for _, at := range []uint32{1 << 16, 1<<16 + reserved, 1<<16 + 2<<20 - 64, 1<<16 - 4} {
			for _, word := range []uint32{0, 1<<16 + reserved, 1<<16 + 2<<20 - 64} {
				err := toB.Write(ctx, &dgrdma.Transaction{Segments: []dgrdma.Segment{{Addr: at, Bytes: []byte("elsewhere")}}, Completion: dgrdma.Word(word, 0xbad)})
				if err != nil {
					if err := toB.Reset(0); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		if !bytes.Equal(before, b.memory.Bytes()) || !bytes.Equal(beforeLinks, links) || len(b.parcels.came) != times {
			t.Error("something was written that is another's")
		}
		in.Close()
	})
}

// TestListeningOpensNoMemory checks that a peer that may dial because a port is listened on may not
// write into the memory of the endpoint.
func TestListeningOpensNoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simnet.New(7)
		defer sim.Close()
		memory, _ := dgrdma.NewRegion(4096)
		ep, err := dgrdma.New(sim.Attach(simnet.Addr(2), simnet.Config{}), &dgrdma.Config{ID: 2, Memory: memory})
		if err != nil {
			t.Fatal(err)
		}
		defer ep.Close()
		h, err := On(ep, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		port, err := h.Listen("port", &Options{Buffers: 2, Size: 100})
		if err != nil {
			t.Fatal(err)
		}
		go port.Accept(t.Context())
		a := newShared(t, sim, 1)
		defer a.ep.Close()
		toB, err := a.ep.Connect(dgrdma.Peer{ID: 2, Addr: simnet.Addr(2)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.host.peerOf(toB).dial(t.Context(), "port", &Options{Directions: Send}); err != nil {
			t.Errorf("dialing: %v", err)
		}
		write := &dgrdma.Transaction{Segments: []dgrdma.Segment{{Bytes: []byte("data")}}}
		if err := toB.Write(t.Context(), write); !errors.Is(err, dgrdma.ErrNoService) {
			t.Errorf("writing: %v", err)
		}
		if !bytes.Equal(memory.Bytes(), make([]byte, 4096)) {
			t.Error("the memory was written into")
		}
		// What the host asked for it takes back once, however often it is closed.
		h.Close()
		h.Close()
		ep.Welcome(true)
		late := newShared(t, sim, 3)
		defer late.ep.Close()
		toB, err = late.ep.Connect(dgrdma.Peer{ID: 2, Addr: simnet.Addr(2)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := late.host.peerOf(toB).dial(t.Context(), "port", &Options{Directions: Send}); !errors.Is(err, ErrRefused) {
			t.Errorf("dialing a closed host of an endpoint where all are welcome: %v", err)
		}
	})
}

// TestHostOnAnEndpoint checks that the endpoint stays when its links are closed, and that a second
// host on an endpoint is refused.
func TestHostOnAnEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simnet.New(7)
		defer sim.Close()
		a, b := newShared(t, sim, 1), newShared(t, sim, 2)
		defer a.ep.Close()
		defer b.ep.Close()
		if _, err := On(a.ep, 0); err == nil {
			t.Error("two hosts on an endpoint")
		}
		if _, err := On(a.ep, 1000); err == nil {
			t.Error("a host of 1000 bytes")
		}
		toB, err := a.ep.Connect(dgrdma.Peer{ID: 2, Addr: simnet.Addr(2)})
		if err != nil {
			t.Fatal(err)
		}
		port, err := b.host.Listen("port", &Options{Buffers: 2, Size: 100})
		if err != nil {
			t.Fatal(err)
		}
		accepted := make(chan *Link, 1)
		go func() { l, _ := port.Accept(t.Context()); accepted <- l }()
		out, err := a.host.peerOf(toB).dial(t.Context(), "port", &Options{Directions: Send})
		if err != nil {
			t.Fatal(err)
		}
		in := <-accepted
		if err := b.host.Close(); err != nil {
			t.Error(err)
		}
		if _, err := in.In.Recv(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("Recv of a closed host: %v", err)
		}
		if _, err := b.host.Listen("port", nil); !errors.Is(err, ErrClosed) {
			t.Errorf("Listen of a closed host: %v", err)
		}
		if _, err := b.host.Dial(t.Context(), "ocpi-udp-rdma:127.0.0.1;1;1.1.2", "port", nil); !errors.Is(err, ErrClosed) {
			t.Errorf("Dial of a closed host: %v", err)
		}
		if _, _, err := b.host.Offer(b.ep.Conns()[0], 0, nil); !errors.Is(err, ErrClosed) {
			t.Errorf("Offer of a closed host: %v", err)
		}
		if _, err := a.host.peerOf(toB).dial(t.Context(), "port", &Options{Directions: Send}); !errors.Is(err, ErrRefused) {
			t.Errorf("dialing a closed host: %v", err)
		}
		if err := toB.Write(t.Context(), &dgrdma.Transaction{Segments: []dgrdma.Segment{{Addr: 8, Bytes: []byte("data")}}}); err != nil {
			t.Errorf("the endpoint of a closed host: %v", err)
		}
		if err := out.Close(); err == nil {
			t.Error("the link to a closed host closed as if all had arrived")
		}
		if err := a.host.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

package dgrdma

import (
	"testing"
	"testing/synctest"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// memoryOnly is a service that admits nothing.
type memoryOnly struct{}

func (memoryOnly) Name() string                               { return "post" }
func (memoryOnly) Size() uint64                               { return MailSize }
func (memoryOnly) Meet(*Channel) Handler                      { return memoryOnly{} }
func (memoryOnly) Admit(EndpointID, *Message) ([]byte, error) { return nil, ErrBounds }
func (memoryOnly) Complete(EndpointID, *Message)              {}
func (memoryOnly) Letter([]byte)                              {}
func (memoryOnly) Event(Event)                                {}

// TestServeAfterSharedMemory checks that a memory that each peer sees as one of its own may say
// how large it is, and that a service begins after it.
func TestServeAfterSharedMemory(t *testing.T) {
	n := simnet.New(1)
	defer n.Close()
	region, err := NewRegion(5000)
	if err != nil {
		t.Fatal(err)
	}
	m := &shared{region}
	e, err := New(n.Attach(simnet.Addr(2), simnet.Config{}), &Config{ID: 2, Memory: m})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if base, err := e.Serve(memoryOnly{}); base != 8192 || err != nil {
		t.Errorf("it begins at %d, %v", base, err)
	}
	if e.Memory() != m {
		t.Errorf("the memory is %T", e.Memory())
	}
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

// TestShareOfAMemoryIsAskedItself checks that what For returns is not asked For again, and is told
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

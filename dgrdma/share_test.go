package dgrdma

import (
	"testing"

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

// TestServeBesideSharedMemory: a memory that each peer sees in a way of its own may say how
// large it is, and a service begins behind it.
func TestServeBesideSharedMemory(t *testing.T) {
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

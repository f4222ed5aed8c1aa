package dgrdma

import (
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestNewWithoutConfiguration checks that New needs an id, and that its error says so.
func TestNewWithoutConfiguration(t *testing.T) {
	n := simnet.New(1)
	defer n.Close()
	wire := n.Attach(addrA, simnet.Config{})
	for _, cfg := range []*Config{nil, {}} {
		if e, err := New(wire, cfg); e != nil || err == nil || !strings.Contains(err.Error(), "endpoint id is 0") {
			t.Errorf("%+v: %v, %v", cfg, e, err)
		}
	}
}

// TestTransportThatIsNoPointer checks that a transport may be of any type.
func TestTransportThatIsNoPointer(t *testing.T) {
	n := simnet.New(1)
	defer n.Close()
	e, err := New(struct{ transport.Conn }{n.Attach(addrA, simnet.Config{})}, &Config{ID: 1})
	if err != nil {
		t.Fatal(err)
	}
	e.Close()
}

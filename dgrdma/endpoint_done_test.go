package dgrdma

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestEndpointDone checks that an endpoint is done when it fails, or Close is called, and says
// which.
func TestEndpointDone(t *testing.T) {
	for _, x := range []struct {
		name string
		ends []func(e *Endpoint, wire *simnet.Conn)
		why  error
	}{
		{"closed", []func(*Endpoint, *simnet.Conn){closes, closes}, ErrClosed},
		{"failed", []func(*Endpoint, *simnet.Conn){fails}, errFailed},
		{"failed by its transport", []func(*Endpoint, *simnet.Conn){closesWire}, net.ErrClosed},
		{"failed and closed", []func(*Endpoint, *simnet.Conn){fails, closes}, errFailed},
		{"failed twice", []func(*Endpoint, *simnet.Conn){fails, fails}, errFailed},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := simnet.New(1)
				defer n.Close()
				wire := n.Attach(addrA, simnet.Config{})
				e, err := New(wire, &Config{ID: 1})
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				select {
				case <-e.Done():
					t.Fatal("done before its end")
				default:
				}
				if err := e.Err(); err != nil {
					t.Fatal(err)
				}
				for _, end := range x.ends {
					end(e, wire)
					<-e.Done()
					if err := e.Err(); !errors.Is(err, x.why) {
						t.Errorf("%v, want %v", err, x.why)
					}
				}
			})
		})
	}
}

var errFailed = errors.New("no such device")

func closes(e *Endpoint, _ *simnet.Conn)        { e.Close() }
func fails(e *Endpoint, _ *simnet.Conn)         { e.sched.Break(errFailed) }
func closesWire(_ *Endpoint, wire *simnet.Conn) { wire.Close() }

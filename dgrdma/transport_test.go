package dgrdma

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"
)

// deaf hears nothing.
type deaf struct{ Transport }

func (d deaf) Recv(in []Datagram, wait time.Duration) (int, error) {
	n, err := d.Transport.Recv(in, wait)
	for n > 0 && err == nil && wait == Forever {
		n, err = d.Transport.Recv(in, wait)
	}
	return 0, err
}

// TestOpenOver checks that the endpoint is on what the wire was made into, and is known by the wire's address; that it closes that, and
// what could not be opened, too.
func TestOpenOver(t *testing.T) {
	var wire Transport
	b, err := OpenOver("udp:127.0.0.1", &Config{AcceptAny: true}, func(t Transport) Transport {
		wire = deaf{t}
		return wire
	})
	if err != nil {
		t.Fatal(err)
	}
	if b.LocalAddr() != wire.LocalAddr() || b.URL() == "" {
		t.Errorf("%v, %s", b.LocalAddr(), b.URL())
	}
	a, err := Open("udp:127.0.0.1", &Config{GiveUp: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	c, err := a.Dial(b.URL())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Write(context.Background(), &Transaction{Completion: Word(0, 1)}); !errors.Is(err, ErrPeerDown) {
		t.Errorf("one who hears nothing answered: %v", err)
	}
	b.Close()
	if _, err := wire.Recv(make([]Datagram, 1), time.Second); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the wire is open: %v", err)
	}

	same := func(t Transport) Transport { wire = t; return t }
	if _, err := OpenOver("udp:127.0.0.1", &Config{Window: -1}, same); err == nil {
		t.Error("opened with a window below 0")
	} else if _, err := wire.Recv(make([]Datagram, 1), time.Second); !errors.Is(err, net.ErrClosed) {
		t.Errorf("left open: %v", err)
	}
}

// TestOpenTransport checks that two transports exchange what is no frame of ours, with the options of their strings.
func TestOpenTransport(t *testing.T) {
	a, err := OpenTransport("udp:127.0.0.1?mtu=1000&gso=off")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := OpenTransport("ocpi-udp-rdma:127.0.0.1;0;65536.5.16")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if mtu := a.Caps().MTU; mtu >= 1000 || mtu < 900 || b.Caps().MTU <= mtu {
		t.Errorf("frames of %d and %d bytes", mtu, b.Caps().MTU)
	}
	to := b.LocalAddr()
	buf := append(make([]byte, a.Caps().Headroom), "hello"...)
	if _, err := a.Send([]Outgoing{{To: &to, Buf: buf}}); err != nil {
		t.Fatal(err)
	}
	in := make([]Datagram, 1)
	if n, err := b.Recv(in, 10*time.Second); n != 1 || err != nil || string(in[0].Data) != "hello" || in[0].From != a.LocalAddr() {
		t.Errorf("%d, %v, %q", n, err, in[0].Data)
	}
	for _, wrong := range []string{"", "udp:127.0.0.1?mtu=1", "udp:127.0.0.1?nonsense=1", "ether:no-such-interface", "tcp:127.0.0.1"} {
		if c, err := OpenTransport(wrong); err == nil {
			c.Close()
			t.Errorf("%q was opened", wrong)
		}
	}
}

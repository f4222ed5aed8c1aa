package netconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/tests/fixture"
)

// TestListenerClosed checks that calls that wait in Accept, and later ones, get net.ErrClosed, that
// connections that were accepted stay, that dialers are refused, and that the port is free.
func TestListenerClosed(t *testing.T) {
	fixture.NoGoroutineLeft(t)
	x, y := open(t, nil), open(t, nil)
	l := listen(t, y, "port", nil)
	a, b := join(t, x, l, Options{})
	waits := make(chan error)
	for range 3 {
		go func() { _, err := l.Accept(); waits <- err }()
	}
	for range 2 {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	for i := range 4 {
		err := error(nil)
		if i < 3 {
			err = <-waits
		} else {
			_, err = l.Accept()
		}
		var of *net.OpError
		if !errors.Is(err, net.ErrClosed) || !errors.As(err, &of) || of.Op != "accept" || of.Addr != l.Addr() {
			t.Errorf("Accept: %v", err)
		}
	}
	if _, err := (&Dialer{Host: x}).Dial(Network, l.Addr().String()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dialed: %v", err)
	}
	go a.Write([]byte("still"))
	if _, err := io.ReadFull(b, make([]byte, 5)); err != nil {
		t.Error(err)
	}
	listen(t, y, "port", nil)
}

// TestListenFails checks that the error says what was tried, and why it failed.
func TestListenFails(t *testing.T) {
	h := open(t, nil)
	listen(t, h, "taken", nil)
	for _, c := range []struct {
		port string
		opt  *Options
		says string
	}{
		{"taken", nil, "is listened on already"},
		{"", nil, `port name "": need 1 to 64 bytes`},
		{"a:b", nil, `port "a:b" has a colon`},
		{"p", &Options{Buffers: -1}, "-1 buffers"},
	} {
		l, err := Listen(h, c.port, c.opt)
		var of *net.OpError
		if l != nil || !errors.As(err, &of) || of.Op != "listen" || !strings.Contains(err.Error(), c.says) {
			t.Errorf("port %q: %v", c.port, err)
		}
	}
}

// TestManyAtOnce checks connections that are made, used and closed by many goroutines at a time, more
// than fit at once: each is served or refused, and nothing is left.
func TestManyAtOnce(t *testing.T) {
	fixture.NoGoroutineLeft(t)
	x, y := open(t, nil), open(t, nil)
	l := listen(t, y, "port", &Options{Buffers: 4, Size: 1000})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				io.Copy(c, c)
			}()
		}
	}()
	d := &Dialer{Host: x, Options: Options{Buffers: 4, Size: 1000}}
	const many, often = 50, 10
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			for k := range often {
				c, err := d.Dial(Network, l.Addr().String())
				if err != nil {
					t.Error(err)
					return
				}
				want := fixture.RandomBytes(uint64(i*often+k), 20_000)
				go func() {
					c.Write(want)
					c.(*Conn).CloseWrite()
				}()
				if got, err := io.ReadAll(c); string(got) != string(want) || err != nil {
					t.Errorf("%d bytes, %v", len(got), err)
				}
				c.Close()
			}
		})
	}
	all.Wait()
	nothingLeft(t, x, y)
}

// TestNoMemory checks that a host without memory for one more connection refuses it, says so, and
// takes the next one once there is memory.
func TestNoMemory(t *testing.T) {
	x, y := open(t, nil), open(t, &link.Config{Memory: 1 << 20})
	l := listen(t, y, "port", nil)
	go func() {
		for {
			if _, err := l.Accept(); err != nil {
				return
			}
		}
	}()
	d := &Dialer{Host: x}
	var made []net.Conn
	for {
		c, err := d.Dial(Network, l.Addr().String())
		if err != nil {
			if !errors.Is(err, syscall.ECONNREFUSED) || !strings.Contains(err.Error(), "open the host with more memory") || len(made) != 3 {
				t.Errorf("%d connections fit: %v", len(made), err)
			}
			break
		}
		made = append(made, c)
	}
	for _, c := range made {
		c.Close()
	}
}

// TestForeign checks that a peer that speaks something else at a port is refused, on whichever side it
// is, and that a peer that says hello and has one direction is passed over.
func TestForeign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		l := listen(t, w.b, "port", nil)
		came := make(chan net.Conn, 1)
		go func() {
			c, err := l.Accept()
			if err != nil {
				t.Error(err)
			}
			came <- c
		}()
		at := here(w.b)
		if _, err := w.a.Dial(t.Context(), at, "port", &link.Options{Directions: link.Both}); !errors.Is(err, link.ErrRefused) || !strings.Contains(err.Error(), ErrForeign.Error()) {
			t.Errorf("without hello: %v", err)
		}
		half, err := w.a.Dial(t.Context(), at, "port", &link.Options{Directions: link.Send, Private: hello})
		if err != nil {
			t.Fatal(err)
		}
		<-half.Done()
		half.Finish()
		if len(came) > 0 {
			t.Error("half a link was accepted")
		}
		if _, err := (&Dialer{Host: w.a}).Dial(Network, l.Addr().String()); err != nil || <-came == nil {
			t.Error(err)
		}

		p, err := w.b.Listen("other", &link.Options{Directions: link.Both})
		if err != nil {
			t.Fatal(err)
		}
		go p.Accept(t.Context())
		if _, err := (&Dialer{Host: w.a}).Dial(Network, at+":other"); !errors.Is(err, ErrForeign) {
			t.Errorf("dialed what is no connection's: %v", err)
		}
	})
}

// TestAddresses checks that each end knows its address and the peer's, that no other connection has
// the same two, and that a listener's is the one to dial.
func TestAddresses(t *testing.T) {
	x, y := open(t, nil), open(t, nil)
	l := listen(t, y, "port", nil)
	if want := y.URL() + ":port"; l.Addr().String() != want || l.Addr().Network() != "dgrdma" {
		t.Errorf("the listener is at %s, want %s", l.Addr(), want)
	}
	seen := make(map[string]bool)
	for range 3 {
		a, b := join(t, x, l, Options{})
		if a.RemoteAddr() != l.Addr() || b.LocalAddr() != l.Addr() {
			t.Errorf("%s, %s, want %s", a.RemoteAddr(), b.LocalAddr(), l.Addr())
		}
		local, remote := a.LocalAddr().(Addr), b.RemoteAddr().(Addr)
		if local.Endpoint != x.URL() || local.Port != remote.Port || !strings.HasPrefix(remote.Endpoint, "ocpi-udp-rdma:127.0.0.1;") ||
			!strings.HasPrefix(local.Endpoint, remote.Endpoint[:strings.LastIndexByte(remote.Endpoint, '.')]) {
			t.Errorf("the dialer is at %s, for the other side at %s", local, remote)
		}
		seen[local.String()] = true
		seen[remote.String()+" seen"] = true
	}
	if len(seen) != 6 {
		t.Errorf("addresses are of several connections: %v", seen)
	}
}

// TestAddressesOfEverywhere checks that a connection of hosts that are at all addresses of a machine
// is between the two that it uses.
func TestAddressesOfEverywhere(t *testing.T) {
	for _, ip := range []string{"127.0.0.1", "[::1]"} {
		var hosts [2]*link.Host
		for i := range hosts {
			h, err := link.Open("udp", nil)
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			hosts[i] = h
		}
		l := listen(t, hosts[1], "port", nil)
		l.addr.Endpoint = fmt.Sprintf("udp:%s:%d", ip, hosts[1].Endpoint().LocalAddr().AddrPort().Port()) // what is dialed
		a, b := join(t, hosts[0], l, Options{})
		for name, c := range map[string]*Conn{"dialer": a, "listener": b} {
			if at := c.LocalAddr().(Addr).Endpoint; !strings.HasPrefix(at, "ocpi-udp-rdma:"+ip+";") {
				t.Errorf("%s is at %s, of %s", name, at, ip)
			}
		}
		if x, y := a.LocalAddr().(Addr), b.RemoteAddr().(Addr); x.Port != y.Port {
			t.Errorf("%v and %v", x, y)
		}
	}
}

// TestDialFails checks that the error names the address, and the reason, as TCP would and as a link does.
func TestDialFails(t *testing.T) {
	x, y := open(t, nil), open(t, nil)
	hasty, silent := open(t, &link.Config{Endpoint: dgrdma.Config{GiveUp: time.Second}}), open(t, nil)
	listen(t, y, "busy", nil) // no Accept runs
	lost := errors.New("no such camera")
	done, cancel := context.WithCancel(t.Context())
	cancel()
	soon, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	for _, c := range []struct {
		name             string
		d                Dialer
		ctx              context.Context
		network, address string
		is               []error
		timeout          bool
		says             string
	}{
		{"too late", Dialer{Host: x}, soon, Network, y.URL() + ":busy", []error{context.DeadlineExceeded, link.ErrNoAnswer}, true, "no answer: it "},
		{"network", Dialer{Host: x}, nil, "udp", y.URL() + ":busy", nil, false, `unknown network udp: need "dgrdma" or "tcp"`}, // N14,
		{"no port", Dialer{Host: x}, nil, Network, "camera", nil, false, `address "camera": want an endpoint string or a name, a colon, and a port`},
		{"empty port", Dialer{Host: x}, nil, Network, y.URL() + ":", nil, false, "want an endpoint string"},
		{"no endpoint string", Dialer{Host: x}, nil, Network, "camera:80", nil, false, "camera"},
		{"lookup", Dialer{Host: x, Lookup: func(context.Context, string) (string, error) { return "", lost }}, nil, "tcp", "camera:80", []error{lost}, false, "camera:80"},
		{"unknown name", Dialer{Host: x, Lookup: func(context.Context, string) (string, error) { return "", nil }}, nil, "tcp", "camera:80", nil, false, "dial dgrdma camera:80: lookup camera: no endpoint string is known for that name"},
		{"no such port", Dialer{Host: x}, nil, Network, y.URL() + ":none", []error{syscall.ECONNREFUSED, link.ErrRefused}, false, `no port "none" here`},
		{"no listener", Dialer{Host: hasty}, nil, Network, silent.URL() + ":80", []error{syscall.ECONNREFUSED, dgrdma.ErrRefused}, false, "takes no unknown peers"},
		{"cancelled", Dialer{Host: x}, done, Network, y.URL() + ":busy", []error{context.Canceled}, false, ""},
	} {
		ctx := c.ctx
		if ctx == nil {
			ctx = t.Context()
		}
		_, err := c.d.DialContext(ctx, c.network, c.address)
		var of *net.OpError
		if !errors.As(err, &of) || of.Op != "dial" || of.Timeout() != c.timeout || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
		for _, is := range c.is {
			if !errors.Is(err, is) {
				t.Errorf("%s: %v, want %v", c.name, err, is)
			}
		}
	}
}

// TestLookup checks that names in addresses stand for endpoint strings.
func TestLookup(t *testing.T) {
	x, y := open(t, nil), open(t, nil)
	l := listen(t, y, "80", nil)
	d := &Dialer{Host: x, Lookup: func(_ context.Context, name string) (string, error) {
		if name != "camera" {
			t.Errorf("looked up %q", name)
		}
		return y.URL(), nil
	}}
	go l.Accept()
	c, err := d.Dial("tcp", "camera:80")
	if err != nil {
		t.Fatal(err)
	}
	if c.RemoteAddr() != l.Addr() {
		t.Errorf("connected to %s, want %s", c.RemoteAddr(), l.Addr())
	}
}

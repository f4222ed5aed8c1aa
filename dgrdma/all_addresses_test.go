package dgrdma

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/url"
)

// opened opens an endpoint until the test ends.
func opened(t *testing.T, s string, cfg *Config) *Endpoint {
	t.Helper()
	e, err := Open(s, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// at returns an endpoint's string with another address.
func at(t *testing.T, e *Endpoint, ip string) string {
	t.Helper()
	u, err := url.Parse(e.URL())
	if err != nil {
		t.Fatal(err)
	}
	u.Addr = netip.AddrPortFrom(netip.MustParseAddr(ip), u.Addr.Port())
	return u.String()
}

// wrote writes a word, and checks that it is there.
func wrote(t *testing.T, to *Conn, into *Endpoint, word uint32) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := to.Write(ctx, &Transaction{Completion: Word(8, word)}); err != nil {
		t.Fatal(err)
	}
	if got := into.Memory().(*Region).Load32(8); got != word {
		t.Errorf("the word is %d, not %d", got, word)
	}
}

// TestPortAlone checks that an endpoint that is given a port alone is reached at every address of
// this machine, and that its strings are ones that a peer can use.
func TestPortAlone(t *testing.T) {
	b := opened(t, fmt.Sprintf("udp:%d", fixture.FreePort(t)), &Config{AcceptAny: true})
	u, err := url.Parse(b.URL())
	if err != nil || !u.Reachable() || !u.Complete() {
		t.Fatalf("%s: %v", b.URL(), err)
	}
	all := b.URLs()
	if all[0] != b.URL() || !slices.Contains(all, at(t, b, "127.0.0.1")) {
		t.Errorf("%s, of %v", b.URL(), all)
	}
	for i, s := range all {
		a := opened(t, "udp:[::]", nil)
		toB, err := a.Dial(s)
		if err != nil {
			t.Errorf("%s: %v", s, err)
			continue
		}
		wrote(t, toB, b, uint32(1+i))
		if local := toB.Name().Addr.Local(); !local.IsValid() || local.IsUnspecified() {
			t.Errorf("%s is dialed from %v", s, local)
		}
	}
	one := opened(t, "udp:127.0.0.1", nil)
	if got := one.URLs(); len(got) != 1 || got[0] != one.URL() {
		t.Errorf("at one address: %v", got)
	}
	if _, err := Open(fmt.Sprintf("udp:%d", b.LocalAddr().AddrPort().Port()), nil); err == nil || !strings.Contains(err.Error(), "at all addresses or at one") {
		t.Errorf("twice at all addresses: %v", err)
	}
}

// TestTwoAddressesAreTwoPeers checks that an endpoint that asks two addresses of another one
// has two peers, as there are two connections at the other end.
func TestTwoAddressesAreTwoPeers(t *testing.T) {
	b := opened(t, "udp:[::]", &Config{AcceptAny: true})
	a := opened(t, "udp:127.0.0.1", nil)
	var asked []string
	for i, ip := range []string{"127.0.0.2", "127.0.0.3"} {
		toB, err := a.Dial(at(t, b, ip))
		if err != nil {
			t.Fatal(err)
		}
		wrote(t, toB, b, uint32(1+i))
	}
	for _, c := range b.Conns() {
		asked = append(asked, c.Name().Addr.Local().String())
		if got := c.Name().String(); got != fmt.Sprintf("peer %d at %v", a.ID(), a.LocalAddr()) {
			t.Errorf("it is called %s", got)
		}
	}
	if slices.Sort(asked); !slices.Equal(asked, []string{"127.0.0.2", "127.0.0.3"}) {
		t.Errorf("peers that asked %v", asked)
	}
}

// TestDialedEndpointAnswers checks that the endpoint that is dialed is the one that answers,
// between endpoints at all addresses, of either version of IP; and that one that was heard first
// and is dialed then is one peer.
func TestDialedEndpointAnswers(t *testing.T) {
	for _, anyone := range []bool{false, true} { // a socket with one peer or two, or one for all
		a, b := opened(t, "udp:[::]", &Config{AcceptAny: anyone}), opened(t, "udp:[::]", &Config{AcceptAny: true})
		for i, ip := range []string{"127.0.0.1", "::1"} {
			toB, err := a.Dial(at(t, b, ip))
			if err != nil {
				t.Fatal(err)
			}
			wrote(t, toB, b, uint32(1+i))
			toA, err := b.Dial(at(t, a, ip))
			if err != nil {
				t.Fatal(err)
			}
			wrote(t, toA, a, uint32(1+i))
			if len(a.Conns()) != 1+i || len(b.Conns()) != 1+i {
				t.Errorf("%s: %v, %v", ip, a.Conns(), b.Conns())
			}
		}
		for _, e := range []*Endpoint{a, b} {
			if s := e.Stats(); s.Refused[RefusedSource] != 0 || s.Refused[RefusedDestination] != 0 {
				t.Errorf("refused: %v", s.Refused)
			}
		}
	}
}

// TestOnlyPeerOfAllAddresses checks that an endpoint at all addresses that has one peer reaches others,
// with that one there or gone; that it finds them by their address alone; and one that restarts, at the same port or another.
func TestOnlyPeerOfAllAddresses(t *testing.T) {
	for _, ip := range []string{"127.0.0.1", "[::1]"} {
		a := opened(t, "udp:[::]", nil)
		serve := func(port string) *Endpoint {
			return opened(t, "udp:"+ip+":"+port, &Config{AcceptAny: true})
		}
		dial := func(to *Endpoint) *Conn {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			c, err := a.DialContext(ctx, fmt.Sprintf("udp:%v", to.LocalAddr())) // its id and size are asked for
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		b, other := serve("0"), serve("0")
		toB := dial(b)
		wrote(t, toB, b, 1)
		toOther := dial(other)
		wrote(t, toOther, other, 2)
		wrote(t, toB, b, 3)
		if err := toOther.Close(); err != nil {
			t.Fatal(err)
		}
		wrote(t, toB, b, 4)
		for i, port := range []string{fmt.Sprint(b.LocalAddr().AddrPort().Port()), "0"} {
			b.Close()
			b = serve(port)
			toB.Close()
			toB = dial(b)
			wrote(t, toB, b, uint32(5+i))
		}
	}
}

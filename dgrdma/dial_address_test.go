package dgrdma

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/tests/fixture"
)

// TestDialByAddress checks that an address and port, or a name and a port, are the string of a peer
// that accepts, whatever id it has, after a restart with another one too; and that a string with an
// id that it has not fails at once, and says which one it has.
func TestDialByAddress(t *testing.T) {
	fixture.Names(t, known)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	a, err := Open("udp", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	var port uint16
	for _, id := range []EndpointID{5, 7} {
		b, err := Open(fmt.Sprintf("udp:127.0.0.1:%d", port), &Config{ID: id, AcceptAny: true})
		if err != nil {
			t.Fatal(err)
		}
		port = b.LocalAddr().AddrPort().Port()
		for _, s := range []string{"udp:127.0.0.1:%d", "ocpi-udp-rdma:127.0.0.1:%d", "udp:four.example:%d", "udp:127.0.0.1:%d?profile=native"} {
			c, err := a.DialContext(ctx, fmt.Sprintf(s, port))
			if err != nil {
				t.Fatalf("%s: %v", s, err)
			}
			if p := c.Peer(); p.ID != id || p.Size != defaultSize || p.Addr.AddrPort() != b.LocalAddr().AddrPort() {
				t.Errorf("%s is %+v", s, p)
			}
			if err := c.Write(ctx, &Transaction{Completion: Word(0, 1)}); err != nil {
				t.Errorf("%s: %v", s, err)
			}
			c.Close()
		}
		other, err := a.Dial(fmt.Sprintf("ocpi-udp-rdma:127.0.0.1;%d;65536.9.65535", port))
		if err != nil {
			t.Fatal(err)
		}
		err = other.Write(ctx, &Transaction{Completion: Word(0, 1)})
		var is *IDError
		if !errors.Is(err, ErrWrongID) || !errors.As(err, &is) || *is != (IDError{Want: 9, Is: id}) || ctx.Err() != nil {
			t.Error(err)
		}
		other.Close()
		b.Close()
	}
	var kept []*Conn // of which the first has the socket listen to no other peer
	for range 2 {
		b, err := Open("udp:127.0.0.1", &Config{AcceptAny: true})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		c, err := a.DialContext(ctx, "udp:"+b.LocalAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range append(kept, c) {
			if err := c.Write(ctx, &Transaction{Completion: Word(0, 1)}); err != nil {
				t.Errorf("%v of %d: %v", c, len(kept)+1, err)
			}
		}
		kept = append(kept, c)
	}
	six, err := Open("udp:[::1]", &Config{AcceptAny: true})
	if err != nil {
		t.Fatal(err)
	}
	defer six.Close()
	first, err := Open("udp", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	c, err := first.DialContext(ctx, "udp:"+six.LocalAddr().String())
	if err != nil || c.Peer().ID != six.ID() || c.Peer().Addr.Local() != netip.IPv6Loopback() {
		t.Errorf("from %v: %v", first.LocalAddr(), err)
	}
}

// TestDialByAddressRefused checks that a dial by address says what cannot be asked, and that an
// endpoint does not answer.
func TestDialByAddressRefused(t *testing.T) {
	e, err := Open("udp:127.0.0.1?giveup=50ms", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for s, says := range map[string]string{
		"udp:7100":                       "has no address to send to",
		"udp:127.0.0.1":                  "has no address to send to",
		"ether:02:00:00:00:00:01":        "over Ethernet, where endpoints share an address, a peer's string ends in ;<size>.<id>.<max>",
		"udp:127.0.0.1:9?profile=fpga":   "peers of the kind fpga are not asked: give the complete string",
		"udp:127.0.0.1:9?mtu=1400":       "others belong into the string with which the own endpoint is opened",
		"udp:[::1]:9":                    "nothing can be sent there from 127.0.0.1:",
		"udp:[fe80::1%nosuch0]:9":        "no interface nosuch0 here",
		"udp:127.0.0.1:9?profile=native": "nobody there answers within 50ms; is it there, and does it accept peers without a key?",
	} {
		c, err := e.Dial(s)
		if err == nil || c != nil || !strings.Contains(err.Error(), says) || errors.Is(err, ErrPeerDown) != strings.HasPrefix(says, "nobody") {
			t.Errorf("%s: %v, want %s", s, err, says)
		}
	}
}

// TestDialHostOfSeveralAddresses checks that a dial takes the one of a host's addresses where the peer answers, whichever is first; that
// the error names all where none answers; and that a complete string may be that of a peer that comes later.
func TestDialHostOfSeveralAddresses(t *testing.T) {
	fixture.Names(t, map[string][]netip.Addr{
		"two.example": addresses("127.0.0.9", "127.0.0.1"), "both.example": addresses("127.0.0.9", "::1"), "dead.example": addresses("127.0.0.9", "127.0.0.8"),
	})
	for name, at := range map[string]string{"two.example": "127.0.0.1", "both.example": "[::1]"} {
		a, b := opened(t, "udp", nil), opened(t, "udp:"+at, &Config{AcceptAny: true})
		port := b.LocalAddr().AddrPort().Port()
		complete := strings.Replace(b.URL(), at, name, 1)
		for _, s := range []string{fmt.Sprintf("udp:%s:%d", name, port), complete} {
			c, err := a.Dial(s)
			if err != nil {
				t.Fatalf("%s: %v", s, err)
			}
			wrote(t, c, b, 5)
			if p := c.Peer(); p.ID != b.ID() || p.Size != defaultSize || p.Addr.AddrPort() != b.LocalAddr().AddrPort() {
				t.Errorf("%s is %+v", s, p)
			}
			c.Close()
		}
		// At the first address another endpoint may be, too.
		opened(t, fmt.Sprintf("udp:127.0.0.9:%d", port), &Config{AcceptAny: true, ID: b.ID() ^ 1})
		c, err := a.Dial(complete)
		if err != nil {
			t.Fatal(err)
		}
		wrote(t, c, b, 6)
	}
	a := opened(t, "udp?giveup=300ms", nil)
	_, err := a.Dial("udp:dead.example:9")
	if !errors.Is(err, ErrPeerDown) || !strings.Contains(err.Error(), "find the endpoint at 127.0.0.9:9") {
		t.Error(err)
	}
	if c, err := a.Dial("ocpi-udp-rdma:dead.example;9;4096.9.10"); err != nil || c.Peer().Addr.String() != "127.0.0.9:9" || c.Peer().Size != 4096 {
		t.Errorf("%+v, %v", c.Peer(), err)
	}
}

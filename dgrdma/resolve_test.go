package dgrdma

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/tests/netns"
)

func addresses(list ...string) (all []netip.Addr) {
	for _, s := range list {
		all = append(all, netip.MustParseAddr(s))
	}
	return all
}

// known are the hosts of these tests: both has addresses of both families, elsewhere none of this
// machine, and for silent no server answers.
var known = map[string][]netip.Addr{
	"both.example": addresses("::1", "127.0.0.1"), "four.example": addresses("127.0.0.1"), "six.example": addresses("::1"),
	"elsewhere.example": addresses("192.0.2.1", "2001:db8::1"), "partly.example": addresses("192.0.2.1", "127.0.0.2"),
	"none.example": {}, "silent.example": nil,
}

// TestHostNames checks that a name stands where an address does, and that of several addresses
// those are taken that this machine has, or that the endpoint can send to.
func TestHostNames(t *testing.T) {
	fixture.Names(t, known)
	for _, c := range []struct{ own, peer, want string }{
		{"udp:127.0.0.1", "both.example", "127.0.0.1"},
		{"udp:[::1]", "both.example", "::1"},
		{"udp:four.example", "four.example", "127.0.0.1"},
		{"udp:six.example", "six.example", "::1"},
		{"udp:both.example:0", "both.example.", "127.0.0.1"},
		{"udp:partly.example", "four.example", "127.0.0.1"},
	} {
		b, err := Open("udp:"+bracketed(c.want), &Config{AcceptAny: true})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		a, err := Open(c.own, nil)
		if err != nil {
			t.Errorf("open %s: %v", c.own, err)
			continue
		}
		defer a.Close()
		peer := strings.Replace(b.URL(), bracketed(c.want), c.peer, 1)
		toB, err := a.Dial(peer)
		if err != nil {
			t.Errorf("%s from %s: %v", peer, c.own, err)
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := toB.Write(ctx, &Transaction{Completion: Word(64, 7)}); err != nil || b.Memory().(*Region).Load32(64) != 7 {
			t.Errorf("%s from %s: %v", peer, c.own, err)
		}
		if got := toB.Name().Addr; got != b.LocalAddr() {
			t.Errorf("%s from %s is at %v, want %v", peer, c.own, got, b.LocalAddr())
		}
	}
	if p, err := ParsePeer("ocpi-udp-rdma:both.example;7100;64.9.10"); err != nil || p.Addr.String() != "127.0.0.1:7100" {
		t.Errorf("parsed as %v: %v", p, err)
	}
}

func bracketed(ip string) string {
	if strings.Contains(ip, ":") {
		return "[" + ip + "]"
	}
	return ip
}

// TestHostNamesFail checks that the error says what was looked up, what the resolver says, and what
// can be done.
func TestHostNamesFail(t *testing.T) {
	fixture.Names(t, known)
	e, err := Open("udp:127.0.0.1", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	peer := func(host string) string { return fmt.Sprintf("ocpi-udp-rdma:%s;7100;64.9.10", host) }
	_, unknown := e.Dial(peer("unknown.example"))
	_, parsed := ParsePeer(peer("unknown.example"))
	_, opened := Open("udp:unknown.example", nil)
	_, six := e.Dial(peer("six.example"))
	_, elsewhere := Open("udp:elsewhere.example:7100", nil)
	_, none := e.Dial(peer("none.example"))
	for _, c := range []struct {
		err  error
		says string
	}{
		{unknown, "no address of host unknown.example: lookup unknown.example"},
		{unknown, "no such host"},
		{unknown, "An IP address does in its place"},
		{parsed, "no address of host unknown.example"},
		{opened, "no address of host unknown.example"},
		{six, "no address of host six.example will do: it has ::1 (nothing can be sent there from 127.0.0.1:"},
		{elsewhere, "host elsewhere.example will do: it has 192.0.2.1 (no interface of this machine has the address; ip addr lists those there are), 2001:db8::1 (no interface of this machine"},
		{none, "no address of host none.example"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("%v\ndoes not say %s", c.err, c.says)
		}
	}
	for _, err := range []error{unknown, parsed, opened, none} {
		if of := (*net.DNSError)(nil); !errors.As(err, &of) || !of.IsNotFound {
			t.Errorf("%v is no *net.DNSError that says not found", err)
		}
	}
}

// TestHostNameWithinContext checks that a program that ends the context waits for no server.
func TestHostNameWithinContext(t *testing.T) {
	fixture.Names(t, known)
	e, err := Open("udp:127.0.0.1", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(time.Millisecond, func() { cancel(stopped) })
	if _, err := e.DialContext(ctx, "ocpi-udp-rdma:silent.example;7100;64.9.10"); !errors.Is(err, stopped) || !strings.Contains(err.Error(), "silent.example") {
		t.Error(err)
	}
}

// TestHostOfEverywhere checks that no endpoint opens at all addresses for a name that a resolver blocks by the address 0.0.0.0 or ::, at
// which no host is; that addresses of groups are no host's either; and that a good one among them is taken.
func TestHostOfEverywhere(t *testing.T) {
	for ip, why := range map[string]string{"0.0.0.0": "stands for all addresses", "::": "stands for all addresses", "::ffff:0.0.0.0": "stands for all addresses",
		"224.0.0.1": "a group's address", "ff02::1": "a group's address", "255.255.255.255": "every machine's address"} {
		t.Run(ip, func(t *testing.T) {
			fixture.Names(t, map[string][]netip.Addr{"alone.example": addresses(ip), "beside.example": addresses(ip, "127.0.0.1")})
			refused := func(what string, err error) {
				if err == nil || !strings.Contains(err.Error(), "no address of host alone.example will do: it has ") || !strings.Contains(err.Error(), why) {
					t.Errorf("%s: %v", what, err)
				}
			}
			e, err := Open("udp:alone.example", nil)
			if err == nil {
				e.Close()
			}
			refused("open", err)
			_, err = ParsePeer("ocpi-udp-rdma:alone.example;7100;64.9.10")
			refused("parse", err)
			b := opened(t, "udp:beside.example", &Config{AcceptAny: true})
			if got := b.LocalAddr().AddrPort().Addr().String(); got != "127.0.0.1" {
				t.Errorf("it is at %s", got)
			}
			a := opened(t, "udp", nil)
			port := b.LocalAddr().AddrPort().Port()
			_, err = a.Dial(fmt.Sprintf("udp:alone.example:%d", port))
			refused("dial", err)
			if c, err := a.Dial(fmt.Sprintf("udp:beside.example:%d", port)); err != nil || c.Name().Addr.AddrPort() != b.LocalAddr().AddrPort() {
				t.Errorf("dialed %v: %v", c, err)
			}
		})
	}
}

// TestAddressOfNoEndpoint checks that what names no single endpoint is refused at once, also as a
// literal.
func TestAddressOfNoEndpoint(t *testing.T) {
	for _, own := range []string{"udp", "udp:127.0.0.1", "udp:[::1]"} {
		a := opened(t, own, nil)
		for _, there := range []string{"0.0.0.0:7100", "[::]:7100", "255.255.255.255:7100", "224.0.0.1:7100", "[ff02::1%lo]:7100", "127.0.0.1:0"} {
			to := UDPAddr(netip.MustParseAddrPort(there))
			_, dialed := a.Dial("udp:" + there)
			_, found := a.Find(t.Context(), Peer{Addr: to})
			_, connected := a.Connect(Peer{ID: 9, Addr: to})
			for what, err := range map[string]error{"dial": dialed, "find": found, "connect": connected, "reach": a.Reaches(to)} {
				if err == nil || errors.Is(err, ErrPeerDown) {
					t.Errorf("%s %s from %s: %v", what, there, own, err)
				}
			}
		}
	}
}

// TestHostOverIPv6Alone checks that that address of a peer is taken to which a path leads, on a
// machine without a path for IPv4.
func TestHostOverIPv6Alone(t *testing.T) {
	netns.Require(t)
	pair := netns.NewPair(t, 1500)
	fixture.Names(t, map[string][]netip.Addr{"both.example": {netip.MustParseAddr("192.0.2.7"), netns.IPv6(1)}, "four.example": addresses("192.0.2.7")})
	pair[0].Take(t, netns.Device, netns.IPv4(0))
	var a, b *Endpoint
	pair[1].In(func() { b = opened(t, "udp:7100", &Config{AcceptAny: true}) })
	pair[0].In(func() { a = opened(t, "udp", nil) })
	for _, s := range []string{"udp:both.example:7100", strings.Replace(at(t, b, "127.0.0.1"), "127.0.0.1", "both.example", 1)} {
		c, err := a.Dial(s)
		if err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		wrote(t, c, b, 5)
		c.Close()
	}
	if _, err := a.Dial("udp:four.example:7100"); err == nil || !strings.Contains(err.Error(), "it has 192.0.2.7 (no way there: ") {
		t.Error(err)
	}
}

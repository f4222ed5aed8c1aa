package udp

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/transport"
)

// TestECN checks that each frame arrives with the mark with which it was sent, whatever is sent beside it, and to whom: over both versions
// of IP, from a socket at one address or at all of them, to one peer alone or to several.
func TestECN(t *testing.T) {
	const n = 40
	mixed := func(i int) transport.ECN { return []transport.ECN{transport.NotECT, transport.ECT0}[i/7%2] }
	for _, c := range []struct{ from, to, at string }{
		{"127.0.0.1", "127.0.0.1", "127.0.0.1"}, {"::1", "::1", "::1"}, {"::", "::1", "::1"}, {"::", "127.0.0.1", "127.0.0.1"}, {"0.0.0.0", "127.0.0.1", "127.0.0.1"}, {"127.0.0.1", "0.0.0.0", "127.0.0.1"},
		{"127.0.0.1", "::", "127.0.0.1"}, {"::1", "::", "::1"},
	} {
		for _, cfg := range []Config{{}, {NoGSO: true, NoGRO: true}} {
			t.Run(c.from+" to "+c.to, func(t *testing.T) {
				a, b, other := listen(t, c.from, cfg), listen(t, c.to, cfg), listen(t, c.at, cfg)
				if !a.Caps().ECN || !b.Caps().ECN {
					t.Fatalf("%+v, %+v", a.Caps(), b.Caps())
				}
				to := transport.UDPAddr(netip.AddrPortFrom(netip.MustParseAddr(c.at), b.local.Port()))
				elsewhere := other.LocalAddr()
				send := func(to *transport.Addr, mark func(i int) transport.ECN) (want []transport.ECN) {
					var batch []transport.Outgoing
					for i := range n {
						o := outgoing(*to, i, 500)
						o.To, o.ECN = to, mark(i)
						batch, want = append(batch, o), append(want, o.ECN)
					}
					if k, err := a.Send(batch); k != n || err != nil {
						t.Fatal(k, err)
					}
					return want
				}
				receive := func(c *Conn) (got []transport.ECN) {
					in := make([]transport.Datagram, 64)
					for len(got) < n {
						k, err := c.Recv(in, 5*time.Second)
						if k == 0 || err != nil {
							t.Fatalf("%d of %d frames: %v", len(got), n, err)
						}
						for _, d := range in[:k] {
							got = append(got, d.ECN)
						}
					}
					return got
				}
				check := func(c *Conn, want []transport.ECN) {
					t.Helper()
					if got := receive(c); !slices.Equal(got, want) {
						t.Errorf("arrived with %v, left with %v", got, want)
					}
				}
				all := func(m transport.ECN) func(int) transport.ECN { return func(int) transport.ECN { return m } }
				for _, mark := range []func(int) transport.ECN{all(transport.NotECT), mixed, all(transport.ECT0)} {
					check(b, send(&to, mark))
				}
				check(other, send(&elsewhere, all(transport.NotECT)))
				a.Focus(to)
				for _, mark := range []func(int) transport.ECN{all(transport.ECT0), mixed, all(transport.ECT0)} {
					check(b, send(&to, mark))
				}
				check(other, send(&elsewhere, all(transport.NotECT)))
				check(b, send(&to, all(transport.ECT0)))
				a.Focus(transport.Addr{})
				check(other, send(&elsewhere, all(transport.NotECT)))
				check(b, send(&to, mixed))

				// What comes to a socket that is connected.
				b.Focus(transport.UDPAddr(netip.AddrPortFrom(netip.MustParseAddr(c.at), a.local.Port())))
				check(b, send(&to, mixed))
			})
		}
	}
}

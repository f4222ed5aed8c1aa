package link

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/tests/netns"
)

// TestRenumbered checks that, when the machine that dials gets another address while a connection
// stands, what is dialed after that was given up leaves from the new address, on an endpoint of the
// host's and on one that it shares.
func TestRenumbered(t *testing.T) {
	t.Parallel()
	netns.Require(t)
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprintf("shared %v", shared), func(t *testing.T) {
			pair := netns.NewPair(t, 1500)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			var a, b *Host
			var ep *dgrdma.Endpoint
			var errA, errB error
			pair[1].In(func() { b, errB = Open("udp:7100", nil) })
			defer b.Close()
			pair[0].In(func() {
				if ep, errA = dgrdma.Open("udp?giveup=300ms", nil); errA == nil {
					a, errA = On(ep, 1<<20)
				}
				if !shared {
					a.Close()
					ep.Close()
					a, errA = Open("udp?giveup=300ms", nil)
				}
			})
			defer ep.Close()
			defer a.Close()
			if err := errors.Join(errA, errB); err != nil {
				t.Fatal(err)
			}
			port, err := b.Listen("x", nil)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				for {
					if _, err := port.Accept(ctx); err != nil {
						return
					}
				}
			}()
			dial := func() (at netip.Addr, err error) {
				var l *Link
				pair[0].In(func() {
					l, err = a.Dial(ctx, fmt.Sprintf("udp:%v:7100", netns.IPv4(1)), "x", &Options{Buffers: 4, Size: 1024})
				})
				if err != nil {
					return netip.Addr{}, err
				}
				defer l.Close()
				return l.Peer().Name().Addr.Local(), nil
			}
			dialedFrom := func(want netip.Addr) {
				t.Helper()
				for at, err := dial(); err != nil || at != want; at, err = dial() {
					if ctx.Err() != nil {
						t.Fatalf("from %v: %v; %v", at, err, a.Endpoint().Conns())
					}
				}
			}
			dialedFrom(netns.IPv4(0))
			another := netip.MustParseAddr("10.77.0.60")
			pair[0].Take(t, netns.Device, netns.IPv4(0))
			pair[0].Give(t, netns.Device, another)
			dialedFrom(another)
			if all := a.Endpoint().Conns(); len(all) != 1 {
				t.Errorf("there are %v", all)
			}
		})
	}
}

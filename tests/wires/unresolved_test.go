package wires

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/tests/netns"
)

// TestNobodyHasTheAddress (attack A15, SECURITY.md): an endpoint with the kernel's
// default buffers also has peers under addresses that nobody has. What is sent to
// them waits for their neighbours' answer in the kernel, and takes the room of
// the socket. A healthy peer is served all the same.
func TestNobodyHasTheAddress(t *testing.T) {
	eachWireAtOnce(t, func(t *testing.T, w wire) {
		if !w.datagrams {
			return
		}
		for _, profile := range []string{"opencpi2", "native"} {
			t.Run(profile, func(t *testing.T) {
				t.Parallel()
				nobodyHasTheAddress(t, w, profile)
			})
		}
	})
}

func nobodyHasTheAddress(t *testing.T, w wire, profile string) {
	pair := netns.NewPair(t, 1500)
	const slots, size, dead = 16, 32 << 10, 3
	a := open(t, pair[0], with(w.local(0), "sockbuf=default", "giveup=2s"), 1, slots, size)
	b := open(t, pair[1], with(w.local(1), "accept=any"), 2, slots, size)
	f := a.flow(a.dial(b.URL()), 0, slots, size)
	stop := background(f)
	goesOn(t, f)
	var stops [dead]func() error
	for i := range stops {
		ip := netns.Nobody(reached(1, b.LocalAddr()).AddrPort().Addr(), i).String()
		if strings.Contains(ip, ":") {
			ip = "[" + ip + "]"
		}
		to := a.dial(fmt.Sprintf("ocpi-udp-rdma:%s;7100;%d.%d.65535?profile=%s", ip, slots*stride(size), 10+i, profile))
		stops[i] = background(a.flow(to, 0, slots, size))
	}
	const intervals, long = 40, 100 * time.Millisecond
	idle := 0
	for range intervals {
		before := f.acked.Load()
		time.Sleep(long)
		if f.acked.Load() == before {
			idle++
		}
	}
	s := a.Stats()
	t.Logf("nothing in %d of %d intervals, %d in all; %+v", idle, intervals, f.acked.Load(), s.Transport)
	if idle > intervals*9/10 { // without the repair all but one; a busy machine lets it wait, too: 30 were seen
		t.Errorf("the healthy peer got nothing in %d of %d intervals", idle, intervals)
	}
	if profile == "native" && a.happened(dgrdma.PeerDown) != dead {
		t.Errorf("%d of %d peers given up", a.happened(dgrdma.PeerDown), dead)
	}
	for _, stop := range stops {
		stop()
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	b.verify(f)
}

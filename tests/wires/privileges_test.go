package wires

import (
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/tests/netns"
)

var nobody = &syscall.Credential{Uid: 65534, Gid: 65534}

// TestUnprivileged: UDP works for everyone, both ways.
func TestUnprivileged(t *testing.T) {
	eachUDP(t, func(t *testing.T, w wire) {
		pair := netns.NewPair(t, 1500)
		const slots, size, n = 16, 64 << 10, 100
		c := spawn(t, pair[1], nobody)
		a := open(t, pair[0], w.local(0), 1, slots, size)
		url := c.must(order{Open: w.local(1), ID: 2, Slots: slots, Size: size}).URL
		toC := a.dial(url)
		c.must(order{Dial: a.URL(), Slots: slots, Size: size})
		there := a.flow(toC, 0, slots, size)
		answered := c.start(order{Send: n})
		if err := there.send(n); err != nil {
			t.Fatal(err)
		}
		if back := answered(); back.Err != "" {
			t.Fatal(back.Err)
		}
		c.verify(there)
		if err := a.ledger.verify(counts(2, n)); err != nil {
			t.Fatal(err)
		}
	})
}

// TestEtherNeedsCapability: who lacks it is told which, and how to get it.
func TestEtherNeedsCapability(t *testing.T) {
	netns.Require(t)
	pair := netns.NewPair(t, 1500)
	c := spawn(t, pair[0], nobody)
	said := c.ask(order{Open: "ether:" + netns.Device, ID: 1, Slots: 1, Size: 8}).Err
	for _, word := range []string{"ether", netns.Device, "CAP_NET_RAW", "setcap"} {
		if !strings.Contains(strings.ToLower(said), strings.ToLower(word)) {
			t.Errorf("%q does not say %s", said, word)
		}
	}
}

// TestEtherWithCapability checks that CAP_NET_RAW is enough for all that Ethernet endpoints do: to receive through
// shared memory, and to send by AF_XDP, with the memory that an ordinary user may lock.
func TestEtherWithCapability(t *testing.T) {
	netns.Require(t)
	for _, options := range []string{"", "?ring=on&xdp=on", "?ring=off&xdp=off"} {
		t.Run(options, func(t *testing.T) {
			pair := netns.NewPair(t, 1500)
			const slots, size, n = 16, 64 << 10, 100
			a := open(t, pair[0], "ether:"+netns.Device, 1, slots, size)
			c := spawn(t, pair[1], nobody, unix.CAP_NET_RAW)
			url := c.must(order{Open: "ether:" + netns.Device + options, ID: 2, Slots: slots, Size: size}).URL
			toC := a.dial(url)
			c.must(order{Dial: a.URL(), Slots: slots, Size: size})
			there := a.flow(toC, 0, slots, size)
			answered := c.start(order{Send: n})
			if err := there.send(n); err != nil {
				t.Fatal(err)
			}
			if back := answered(); back.Err != "" {
				t.Fatal(back.Err)
			}
			c.verify(there)
			if err := a.ledger.verify(counts(2, n)); err != nil {
				t.Fatal(err)
			}
		})
	}
}

package rtnl_test

import (
	"slices"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/dgrdma/dgrdma/tests/netns"
)

// TestQdiscs checks that the queueing disciplines of an interface are told, and not those of others.
func TestQdiscs(t *testing.T) {
	netns.Require(t)
	pair := netns.NewPair(t, 1500)
	s := open(t, pair[0])
	var index, other int
	pair[0].In(func() {
		for _, name := range []string{netns.Device, "lo"} {
			link, err := netlink.LinkByName(name)
			if err != nil {
				t.Fatal(err)
			}
			index, other = link.Attrs().Index, index
		}
	})
	index, other = other, index
	kinds := func(index int) []string {
		t.Helper()
		kinds, err := s.Qdiscs(index)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(kinds)
		return kinds
	}
	if got := kinds(index); !slices.Equal(got, []string{"noqueue"}) {
		t.Errorf("at first: %q", got)
	}
	pair[0].In(func() {
		for _, q := range []netlink.Qdisc{
			&netlink.Tbf{
				QdiscAttrs: netlink.QdiscAttrs{LinkIndex: index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT}, Rate: 1 << 20, Limit: 1 << 20, Buffer: 1 << 20,
			},
			&netlink.GenericQdisc{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_INGRESS}, QdiscType: "clsact"},
		} {
			if err := netlink.QdiscAdd(q); err != nil {
				t.Fatal(err)
			}
		}
	})
	if got := kinds(index); !slices.Contains(got, "tbf") || !slices.Contains(got, "clsact") || slices.Contains(got, "noqueue") {
		t.Errorf("with two: %q", got)
	}
	if got := kinds(other); !slices.Equal(got, []string{"noqueue"}) {
		t.Errorf("lo: %q", got)
	}
	if _, err := s.LinkByIndex(index); err != nil {
		t.Errorf("the next question: %v", err)
	}
	s.Close()
	if _, err := s.Qdiscs(index); err == nil {
		t.Error("closed, and it answers")
	}
}

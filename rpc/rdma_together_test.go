package rpc

import (
	"testing"

	"github.com/dgrdma/dgrdma/xdr"
)

// TestGoesAlone checks which calls and replies wait for others to be sent with them: all but those whose items, with the room that a
// call makes for that of its reply, have aloneFrom octets.
func TestGoesAlone(t *testing.T) {
	item := func(n int) xdr.Item { return xdr.Item{Data: make([]byte, n)} }
	for _, c := range []struct {
		name  string
		room  int
		items []xdr.Item
		alone bool
	}{
		{"no items", 0, nil, false},
		{"a short reply", 64 << 10, nil, false},
		{"short arguments", 0, []xdr.Item{item(64 << 10)}, false},
		{"almost a long reply", aloneFrom - 1, nil, false},
		{"a long reply", aloneFrom, nil, true},
		{"almost long arguments", 0, []xdr.Item{item(aloneFrom - 1)}, false},
		{"long arguments", 0, []xdr.Item{item(aloneFrom)}, true},
		{"long arguments of two items", 0, []xdr.Item{item(aloneFrom / 2), item(aloneFrom / 2)}, true},
		{"arguments and a reply that are long together", 1, []xdr.Item{item(aloneFrom - 1)}, true},
		{"arguments and a reply that are almost long together", 1, []xdr.Item{item(aloneFrom - 2)}, false},
	} {
		if alone := goesAlone(c.room, c.items); alone != c.alone {
			t.Errorf("%s: goes alone %v, want %v", c.name, alone, c.alone)
		}
	}
}

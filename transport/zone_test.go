package transport

import (
	"net"
	"strconv"
	"testing"
)

// TestScope: a zone is an interface of this machine, by name or number, and what is none is
// said to be none.
func TestScope(t *testing.T) {
	all, err := net.Interfaces()
	if err != nil || len(all) == 0 {
		t.Skip("no interface:", err)
	}
	x := all[0]
	for _, c := range []struct {
		zone string
		want uint32
		says string
	}{
		{"", 0, ""},
		{x.Name, uint32(x.Index), ""},
		{strconv.Itoa(x.Index), uint32(x.Index), ""},
		{"nosuch0", 0, "no interface nosuch0 here: the part behind % names an interface of this machine"},
		{"2000000000", 2000000000, "no interface 2000000000 here: the part behind % names an interface of this machine"},
	} {
		got, err := Scope(c.zone)
		if got != c.want || (err == nil) != (c.says == "") || err != nil && err.Error() != c.says {
			t.Errorf("%q: %d, %v; want %d, %s", c.zone, got, err, c.want, c.says)
		}
	}
}

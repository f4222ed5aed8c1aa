package rpcrdma

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// connProp makes a CONNPROP of words of its body.
func connProp(body ...uint32) []byte {
	return wire(join(prefix(Version2, TypeConnProp, 0), body)...)
}

// said has a Decoder read a CONNPROP, and a side with default properties take it over.
func said(t *testing.T, b []byte) Properties {
	t.Helper()
	h, _ := taken(t, NewDecoder(DefaultLimits()), b)
	p := DefaultProperties()
	if !p.Apply(h.Properties) {
		t.Fatalf("%x is not taken over", b)
	}
	p.count, p.octets = 0, 0
	return p
}

// with returns the default properties but for some.
func with(f func(*Properties)) Properties {
	p := DefaultProperties()
	f(&p)
	return p
}

// TestProperties checks the values of properties: their defaults, bounds, unknown ones, doubles, any order
// (RPC2-069 to 074, 108).
func TestProperties(t *testing.T) {
	for _, c := range []struct {
		name string
		body []uint32
		want Properties
	}{
		{"none", []uint32{0}, DefaultProperties()},
		{"an unknown one", []uint32{3, 7, 0, 0, 5, 0x01020304, 0x05000000, 1 << 31, 0}, DefaultProperties()},
		{"one of number 0", []uint32{2, 5, 4, 3, 0, 4, 2}, with(func(p *Properties) { p.Reverse = ReverseGeneral })},
		{"sizes", []uint32{2, 1, 4, 8192, 2, 4, 16384}, with(func(p *Properties) { p.SendSize, p.ReceiveSize = 8192, 16384 })},
		{"in another order", []uint32{2, 2, 4, 16384, 1, 4, 8192}, with(func(p *Properties) { p.SendSize, p.ReceiveSize = 8192, 16384 })},
		{"the lowest", []uint32{5, 1, 4, 1024, 2, 4, 1024, 3, 4, 1, 4, 4, 1, 5, 4, 0}, with(func(p *Properties) {
			p.SendSize, p.ReceiveSize, p.SegmentSize, p.SegmentCount = 1024, 1024, 1, 1
		})},
		{"the highest", []uint32{5, 1, 4, 1<<32 - 1, 2, 4, 1<<20 + 1, 3, 4, 1<<32 - 1, 4, 4, 1<<16 + 1, 5, 4, 99}, with(func(p *Properties) {
			p.SendSize, p.ReceiveSize, p.SegmentSize, p.SegmentCount, p.Reverse = 1<<20, 1<<20, 1<<32-1, 1<<16, ReverseGeneral
		})},
		{"the last of two", []uint32{2, 1, 4, 8192, 1, 4, 2048}, with(func(p *Properties) { p.SendSize = 2048 })},
		{"the default after another one", []uint32{2, 1, 4, 8192, 1, 0}, DefaultProperties()},
		{"defaults", []uint32{6, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0}, DefaultProperties()},
		{"an empty message", []uint32{1, 6, 4, 0}, with(func(p *Properties) { p.HostAuth = []byte{} })},
		{"a message", []uint32{1, 6, 12, 5, 0x61626364, 0x65ffffff}, with(func(p *Properties) { p.HostAuth = []byte("abcde") })},
		{"and none after it", []uint32{2, 6, 12, 5, 0x61626364, 0x65000000, 6, 0}, DefaultProperties()},
	} {
		if got := said(t, connProp(c.body...)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	for level, want := range map[uint32]Reverse{0: ReverseNone, 1: ReverseSimple, 2: ReverseContinued, 3: ReverseGeneral, 4: ReverseGeneral} {
		if got := said(t, connProp(1, 5, 4, level)); got.Reverse != want {
			t.Errorf("level %d is %d", level, got.Reverse)
		}
	}
}

// TestBadProperties checks what is answered to properties that are none: BAD_PROPVAL, by either side, for values; BAD_XDR for what
// is around them. In either case nothing of the message is applied (RPC2-070, 090, 108, 109).
func TestBadProperties(t *testing.T) {
	good := []uint32{1, 4, 8192}
	for name, body := range map[string][]uint32{
		"without data of its length": {1, 1, 3, 0}, "with more data": {1, 1, 8, 4096, 0}, "two octets": {1, 5, 2, 1 << 16},
		"short sends": {1, 1, 4, 1023}, "short receives": {1, 2, 4, 1023}, "no receives": {1, 2, 4, 0}, "empty segments": {1, 3, 4, 0}, "no segments": {1, 4, 4, 0},
		"after a good one":         join([]uint32{2}, good, []uint32{2, 4, 5}),
		"a message without length": {1, 6, 2, 0}, "a message that is shorter": {1, 6, 8, 0, 0}, "a message that is longer": {1, 6, 8, 5, 0},
		"a message of 4 GiB": {1, 6, 8, 1<<32 - 1, 0}, "a message of 4 GiB less 4": {1, 6, 4, 1<<32 - 4},
		"longer than the CONNPROP": {1, 1, 8, 4096}, "unknown and longer": {1, 77, 5, 4096}, "wrapping": {1, 77, 1<<32 - 1, 4096}, "of 2^31": {1, 77, 1 << 31, 4096},
	} {
		f := refused(t, NewDecoder(DefaultLimits()), connProp(body...))
		if code(f) != "BAD_PROPVAL" || !f.EitherSide() {
			t.Errorf("%s: %v, by either side: %v", name, f, f.EitherSide())
		}
	}
	for name, body := range map[string][]uint32{
		"no count": {}, "a count beyond": {2, 1, 0}, "a count that wraps": {1 << 29, 1, 0}, "2^30": {1 << 30, 1, 0}, "2^32-1": {1<<32 - 1, 1, 0},
		"cut after data": {2, 77, 8, 0, 0}, "65 where there is room for 64": join([]uint32{65}, make([]uint32, 2*64+1)), "words after": {1, 1, 0, 0}, "words after none": {0, 0},
	} {
		if f := refused(t, NewDecoder(DefaultLimits()), connProp(body...)); code(f) != "BAD_XDR" || f.EitherSide() {
			t.Errorf("%s: %v, by either side: %v", name, f, f.EitherSide())
		}
	}
	words := prefix(Version2, TypeConnProp, 0)
	words[0] = 0
	if f := refused(t, NewDecoder(DefaultLimits()), wire(join(words, []uint32{0})...)); code(f) != "BAD_XDR" {
		t.Errorf("xid 0: %v", f)
	}
}

// TestCutProperties checks that a CONNPROP that is cut at any octet is refused, and nothing of it applied (RPC2-070).
func TestCutProperties(t *testing.T) {
	b := connProp(3, 1, 4, 8192, 77, 5, 1, 0, 6, 12, 5, 0, 0)
	taken(t, NewDecoder(DefaultLimits()), b)
	for n := PrefixSize2; n < len(b); n++ {
		f := refused(t, NewDecoder(DefaultLimits()), b[:n])
		if c := code(f); c != "BAD_XDR" && c != "BAD_PROPVAL" {
			t.Errorf("cut at %d: %v", n, f)
		}
	}
}

// TestMostProperties checks the bounds of what a connection may say of itself, in one message and in all (RPC2-070).
func TestMostProperties(t *testing.T) {
	many := func(n, size int) []byte {
		h := Header{XID: 1, Version: 2, Type: TypeConnProp}
		for range n {
			h.Properties = append(h.Properties, Property{77, make([]byte, size)})
		}
		return h.Append(nil)
	}
	d := NewDecoder(DefaultLimits())
	taken(t, d, many(64, 0))
	taken(t, d, many(1, 4096))
	for name, b := range map[string][]byte{"65": many(65, 0), "one of 4097 octets": many(1, 4097), "10,000": many(10000, 0)} {
		if f := refused(t, d, b); code(f) != "BAD_PROPVAL" {
			t.Errorf("%s: %v", name, f)
		}
	}
	// By TPMORE a connection says them in parts.
	list := func(n, size int) (l []Property) {
		for range n {
			l = append(l, Property{77, make([]byte, size)})
		}
		return append(l, Property{PropertySendSize, wire(2048)})
	}
	p := DefaultProperties()
	for range 2 {
		if !p.Apply(list(31, 0)) || p.SendSize != 2048 {
			t.Error("64 properties are not taken over")
		}
	}
	p.SendSize = 4096
	if p.Apply(list(0, 0)) || p.SendSize != 4096 {
		t.Error("a 65th is taken over")
	}
	p = DefaultProperties()
	if !p.Apply(list(15, 4096)) || p.Apply(list(1, 4096-7)) || !p.Apply(list(1, 4096-8)) || p.Apply(list(0, 0)) {
		t.Error("64 KiB is not the bound of all")
	}
}

// TestList checks that a side says what differs from the defaults, and that it comes back (RPC2-069, 071), within the 1024 octets of
// a client's first message.
func TestList(t *testing.T) {
	p := DefaultProperties()
	if l := p.List(); len(l) != 0 {
		t.Errorf("defaults are said: %+v", l)
	}
	for name, p := range map[string]Properties{
		"all":     {SendSize: 1024, ReceiveSize: 1 << 20, SegmentSize: 1, SegmentCount: 1 << 16, Reverse: ReverseContinued, HostAuth: []byte("secret")},
		"one":     with(func(p *Properties) { p.Reverse = ReverseSimple }),
		"nothing": with(func(p *Properties) { p.HostAuth = []byte{} }),
	} {
		h := Header{XID: 9, Version: 2, Type: TypeConnProp, Properties: p.List()}
		if want := map[string]int{"all": 6, "one": 1, "nothing": 1}[name]; len(h.Properties) != want {
			t.Errorf("%s: %+v", name, h.Properties)
		}
		b := h.Append(nil)
		if got := said(t, b); !reflect.DeepEqual(got, p) {
			t.Errorf("%s: %+v comes back as %+v", name, p, got)
		}
		if len(b) > FirstThreshold2 || len(b) != h.Size() {
			t.Errorf("%s: %d octets", name, len(b))
		}
	}
	p.HostAuth = []byte("abcde")
	if b := (&Header{XID: 9, Version: 2, Type: TypeConnProp, Properties: p.List()}).Append(nil); !bytes.HasSuffix(b, wire(1, 6, 12, 5, 0x61626364, 0x65000000)) {
		t.Errorf("%x", b)
	}
}

// TestThreshold2 checks that the threshold toward the peer is what both sides can, and at least 1024 (RPC2-021, 024, 072).
func TestThreshold2(t *testing.T) {
	for _, c := range []struct{ send, receive, want uint32 }{{4096, 4096, 4096}, {8192, 4096, 4096}, {2048, 4096, 2048}, {512, 4096, 1024}, {1 << 20, 1 << 20, 1 << 20}} {
		local, peer := DefaultProperties(), DefaultProperties()
		local.SendSize, peer.ReceiveSize = c.send, c.receive
		if got := Threshold2(&local, &peer); got != int(c.want) {
			t.Errorf("%d to %d: %d, want %d", c.send, c.receive, got, c.want)
		}
	}
	if local, peer := DefaultProperties(), DefaultProperties(); Threshold2(&local, &peer) != DefaultThreshold2 {
		t.Error("the default is not 4096")
	}
}

// TestReasons checks that reasons are words that a report can show.
func TestReasons(t *testing.T) {
	f := refused(t, NewDecoder(DefaultLimits()), connProp(1, 1, 4, 5))
	if s := fmt.Sprint(f); !strings.Contains(s, "below its bounds at octet 36") {
		t.Error(s)
	}
}

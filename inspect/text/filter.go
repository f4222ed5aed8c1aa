package text

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/frame"
)

// Filter chooses frames. A frame must fit each list that is not empty, and fits
// a list by any of its values.
type Filter struct {
	IDs    []frame.EndpointID // of the source or the destination
	Ends   []End              // likewise
	Txns   []uint32           // of a message
	Ranges []Range            // that a message writes to
}

// Match reports whether v is chosen.
func (f *Filter) Match(v *View) bool {
	return (len(f.IDs) == 0 || v.Kind != None && (slices.Contains(f.IDs, v.Header.Src) || slices.Contains(f.IDs, v.Header.Dst))) &&
		(len(f.Ends) == 0 || slices.ContainsFunc(f.Ends, func(e End) bool { return e.is(v.Packet.Src) || e.is(v.Packet.Dst) })) &&
		(len(f.Txns) == 0 || f.txn(v)) &&
		(len(f.Ranges) == 0 || f.written(v))
}

// txn leaves hellos out: they name transactions that did not begin.
func (f *Filter) txn(v *View) bool {
	return v.Kind != Hello && slices.ContainsFunc(v.Messages, func(m Message) bool { return slices.Contains(f.Txns, m.Txn) })
}

func (f *Filter) written(v *View) bool {
	return slices.ContainsFunc(v.Messages, func(m Message) bool {
		return slices.ContainsFunc(f.Ranges, func(r Range) bool {
			return m.Len > 0 && r.overlaps(m.Addr, int(m.Len)) || m.Completes() && r.overlaps(m.CompletionAddr, 4)
		})
	})
}

// Range is a stretch of a memory.
type Range struct{ First, Last uint32 }

func (r Range) overlaps(addr uint32, n int) bool {
	return uint64(addr) <= uint64(r.Last) && uint64(addr)+uint64(n) > uint64(r.First)
}

// ParseRange reads "ADDR", "FIRST-LAST" or "FIRST+LENGTH", in decimal or, after
// 0x, hexadecimal.
func ParseRange(s string) (r Range, err error) {
	a, b, dash := strings.Cut(s, "-")
	plus := false
	if !dash {
		a, b, plus = strings.Cut(s, "+")
	}
	first, err := strconv.ParseUint(a, 0, 32)
	last := first
	if err == nil && (dash || plus) {
		last, err = strconv.ParseUint(b, 0, 33)
	}
	if plus {
		last += first - 1
	}
	if err != nil || last < first || last > 1<<32-1 {
		return Range{}, fmt.Errorf("%q is no range of addresses: need ADDR, FIRST-LAST or FIRST+LENGTH, as in 0x1000-0x1fff", s)
	}
	return Range{uint32(first), uint32(last)}, nil
}

// End is where frames come from or go to: an IP address with or without port, or
// a hardware address.
type End struct {
	ip      netip.Addr
	port    uint16
	anyPort bool
	mac     [6]byte
}

// ParseEnd reads "10.0.0.1", "10.0.0.1:7100", "fd00::1", "[fd00::1]:7100" or
// "02:00:00:00:00:01".
func ParseEnd(s string) (End, error) {
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return End{ip: ap.Addr().Unmap(), port: ap.Port()}, nil
	}
	if ip, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return End{ip: ip.Unmap(), anyPort: true}, nil
	}
	if mac, err := net.ParseMAC(s); err == nil && len(mac) == 6 {
		return End{mac: [6]byte(mac)}, nil
	}
	return End{}, fmt.Errorf("%q is no address: need an IP address, one with port, or a hardware address", s)
}

func (e End) is(a capture.Addr) bool {
	if !a.UDP.IsValid() {
		return !e.ip.IsValid() && e.mac == a.MAC
	}
	return e.ip.IsValid() && e.ip == a.UDP.Addr().Unmap() && (e.anyPort || e.port == a.UDP.Port())
}

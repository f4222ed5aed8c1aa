package udp

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/transport"
)

// control makes control messages as the kernel does.
func control(all ...[]byte) (b []byte) {
	for _, one := range all {
		b = append(b, one...)
	}
	return b
}

func message(level, kind int32, content []byte) []byte {
	b := make([]byte, unix.CmsgSpace(len(content)))
	binary.NativeEndian.PutUint64(b, uint64(unix.CmsgLen(len(content)))) // little-endian hosts of 32 bits have it in the first four
	at := unix.SizeofCmsghdr - 8
	binary.NativeEndian.PutUint32(b[at:], uint32(level))
	binary.NativeEndian.PutUint32(b[at+4:], uint32(kind))
	copy(b[unix.CmsgLen(0):], content)
	return b
}

func pktinfo4(source, destination string) []byte {
	b := binary.NativeEndian.AppendUint32(nil, 3)
	for _, s := range []string{source, destination} {
		b = append(b, netip.MustParseAddr(s).AsSlice()...)
	}
	return message(unix.IPPROTO_IP, unix.IP_PKTINFO, b)
}

func pktinfo6(destination string, ifi uint32) []byte {
	ip := netip.MustParseAddr(destination).As16()
	return message(unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, binary.NativeEndian.AppendUint32(ip[:], ifi))
}

func gro(n uint32) []byte {
	return message(unix.SOL_UDP, unix.UDP_GRO, binary.NativeEndian.AppendUint32(nil, n))
}

// TestTold: which of our addresses was asked is read from what the kernel says, in any order;
// what was sent to several machines asks none.
func TestTold(t *testing.T) {
	for name, c := range map[string]struct {
		control []byte
		segment int
		asked   string
	}{
		"nothing":                  {nil, 0, ""},
		"one datagram of IPv4":     {pktinfo4("10.0.0.1", "10.0.0.1"), 0, "10.0.0.1"},
		"IPv4 through IPv6":        {control(pktinfo6("::ffff:10.0.0.1", 3), gro(1400), pktinfo4("10.0.0.1", "10.0.0.1")), 1400, "10.0.0.1"},
		"the other way round":      {control(pktinfo4("10.0.0.1", "10.0.0.1"), gro(1400), pktinfo6("::ffff:10.0.0.1", 3)), 1400, "10.0.0.1"},
		"broadcast":                {control(pktinfo6("::ffff:10.0.0.255", 3), pktinfo4("10.0.0.1", "10.0.0.255")), 0, ""},
		"IPv4 group":               {control(pktinfo6("::ffff:224.0.0.1", 3), pktinfo4("10.0.0.1", "224.0.0.1")), 0, ""},
		"IPv4, nothing more known": {pktinfo6("::ffff:10.0.0.1", 3), 0, ""},
		"IPv6":                     {control(gro(900), pktinfo6("fd00::1", 3)), 900, "fd00::1"},
		"IPv6 of a link":           {pktinfo6("fe80::1", 1), 0, "fe80::1%lo"},
		"IPv6 group":               {pktinfo6("ff02::1", 1), 0, ""},
		"unspecified":              {pktinfo6("::", 1), 0, ""},
		"too short":                {message(unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, make([]byte, 19)), 0, ""},
		"another kind":             {control(message(unix.SOL_SOCKET, unix.IPV6_PKTINFO, make([]byte, 20)), gro(7)), 7, ""},
		"offload, too short":       {message(unix.SOL_UDP, unix.UDP_GRO, make([]byte, 2)), 0, ""},
		"offload of -1":            {gro(1<<32 - 1), 0, ""},
		"cut":                      {pktinfo6("fd00::1", 3)[:unix.CmsgLen(20)-1], 0, ""},
	} {
		var r told
		r.read(c.control)
		asked := ""
		if r.ours {
			asked = new(zones).address(&r.asked).String()
		}
		if asked != c.asked || r.segment != c.segment {
			t.Errorf("%s: asked %q, runs of %d; want %q, %d", name, asked, r.segment, c.asked, c.segment)
		}
		if !r.ours && r.asked != (home{}) {
			t.Errorf("%s: an address that is not ours: %v", name, r.asked)
		}
	}
}

// FuzzTold: whatever the control messages are, what is read is one of ours, or nothing, and it
// goes back as it came.
func FuzzTold(f *testing.F) {
	f.Add(control(pktinfo6("::ffff:10.0.0.1", 3), gro(1400), pktinfo4("10.0.0.1", "10.0.0.1")))
	f.Add(pktinfo6("fe80::1", 1))
	f.Add(message(0, 0, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var r told
		r.read(b)
		if r.segment < 0 {
			t.Errorf("runs of %d", r.segment)
		}
		if !r.ours {
			return
		}
		var z zones
		ip := z.address(&r.asked)
		if !ip.IsValid() || ip.IsMulticast() || ip.IsUnspecified() || ip.Is4In6() {
			t.Errorf("asked %v", ip)
		}
		if back := z.appendHome(nil, ip, true); len(back) != len(r.asked) || ip.Zone() == "" && [20]byte(back) != r.asked {
			t.Errorf("asked % x, answered from % x", r.asked, back)
		}
	})
}

// TestAppendHome: an address leaves as the socket's own kind of control message has it.
func TestAppendHome(t *testing.T) {
	var z zones
	four, six := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fe80::1%lo")
	if b := z.appendHome(nil, netip.Addr{}, true); len(b) != 0 {
		t.Errorf("no address: % x", b)
	}
	if b := z.appendHome(nil, four, false); string(b) != "\x00\x00\x00\x00\x0a\x00\x00\x01\x00\x00\x00\x00" {
		t.Errorf("IPv4 alone: % x", b)
	}
	mapped := transport.UDPAddr(netip.AddrPortFrom(netip.MustParseAddr("::ffff:10.0.0.1"), 0)).AddrPort().Addr()
	for _, ip := range []netip.Addr{four, six, mapped} {
		if got := z.address((*home)(z.appendHome(nil, ip, true))); got != ip {
			t.Errorf("%v went out as %v", ip, got)
		}
	}
}

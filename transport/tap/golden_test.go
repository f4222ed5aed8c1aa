package tap_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
	"github.com/dgrdma/dgrdma/transport/tap"
)

const goldenFileHeader = `
	4d3cb2a1 0200 0400  00000000 00000000  00000400 01000000`

// 2023-11-14 22:13:20.123456789 UTC.
const goldenTime = `00f15365 15cd5b07`

// The frame 01 02 .. 0b from the first to the second address.
var golden = map[string]struct {
	from, to transport.Addr
	record   string
}{
	"Sim": {simnet.Addr(1), simnet.Addr(0x01020304), `
		19000000 19000000
		020001020304 020000000001 f042
		0102030405060708090a0b`},
	"Ether": {
		transport.EtherAddr([6]byte{0x02, 0xaa, 0, 0, 0, 1}),
		transport.EtherAddr([6]byte{0x02, 0xbb, 0, 0, 0, 2}), `
		19000000 19000000
		02bb00000002 02aa00000001 f042
		0102030405060708090a0b`},
	"IPv4": {udp("192.0.2.1:18077"), udp("198.51.100.2:40000"), `
		37000000 37000000
		0200c6336402 0200c0000201 0800
		4500 0029 0000 4000 40 11 4e8d c0000201 c6336402
		469d 9c40 0015 0c91
		0000 0102030405060708090a0b`},
	"IPv6": {udp("[2001:db8::1]:18077"), udp("[2001:db8::a:b]:40000"), `
		4b000000 4b000000
		0200000a000b 020000000001 86dd
		60000000 0015 11 40
		20010db8000000000000000000000001
		20010db80000000000000000000a000b
		469d 9c40 0015 9d40
		0000 0102030405060708090a0b`},
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestGoldenRecords(t *testing.T) {
	for name, tc := range golden {
		t.Run(name, func(t *testing.T) {
			n := simnet.New(1)
			defer n.Close()
			var sent, received bytes.Buffer
			a := newTap(t, n.Attach(tc.from, simnet.Config{}), &sent, tap.Options{Now: fixedClock})
			b := newTap(t, n.Attach(tc.to, simnet.Config{}), &received, tap.Options{Now: fixedClock})
			mustSend(t, a, tc.to, "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b")
			if _, err := b.Recv(make([]transport.Datagram, 1), transport.Forever); err != nil {
				t.Fatal(err)
			}
			want := unhex(t, goldenFileHeader+goldenTime+tc.record)
			if !bytes.Equal(sent.Bytes(), want) {
				t.Errorf("sent\n got %x\nwant %x", sent.Bytes(), want)
			}
			if !bytes.Equal(received.Bytes(), want) {
				t.Errorf("received\n got %x\nwant %x", received.Bytes(), want)
			}
		})
	}
}

type record struct {
	when     time.Time
	original int
	packet   []byte
}

// parse reads a capture file and fails on anything but whole records.
func parse(t *testing.T, b []byte, snapLen int) (records []record) {
	t.Helper()
	le := binary.LittleEndian
	if len(b) < 24 || le.Uint32(b) != 0xa1b23c4d || le.Uint32(b[16:]) != uint32(snapLen) || le.Uint32(b[20:]) != 1 {
		t.Fatalf("file header % x", b[:min(24, len(b))])
	}
	for b = b[24:]; len(b) > 0; {
		if len(b) < 16 || len(b) < 16+int(le.Uint32(b[8:])) {
			t.Fatalf("the file ends within a record: % x", b)
		}
		kept := int(le.Uint32(b[8:]))
		records = append(records, record{
			when:     time.Unix(int64(le.Uint32(b)), int64(le.Uint32(b[4:]))),
			original: int(le.Uint32(b[12:])),
			packet:   b[16 : 16+kept],
		})
		b = b[16+kept:]
	}
	return records
}

func wantRecords(t *testing.T, got, want []record) {
	t.Helper()
	same := func(a, b record) bool {
		return a.when.Equal(b.when) && a.original == b.original && bytes.Equal(a.packet, b.packet)
	}
	if !slices.EqualFunc(got, want, same) {
		t.Errorf("records\n got %v\nwant %v", got, want)
	}
}

// onesSum is the Internet checksum by the book: with carries at the end only.
func onesSum(parts ...[]byte) uint16 {
	var s uint64
	for _, p := range parts {
		for i, b := range p {
			s += uint64(b) << (8 * (1 - i%2))
		}
	}
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

// Packets with all lengths must verify: a sum over everything that a checksum
// covers, itself included, is ffff.
func TestUDPRoundTrip(t *testing.T) {
	for name, tc := range map[string]struct {
		from, to   transport.Addr
		srcIP, dst string // as in the packet
	}{
		"IPv4":         {udp("192.0.2.1:1"), udp("198.51.100.2:2"), "192.0.2.1", "198.51.100.2"},
		"IPv6":         {udp("[2001:db8::1]:1"), udp("[::1]:2"), "2001:db8::1", "::1"},
		"Unspecified4": {udp("[::]:1"), udp("198.51.100.2:2"), "0.0.0.0", "198.51.100.2"},
		"Unspecified6": {udp("0.0.0.0:1"), udp("[2001:db8::1]:2"), "::", "2001:db8::1"},
		"PeerUnknown":  {udp("192.0.2.1:1"), udp("[::]:2"), "192.0.2.1", "0.0.0.0"},
		"Mixed":        {udp("192.0.2.1:1"), udp("[2001:db8::1]:2"), "::ffff:192.0.2.1", "2001:db8::1"},
		"Invalid":      {transport.UDPAddr(netip.AddrPortFrom(netip.Addr{}, 1)), udp("198.51.100.2:2"), "0.0.0.0", "198.51.100.2"},
	} {
		t.Run(name, func(t *testing.T) {
			n := simnet.New(1)
			defer n.Close()
			var file bytes.Buffer
			a := newTap(t, n.Attach(tc.from, simnet.Config{MTU: 1 << 17}), &file, tap.Options{})
			frame := bytes.Repeat([]byte{0xff, 0xfe, 0x80, 7, 0}, 1<<17/5)
			sizes := []int{0, 1, 2, 3, 10, 1490, 65497, 1 << 16}
			for _, size := range sizes {
				mustSend(t, a, tc.to, string(frame[:size]))
			}
			records := parse(t, file.Bytes(), tap.DefaultSnapLen)
			if len(records) != len(sizes) {
				t.Fatalf("%d records", len(records))
			}
			for i, r := range records {
				checkUDP(t, r.packet, netip.MustParseAddr(tc.srcIP), netip.MustParseAddr(tc.dst), frame[:sizes[i]])
			}
		})
	}
}

func checkUDP(t *testing.T, packet []byte, src, dst netip.Addr, frame []byte) {
	t.Helper()
	be := binary.BigEndian
	size := 10 + len(frame)
	lengthOf := func(n int) uint16 {
		if n > 0xffff {
			return 0
		}
		return uint16(n)
	}
	ip := packet[14:]
	var addrs, datagram []byte
	var ok bool
	if src.Is4() {
		addrs, datagram = ip[12:20], ip[20:]
		ok = be.Uint16(packet[12:]) == 0x0800 && be.Uint16(ip[2:]) == lengthOf(20+size) && onesSum(ip[:20]) == 0xffff
	} else {
		addrs, datagram = ip[8:40], ip[40:]
		ok = be.Uint16(packet[12:]) == 0x86dd && be.Uint16(ip[4:]) == lengthOf(size)
	}
	if !ok {
		t.Errorf("%d bytes: IP header % x", len(frame), packet[:len(packet)-size])
	}
	if !bytes.Equal(addrs, append(src.AsSlice(), dst.AsSlice()...)) {
		t.Errorf("addresses % x, want %v and %v", addrs, src, dst)
	}
	if be.Uint16(datagram) != 1 || be.Uint16(datagram[2:]) != 2 || be.Uint16(datagram[4:]) != lengthOf(size) {
		t.Errorf("%d bytes: UDP header % x", len(frame), datagram[:8])
	}
	pseudo := be.AppendUint32([]byte{0, 17}, uint32(size))
	if onesSum(addrs, pseudo, datagram) != 0xffff || be.Uint16(datagram[6:]) == 0 {
		t.Errorf("%d bytes: UDP checksum %x", len(frame), datagram[6:8])
	}
	if !bytes.Equal(datagram[8:10], []byte{0, 0}) || !bytes.Equal(datagram[10:], frame) {
		t.Errorf("%d bytes: wrong payload", len(frame))
	}
}

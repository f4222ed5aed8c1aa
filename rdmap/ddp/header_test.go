package ddp_test

import (
	"encoding/hex"
	"testing"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// RDMAP-007: the octets of RDMAP are brought over as they are. The headers are those of frames that tshark has decoded.
func TestGoldenHeaders(t *testing.T) {
	for _, c := range []struct {
		name, wire string
		h          ddp.Header
	}{
		{"Write", "c140000001000000000000002000", ddp.Header{Tagged: true, Last: true, Control: 0x40, STag: 0x100, TO: 0x2000}},
		{"Write, more to come", "8140000001000000000000002000", ddp.Header{Tagged: true, Control: 0x40, STag: 0x100, TO: 0x2000}},
		{"Atomic Request", "414a00000000000000010000000100000000", ddp.Header{Last: true, Control: 0x4a, QN: 1, MSN: 1}},
		{"Atomic Response", "414b00000000000000030000000100000000", ddp.Header{Last: true, Control: 0x4b, QN: 3, MSN: 1}},
		{"Terminate", "414700000000000000020000000100000000", ddp.Header{Last: true, Control: 0x47, QN: 2, MSN: 1}},
		{"Send with Invalidate, second segment", "0144deadbe0000000000000000070000058c", ddp.Header{Control: 0x44, Invalidate: 0xdeadbe00, MSN: 7, MO: 1420}},
	} {
		t.Run(c.name, func(t *testing.T) {
			wire, err := hex.DecodeString(c.wire)
			if err != nil {
				t.Fatal(err)
			}
			var b [ddp.UntaggedHeader]byte
			if n := c.h.Put(b[:]); hex.EncodeToString(b[:n]) != c.wire {
				t.Errorf("Put wrote %x, want %s", b[:n], c.wire)
			}
			var h ddp.Header
			if err := ddp.Parse(append(wire, "payload"...), &h); err != nil || h != c.h {
				t.Errorf("Parse: %+v, %v; want %+v", h, err, c.h)
			}
			if h.Size() != len(wire) || ddp.HeaderSize(wire[0]) != len(wire) {
				t.Errorf("sizes %d and %d, want %d", h.Size(), ddp.HeaderSize(wire[0]), len(wire))
			}
		})
	}
}

// RDMAP-022: reserved bits are ignored; the version is not.
func TestParseFaults(t *testing.T) {
	tagged, _ := hex.DecodeString("c140000001000000000000002000")
	untagged, _ := hex.DecodeString("414300000000000000000000000100000000")
	with := func(b []byte, first byte) []byte { return append([]byte{first}, b[1:]...) }
	for _, c := range []struct {
		name string
		b    []byte
		want error
	}{
		{"reserved bits, tagged", with(tagged, 0xc1|0x3c), nil},
		{"reserved bits, untagged", with(untagged, 0x41|0x3c), nil},
		{"version 0, tagged", with(tagged, 0xc0), ddp.TaggedVersion},
		{"version 2, tagged", with(tagged, 0xc2), ddp.TaggedVersion},
		{"version 3, untagged", with(untagged, 0x43), ddp.UntaggedVersion},
		{"nothing", nil, ddp.Malformed},
		{"one octet short, tagged", tagged[:13], ddp.Malformed},
		{"one octet short, untagged", untagged[:17], ddp.Malformed},
		{"as long as the other kind", untagged[:14], ddp.Malformed},
	} {
		var h ddp.Header
		if err := ddp.Parse(c.b, &h); err != c.want {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

func TestFaultsAreNamed(t *testing.T) {
	for f, want := range map[ddp.Fault]string{
		ddp.TaggedBounds:            "DDP: tagged buffer: base or bounds violation (1/1/01)",
		ddp.OperationOpcode:         "RDMAP: remote operation error: unexpected opcode (0/2/06)",
		ddp.Checksum:                "MPA: CRC mismatch (2/0/02)",
		ddp.NewFault(1, 3, 0x42):    "DDP: unknown error 1/3/42",
		ddp.NewFault(9, 0, 0):       "unknown error 9/0/00",
		ddp.NewFault(0, 3, 0x17):    "RDMAP: unknown error 0/3/17",
		ddp.NewFault(0x12, 0xf2, 6): "MPA: unknown error 2/2/06",
	} {
		if f.Error() != want {
			t.Errorf("%q, want %q", f.Error(), want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte{0xc1, 0x40, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0x20, 0})
	f.Add([]byte{0x41, 0x47, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		var h ddp.Header
		if ddp.Parse(b, &h) != nil {
			return
		}
		var again [ddp.UntaggedHeader]byte
		n := h.Put(again[:])
		var h2 ddp.Header
		if err := ddp.Parse(again[:n], &h2); err != nil || h2 != h {
			t.Fatalf("%x is %+v, written again %x, which is %+v, %v", b, h, again[:n], h2, err)
		}
	})
}

package mpa

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// TestEveryFrame (MPA-001 to 003): a frame with a payload of each length around the bounds of anything, copied and by reference, tagged and not,
// begins with the length of its segment and ends with a pad of zeros and the CRC, or a field of zeros where there is no CRC. The
// other side takes it, and without CRC looks at neither pad nor field.
func TestEveryFrame(t *testing.T) {
	var lengths []int
	for n := range 2200 { // references begin at some length within, and 2 KiB are
		lengths = append(lengths, n)
	}
	for _, bound := range []int{4096, 8192, 16384, 32768, longPayload} {
		for n := bound - 20; n <= min(bound+20, longPayload); n++ {
			lengths = append(lengths, n)
		}
	}
	p := map[bool]*parser{true: {crc: true}, false: {}}
	sink := newSink(t)
	for i, n := range lengths {
		m := write(7, 1<<40, pattern(n, i))
		if i&1 != 0 {
			m = send(uint32(i), m.payload)
		}
		size := LengthSize + m.first.Size() + n
		for _, f := range []framer{{crc: true, copies: true}, {copies: true}, {}} {
			for _, inline := range []int{0, min(n, ddp.InlineSize)} {
				b := encode(t, f, outgoing(m, inline))
				if len(b) != size+TrailerSize(size-LengthSize) || len(b)%4 != 0 || int(binary.BigEndian.Uint16(b)) != size-LengthSize || !bytes.Equal(b[size-n:size], m.payload) {
					t.Fatalf("%d bytes of payload, %+v: a frame of %d octets that begins with %x", n, f, len(b), b[:size-n])
				}
				sum := uint32(0)
				if f.crc {
					sum = crc32.Checksum(b[:len(b)-CRCSize], castagnoli)
				}
				if want := binary.LittleEndian.AppendUint32(make([]byte, len(b)-CRCSize-size), sum); !bytes.Equal(b[size:], want) {
					t.Fatalf("%d bytes of payload, %+v: the frame ends with %x, want %x", n, f, b[size:], want)
				}
				if !f.crc {
					for at := size; at < len(b); at++ {
						b[at] = byte(0x55 + at)
					}
				}
				sink.got = nil
				if rest, err := parseIn(t, p[f.crc], sink, b, whole); err != nil || rest != 0 || len(sink.got) != 1 || !bytes.Equal(sink.got[0].payload, m.payload) {
					t.Fatalf("%d bytes of payload, %+v: read as %v, %d octets over, %v", n, f, sink.got, rest, err)
				}
			}
		}
	}
}

// TestEveryOctetCounts (MPA-002, 009): with CRC, a frame of any length of which one octet is another is refused, whichever it is, and nothing of it
// is placed.
func TestEveryOctetCounts(t *testing.T) {
	for i, n := range []int{0, 1, 2, 3, 64, 1428, 2030, 2048, 2049, longPayload} {
		frame := encode(t, framer{crc: true, copies: true}, outgoing(write(7, 0, pattern(n, i)), 0))
		for at := LengthSize; at < len(frame); at++ {
			if at > 50 && at < len(frame)-50 && at%max(len(frame)/97, 1) != 0 {
				continue
			}
			frame[at] ^= 0x10
			sink := newSink(t)
			if _, err := parseIn(t, &parser{crc: true}, sink, frame, whole); err != error(ddp.Checksum) || len(sink.spans)+len(sink.got) != 0 {
				t.Fatalf("octet %d of a frame with %d bytes is another: %v, %d places", at, n, err, len(sink.spans))
			}
			frame[at] ^= 0x10
		}
	}
}

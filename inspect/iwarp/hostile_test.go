package iwarp

import (
	"encoding/binary"
	"hash/crc32"
	"net/netip"
	"testing"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/capture/tcp"
)

type feeder struct {
	d    *Decoder
	n    int
	seq  [2]uint32
	port uint16
}

func (f *feeder) end(w int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + w)}), []uint16{f.port, 7174}[w])
}

func (f *feeder) raw(w int, seq uint32, flags uint8, b []byte) {
	f.n++
	f.d.all.Add(&capture.Segment{Src: f.end(w), Dst: f.end(1 - w), Seq: seq, Ack: f.seq[1-w], Flags: flags, Window: 1000, Data: b, Length: len(b)}, tcp.Ref{Record: f.n})
}

func (f *feeder) say(w int, b []byte) {
	f.raw(w, f.seq[w], capture.ACK, b)
	f.seq[w] += uint32(len(b))
}

func (f *feeder) syn() {
	f.raw(0, 99, capture.SYN, nil)
	f.seq[0] = 100
	f.raw(1, 199, capture.SYN|capture.ACK, nil)
	f.seq[1] = 200
}

const crcBit = 0x40

func setUp(key string, flags byte) []byte { return append([]byte(key), flags, 1, 0, 0) }

// writeFrame is a Write of n bytes with a CRC.
func writeFrame(n int) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(14+n))
	b = append(b, 0xc1, 0x40)
	b = append(b, make([]byte, 12+n)...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

// One forged FIN of the past in each direction, which no TCP takes, and nothing that follows is told.
func TestEndsOfThePast(t *testing.T) {
	frames := 0
	d := New(Options{}, func(e *Event) error {
		if e.Kind == Frame {
			frames++
		}
		t.Logf("record %d: %v", e.Last.Record, e.Kind)
		return nil
	})
	f := &feeder{d: d, port: 1}
	f.syn()
	f.say(0, setUp("MPA ID Req Frame", crcBit))
	f.say(1, setUp("MPA ID Rep Frame", crcBit))
	f.say(0, writeFrame(100))
	f.say(1, writeFrame(100))
	f.raw(0, 50, capture.FIN|capture.ACK, nil)
	f.raw(1, 150, capture.FIN|capture.ACK, nil)
	for range 10 {
		f.say(0, writeFrame(100))
	}
	d.End()
	if frames != 12 {
		t.Errorf("of 12 frames %d were read", frames)
	}
}

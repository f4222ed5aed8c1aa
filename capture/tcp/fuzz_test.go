package tcp_test

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/capture/tcp"
)

// judge is told of streams in which each byte is the last one of its sequence number.
type judge struct {
	t       *testing.T
	next    map[*tcp.Connection][2]*byte // what follows, if something was told
	gone    map[*tcp.Connection]bool
	opinion byte
	told    int
}

func (j *judge) alive(c *tcp.Connection) {
	if j.gone[c] {
		j.t.Fatal("something is told of a connection that is gone")
	}
}

func (j *judge) Segment(*tcp.Connection) {}

func (j *judge) Data(c *tcp.Connection, w tcp.Way, b []byte, _ tcp.Ref) {
	j.alive(c)
	if len(b) == 0 {
		j.t.Fatal("no bytes are told")
	}
	next := j.next[c]
	if next[w] == nil {
		next[w] = new(b[0])
	}
	for _, x := range b {
		if x != *next[w] {
			j.t.Fatalf("byte %d is told where %d is next", x, *next[w])
		}
		*next[w]++
	}
	j.next[c] = next
	switch j.told += len(b); {
	case j.opinion&7 == 1:
		c.Keep()
	case j.opinion&7 == 2:
		c.Ignore()
	}
}

func (j *judge) Missing(c *tcp.Connection, w tcp.Way, n int, _ tcp.Ref) {
	j.alive(c)
	if n <= 0 {
		j.t.Fatalf("%d bytes are missing", n)
	}
	if next := j.next[c]; next[w] != nil {
		*next[w] += byte(n)
	}
}

func (j *judge) Finished(c *tcp.Connection, _ tcp.Way, _ tcp.Ref) { j.alive(c) }
func (j *judge) Reset(c *tcp.Connection, _ tcp.Way, _ tcp.Ref)    { j.alive(c) }

func (j *judge) Gone(c *tcp.Connection, _ tcp.Why) {
	j.alive(c)
	j.gone[c] = true
}

// FuzzConnections: whatever segments there are, each byte is told once, in order, with what is missing between, and nothing when the
// connection is gone. Six bytes of the program make a segment.
func FuzzConnections(f *testing.F) {
	f.Add([]byte{0x02, 0, 0, 0, 0, 0, 0x13, 0, 0, 0, 1, 0, 0x10, 1, 9, 0, 0, 0, 0x11, 1, 5, 9, 0, 0, 0x12, 1, 0, 0, 0, 0}, byte(0))
	f.Add([]byte{0x10, 9, 9, 0, 0, 3, 0x11, 0, 7, 18, 0, 200, 0x10, 3, 6, 0, 7, 0}, byte(1))
	in := slices.Repeat([]byte{0x10, 10, 10, 0, 0, 255, 0x11, 0, 3, 20, 0, 9}, 40)
	f.Add(in, byte(2))
	f.Fuzz(func(t *testing.T, program []byte, opinion byte) {
		j := &judge{t: t, next: map[*tcp.Connection][2]*byte{}, gone: map[*tcp.Connection]bool{}, opinion: opinion}
		all := tcp.New(j)
		at := tcp.Ref{Time: time.Unix(1e9, 0)}
		length := 0
		for ; len(program) >= 6; program = program[6:] {
			p := program[:6]
			from, to := ends[0], ends[1]
			if p[0]&0x20 != 0 {
				from = netip.AddrPortFrom(from.Addr(), 40002)
			}
			base := uint32(1<<32 - 64)
			if p[0]&1 != 0 {
				from, to, base = to, from, 500
			}
			s := capture.Segment{Src: from, Dst: to, Seq: base + uint32(int8(p[1])), Length: int(p[2]), Window: uint16(p[0] >> 7)}
			s.Flags = [4]uint8{0, capture.SYN, capture.FIN, capture.RST}[p[0]>>1&3] | p[0]&0x10 // which is ACK
			if p[0]&0x40 != 0 {
				s.Seq += uint32(binary.LittleEndian.Uint16(p[3:])) << 12
			}
			s.Ack = 1000 - base - 564 + uint32(int8(p[3])) // near where the other side begins
			s.Data = make([]byte, max(s.Length-int(p[4]>>4), 0))
			first := s.Seq
			if s.Flags&capture.SYN != 0 {
				first++
			}
			for i := range s.Data {
				s.Data[i] = byte(first) + byte(i)
			}
			length += s.Length
			at.Record++
			at.Time = at.Time.Add(time.Duration(p[5]) * 10 * time.Millisecond)
			all.Add(&s, at)
		}
		all.End()
		if j.told > length {
			t.Fatalf("of %d bytes %d are told", length, j.told)
		}
		for c := range j.next {
			if !j.gone[c] && opinion&7 != 2 {
				t.Fatal("a connection is not gone in the end")
			}
		}
	})
}

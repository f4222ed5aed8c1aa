package dgrdma

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/dgrdma/dgrdma/endpoint/segmentation"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/settings"
)

// TestMessagesFillFrames checks that the messages of a transaction's frames are those that it is
// said to have, whatever is posted, no frame is longer than it may be, a segment is cut only at the
// end of a frame, where the peer's kind allows it, and where that pays, and each frame but the last
// holds as much as it can.
func TestMessagesFillFrames(t *testing.T) {
	card := FPGA()
	card.FirstFrame, card.Window = 0, card.Span // it takes all of them at once
	bytewise := Native()
	bytewise.Chunk = 1
	for _, profile := range []Profile{Native(), OpenCPI(false), Legacy(false), card, bytewise} {
		for limit := settings.LeastFrame; limit < 200; limit += 3 {
			var frames [][]byte
			r := newHalfRig(t, uint64(limit), profile, Config{MTU: limit, Congestion: CongestionFixed, Trace: &Trace{FrameSent: func(_ PeerName, b []byte, _ bool) {
				frames = append(frames, bytes.Clone(b))
			}}})
			r.come(1 << 20)
			for range 10 {
				x := &Transaction{Segments: make([]Segment, 1+r.rnd.IntN(4)), Completion: Word(0, 1)}
				for i := range x.Segments {
					x.Segments[i] = Segment{uint32(i << 16), pattern(i, 1+r.rnd.IntN([]int{8, limit, 5 * limit}[r.rnd.IntN(3)]))}
				}
				frames = nil
				if _, _, err := r.c.enqueue(x, r.answered, nil, posting{to: anyEpoch, flow: &r.c.plain}); err != nil {
					r.fatalf("%v", err)
				}
				r.serve()
				r.checkFrames(x, frames, limit)
				r.acknowledge(true)
			}
		}
	}
}

// checkFrames holds the frames of one transaction against what it is.
func (r *halfRig) checkFrames(x *Transaction, frames [][]byte, limit int) {
	r.t.Helper()
	p := &r.c.profile
	header := frame.HeaderSize
	if p.Session {
		header = frame.SessionHeaderSize
	}
	body := (limit - header) &^ 7
	full := body - frame.MessageHeaderSize
	segments := slices.Clone(x.Segments)
	index := uint16(0)
	for i, b := range frames {
		c, err := cursorOf(b)
		if err != nil || len(b) > limit {
			r.fatalf("%s: a frame of %d bytes, at most %d may be: %v", p.Name, len(b), limit, err)
		}
		cut := false
		for c.Next() {
			m := &c.Msg
			if index++; m.Index != index || m.Count != x.count || cut || len(segments) == 0 {
				r.fatalf("%s: message %d of %d, want %d of %d; one before it in the frame was cut: %v", p.Name, m.Index, m.Count, index, x.count, cut)
			}
			rest := segments[0].Bytes
			n := min(int(m.Len), len(rest))
			padding := c.Data[n:]
			if m.Addr != segments[0].Addr || !bytes.Equal(c.Data[:n], rest[:n]) || len(bytes.Trim(padding, "\x00")) > 0 {
				r.fatalf("%s: message %d of %d bytes at %#x, of the %d at %#x: %x", p.Name, m.Index, m.Len, m.Addr, len(rest), segments[0].Addr, c.Data)
			}
			split := p.NoLength4 && len(rest) == 4 && n == 2
			switch cut = n < len(rest) && !split; {
			case cut && (n%p.Chunk != 0 || n < min(segmentation.LeastRoom, full)&^(p.Chunk-1)):
				r.fatalf("%s: %d bytes of %d are cut off, in chunks of %d", p.Name, n, len(rest), p.Chunk)
			case !cut && (int(m.Len)%p.Final != 0 || len(padding) >= p.Final || p.NoLength4 && m.Len == 4):
				r.fatalf("%s: the last message of %d bytes has %d, a multiple of %d", p.Name, len(rest), m.Len, p.Final)
			}
			if segments[0] = (Segment{m.Addr + uint32(n), rest[n:]}); n == len(rest) {
				segments = segments[1:]
			}
		}
		if i == len(frames)-1 {
			break
		}
		room := full - (len(b)-header+7)&^7
		if n := len(segments[0].Bytes); room >= (n+p.Final-1)/p.Final*p.Final || room >= max(segmentation.LeastRoom, p.Chunk) {
			r.fatalf("%s: %d bytes are left in a frame, and %d come behind it", p.Name, room, n)
		}
	}
	if len(segments) > 0 {
		r.fatalf("%s: nothing came of the end, %+v", p.Name, segments)
	}
}

// TestPostCountsCutSegments checks that what is posted has no more messages than can be stated, and
// that what has no more is posted, also where each segment is cut as often as can be.
func TestPostCountsCutSegments(t *testing.T) {
	for _, profile := range []Profile{Native(), Legacy(false)} {
		for _, mtu := range []int{200, 208} {
			r := newHalfRig(t, 1, profile, Config{MTU: mtu})
			l := r.c.tx.layout()
			const some = 64
			x := write(0, nil, 0, 1)
			data, most := make([]byte, l.Full), 0
			var worst [2]int // bytes of the first segment, and of all others
			of := func(n int, sizes [2]int) int {
				x.Segments = slices.Repeat([]Segment{{0, data[:sizes[1]]}}, n)
				x.Segments[0].Bytes = data[:sizes[0]]
				return x.messages(&l, l.Full)
			}
			for first := 8; first <= l.Full; first += 8 {
				for size := 1; size <= l.Full; size++ {
					if n := of(some, [2]int{first, size}); n > most {
						worst, most = [2]int{first, size}, n
					}
				}
			}
			last := some + (frame.MaxMessages-most)*some/(of(2*some, worst)-most) // that fits, nearly
			fit := 0
			for n := last - 3; n <= last+3; n++ {
				count := of(n, worst)
				if count <= frame.MaxMessages {
					fit++
				}
				if err := r.c.validate(x, true); errors.Is(err, ErrTooLarge) != (count > frame.MaxMessages) {
					t.Errorf("%s: %d segments of %d bytes are %d messages: %v", profile.Name, n, worst, count, err)
				}
			}
			if fit == 0 || fit == 7 {
				t.Errorf("%s: %d of 7 numbers of segments about %d fit", profile.Name, fit, last)
			}
		}
	}
}

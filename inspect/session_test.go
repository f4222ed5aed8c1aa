package inspect_test

import (
	"math/bits"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/inspect"
)

// epochs of endpoint 1 and of 2, so that ids of 1 wrap in 32 bits.
const (
	epoch1 = 0xFFFFFFF0
	epoch2 = 7_000_000
)

// sessionStory tells stories of sessions between 1 and 2, with a checksum in each frame or without.
type sessionStory struct {
	*story
	checks  bool
	doubles bool      // each frame is captured twice
	tags    [3]uint32 // of frames from 1, and from 2
	cum     [3]uint32 // what these acknowledge
}

func newSessionStory(checks bool) *sessionStory {
	t := &sessionStory{story: newStory(), checks: checks}
	t.agree(epoch1, epoch2)
	return t
}

// agree has the next frames be of a session of two epochs.
func (t *sessionStory) agree(one, two uint32) {
	t.tags = [3]uint32{1: two ^ bits.RotateLeft32(one, 16), 2: one ^ bits.RotateLeft32(two, 16)}
	t.cum = [3]uint32{1: two, 2: one}
}

func (t *sessionStory) send(from frame.EndpointID, b []byte) {
	if t.checks {
		b = frame.AddChecksum(append(make([]byte, 0, frame.CheckedSize(len(b))), b...))
	}
	p := t.packet(from, 3-from, b)
	if t.a.Add(p); t.doubles {
		t.a.Add(p)
	}
}

func (t *sessionStory) header(from frame.EndpointID, id uint32, copied uint8) *frame.SessionHeader {
	return &frame.SessionHeader{Src: from, Dst: 3 - from, ID: id, Copy: copied, Tag: t.tags[from], Ack: t.cum[from], Checks: t.checks}
}

// shake sends a frame of the handshake.
func (t *sessionStory) shake(from frame.EndpointID, kind frame.HandshakeKind, sender, receiver, check uint32) {
	b := make([]byte, frame.HandshakeSize)
	h := frame.Handshake{Kind: kind, Sender: sender, Receiver: receiver, Check: check, Checks: t.checks}
	h.Put(b, 3-from, from)
	t.send(from, b)
}

// begin is the handshake of a session.
func (t *sessionStory) begin(one, two uint32) {
	t.agree(one, two)
	t.shake(1, frame.HandshakeHello, one, 0, 0)
	t.shake(2, frame.HandshakeWelcome, two, one, 0x1234567)
	t.shake(1, frame.HandshakeConfirm, one, two, 0x1234567)
	t.acks2(one, 0, false, one)
}

// data sends one transaction from 1 to 2 in a frame.
func (t *sessionStory) data(id uint32, copied uint8) {
	b := make([]byte, frame.SessionHeaderSize+frame.MessageHeaderSize+16)
	t.header(1, id, copied).Put(b)
	m := whole(id)
	m.Put(b[frame.SessionHeaderSize:])
	t.send(1, b)
}

// acks2 has 2 acknowledge all up to an id, and ranges.
func (t *sessionStory) acks2(last uint32, copied uint8, again bool, upTo uint32, ranges ...frame.Range) {
	t.cum[2] = upTo
	b := make([]byte, 512)
	t.send(2, b[:frame.PutSessionAckFrame(b, t.header(2, last, 0), again, copied, 100, ranges)])
}

func (t *sessionStory) control(from frame.EndpointID, put func(b []byte, h *frame.SessionHeader) int) {
	b := make([]byte, 1500)
	t.send(from, b[:put(b, t.header(from, 0, 0))])
}

// TestSessions checks what is told of sessions, with a checksum and without: of copies by their number and not by their time, of what ACKs
// say, and of which frames are of which session.
func TestSessions(t *testing.T) {
	first := uint32(epoch1 + 1)
	again := "warning: 1 of 3 frames from endpoint 1 to endpoint 2 was sent again, 1 copy in all.\n"
	for _, tt := range []struct {
		name string
		tell func(s *sessionStory)
		want string // of all that is said
		also func(f *inspect.Flow) bool
	}{
		{"a clean one, over the wrap of 32 bits", func(s *sessionStory) {
			s.begin(epoch1, epoch2)
			for i := range uint32(100) {
				s.data(first+i, 0)
				s.acks2(first+i, 0, false, first+i)
			}
		}, "", func(f *inspect.Flow) bool {
			return f.Firsts == 100 && f.Acked == 100 && f.RoundTrip.Count == 100 && f.RoundTrip.Min == 900*time.Microsecond && f.Missing == 0 && f.Transactions.Completed == 100 &&
				len(f.Sessions) == 1 && f.Sessions[0].Sender == epoch1 && f.Sessions[0].Receiver == epoch2 && f.Sessions[0].Frames == 100
		}},
		{"no handshake in the capture", func(s *sessionStory) {
			s.data(5000, 0)
			s.acks2(5000, 0, false, 5000)
		}, "", func(f *inspect.Flow) bool { return f.Acked == 1 && f.Sessions[0].Sender == 0 }},
		{"acknowledged by ranges", func(s *sessionStory) {
			s.begin(epoch1, epoch2)
			for i := range uint32(10) {
				s.data(first+i, 0)
			}
			s.acks2(first+9, 0, false, first, frame.Range{First: first + 2, Count: 3}, frame.Range{First: first + 6, Count: 4})
		}, "", func(f *inspect.Flow) bool { return f.Acked == 8 && f.Pending == 2 }},
		{"a list of services is no transaction", func(s *sessionStory) {
			s.begin(epoch1, epoch2)
			b := make([]byte, 64)
			s.header(1, first, 0).Put(b)
			m := frame.Message{Txn: 9, CompletionAddr: frame.NoCompletion, CompletionValue: frame.NoCompletion, Type: frame.TypeServices, Len: 4}
			m.Put(b[frame.SessionHeaderSize:])
			s.send(1, b[:frame.SessionHeaderSize+frame.MessageHeaderSize+4])
			s.acks2(first, 0, false, first)
		}, "", func(f *inspect.Flow) bool { return f.Acked == 1 && f.Uncounted == 0 && f.Transactions.Begun == 0 }},
		{"a bell is acknowledged", func(s *sessionStory) {
			s.begin(epoch1, epoch2)
			b := make([]byte, 64)
			h := s.header(1, first, 0)
			h.Control = frame.ControlBell
			h.Put(b)
			s.send(1, b[:19])
			s.acks2(first, 0, false, first)
		}, "", func(f *inspect.Flow) bool { return f.Acked == 1 && f.Messages == 0 }},
		{"sent again within no time, and lost", func(s *sessionStory) {
			s.begin(epoch1, epoch2)
			s.data(first, 0)
			s.data(first+1, 0)
			s.data(first+2, 0)
			s.at = s.at.Add(-999 * time.Microsecond)
			s.data(first, 1)
			s.acks2(first, 1, false, first+2)
		}, again + "warning: 1 transmission from endpoint 1 to endpoint 2 came after a later one of the same frame, or never, or before the session was there, as its ACKs say.\n" +
			"warning: Frame 4294967281 of endpoint 1 is in the capture twice within 2 ms; its first acknowledgement in the capture came 1 ms after the last time.\n",
			func(f *inspect.Flow) bool {
				return f.Resent == 1 && f.Duplicates == 0 && f.LostSent == 1 && f.RoundTrip.Count == 1 && f.RoundTrip.Max == 900*time.Microsecond
			}},
		{"sent again in vain", func(s *sessionStory) {
			s.begin(epoch1, epoch2)
			s.data(first, 0)
			s.data(first+1, 0)
			s.data(first+2, 0)
			s.data(first, 1)
			s.acks2(first+2, 0, false, first+2)
			s.acks2(first, 1, true, first+2)
			s.acks2(first, 1, true, first+2) // as the network doubled that copy, or this ACK
		}, again + "warning: Frame 4294967281 of endpoint 1 is in the capture twice within 3 ms; its first acknowledgement in the capture came 1 ms after the last time.\n" +
			"note: 1 retransmission from endpoint 1 came to endpoint 2 when the frame had come before, as its ACKs say: not the frame was lost, but it or its acknowledgement was late, or the network doubled the retransmission.\n",
			func(f *inspect.Flow) bool { return f.InVain == 1 && f.LostSent == 0 && f.RoundTrip.Count == 2 }},
		{"doubled by the network, a second later", func(s *sessionStory) {
			s.begin(epoch1, epoch2)
			for i := range uint32(100) {
				s.data(first+i, 0)
			}
			s.at = s.at.Add(time.Second)
			s.data(first, 0)
			s.acks2(first+99, 0, false, first+99)
		}, "note: 1 frame from endpoint 1 to endpoint 2 came again at once, too soon for a timeout", func(f *inspect.Flow) bool { return f.Resent == 0 && f.Duplicates == 1 }},
		{"captured twice", func(s *sessionStory) {
			s.begin(epoch1, epoch2)
			s.doubles = true
			for i := range uint32(10) {
				s.data(first+i, 0)
				s.acks2(first+i, 0, false, first+i)
			}
		}, "warning: 10 of 10 frames from endpoint 1 to endpoint 2 are in the capture twice: it was taken at two places (interface \"any\", both sides of a bridge), or the network doubles frames.\n", nil},
		{"the first transmission is not in the capture", func(s *sessionStory) {
			s.begin(epoch1, epoch2)
			s.data(first, 2)
			s.acks2(first, 2, false, first)
		}, "warning: 2 transmissions from endpoint 1 to endpoint 2 came after a later one of the same frame, or never, or before the session was there, as its ACKs say.\n" +
			"note: 2 transmissions from endpoint 1 to endpoint 2 are not in the capture, by the copy numbers of later ones: lost before the point of capture, by the capture itself, or sent before it began.\n",
			func(f *inspect.Flow) bool { return f.Firsts == 1 && f.LostSent == 2 }},
		{"the second restarts", func(s *sessionStory) {
			s.begin(epoch1, epoch2)
			s.data(first, 0)
			s.acks2(first, 0, false, first)
			s.data(first+1, 0)
			h := *s.header(1, first+1, 0)
			s.control(2, func(b []byte, _ *frame.SessionHeader) int { return frame.PutReset(b, h) })
			s.begin(2000, 3000)
			s.data(2001, 0)
			s.acks2(2001, 0, false, 2001)
			old := s.tags
			s.agree(epoch1, epoch2)
			s.data(first+1, 1) // held back
			s.tags = old
		}, "warning: Frames from endpoint 1 to endpoint 2 are of 2 sessions; the second begins in this record. One of the two restarted, was reset, or gave the other one up; what was under way failed.\n" +
			"warning: Endpoint 2 answered 1 frame of endpoint 1 with RESET, the first to frame 4294967282: it does not have the session of that frame. It restarted, was reset, or gave endpoint 1 up.\n" +
			"note: 1 frame from endpoint 1 to endpoint 2 is of a session that had ended: the network held it back, or endpoint 1 did not know yet. Nothing else in this report counts it.\n",
			func(f *inspect.Flow) bool {
				return f.Acked == 2 && f.Abandoned == 1 && f.Resent == 0 && len(f.Sessions) == 2 && f.Sessions[0].Ended == "RESET" && f.Sessions[1].Sender == 2000
			}},
		{"the end", func(s *sessionStory) {
			s.begin(epoch1, epoch2)
			s.data(first, 0)
			s.acks2(first, 0, false, first)
			s.control(1, func(b []byte, h *frame.SessionHeader) int {
				return frame.PutBye(b, h, frame.Bye{Sender: epoch1, Receiver: epoch2})
			})
		}, "note: Endpoint 1 ended its session with endpoint 2: it said BYE.\n", func(f *inspect.Flow) bool { return f.Sessions[0].Ended == "BYE" }},
		{"one frame of a session that is not known", func(s *sessionStory) {
			s.begin(epoch1, epoch2)
			s.data(first, 0)
			s.acks2(first, 0, false, first)
			tags := s.tags
			s.agree(77, 78)
			s.data(500, 0)
			s.tags = tags
			s.data(first+1, 0)
			s.acks2(first+1, 0, false, first+1)
		}, "note: 1 frame from endpoint 1 to endpoint 2 is of a session of which the capture has nothing else before. Nothing else in this report counts it.\n",
			func(f *inspect.Flow) bool { return f.Acked == 2 && len(f.Sessions) == 1 }},
		{"a handshake whose checks are far apart, and no frame of a session", func(s *sessionStory) { // a check is no frame id
			s.shake(1, frame.HandshakeHello, epoch1, 0, 0)
			for _, check := range []uint32{0x1234567, 0x9ABCDEF0, 0x5555} {
				s.shake(2, frame.HandshakeWelcome, epoch2+check, epoch1, check)
				s.shake(1, frame.HandshakeConfirm, epoch1, epoch2+check, check)
			}
		}, "", func(f *inspect.Flow) bool {
			return f.Handshakes == 4 && len(f.Restarts) == 0 && f.Missing == 0 && f.Strays == 0
		}},
		{"a transaction of which a held back frame has the rest", func(s *sessionStory) {
			part := func(id uint32, index uint16) {
				b := make([]byte, frame.SessionHeaderSize+frame.MessageHeaderSize+16)
				s.header(1, id, 0).Put(b)
				m := whole(first)
				m.Count, m.Index = 2, index
				m.Put(b[frame.SessionHeaderSize:])
				s.send(1, b)
			}
			s.begin(epoch1, epoch2)
			part(first, 1)
			s.acks2(first, 0, false, first)
			old, upTo := s.tags, s.cum
			s.begin(2000, epoch2)
			s.data(2001, 0)
			s.acks2(2001, 0, false, 2001)
			s.tags, s.cum = old, upTo
			part(first+1, 2) // held back
		}, "problem: Of 1 transaction from endpoint 1 to endpoint 2 not all messages are in the capture, frames of ended or unknown sessions not counted; of transaction 4294967281, which begins in this record, 1 of 2 messages are.\n" +
			"warning: Frames from endpoint 1 to endpoint 2 are of 2 sessions; the second begins in this record. One of the two restarted, was reset, or gave the other one up; what was under way failed.\n" +
			"note: 1 frame from endpoint 1 to endpoint 2 is of a session that had ended: the network held it back, or endpoint 1 did not know yet. Nothing else in this report counts it.\n", nil},
		{"refused", func(s *sessionStory) {
			s.shake(1, frame.HandshakeHello, 5, 0, 0)
			b := make([]byte, frame.HandshakeSize+frame.RefusalSize)
			h := frame.Handshake{Kind: frame.HandshakeRefused, Sender: 5, Receiver: 5, Checks: s.checks}
			h.Put(b, 1, 2)
			frame.Refusal{ID: 2, Size: 64, Why: 1}.Put(b[frame.HandshakeSize:])
			s.send(2, b)
		}, "problem: Endpoint 2 refused endpoint 1 a session, once: it takes no unknown sources.\n", nil},
		{"rejected", func(s *sessionStory) {
			s.begin(epoch1, epoch2)
			s.shake(2, frame.HandshakeReject, epoch1, epoch2, 0x1234567)
			s.data(first, 0)
			s.acks2(first, 0, false, first)
		}, "note: Endpoint 2 rejected what endpoint 1 confirmed, once: it told those epochs in a life that is over. They agree on another session.\n", nil},
		{"a retransmission that overtakes", func(s *sessionStory) { // which is no copy that the network made
			s.begin(epoch1, epoch2)
			s.data(first, 0)
			s.data(first+1, 1)
			s.acks2(first+1, 1, false, first+1)
			s.data(first+1, 0)
			s.acks2(first+1, 0, true, first+1)
		}, "warning: 1 of 2 frames from endpoint 1 to endpoint 2 was sent again, 1 copy in all. 1 of them had been acknowledged in the capture before.\n" +
			"warning: 1 transmission from endpoint 1 to endpoint 2 came after a later one of the same frame, or never, or before the session was there, as its ACKs say.\n" +
			"warning: Frame 4294967282 of endpoint 1 is in the capture twice within 2 ms: it was acknowledged 1 ms after the first time, and came again all the same.\n", func(f *inspect.Flow) bool {
			return f.Firsts == 2 && f.Resent == 1 && f.Duplicates == 0 && f.RoundTrip.Count == 1
		}},
		{"a gap after the handshake", func(s *sessionStory) {
			s.begin(epoch1, epoch2)
			s.data(first+2, 0)
			s.acks2(first+2, 0, false, first+2)
		}, "warning: The capture itself lost frames: endpoint 2 acknowledges 2 frames of endpoint 1 that are not in it, the first is 4294967281, before record 5.", nil},
	} {
		for _, checks := range []bool{false, true} {
			s := newSessionStory(checks)
			tt.tell(s)
			r := s.a.Report()
			if got := said(r); got != tt.want && (strings.HasSuffix(tt.want, "\n") || tt.want == "" || !strings.HasPrefix(got, tt.want)) {
				t.Errorf("%s, checksums %v:\n%swant\n%s", tt.name, checks, got, tt.want)
			}
			for i := range r.Flows {
				if f := &r.Flows[i]; f.From.ID == 1 && tt.also != nil && !tt.also(f) {
					f.Points, f.AckPoints, f.Bins, f.Waterfall, f.Marks = nil, nil, nil, nil, nil
					t.Errorf("%s, checksums %v: %+v, round trip %+v", tt.name, checks, *f, f.RoundTrip)
				}
			}
		}
	}
}

package inspect_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/captured"
	"github.com/dgrdma/dgrdma/inspect"
)

// story is a capture that a test makes up.
type story struct {
	a      *inspect.Analyzer
	at     time.Time
	record int
}

func newStory() *story {
	return &story{a: inspect.New(), at: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)}
}

func (s *story) packet(from, to frame.EndpointID, b []byte) *captured.Packet {
	s.at = s.at.Add(time.Millisecond)
	s.record++
	return &captured.Packet{Packet: capture.Packet{
		Record: s.record, Time: s.at, Src: capture.Addr{MAC: [6]byte{2, 0, 0, 0, 0, byte(from)}},
		Dst: capture.Addr{MAC: [6]byte{2, 0, 0, 0, 0, byte(to)}}, Data: b, Length: len(b),
	}}
}

func frameWith(from, to frame.EndpointID, id frame.Seq, messages ...frame.Message) []byte {
	h := frame.Header{Src: from, Dst: to, Seq: id}
	if len(messages) > 0 {
		h.Flags = frame.FlagMessages
	}
	b := make([]byte, frame.HeaderSize)
	h.Put(b)
	for i, m := range messages {
		m.More = i < len(messages)-1
		at := len(b)
		b = append(b, make([]byte, frame.MessageHeaderSize+int(m.Len))...)
		m.Put(b[at:])
		if m.More {
			b = append(b, make([]byte, frame.PadLen(int(m.Len)))...)
		}
	}
	return b
}

// whole is a transaction of one message.
func whole(txn uint32) frame.Message {
	return frame.Message{Txn: txn, CompletionAddr: 8, CompletionValue: txn, Count: 1, Index: 1, Addr: 64, Len: 16}
}

// data sends transactions of a frame each from 1 to 2.
func (s *story) data(id frame.Seq, txn uint32, n int) {
	for i := range n {
		s.a.Add(s.packet(1, 2, frameWith(1, 2, id.Add(i), whole(txn+uint32(i)))))
	}
}

// acks has 2 acknowledge, under an id of its own.
func (s *story) acks(id, start frame.Seq, n int) {
	b := frameWith(2, 1, id)
	frame.PutAck(b, start, uint8(n))
	s.a.Add(s.packet(2, 1, b))
}

// hello has an endpoint ask for a session under an epoch, or 0 refuse it, with what follows the message.
func (s *story) hello(from, to frame.EndpointID, epoch uint32, behind ...byte) {
	h := frame.Handshake{Kind: frame.HandshakeHello, Sender: epoch}
	if from == 0 {
		h.Kind, h.Receiver = frame.HandshakeRefused, epoch
	}
	b := make([]byte, frame.HandshakeSize)
	h.Put(b, to, from)
	s.a.Add(s.packet(from, to, append(b, behind...)))
}

func TestStories(t *testing.T) {
	for _, tt := range []struct {
		name string
		tell func(s *story)
		want string // of all that is said; ends in a newline
		also func(f *inspect.Flow) bool
	}{
		{"a clean one, over the wrap", func(s *story) {
			for i := range 1000 {
				s.data(frame.Seq(100*i), uint32(100*i), 100)
				s.acks(frame.Seq(i), frame.Seq(100*i), 100)
			}
		}, "",
			func(f *inspect.Flow) bool { return f.Acked == 100_000 && f.Transactions.Completed == 100_000 }},
		{"the same frame after a whole wrap", func(s *story) {
			for i := range 1024 {
				s.data(frame.Seq(64*i), 1, 64) // the same transactions again and again
				s.acks(frame.Seq(i), frame.Seq(64*i), 64)
			}
			s.data(0, 1, 1)
			s.acks(2000, 0, 1)
		}, "",
			func(f *inspect.Flow) bool { return f.Resent == 0 && f.Acked == 65537 }},
		{"a gap that is acknowledged", func(s *story) {
			s.data(1, 1, 3)
			s.data(6, 6, 3)
			s.acks(1, 1, 8)
		}, "warning: The capture itself lost frames: endpoint 2 acknowledges 2 frames of endpoint 1 that are not in it, the first is 4, before record 4. What this report says of frames that are missing, or not acknowledged, may follow from that.\n", nil},
		{"acknowledgements of what was never seen, to the end", func(s *story) {
			s.data(1, 1, 3)
			s.acks(1, 1, 5)
		}, "warning: The capture itself lost frames: endpoint 2 acknowledges 2 frames of endpoint 1 that are not in it. What this report says of frames that are missing, or not acknowledged, may follow from that.\n", nil},
		{"the capture began late", func(s *story) {
			s.acks(7, 40, 5)
			s.data(45, 45, 3)
			s.acks(8, 40, 8)
		}, "", nil},
		{"out of order in the capture", func(s *story) {
			s.data(1, 1, 1)
			s.acks(1, 1, 2)
			s.data(2, 2, 1)
		}, "", func(f *inspect.Flow) bool { return f.Acked == 2 && f.Missing == 0 }},
		{"late frames", func(s *story) {
			s.data(1, 1, 1)
			s.data(3, 3, 1)
			s.data(2, 2, 1)
			s.acks(1, 1, 3)
		}, "note: 1 frame from endpoint 1 to endpoint 2 came after later ones: the network changed their order, or their first copy is not in the capture.\n", nil},
		{"a gap that nobody filled, and a transaction that needs it", func(s *story) {
			m := func(i uint16) frame.Message {
				return frame.Message{Txn: 9, CompletionAddr: 8, CompletionValue: 1, Count: 3, Index: i, Addr: 64, Len: 16}
			}
			s.a.Add(s.packet(1, 2, frameWith(1, 2, 1, m(1))))
			s.a.Add(s.packet(1, 2, frameWith(1, 2, 3, m(3))))
			s.acks(1, 1, 1)
			s.acks(2, 3, 1)
			s.at = s.at.Add(time.Minute)
			s.data(4, 10, 1)
			s.acks(3, 4, 1)
		}, "problem: Of 1 transaction from endpoint 1 to endpoint 2 not all messages are in the capture; of transaction 9, which begins in this record, 2 of 3 messages are.\n" +
			"warning: 1 frame id of endpoint 1 is not in the capture, nor acknowledged after its first frames; the first is 2, before this record. It was lost before the point of capture, or by the capture itself, or sent before it began, or no frame had them. Frames that hold only acknowledgements are not repeated when they are lost.\n", nil},
		{"a transaction under way at the end", func(s *story) {
			s.a.Add(s.packet(1, 2, frameWith(1, 2, 1, frame.Message{Txn: 9, CompletionAddr: 8, Count: 3, Index: 1, Len: 16})))
			s.acks(1, 1, 1)
		}, "", func(f *inspect.Flow) bool { return f.Transactions.UnderWay == 1 }},
		{"sent again, never acknowledged", func(s *story) {
			s.data(1, 1, 2)
			s.at = s.at.Add(time.Second)
			s.data(1, 1, 2)
		}, "problem: Endpoint 2 never acknowledges in this capture: 2 frames from endpoint 1, 2 copies. Nothing of it is in the capture: unless only the other direction was captured, it is not there.\n" +
			"warning: 2 of 2 frames from endpoint 1 to endpoint 2 were sent again, 2 copies in all. A network that doubles frames and holds the second ones back looks the same.\n", nil},
		{"the first acknowledgement was lost", func(s *story) {
			s.data(812, 1, 1)
			s.acks(1, 812, 1)
			for range 2 {
				s.at = s.at.Add(99 * time.Millisecond)
				s.data(812, 1, 1)
			}
			s.acks(2, 812, 1)
		}, "warning: 1 of 1 frame from endpoint 1 to endpoint 2 was sent again, 2 copies in all. 1 of them had been acknowledged in the capture before. A network that doubles frames and holds the second ones back looks the same.\n" +
			"warning: Frame 812 of endpoint 1 is in the capture 3 times within 201 ms: it was acknowledged 1 ms after the first time, and came again all the same.\n", nil},
		{"the network doubles", func(s *story) {
			for i := range 10 {
				p := s.packet(1, 2, frameWith(1, 2, frame.Seq(i), whole(uint32(i))))
				s.a.Add(p)
				if i == 5 {
					p.Time = p.Time.Add(time.Microsecond)
					s.a.Add(p)
				}
				s.acks(frame.Seq(i), frame.Seq(i), 1)
			}
		}, "note: 1 frame from endpoint 1 to endpoint 2 came again at once, too soon for a timeout: the network doubled it, or held it back until it had been sent again, or the acknowledgement after which it was sent again is not in the capture before, " +
			"or the sender is OpenCPI's first C++ driver, which repeats some frames too early.\n", nil},
		{"captured twice", func(s *story) {
			for i := range 10 {
				p := s.packet(1, 2, frameWith(1, 2, frame.Seq(i), whole(uint32(i))))
				s.a.Add(p)
				s.a.Add(p)
				s.acks(frame.Seq(i), frame.Seq(i), 1)
			}
		}, "warning: 10 of 10 frames from endpoint 1 to endpoint 2 are in the capture twice: it was taken at two places (interface \"any\", both sides of a bridge), or the network doubles frames.\n", nil},
		{"a plain peer restarts", func(s *story) {
			s.data(1, 1, 30)
			s.acks(1, 1, 30)
			s.data(1, 1001, 1) // other content, but a low id and a high transaction: not yet believed
			s.data(1, 2, 1)
			s.data(2, 3, 10)
			s.acks(1, 1, 11)
		}, "warning: Endpoint 1 restarted after 32 ms: ids began anew, with other content.\n" +
			"warning: 1 frame from endpoint 1 has the id of another one: an old frame that the network held back, a sender that began anew, " +
			"or OpenCPI's first C++ driver, which sends again what a request says by then.\n",
			func(f *inspect.Flow) bool { return f.Acked == 41 }},
		{"a stray frame", func(s *story) {
			s.data(100, 1, 10)
			s.data(40_000, 900_000, 1)
			s.data(110, 11, 10)
			s.acks(1, 100, 20)
		}, "note: 1 frame from endpoint 1 has an id far from all others: old ones that were sent again, or that the network held back.\n",
			func(f *inspect.Flow) bool { return f.Acked == 20 }},
		{"a long piece is missing", func(s *story) {
			s.data(100, 100, 10)
			s.acks(1, 100, 10)
			s.data(20_000, 20_000, 10)
			s.acks(2, 20_003, 7)
		}, "warning: Frame ids of endpoint 1 go on elsewhere once: a long piece is missing in the capture, or was sent before it began, or endpoint 1 restarted. How many frames are missing cannot be told.\n", nil},
		{"one direction", func(s *story) {
			s.acks(1, 1, 8)
		}, "note: Endpoint 2 acknowledges frames of endpoint 1 that are not in the capture: only one direction was captured.\n", nil},
		{"it asks, and is never answered", func(s *story) {
			s.hello(1, 2, 7)
			s.at = s.at.Add(time.Second)
			s.hello(1, 2, 7)
		}, "problem: Endpoint 1 asked endpoint 2 for a session twice, and " + unanswered, nil},
		{"a peer without sessions is asked for one", func(s *story) { // its ids are none of the HELLOs'
			s.hello(1, 2, 7)
			s.data(40_000, 1, 3)
			s.hello(1, 2, 8)
			s.data(40_003, 4, 3)
			s.acks(1, 40_000, 6)
		}, "", func(f *inspect.Flow) bool { return f.Acked == 6 && f.Handshakes == 2 && f.Missing == 0 }},
		{"cut by a snap length", func(s *story) {
			for i := range 4 {
				p := s.packet(1, 2, frameWith(1, 2, frame.Seq(i), frame.Message{Txn: uint32(i), Count: 2, Index: 1, Len: 64}, frame.Message{Txn: uint32(i), Count: 2, Index: 2, Len: 64}))
				p.Data = p.Data[:40]
				s.a.Add(p)
				s.acks(frame.Seq(i), frame.Seq(i), 1)
			}
		}, "note: 4 frames were captured without their end (snap length, or fragments): messages behind the cut are not known.\n",
			func(f *inspect.Flow) bool { return f.Acked == 4 }},
		{"malformed", func(s *story) {
			b := frameWith(1, 2, 1, whole(1))
			s.a.Add(s.packet(1, 2, b[:len(b)-1]))
			s.a.Add(s.packet(1, 2, b[:5]))
		}, "warning: 2 frames were malformed: their receiver drops them.\n", nil},
		{"changed on the way", func(s *story) {
			for i := range frame.Seq(3) {
				b := frameWith(1, 2, 1+i, whole(uint32(1+i)))
				b = frame.AddChecksum(append(make([]byte, 0, frame.CheckedSize(len(b))), b...))
				if i == 1 {
					b[40] ^= 4
					s.a.Add(s.packet(1, 2, b))
					b[40] ^= 4
				}
				s.a.Add(s.packet(1, 2, b))
				s.acks(1+i, 1+i, 1)
			}
		}, "problem: 1 frame has a wrong checksum, and a right one of the wire: the memory of a switch, a router or a host before the capture changes what it holds. Their receiver drops them, and they are sent again. " +
			"What is sent without a checksum of its own is changed as well.\n", func(f *inspect.Flow) bool { return f.Frames == 3 }},
		{"time goes backwards", func(s *story) {
			s.data(1, 1, 1)
			s.at = s.at.Add(-time.Hour)
			s.acks(1, 1, 1)
		}, "warning: Time goes backwards once, by up to 1h0m0s: the clock was set, or files were joined. Times in this report are as captured.\n", nil},
		{"time is in disorder, as of several processors", func(s *story) {
			s.data(1, 1, 1)
			s.at = s.at.Add(-1999 * time.Microsecond)
			s.acks(1, 1, 1)
		}, "", nil},
		{"time goes backwards by a millisecond", func(s *story) {
			s.data(1, 1, 1)
			s.at = s.at.Add(-2 * time.Millisecond) // of which one is made up for
			s.acks(1, 1, 1)
		}, "warning: Time goes backwards once, by up to 1 ms: the clock was set, or files were joined. Times in this report are as captured.\n", nil},
		{"no time at all", func(s *story) {
			p := s.packet(1, 2, frameWith(1, 2, 1, whole(1)))
			p.Time = time.Time{}
			s.a.Add(p)
			s.at = s.at.Add(time.Second)
			s.acks(1, 1, 1)
		}, "note: 1 frame has no time; it is taken from the frame before.\n", nil},
		{"nothing", func(s *story) {}, "note: No frames of DG/RDMA or iWARP were found among the 0 records of this capture. Another Ethernet type, ports of UDP or TCP that have to be named, or a snap length that cuts too much away?\n", nil},
	} {
		t.Run(strings.ReplaceAll(tt.name, " ", "_"), func(t *testing.T) {
			s := newStory()
			tt.tell(s)
			r := s.a.Report()
			if got := said(r); got != tt.want {
				t.Errorf("said\n%swant\n%s", got, tt.want)
			}
			if tt.also != nil {
				for i := range r.Flows {
					if r.Flows[i].From.ID == 1 && !tt.also(&r.Flows[i]) {
						t.Errorf("%+v", r.Flows[i])
					}
				}
			}
		})
	}
}

// A cooked capture does not know where frames go: the ids tell.
func TestCookedCapture(t *testing.T) {
	s := newStory()
	for i := range 5 {
		p := s.packet(1, 2, frameWith(1, 2, frame.Seq(i), whole(uint32(i))))
		p.Dst = capture.Addr{}
		s.a.Add(p)
		b := frameWith(2, 1, frame.Seq(i))
		frame.PutAck(b, frame.Seq(i), 1)
		p = s.packet(2, 1, b)
		p.Dst = capture.Addr{}
		s.a.Add(p)
	}
	if r := s.a.Report(); r.Flows[0].Acked != 5 || len(r.Findings) != 0 {
		t.Errorf("%d acknowledged; %s", r.Flows[0].Acked, said(r))
	}
}

func TestMoreFlowsThanFollowed(t *testing.T) {
	s := newStory()
	const flows = 300
	for range 2 {
		for i := range flows {
			p := s.packet(1, 2, frameWith(frame.EndpointID(i+1), 2, 1, whole(1)))
			p.Src.MAC[4] = byte(i >> 8)
			s.a.Add(p)
		}
	}
	r := s.a.Report()
	if len(r.Flows) != 128 || r.Capture.Unfollow != 2*(flows-128) || len(r.Findings) > 30 {
		t.Errorf("%d flows, %d frames beyond, %d findings", len(r.Flows), r.Capture.Unfollow, len(r.Findings))
	}
	if !strings.Contains(said(r), "344 frames of further flows were only counted: at most 128 flows are followed.") {
		t.Error(said(r))
	}
}

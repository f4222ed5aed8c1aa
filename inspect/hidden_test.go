package inspect_test

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/capture/capturetest"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/seal/datagram"
)

// snap is what is captured of a record of several datagrams: the header of the first frame and that of its message.
const snap = frame.HeaderSize + frame.MessageHeaderSize

// joined adds a record of all these datagrams of which a snap length left n.
func (s *story) joined(from, to frame.EndpointID, n int, all ...[]byte) {
	s.at = s.at.Add(time.Millisecond)
	s.record++
	for i, b := range all[:n] {
		p := s.packet(from, to, b)
		s.record--
		s.at = s.at.Add(-time.Millisecond)
		p.Record, p.Time, p.Segment, p.Segments = s.record, s.at, i+1, len(all)
		if i == n-1 {
			p.Data = p.Data[:min(len(p.Data), snap)]
		}
		s.a.Add(p)
	}
}

// parts are frames of a transaction of n, one each, from 1 to 2.
func parts(id frame.Seq, txn uint32, n int) (all [][]byte) {
	for i := range n {
		all = append(all, frameWith(1, 2, id.Add(i), frame.Message{Txn: txn, CompletionAddr: 8, CompletionValue: 1, Count: uint16(n), Index: uint16(1 + i), Addr: 64, Len: 16}))
	}
	return all
}

const hiddenSays = "no count or picture of this report. What became of them, what they acknowledge and what they complete is not known. " +
	"Capture whole packets (tcpdump -s 0), or with gso=off and gro=off at both endpoints.\n"

// TestFramesBehindTheSnapLength: a host with offload hands several datagrams around as one, of which a snap length leaves the first.
// Nothing else is said of what is behind it.
func TestFramesBehindTheSnapLength(t *testing.T) {
	const cut = "note: 1 frame was captured without their end (snap length, or fragments): messages behind the cut are not known.\n"
	for _, tt := range []struct {
		name string
		tell func(s *story)
		want string
	}{
		{"acknowledged", func(s *story) {
			s.data(1, 1, 1)
			s.joined(1, 2, 1, parts(2, 2, 40)...)
			s.data(42, 42, 1)
			s.acks(1, 1, 42)
		}, "warning: A snap length cut 1 record of several frames, as a host with offload hands them around: at least 39 frames are behind it, in " + hiddenSays + cut},
		{"at the end", func(s *story) {
			s.joined(1, 2, 1, parts(2, 2, 40)...)
			s.acks(1, 2, 40)
		}, "warning: A snap length cut 1 record of several frames, as a host with offload hands them around: at least 39 frames are behind it, in " + hiddenSays + cut},
		{"all are there", func(s *story) {
			s.joined(1, 2, 3, parts(2, 2, 3)...)
			s.acks(1, 2, 3)
		}, cut},
		{"sent again", func(s *story) {
			s.joined(1, 2, 1, parts(2, 2, 40)...)
			s.at = s.at.Add(100 * time.Millisecond)
			s.a.Add(s.packet(1, 2, parts(2, 2, 40)[30]))
			s.acks(1, 2, 40)
		}, "warning: A snap length cut 1 record of several frames, as a host with offload hands them around: at least 39 frames are behind it, in " + hiddenSays + cut},
		{"an old frame before new ones", func(s *story) {
			s.data(1, 1, 3)
			s.at = s.at.Add(100 * time.Millisecond)
			s.joined(1, 2, 1, append([][]byte{frameWith(1, 2, 2, whole(2))}, parts(4, 4, 4)...)...)
			s.data(8, 8, 1)
			s.acks(1, 1, 8)
		}, "warning: A snap length cut 1 record of several frames, as a host with offload hands them around: at least 4 frames are behind it, in " + hiddenSays +
			"warning: 1 of 4 frames from endpoint 1 to endpoint 2 was sent again, 1 copy in all. What lies behind the snap length is not counted. A network that doubles frames and holds the second ones back looks the same.\n" +
			"warning: Frame 2 of endpoint 1 is in the capture twice within 102 ms; its first acknowledgement in the capture came 2 ms after the last time.\n" + cut},
		{"more than it hides", func(s *story) {
			s.joined(1, 2, 1, parts(2, 2, 3)...)
			s.data(8, 8, 1)
			s.acks(1, 2, 7)
		}, "warning: A snap length cut 1 record of several frames, as a host with offload hands them around: at least 2 frames are behind it, in " + hiddenSays +
			"warning: The capture itself lost frames, or its snap length hides them: endpoint 2 acknowledges 3 frames of endpoint 1 that are not in it, the first is 5, before record 2. What this report says of frames that are missing, or not acknowledged, may follow from that.\n" + cut},
		{"acknowledgements", func(s *story) {
			s.data(1, 1, 1)
			s.acks(1, 1, 1)
			s.data(2, 2, 2)
			s.at = s.at.Add(100 * time.Millisecond)
			s.data(2, 2, 2)
			acks := make([][]byte, 3)
			for i := range acks {
				acks[i] = frameWith(2, 1, frame.Seq(2+i))
				frame.PutAck(acks[i], frame.Seq(1+i), 1)
			}
			s.joined(2, 1, 1, acks...)
			s.at = s.at.Add(time.Minute)
			s.acks(5, 1, 1)
		}, "warning: A snap length cut 1 record of several frames, as a host with offload hands them around: at least 2 frames are behind it, in " + hiddenSays +
			"warning: 2 of 3 frames from endpoint 1 to endpoint 2 were sent again, 2 copies in all. A network that doubles frames and holds the second ones back looks the same.\n" +
			"note: 2 frames from endpoint 1 have no acknowledgement in the capture, where endpoint 2 acknowledges others; the first is frame 2. 2 frames of endpoint 2 are behind the snap length: the acknowledgements may be there.\n" +
			"note: Frame 2 of endpoint 1 is in the capture twice within 102 ms; no acknowledgement of it is before the snap length.\n" +
			"note: Frame 3 of endpoint 1 is in the capture twice within 102 ms; no acknowledgement of it is before the snap length.\n"},
		{"where the first frame ends, too", func(s *story) {
			first := parts(1, 1, 4)
			s.joined(1, 2, 1, first...)
			b := frameWith(1, 2, 5, whole(5), frame.Message{Txn: 6, CompletionAddr: 8, Count: 2, Index: 1, Addr: 64, Len: 16})
			p := s.packet(1, 2, b[:snap])
			p.Length = 4*(len(first[0])+frame.PrefixSize) - frame.PrefixSize
			s.a.Add(p)
			s.data(9, 9, 1)
			s.acks(1, 1, 9)
		}, "warning: A snap length cut 1 record within what may be the first of several frames, as a host with offload hands them around: the others would be behind it, in no count or picture of this report. " +
			"Capture whole packets (tcpdump -s 0), or with gso=off and gro=off at both endpoints.\n" +
			"warning: A snap length cut 1 record of several frames, as a host with offload hands them around: at least 3 frames are behind it, in " + hiddenSays +
			"note: 2 frames were captured without their end (snap length, or fragments): messages behind the cut are not known.\n"},
	} {
		s := newStory()
		tt.tell(s)
		r := s.a.Report()
		if got := said(r); got != tt.want {
			t.Errorf("%s: said\n%swant\n%s", tt.name, got, tt.want)
		}
	}
}

// TestFramesCutWithinTheirHeaders: of such a frame its id and what it acknowledges may be there, and no more.
func TestFramesCutWithinTheirHeaders(t *testing.T) {
	const warns = "warning: A snap length cut 6 frames within their headers: no count or picture of this report has them, and what became of them is not known. " +
		"Capture whole packets (tcpdump -s 0).\n"
	const notes = "note: 6 frames were captured without their end (snap length, or fragments): messages behind the cut are not known.\n"
	for _, known := range []bool{false, true} {
		s := newStory()
		if known {
			s.data(1, 1, 1)
			s.a.Add(s.packet(2, 1, frameWith(2, 1, 1, whole(1))))
		}
		for i := range 6 {
			b := frameWith(1, 2, frame.Seq(2+i), whole(uint32(2+i)))
			frame.PutAck(b, 1, 1)
			p := s.packet(1, 2, b)
			p.Data = p.Data[:frame.HeaderSize+5]
			s.a.Add(p)
			s.acks(frame.Seq(2+i), 1, 2+i)
		}
		r := s.a.Report()
		if got := said(r); got != warns+notes {
			t.Errorf("known %v: said\n%swant\n%s", known, got, warns+notes)
		}
		if known && flowFrom(t, r, 2).Acked != 1 {
			t.Error("what they acknowledge in their headers is not known")
		}
	}
}

// TestSealedFramesBehindTheSnapLength: likewise of what is sealed, by the counters.
func TestSealedFramesBehindTheSnapLength(t *testing.T) {
	s := &sealedStory{story: newStory(), Talk: capturetest.Sealed(t, 1, 2)}
	all := s.frames(44)
	s.says(all[0])
	s.joined(1, 2, 1, all[1:41]...)
	s.says(all[41])
	s.says(all[43])
	r := s.a.Report()
	if w := r.Sealed[0]; w.Missing != 1 || w.Late+w.Copies+w.Strays != 0 || w.Keys != 1 {
		t.Errorf("%+v", w)
	}
	if got, want := kinds(r), "warning: behind snap length, warning: sealed gap, note: sealed, note: cut"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestSealedFramesThatMayBeBehindTheSnapLength checks that a sealed frame is not said to be missing that may lie behind the snap length of a
// record that looks like one frame, where the capture has records of several frames; and that it is where it has none, or there is no room for it.
func TestSealedFramesThatMayBeBehindTheSnapLength(t *testing.T) {
	for _, joined := range []bool{false, true} {
		for _, x := range []struct{ room, missing, want int }{
			{0, 1, 1},
			{datagram.Overhead - 1, 1, 1},
			{datagram.Overhead, 1, 0},
			{datagram.Overhead, 2, 1},
			{3 * datagram.Overhead, 2, 0},
		} {
			s := &sealedStory{story: newStory(), Talk: capturetest.Sealed(t, 1, 2)}
			all := s.frames(20)
			s.says(all[0])
			if joined {
				s.joined(1, 2, 1, all[1:5]...)
			} else {
				s.says(all[1:5]...)
			}
			for _, b := range all[5:9] {
				p := s.packet(1, 2, b)
				p.Length += x.room
				s.a.Add(p)
			}
			s.says(all[9+x.missing:]...)
			want := x.want
			if !joined {
				want = x.missing
			}
			if w := s.a.Report().Sealed[0]; w.Missing != want || w.Late+w.Copies+w.Strays != 0 || w.Keys != 1 {
				t.Errorf("joined %v, %+v: %+v", joined, x, w)
			}
		}
	}
}

// TestHostileSegments: what a record says of itself costs no more than one record can hold.
func TestHostileSegments(t *testing.T) {
	s := newStory()
	for i := range 1000 {
		p := s.packet(1, 2, frameWith(1, 2, frame.Seq(i), whole(uint32(i))))
		p.Segment, p.Segments = 1, 1<<40
		s.a.Add(p)
	}
	if r := s.a.Report(); r.Flows[0].Firsts != 1000 {
		t.Errorf("%+v", r.Flows[0])
	}
}

package inspect_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// TestCopiesOfJoinedFrames checks that a frame whose sender joined it with others in one record, and sent it again when one of these had been
// acknowledged, is taken for sent again, and not for doubled (N2).
func TestCopiesOfJoinedFrames(t *testing.T) {
	for _, joined := range []int{1, 2, 20, 64} {
		s := newStory()
		batch := func(first frame.Seq, n int) {
			record := s.record + 1
			for i := range n {
				p := s.packet(1, 2, frameWith(1, 2, first.Add(i), whole(uint32(first)+uint32(i))))
				if joined > 1 {
					s.record, p.Record = record, record
					p.Time = s.at.Add(-time.Duration(i) * time.Millisecond)
					s.at = p.Time
				}
				s.a.Add(p)
			}
		}
		soon := func(d time.Duration) { s.at = s.at.Add(d - time.Millisecond) }
		batch(100, max(joined, 2))
		soon(50 * time.Microsecond)
		s.acks(501, 101, max(joined, 2)-1) // all but the first
		soon(20 * time.Microsecond)
		batch(100, 1)
		s.acks(502, 100, 1)
		r := s.a.Report()
		if f := flowFrom(t, r, 1); f.Resent != 1 || f.Duplicates != 0 || strings.Contains(said(r), "the network doubled") {
			t.Errorf("%d in a record: %d sent again, %d doubled; said %s", joined, f.Resent, f.Duplicates, said(r))
		}
	}
}

// TestRestartIsGuessed checks that of an endpoint without sessions whose transactions go back where the capture lost more than all ids, or any other
// long piece, a restart is guessed (N3).
func TestRestartIsGuessed(t *testing.T) {
	for _, lost := range []int{5_000, 30_000, 60_000, 65_536 - 90, 65_536 - 10, 2*65_536 - 10, 200_000 - 40_000} {
		s := newStory()
		s.data(1000, 1000, 100)
		s.acks(501, 1000, 100)
		s.data(frame.Seq(1100+lost), 500, 100)
		s.acks(502, frame.Seq(1100+lost), 100)
		r := s.a.Report()
		if f := flowFrom(t, r, 1); len(f.Restarts) != 1 {
			t.Errorf("%d frames lost: no restart; said %s", lost, said(r))
		}
	}
}

// TestNoRestartOfASessionIsGuessed checks that in a session, in which nothing begins anew, ids that go on elsewhere are a long piece that the capture lost (N3).
func TestNoRestartOfASessionIsGuessed(t *testing.T) {
	for _, lost := range []uint32{5_000, 60_000, 65_536, 1 << 20, 1 << 31} {
		s := newSessionStory(false)
		first := uint32(epoch1)
		s.begin(epoch1, epoch2)
		for i := range uint32(100) {
			s.data(first+1+i, 0)
		}
		s.acks2(first+100, 0, false, first+100)
		for i := range uint32(100) {
			s.data(first+101+lost+i, 0)
		}
		s.acks2(first+200+lost, 0, false, first+200+lost)
		r := s.a.Report()
		if f := flowFrom(t, r, 1); len(f.Restarts) > 0 || f.Conflicts > 0 || !strings.Contains(said(r), "go on elsewhere once: a long piece is missing in the capture, or endpoint 1 restarted") {
			t.Errorf("%d frames lost: %+v; said %s", lost, f.Restarts, said(r))
		}
	}
}

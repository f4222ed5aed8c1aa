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
		s.hello(1, 2, 1<<16|99, 7)
		s.hello(2, 1, 1<<16|500, 8)
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

// TestOurOwnKindAnnouncesARestart checks that of an endpoint of our own kind that goes on where the capture lost more than all ids, or any other long piece, no restart
// is guessed, and of others it is (N3).
func TestOurOwnKindAnnouncesARestart(t *testing.T) {
	for _, ours := range []bool{true, false} {
		for _, lost := range []int{5_000, 30_000, 60_000, 65_536 - 90, 65_536 - 10, 2*65_536 - 10, 200_000 - 40_000} {
			for _, backwards := range []bool{false, true} { // transactions, as where several go on at once
				s := newStory()
				if ours {
					s.hello(1, 2, 1<<16|999, 7)
					s.hello(2, 1, 1<<16|500, 8)
				}
				s.data(1000, 1000, 100)
				s.acks(501, 1000, 100)
				txn := uint32(1100 + lost)
				if backwards {
					txn = 500
				}
				s.data(frame.Seq(1100+lost), txn, 100)
				s.acks(502, frame.Seq(1100+lost), 100)
				r := s.a.Report()
				if f := flowFrom(t, r, 1); ours && (len(f.Restarts) > 0 || f.Conflicts > 2 || !strings.Contains(said(r), "go on elsewhere once: a long piece is missing in the capture, or endpoint 1 restarted")) {
					t.Errorf("%d frames lost, backwards %v: %+v; said %s", lost, backwards, f.Restarts, said(r))
				} else if !ours && backwards && len(f.Restarts) != 1 {
					t.Errorf("not ours, %d frames lost: no restart; said %s", lost, said(r))
				}
			}
		}
	}
}

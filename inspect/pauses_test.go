package inspect_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// TestPauses: an endpoint that is sent to, is silent for seconds and goes on is told of before the copies that this made.
func TestPauses(t *testing.T) {
	talks := func(s *story, n frame.Seq) {
		s.data(n, uint32(n), 1)
		s.acks(n, n, 1)
	}
	copies := func(s *story, n frame.Seq, times int) {
		for range times {
			s.at = s.at.Add(500 * time.Millisecond)
			s.data(n, uint32(n), 1)
		}
	}
	for _, tt := range []struct {
		name string
		tell func(s *story)
		want string // as the first finding begins; "": nothing of the kind
		n    int
	}{
		{"once", func(s *story) {
			talks(s, 1)
			s.data(2, 2, 2)
			copies(s, 2, 4)
			s.acks(2, 2, 2)
			talks(s, 4)
		}, "Nothing of endpoint 2 is in the capture for 2.01 s, from 2 ms on, while 6 frames were sent to it; then it went on: it stood still, or the way to it or from it did, or the capture lost its frames.", 1},
		{"again and again", func(s *story) {
			talks(s, 0)
			for i := range frame.Seq(20) {
				s.data(i+1, uint32(i+1), 1)
				copies(s, i+1, 4)
				s.acks(i+1, i+1, 1)
			}
		}, "Nothing of endpoint 2 is in the capture for 2 s, from 2 ms on, while 5 frames were sent to it; then it went on: it stood still, or the way to it or from it did. So it was 20 times in all.", 16},
		{"it has nothing to say", func(s *story) {
			talks(s, 1)
			s.at = s.at.Add(time.Hour)
			talks(s, 2)
		}, "", 0},
		{"lost three times", func(s *story) {
			talks(s, 1)
			s.data(2, 2, 1)
			for range 3 {
				s.at = s.at.Add(200 * time.Millisecond)
				s.data(2, 2, 1)
			}
			s.acks(2, 2, 1)
		}, "", 0},
		{"it speaks all the time", func(s *story) {
			talks(s, 1)
			s.data(2, 2, 1)
			for i := range frame.Seq(10) {
				copies(s, 2, 1)
				s.acks(2+i, 1, 1)
			}
			s.acks(20, 2, 1)
		}, "", 0},
		{"it never acknowledges", func(s *story) {
			s.a.Add(s.packet(2, 1, frameWith(2, 1, 1, whole(1))))
			s.data(2, 2, 1)
			copies(s, 2, 4)
			s.a.Add(s.packet(2, 1, frameWith(2, 1, 2, whole(2))))
		}, "", 1},
		{"it was not there before", func(s *story) {
			s.data(2, 2, 1)
			copies(s, 2, 4)
			s.acks(2, 2, 1)
		}, "", 0},
		{"it began anew", func(s *story) {
			s.acks(8, 1, 1)
			s.data(101, 101, 1)
			s.acks(9, 101, 1)
			s.data(102, 102, 1)
			copies(s, 102, 4)
			s.hello(2, 1, 21) // which is no answer
		}, "", 0},
		{"it does not go on", func(s *story) {
			talks(s, 1)
			s.data(2, 2, 1)
			copies(s, 2, 10)
		}, "", 0},
	} {
		s := newStory()
		tt.tell(s)
		r := s.a.Report()
		f := flowFrom(t, r, 2)
		if len(f.Pauses) != tt.n {
			t.Errorf("%s: %+v, want %d", tt.name, f.Pauses, tt.n)
		}
		if got := strings.Contains(kinds(r), "stood still"); got != (tt.want != "") || got && (r.Findings[0].Text != tt.want || r.Findings[0].Flow != f.Number) {
			t.Errorf("%s: said\n%swant %q first", tt.name, said(r), tt.want)
		}
	}
}

package inspect_test

import (
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/inspect"
)

// TestLossesOfTheCaptureComeFirst checks that what the capture lost is told once, of all flows, before problems that may follow from that, which are none
// then (N4, N18).
func TestLossesOfTheCaptureComeFirst(t *testing.T) {
	for _, dropped := range []int{0, 1, 10_668} {
		s := newStory()
		s.data(1, 1, 3)
		s.data(6, 6, 3) // 4 and 5 are missing
		s.acks(1, 1, 3)
		s.at = s.at.Add(1e9)
		s.data(6, 6, 3)
		s.data(6, 6, 3)
		s.acks(5, 4, 2) // 2 to 4 are missing, among them what acknowledges 6 to 8
		s.at = s.at.Add(1e9)
		s.data(9, 9, 1)
		s.acks(6, 9, 1)
		s.a.Dropped(dropped)
		r := s.a.Report()
		first := r.Findings[0]
		says := map[int]string{0: "lost frames: endpoint 2", 1: "lost frames: its file says that 1 packet was dropped, for", 10_668: "10,668 packets were dropped, for"}[dropped]
		if first.Kind != "capture incomplete" || !strings.Contains(first.Text, says) ||
			!strings.Contains(first.Text, "endpoint 2 acknowledges 2 frames of endpoint 1 that are not in it, the first is 4, before record 4. What") {
			t.Errorf("%d dropped: first of all, %+v", dropped, first)
		}
		for _, f := range r.Findings {
			if f.Severity == inspect.Problem || f.Kind == "capture incomplete" && f.Text != first.Text {
				t.Errorf("%d dropped: %s", dropped, said(r))
			}
		}
	}
	// In a capture that lost nothing it is a problem.
	s := newStory()
	s.data(1, 1, 2)
	s.acks(1, 2, 1)
	for range 3 {
		s.at = s.at.Add(1e9)
		s.data(1, 1, 1)
	}
	s.at = s.at.Add(1e9)
	s.data(3, 3, 1)
	s.acks(2, 3, 1)
	if r := s.a.Report(); r.Findings[0].Severity != inspect.Problem || strings.Count(said(r), "problem: ") != 1 {
		t.Errorf("said %s", said(r))
	}
}

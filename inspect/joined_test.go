package inspect_test

import (
	"testing"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/inspect"
)

// TestRecordsOfJoinedFrames: a record that holds several frames, as the kernel joins
// them, is one record.
func TestRecordsOfJoinedFrames(t *testing.T) {
	for _, counted := range []bool{true, false} {
		s := newStory()
		for i := range 8 {
			p := s.packet(1, 2, frameWith(1, 2, 1))
			if i == 7 {
				p.Record, p.Segment, p.Segments = 7, 2, 2
			}
			s.a.Add(p)
		}
		if counted {
			s.a.Counted(capture.Stats{Records: 7, Packets: 8, Joined: 1})
		}
		if c := s.a.Report().Capture; c.Frames != 8 || c.Records != 7 {
			t.Errorf("counted %v: %d frames in %d records, want 8 in 7", counted, c.Frames, c.Records)
		}
	}
	a := inspect.New()
	p := newStory().packet(1, 2, frameWith(1, 2, 1))
	p.Record = 0 // of who does not number them
	a.Add(p)
	if c := a.Report().Capture; c.Records != 1 {
		t.Errorf("%d records with one frame", c.Records)
	}
}

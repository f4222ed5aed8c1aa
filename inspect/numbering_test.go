package inspect_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// TestTheFirstIsTheFirst checks that findings that name the first frame of several name the one that is meant, and its record: of those missing and not
// acknowledged, of those not acknowledged, wherever the ids begin (R1, R2).
func TestTheFirstIsTheFirst(t *testing.T) {
	for _, base := range []frame.Seq{1, 1000, 1020, 2040, 65_000, 65_530} {
		s := newStory()
		s.data(base, 1, 10)         // records 1 to 10
		s.data(base.Add(12), 13, 1) // two are missing, and acknowledged
		s.data(base.Add(16), 17, 4) // three are missing, and not acknowledged: before record 12
		s.acks(1, base, 10)
		s.acks(2, base.Add(10), 3)
		s.acks(3, base.Add(17), 3) // not base+16, in record 12
		s.data(base.Add(25), 26, 1)
		s.at = s.at.Add(time.Minute)
		s.data(base.Add(26), 27, 1)
		s.acks(4, base.Add(26), 1)
		got := said(s.a.Report())
		for _, want := range []string{
			fmt.Sprintf("endpoint 2 acknowledges 2 frames of endpoint 1 that are not in it, the first is %d, before record 11.", base.Add(10)),
			fmt.Sprintf("8 frame ids of endpoint 1 are not in the capture, nor acknowledged after its first frames; the first is %d, before this record.", base.Add(13)),
			fmt.Sprintf("2 frames from endpoint 1 have no acknowledgement in the capture, where endpoint 2 acknowledges others; the first is frame %d.", base.Add(16)),
		} {
			if !strings.Contains(got, want) {
				t.Errorf("from id %d on: said\n%swant %s", base, got, want)
			}
		}
	}
}

// TestIDsOfAnotherLife checks that ids count as missing only within a life: an endpoint restarts, the capture has neither that nor
// the introduction, and the ids of the next life are a little above those before (R1).
func TestIDsOfAnotherLife(t *testing.T) {
	const behind = 600 // ids
	stamped := func(s *story, from, to frame.EndpointID, life, id, start uint32, n int) {
		b := append(frameWith(from, to, frame.Seq(id)), make([]byte, frame.StampSize)...)
		frame.PutAck(b, frame.Seq(start), uint8(n))
		frame.Stamp{Life: life, ID: id, Start: start}.Put(b[frame.HeaderSize:])
		s.a.Add(s.packet(from, to, b))
	}
	for _, tt := range []struct {
		name  string
		tell  func(s *story)
		leaps bool
		gaps  int // ids
		acked int // frames
	}{
		{"transactions go on", func(s *story) {
			s.hello(1, 2, 1<<16|100, 7000)
			s.data(101, 7000, 5)
			s.data(106+behind, 7005+behind, 5)
			stamped(s, 2, 1, 7000, 1<<20, 1<<16|106+behind, 5)
		}, false, behind, 5},
		{"another life", func(s *story) {
			s.hello(1, 2, 1<<16|100, 7000)
			s.data(101, 7000, 5)
			s.data(106+behind, 1<<31, 5)
			stamped(s, 2, 1, 1<<31, 1<<20, 5<<16|106+behind, 5)
		}, true, 0, 3}, // the first two may be stray ones
		{"the next after that", func(s *story) {
			s.hello(1, 2, 1<<16|100, 7000)
			s.data(101, 7000, 5)
			s.data(106+behind, 1<<31, 5)
			s.data(111+2*behind, 1<<31+5+behind, 5)
			stamped(s, 2, 1, 1<<31, 1<<20, 5<<16|111+2*behind, 5)
		}, true, behind, 5},
		{"a single frame of another life", func(s *story) {
			s.hello(1, 2, 1<<16|100, 7000)
			s.data(101, 7000, 5)
			s.data(106+behind, 1<<31, 1)
			s.data(106, 7005, 5)
			stamped(s, 2, 1, 7000, 1<<20, 1<<16|106, 5)
		}, false, 0, 5},
		{"acknowledgements go on", func(s *story) {
			for i := range uint32(10) {
				stamped(s, 1, 2, 9000, 1<<16+100+i+i/5*behind, 1<<20, 1)
			}
		}, false, behind, 0},
		{"acknowledgements of another life", func(s *story) {
			for i := range uint32(10) {
				stamped(s, 1, 2, 9000, (1+i/5*4)<<16+100+i+i/5*behind, 1<<20, 1)
			}
		}, true, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStory()
			tt.tell(s)
			s.at = s.at.Add(time.Minute)
			s.acks(9, 1, 0) // long after all of that
			r := s.a.Report()
			f := flowFrom(t, r, 1)
			leaps := strings.Contains(said(r), "Frame ids of endpoint 1 go on elsewhere once")
			if f.Missing != tt.gaps || leaps != tt.leaps || f.Acked != tt.acked {
				t.Errorf("%d ids are missing, want %d; a leap is told: %v, want %v; %d frames acknowledged, want %d: said\n%s", f.Missing, tt.gaps, leaps, tt.leaps, f.Acked, tt.acked, said(r))
			}
		})
	}
}

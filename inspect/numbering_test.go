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

package iwarp_test

import (
	"path/filepath"
	"testing"

	"github.com/dgrdma/dgrdma/capture/records"
	"github.com/dgrdma/dgrdma/inspect/iwarp"
	"github.com/dgrdma/dgrdma/rdmap/mpa"
)

// TestCutEnd cuts frames of each length of pad at each place, and checks that pad and CRC are called cut where siw takes them for damaged (S2): if a segment of TCP ends between
// two of their bytes, and not if they are all in the next segment.
func TestCutEnd(t *testing.T) {
	for n := range 4 {
		whole := send(1, n)
		trailer := len(whole) - mpa.TrailerSize(18+n)
		for k := 1; k <= len(whole); k++ {
			frames := 0
			eventsOf(t, iwarp.Options{}, said(request(0x40), reply(0x40), whole[:k], nil, whole[k:]), func(e *iwarp.Event) {
				if e.Kind != iwarp.Frame {
					return
				}
				frames++
				if want := k > trailer && k < len(whole); e.CutEnd != want || e.CRC != iwarp.Good {
					t.Errorf("%d bytes, pad and CRC from %d, cut after %d: cut %v, CRC %v", len(whole), trailer, k, e.CutEnd, e.CRC)
				}
			})
			if frames != 1 {
				t.Errorf("%d frames", frames)
			}
		}
	}
}

// TestSiwCutsNoEnds checks that no frame that siw took from a siw has an end that siw does not take (S2).
func TestSiwCutsNoEnds(t *testing.T) {
	files, err := filepath.Glob(testdata + "*.pcap")
	if err != nil || len(files) < 30 {
		t.Fatal(err, len(files))
	}
	for _, file := range files {
		eventsOf(t, iwarp.Options{}, records.Of(t, file), func(e *iwarp.Event) {
			if e.CutEnd {
				t.Errorf("%s, record %d: pad and CRC are called cut", filepath.Base(file), e.Last.Record)
			}
		})
	}
}

package iwarp_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/inspect/iwarp"
)

// flagged gives a record other flags.
func flagged(r capture.Record, flags byte) capture.Record {
	r.Data = slices.Clone(r.Data)
	r.Data[33] = flags
	return r
}

// TestOrderOfEvents: what happens is told in the order of the capture, where nothing has to be waited for, and else with why it is late.
func TestOrderOfEvents(t *testing.T) {
	const set, before, now = "it waited for the set-up of the other side", "it waited for what is before it on the connection", "it is known only now"
	gone := said(request(0x40), nil, nil, []byte("<!DOCTYPE HTML>"), nil)
	gone[4] = flagged(gone[4], capture.FIN|capture.ACK)
	for _, r := range gone[5:] { // what is behind the end has another number, and so has what acknowledges it
		at := 24
		if r.Data[15] == 2 {
			at = 28
		}
		binary.BigEndian.PutUint32(r.Data[at:], binary.BigEndian.Uint32(r.Data[at:])+1)
	}
	gone[6] = flagged(gone[6], capture.RST)
	waiting := said(append(request(0x40), send(1, 9)...), nil, nil, []byte("<!DOCTYPE HTML>"))
	reset := said(append(request(0x40), send(1, 9)...), nil, nil, nil)
	reset[5] = flagged(reset[5], capture.RST|capture.ACK)
	swapped := said(request(0x40), reply(0x40), send(1, 9), nil, send(2, 9))
	swapped[4], swapped[6] = swapped[6], swapped[4]
	for _, c := range []struct {
		name    string
		records []capture.Record
		want    []string
	}{
		{"closed before an answer of another protocol", gone, []string{"setup 3", "closed 5", "given up 6", "reset 7"}},
		{"a frame before an answer of another protocol", waiting, []string{"setup 3", "fpdu 3 " + set, "given up 6"}},
		{"a frame before a reset", reset, []string{"setup 3", "fpdu 3 " + set, "reset 6"}},
		{"captured out of order", swapped, []string{"setup 3", "setup 4", "fpdu 7", "fpdu 5 " + before}},
		{"ends amid a frame", said(request(0x40), reply(0x40), send(1, 99)[:50], nil), []string{"setup 3", "setup 4", "incomplete 5 " + now}},
	} {
		var got []string
		eventsOf(t, iwarp.Options{}, c.records, func(e *iwarp.Event) {
			if e.Kind == iwarp.Gone {
				return
			}
			line := fmt.Sprint(e.Kind, " ", e.Last.Record)
			if e.Late != "" {
				line += " " + e.Late
			}
			got = append(got, line)
		})
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

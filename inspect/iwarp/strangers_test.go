package iwarp_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/inspect/iwarp"
)

// asStranger makes records of said those of the n-th of other initiators.
func asStranger(records []capture.Record, n int) []capture.Record {
	out := make([]capture.Record, len(records))
	for i, r := range records {
		r.Data = bytes.Clone(r.Data)
		of := r.Data[12:16]
		if of[3] != 1 {
			of = r.Data[16:20]
		}
		of[1], of[2] = 1+byte(n>>8), byte(n)
		out[i] = r
	}
	return out
}

// TestStrangersGiveWay: strangers send the beginning of a request that announces much private data, or bytes without a beginning, and no
// more. A stream waits for the rest of its frame meanwhile, and is read on when it comes.
func TestStrangersGiveWay(t *testing.T) {
	half := append([]byte("MPA ID Req Frame"), 0x40, 1, 0xff, 0xff)
	half = append(half, make([]byte, 20_000)...)
	for name, stranger := range map[string][]capture.Record{
		"half a request":      said(half),
		"half a reply":        said(nil, append([]byte("MPA ID Rep Frame"), half[16:]...)),
		"no beginning":        said(half)[2:],
		"no beginning, holes": append(said(half)[2:], said(nil, nil, half[:9])[4]),
	} {
		for port, o := range map[string]iwarp.Options{"": {}, ", a port that was named": {Ports: []uint16{2}}} {
			frame := send(1, 60_000)
			stream := said(request(0x40), reply(0x40), frame[:10_000], nil, frame[10_000:55_000], nil, frame[55_000:])
			records := slices.Clone(stream[:6])
			for i := range iwarp.MostHeld/20_000 + 100 {
				records = append(records, asStranger(stranger, i)...)
			}
			records = append(records, stream[6:]...)
			frames := 0
			eventsOf(t, o, records, func(e *iwarp.Event) {
				switch {
				case e.Conn.TCP.Number != 1:
				case e.Kind == iwarp.GivenUp || e.Kind == iwarp.Gone && e.Why != "":
					t.Errorf("%s%s: the stream: %v, %s", name, port, e.Kind, e.Why)
				case e.Kind == iwarp.Frame && e.CRC == iwarp.Good:
					frames++
				}
			})
			if frames != 1 {
				t.Errorf("%s%s: %d frames were read, want 1", name, port, frames)
			}
		}
	}
}

// TestConnectingTakesNobodysPlace: of a port that was named, very many strangers who connect do not push a stream out that was silent
// meanwhile.
func TestConnectingTakesNobodysPlace(t *testing.T) {
	stream := said(request(0x40), reply(0x40), send(1, 10), nil, send(2, 10))
	records := slices.Clone(stream[:5])
	for i := range 3000 {
		records = append(records, asStranger(said(request(0x40)[:19]), i)...)
	}
	records = append(records, stream[5:]...)
	frames := 0
	eventsOf(t, iwarp.Options{Ports: []uint16{2}}, records, func(e *iwarp.Event) {
		if e.Conn.TCP.Number == 1 && e.Kind == iwarp.Frame && e.WantMSN == 0 {
			frames++
		}
		if e.Conn.TCP.Number == 1 && e.Kind == iwarp.Gone && e.Why != "" {
			t.Error(e.Why)
		}
	})
	if frames != 2 {
		t.Errorf("%d frames were read, want 2", frames)
	}
}

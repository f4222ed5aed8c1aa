package iwarp_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/capture/tcp"
	"github.com/dgrdma/dgrdma/inspect/iwarp"
)

// passedOf returns the places of the records that are handed on, in their order.
func passedOf(t *testing.T, records []capture.Record) (places []int) {
	t.Helper()
	o := iwarp.Options{Passed: func(r *capture.Record, _ *tcp.Connection) error {
		places = append(places, slices.IndexFunc(records, func(x capture.Record) bool { return bytes.Equal(x.Data, r.Data) }))
		return nil
	}}
	d := iwarp.New(o, func(*iwarp.Event) error { return nil })
	for i, r := range records {
		r.Data = bytes.Clone(r.Data)
		if err := d.Add(i+1, &r); err != nil {
			t.Fatal(err)
		}
		clear(r.Data) // it is the reader's
	}
	if err := d.End(); err != nil {
		t.Fatal(err)
	}
	return places
}

func upTo(from, to int) (all []int) {
	for i := from; i < to; i++ {
		all = append(all, i)
	}
	return all
}

// TestPassed: each record of a connection of iWARP is handed on once, also those from before it was known for one; none of others.
func TestPassed(t *testing.T) {
	one := said(request(0x40), reply(0x40), send(1, 9), nil, send(2, 9))
	stranger := asStranger(said([]byte("GET / HTTP/1.1"), []byte("HTTP/1.1 200 OK"), []byte("MPA ID Req Frame")), 1)
	silent := asStranger(said(request(0x40)[:18]), 2)
	var slow [][]byte // a request of which each segment has one byte, and each answer none
	for _, b := range append(append(request(0x40)[:19:19], 40), make([]byte, 40)...) {
		slow = append(slow, []byte{b}, nil)
	}
	for _, c := range []struct {
		name    string
		records []capture.Record
		want    []int
	}{
		{"whole", one, upTo(0, 7)},
		{"known at its end", one[4:5], upTo(0, 1)},
		{"strangers", slices.Concat(stranger, silent), nil},
		{"with strangers", slices.Concat(one[:1], stranger[:3], one[1:2], silent, stranger[3:], one[2:]), []int{0, 4, 10, 11, 12, 13, 14}},
		{"known late", said(slow...), upTo(2+2*60-1-iwarp.MostEarly, 2+2*60)},
	} {
		if got := passedOf(t, c.records); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestEarlyIsBounded: what is remembered of strangers takes no place of streams.
func TestEarlyIsBounded(t *testing.T) {
	frame := send(1, 60_000)
	stream := said(request(0x40), reply(0x40), frame[:10_000], nil, frame[10_000:55_000], nil, frame[55_000:])
	frames, passed := 0, 0
	o := iwarp.Options{Passed: func(_ *capture.Record, c *tcp.Connection) error {
		if c.Number == 1 {
			passed++
		}
		return nil
	}}
	d := iwarp.New(o, func(e *iwarp.Event) error {
		switch {
		case e.Conn.TCP.Number != 1:
		case e.Kind == iwarp.Frame:
			frames++
		case e.Why != "":
			t.Errorf("the stream: %v, %s", e.Kind, e.Why)
		}
		return nil
	})
	n := 0
	add := func(records []capture.Record) {
		for i := range records {
			n++
			if err := d.Add(n, &records[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	add(stream[:6])
	for i := range iwarp.MostHeld/20_000 + 100 {
		add(asStranger(said(make([]byte, 20_000))[2:], i)) // one segment, of which nothing is known
	}
	add(stream[6:])
	if frames != 1 || passed != len(stream) {
		t.Errorf("%d frames and %d of %d records", frames, passed, len(stream))
	}
}

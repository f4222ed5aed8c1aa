package iwarp

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestCandidatesWait checks that no byte of those that come one by one has all places looked at where a frame may begin (F8).
func TestCandidatesWait(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	var c *Connection
	d := New(Options{Ports: []uint16{7174}}, func(e *Event) error { c = e.Conn; return nil })
	f := &feeder{d: d, port: 1}
	f.syn()
	f.say(0, setUp("MPA ID Req Frame", crcBit))
	f.say(1, setUp("MPA ID Rep Frame", crcBit))
	f.say(0, []byte{0, 1, 2, 3, 4, 5, 6, 7})                                  // no frame: the next one is looked for
	header := []byte{0xff, 0, 0xc1, 0x40, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0} // of a Write in a long frame
	bytes := 0
	for range 30_000 {
		b := header[bytes%len(header) : bytes%len(header)+1]
		if rnd.IntN(1000) == 0 {
			b = []byte{byte(rnd.Uint32())}
		}
		f.say(0, b)
		bytes++
	}
	if c == nil || c.ways[0].state != searching || len(c.ways[0].search.candidates) < 100 {
		t.Fatal("nothing is looked for")
	}
	if n := len(c.ways[0].search.candidates); n > mostCandidates {
		t.Errorf("%d candidates of %d bytes are kept", n, bytes)
	}
	// A byte at random makes a short frame of a header now and then, whose place is looked at when it is whole.
	if n := c.ways[0].search.tried; n > bytes/100 {
		t.Errorf("%d bytes had %d candidates looked at, of which none is whole", bytes, n)
	}
}

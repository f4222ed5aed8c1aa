package foreign

import (
	"math/rand/v2"
	"testing"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// TestEveryBitOfAHeaderIsInItsTag: observation V4 (docs/peers.md): the seven
// highest bits of the completion word, an opcode, once were not.
func TestEveryBitOfAHeaderIsInItsTag(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	random := func() frame.Message {
		return frame.Message{
			Txn: r.Uint32(), Addr: r.Uint32(), CompletionAddr: r.Uint32(), CompletionValue: r.Uint32(),
			Index: uint16(r.Uint32()), Count: uint16(r.Uint32()), Len: uint16(r.Uint32()),
		}
	}
	same := func(change func(m *frame.Message)) (n int) {
		for range 200 {
			a := random()
			b := a
			if change(&b); tagOf(&a) == tagOf(&b) {
				n++
			}
		}
		return n
	}
	for bit := range 32 {
		for what, field := range map[string]func(m *frame.Message) *uint32{
			"transaction":        func(m *frame.Message) *uint32 { return &m.Txn },
			"address":            func(m *frame.Message) *uint32 { return &m.Addr },
			"completion address": func(m *frame.Message) *uint32 { return &m.CompletionAddr },
			"completion value":   func(m *frame.Message) *uint32 { return &m.CompletionValue },
		} {
			if n := same(func(m *frame.Message) { *field(m) ^= 1 << bit }); n > 4 {
				t.Errorf("bit %d of the %s: %d of 200 tags are the same", bit, what, n)
			}
		}
	}
	for bit := range 16 {
		for what, field := range map[string]func(m *frame.Message) *uint16{
			"index":  func(m *frame.Message) *uint16 { return &m.Index },
			"count":  func(m *frame.Message) *uint16 { return &m.Count },
			"length": func(m *frame.Message) *uint16 { return &m.Len },
		} {
			if n := same(func(m *frame.Message) { *field(m) ^= 1 << bit }); n > 4 {
				t.Errorf("bit %d of the %s: %d of 200 tags are the same", bit, what, n)
			}
		}
	}
}

// TestNoFieldHidesAnother: two bits of a header that change at once change its tag, too,
// whichever they are.
func TestNoFieldHidesAnother(t *testing.T) {
	var flips []func(m *frame.Message)
	for bit := range 32 {
		flips = append(flips,
			func(m *frame.Message) { m.Txn ^= 1 << bit },
			func(m *frame.Message) { m.Addr ^= 1 << bit },
			func(m *frame.Message) { m.CompletionAddr ^= 1 << bit },
			func(m *frame.Message) { m.CompletionValue ^= 1 << bit },
		)
	}
	for bit := range 16 {
		flips = append(flips,
			func(m *frame.Message) { m.Index ^= 1 << bit },
			func(m *frame.Message) { m.Count ^= 1 << bit },
			func(m *frame.Message) { m.Len ^= 1 << bit },
		)
	}
	r := rand.New(rand.NewPCG(2, 2))
	const tries = 8
	for i := range flips {
		for j := range i {
			same := 0
			for range tries {
				a := frame.Message{Txn: r.Uint32(), Addr: r.Uint32(), CompletionAddr: r.Uint32(), CompletionValue: r.Uint32()}
				b := a
				flips[i](&b)
				if flips[j](&b); tagOf(&a) == tagOf(&b) {
					same++
				}
			}
			if same > tries/2 {
				t.Errorf("changes %d and %d: %d of %d tags are the same", i, j, same, tries)
			}
		}
	}
}

// TestTagsUseAllTheirBits: so that one of 65536 strangers has the tag of a frame.
func TestTagsUseAllTheirBits(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	const headers = 2000
	var set [16]int
	for range headers {
		tag := tagOf(&frame.Message{Txn: r.Uint32(), Addr: r.Uint32()})
		for bit := range set {
			set[bit] += int(tag >> bit & 1)
		}
	}
	for bit, n := range set {
		if n < headers*4/10 || n > headers*6/10 {
			t.Errorf("bit %d is set in %d of %d tags", bit, n, headers)
		}
	}
}

// TestArrivals: as many ids are known as a driver may send again, the youngest ones, across
// the wrap, too.
func TestArrivals(t *testing.T) {
	var a arrivals
	if _, known := a.last(0); known {
		t.Error("an arrival is known before there was one")
	}
	behind := OpenCPI(false).Behind
	for _, first := range []frame.Seq{1, 100, 65000} {
		for i := range 3 * behind {
			a.note(ack.Instant(i), first.Add(i), uint32(i))
		}
		for i := 2 * behind; i < 3*behind; i++ {
			if got, known := a.last(first.Add(i)); !known || got.at != ack.Instant(i) || got.txn != uint32(i) {
				t.Errorf("frame %d: %+v, known %v", first.Add(i), got, known)
			}
			if _, known := a.last(first.Add(i + behind)); known {
				t.Errorf("frame %d is known before it came", first.Add(i+behind))
			}
		}
	}
}

package endpoint

import (
	"math/rand/v2"
	"testing"

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

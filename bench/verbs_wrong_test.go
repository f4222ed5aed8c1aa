package bench

import (
	"encoding/binary"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/dgrdma/dgrdma/verbs"
)

// TestWrongDataIsFound: one byte or counter that is not as it should be, wherever data is looked at once the run is over,
// or at the side that asked.
func TestWrongDataIsFound(t *testing.T) {
	const slot = 2
	for _, x := range []struct {
		verb   Verb
		verify Verify
		during bool // spoilt while it runs: else when everything has arrived
		says   string
	}{
		{VerbWrite, VerifySample, false, "verification failed at the server"},
		{VerbFlush, VerifySample, false, "verification failed at the server"},
		{VerbFetchAdd, VerifySample, false, "verification failed at the server"},
		{VerbRead, VerifySample, true, "verification failed here"},
		{VerbRead, VerifyFull, true, "verification failed here"},
		{VerbFetchAdd, VerifyFull, true, "verification failed at the server"}, // and here
		{VerbCompareSwap, VerifyFull, true, "verification failed at the server"},
		{VerbWrite, VerifyOff, false, ""},
	} {
		t.Run(x.verb.String(), func(t *testing.T) {
			p := Plan{Size: 4096, Depth: 4, Peers: 1, Active: 4, Verify: x.verify}
			if x.verb.Atomic() {
				p.Size = AtomicSize
			}
			var err, failed error
			var o *Outcome
			// A machine that is busy may be through before anything is spoilt.
			for long := 50 * time.Millisecond; o == nil || x.says != "" && (err == nil || x.during && o.Mine.Wrong == 0) && long < 10*time.Second; long *= 4 {
				_, c, served := verbsEnds(t, func(s *VerbsServer) {
					spoil := func() {
						s.client.lanes.see()
						// As atomic operations of others do.
						word := (*uint64)(unsafe.Pointer(&s.Memory[p.slotAt(slot)]))
						atomic.StoreUint64(word, atomic.LoadUint64(word)^1<<40)
					}
					s.Began = func(Plan, func() uint64) func() {
						if x.during {
							time.Sleep(10 * time.Millisecond)
							spoil()
							return func() {}
						}
						return spoil
					}
				})
				c.Verb, c.Plan, c.NoCRC = x.verb, p, true
				o = NewOutcome()
				err = c.Run(t.Context(), long, o)
				c.Close()
				failed = <-served
			}
			if x.says == "" {
				if err := errors.Join(err, failed); err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), x.says) || !strings.Contains(err.Error(), "slot 2, transaction ") || !strings.Contains(err.Error(), "byte 0: ") {
				t.Errorf("%v", err)
			}
			if x.during && o.Mine.Wrong == 0 {
				t.Error("who asked has found nothing wrong")
			}
			if atServer := strings.Contains(x.says, "server"); (failed != nil) != atServer {
				t.Errorf("server: %v", failed)
			}
		})
	}
}

// TestMessagesAreLookedAt as they arrive.
func TestMessagesAreLookedAt(t *testing.T) {
	h, err := verbs.Open("tcp:127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for _, x := range []struct {
		name  string
		verb  Verb
		spoil func(data []byte, c *verbs.Completion)
		says  string
	}{
		{"sound Send", VerbSend, nil, ""},
		{"sound Write", VerbWrite, nil, ""},
		{"a byte of a Send", VerbSend, func(b []byte, _ *verbs.Completion) { b[4003] ^= 1 }, "byte 4000"},
		{"the first byte of a Send", VerbSend, func(b []byte, _ *verbs.Completion) { b[0] ^= 1 }, "slot 4, transaction 0 in it, byte 0"},
		{"another Send", VerbSend, func(b []byte, _ *verbs.Completion) { patternOf(VerifyFull, 5, 2).fill(b) }, "completed for the 2th time, expected the 1th"},
		{"another queue pair's", VerbSend, func(b []byte, _ *verbs.Completion) { patternOf(VerifyFull, 2, 1).fill(b) }, "slot 4, transaction 0 in it, byte 0"},
		{"no slot's", VerbSend, func(b []byte, _ *verbs.Completion) { patternOf(VerifyFull, 1<<30, 1).fill(b) }, "byte 0"},
		{"a short Send", VerbSend, func(_ []byte, c *verbs.Completion) { c.Length = 3 }, "slot 4"},
		{"a byte of a Write", VerbWrite, func(b []byte, _ *verbs.Completion) { b[4999] ^= 0x80 }, "slot 5, transaction 1 in it, byte 4992"},
		{"a note of no slot", VerbWrite, func(_ []byte, c *verbs.Completion) { c.Payload = immediate(1<<31, 1) }, "slot 4: completed"},
		{"a note of the past", VerbWrite, func(_ []byte, c *verbs.Completion) { c.Payload = immediate(5, 7) }, "completed for the 7th time, expected the 1th"},
	} {
		t.Run(x.name, func(t *testing.T) {
			p := Plan{Size: 5000, Depth: 4, Peers: 2, Active: 8, Verify: VerifyFull}
			l, err := newLanes(h, p, x.verb, make([]byte, p.needs()), false)
			if err != nil {
				t.Fatal(err)
			}
			defer l.close()
			l.options(1)
			in := l.expect(p)
			const slot = 5
			q := l.all[1]
			data := l.memory[p.slotAt(slot):][:p.Size]
			patternOf(VerifyFull, slot, 1).fill(data)
			c := verbs.Completion{ID: idOf(1, slot-4), Length: p.Size}
			if x.verb == VerbWrite {
				c.Immediate, c.Payload, c.Length = true, immediate(slot, 1), 8
			}
			if x.spoil != nil {
				x.spoil(data, &c)
			}
			q.look(in, &c)
			var saw Counts
			in.report(&saw)
			if (saw.Wrong > 0) != (x.says != "") || x.says != "" && !strings.Contains(saw.mismatch().Error(), x.says) {
				t.Errorf("%d wrong: %v", saw.Wrong, saw.mismatch())
			}
		})
	}
}

// TestSlotOfAWord: the first word of a pattern says whose it is.
func TestSlotOfAWord(t *testing.T) {
	for _, x := range [][2]uint32{{0, 0}, {0, 1}, {5, 7}, {1 << 23, 1<<32 - 1}, {1<<32 - 1, 3}} {
		var b [8]byte
		patternOf(VerifyFull, int(x[0]), x[1]).fill(b[:])
		if slot, round := slotOf(binary.LittleEndian.Uint64(b[:])); slot != x[0] || round != x[1] {
			t.Errorf("%v: %d, %d", x, slot, round)
		}
	}
}

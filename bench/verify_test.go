package bench

import (
	"fmt"
	"strings"
	"testing"
)

func TestArrivalsAreVerified(t *testing.T) {
	for _, c := range []struct {
		name   string
		verify Verify
		round  uint32
		spoil  func(b []byte)
		says   string
	}{
		{"sound", VerifyFull, 1, func([]byte) {}, ""},
		{"sampled", VerifySample, 1, func([]byte) {}, ""},
		{"fresh word", VerifySample, 1, func(b []byte) { b[sampleEvery+3] ^= 1 }, fmt.Sprintf("slot 5, transaction 1 in it, byte %d:", sampleEvery)},
		{"tail", VerifyFull, 1, func(b []byte) { b[len(b)-1] ^= 0x80 }, "byte 40000:"},
		{"old data", VerifySample, 1, func(b []byte) { patternOf(VerifySample, 5, 0).renew(b) }, "byte 0:"},
		{"another slot's", VerifyFull, 1, func(b []byte) { patternOf(VerifyFull, 4, 1).fill(b) }, "byte 0:"},
		{"completed twice", VerifySample, 0, func(b []byte) {}, "completed for the 0th time, expected the 1th"},
		{"never looked at", VerifyOff, 1, func(b []byte) { clear(b) }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := Plan{Size: 40005, Depth: 8, Peers: 1, Verify: c.verify}
			memory, err := NewMemory(int(p.needs()))
			if err != nil {
				t.Fatal(err)
			}
			b := memory.Bytes()[p.slotAt(5):][:p.Size]
			patternOf(c.verify, 5, 0).fill(b)
			patternOf(c.verify, 5, c.round).renew(b)
			c.spoil(b)
			in := memory.expect(p)
			in.complete(memory.Bytes(), 5, c.round)
			var saw Counts
			in.report(&saw)
			if (saw.Wrong > 0) != (c.says != "") || c.says != "" && !strings.Contains(saw.mismatch().Error(), c.says) {
				t.Errorf("%d wrong: %v", saw.Wrong, saw.mismatch())
			}
		})
	}
	memory, _ := NewMemory(1 << 20)
	in := memory.expect(Plan{Size: 64, Depth: 4, Peers: 1})
	if in.complete(memory.Bytes(), 4, 1); in.wrong.Load() != 1 {
		t.Error("completions beyond the slots are not noticed")
	}
}

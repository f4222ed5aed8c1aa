package main

import (
	"strings"
	"testing"
)

// TestBenchRateHoldsInAShortTime: nothing is moved before the rate has brought it, and what is moved at a time by default is little
// against the rate.
func TestBenchRateHoldsInAShortTime(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"", "--bidir", "--link", "--link --stream", "--op write", "--op read --reverse", "--op fetchadd"} {
		t.Run("mode "+mode, func(t *testing.T) {
			t.Parallel() // so little leaves the machine to others
			for rate, size := range map[string]float64{"1Mbit": 1024, "10Mbit": 8192} {
				if strings.Contains(mode, "fetchadd") {
					size = 8
				}
				got := benchJSON(t, 0.3, "--rate "+rate+" "+mode, func(map[string]any) bool { return true })
				ways := 1.0
				if strings.Contains(mode, "--bidir") {
					ways = 2
				}
				moved, most := got["bytes"].(float64), ways*got["rate_bytes_per_s"].(float64)*got["seconds"].(float64)
				if moved > most || got["size"] != size {
					t.Errorf("--rate %s: %.0f bytes in pieces of %v, want %.0f at most, of %v", rate, moved, got["size"], most, size)
				}
			}
			if strings.Contains(mode, "fetchadd") {
				return
			}
			code, out, stderr := runFor(t, t.Context(), strings.Fields("bench --seconds 0.2 --rate 1Mbit --size 1M "+mode)...)
			if want := " in --seconds: --rate 1Mbit brings one of 1048576 bytes in 8.4 s: give more --seconds, or a smaller --size\n"; code != exitError || out != "" || !strings.HasSuffix(stderr, want) {
				t.Errorf("code %d: %s%s, want %s", code, out, stderr, want)
			}
		})
	}
}

// TestPerSecondInWords: of few things a tenth counts.
func TestPerSecondInWords(t *testing.T) {
	for rate, want := range map[float64]string{0: "0", 0.0333: "0.0333", 0.44: "0.4", 0.936: "0.9", 0.99: "1", 2: "2", 9.94: "9.9", 9.96: "10", 1234.5: "1234"} {
		if got := perSecondText(rate); got != want {
			t.Errorf("%v: %s, want %s", rate, got, want)
		}
	}
	if one, several := countPerSecond(1, "message"), countPerSecond(0.9, "message"); one != "1 message/s" || several != "0.9 messages/s" {
		t.Error(one, several)
	}
}

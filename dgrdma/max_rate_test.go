package dgrdma

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestMaxRate checks that no more leaves in a second than the configuration allows, to peers of each kind, on near paths and far ones, and that so much does.
func TestMaxRate(t *testing.T) {
	const rate, size = 250_000, 1 << 20
	for _, name := range []string{"native", "opencpi", "opencpi2", "opencpi-legacy"} {
		for _, latency := range []time.Duration{50 * time.Microsecond, 20 * time.Millisecond} {
			synctest.Test(t, func(t *testing.T) {
				prof, err := ProfileByName(name, false)
				if err != nil {
					t.Fatal(err)
				}
				p := newPair(t, pairConfig{a: Config{MaxRate: rate, Profile: &prof}, b: Config{Profile: &prof}, link: simnet.Link{Latency: latency}, size: size})
				defer p.close()
				begin := time.Now()
				if err := p.toB.Write(context.Background(), write(8, pattern(1, size-16), 0, 1)); err != nil {
					t.Fatalf("%s, %v: %v", name, latency, err)
				}
				took, sent := time.Since(begin), p.toB.Stats().BytesSent
				if most := float64(rate)*took.Seconds()*1.02 + 8192; float64(sent) > most || took > 6*time.Second {
					t.Errorf("%s, %v: %d bytes left in %v, want at most %.0f", name, latency, sent, took, most)
				}
			})
		}
	}
}

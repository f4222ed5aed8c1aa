package foreign

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/settings"
)

// TestProfileNames: each preset is known by the name that it has.
func TestProfileNames(t *testing.T) {
	for _, name := range settings.Profile.Words {
		for _, udp := range []bool{false, true} {
			if p, err := ProfileByName(name, udp); err != nil || p.Name != name {
				t.Errorf("%q is %q: %v", name, p.Name, err)
			}
		}
	}
}

// TestProfileLimits: a profile has values up to their limits and none beyond, and the error
// names the value and the limit.
func TestProfileLimits(t *testing.T) {
	const most, half = ack.MaxWindow, ack.MaxHistory / 2
	for _, c := range []struct {
		name      string
		set       func(p *Profile, n int)
		good, bad []int
		says      string
	}{
		{"window", func(p *Profile, n int) { p.Window = n }, []int{1, most}, []int{-1, 0, most + 1}, fmt.Sprintf("need 1 to %d frames", most)},
		{"span", func(p *Profile, n int) { p.Window, p.Span = 100, n }, []int{100, most}, []int{99, most + 1}, fmt.Sprintf("need 100 (the window) to %d ids", most)},
		{"history", func(p *Profile, n int) { p.History, p.Ahead = n, 0 }, []int{1, 2, ack.MaxHistory}, []int{-1, 0, 3, 2 * ack.MaxHistory},
			fmt.Sprintf("need a power of two up to %d", ack.MaxHistory)},
		{"ids ahead", func(p *Profile, n int) { p.Ahead = n }, []int{0, half}, []int{-1, half + 1}, "need 0 to half of the history"},
		{"chunk", func(p *Profile, n int) { p.Chunk = n }, []int{1, 16}, []int{-1, 0, 24}, "need powers of two, final at most chunk"},
		{"final", func(p *Profile, n int) { p.Chunk, p.Final = 16, n }, []int{1, 16}, []int{-1, 0, 24, 32}, "need powers of two, final at most chunk"},
		{"address multiple", func(p *Profile, n int) { p.AddressMultiple = n }, []int{1, 24}, []int{-1, 0}, "need at least 1"},
		{"bytes a second", func(p *Profile, n int) { p.PeerBuffer, p.Drain = 1<<20, n }, []int{0, 1}, []int{-1}, "-1 bytes a second"},
		{"a buffer of", func(p *Profile, n int) { p.PeerBuffer, p.Drain = n, 1 }, []int{16384}, []int{0, 16383}, "need a buffer of 16384 or more"},
		{"open transactions", func(p *Profile, n int) { p.OpenTransactions = n }, []int{1, (2 * MostBegun) / 2}, []int{-1, 0, MostBegun + 1},
			fmt.Sprintf("need 1 to %d", MostBegun)},
	} {
		for _, n := range c.good {
			p := Native()
			p.Session, p.History = false, ack.MaxHistory
			if c.set(&p, n); p.Check() != nil {
				t.Errorf("%s %d: %v", c.name, n, p.Check())
			}
		}
		for _, n := range c.bad {
			p := Native()
			p.Session, p.History = false, ack.MaxHistory
			c.set(&p, n)
			if err := p.Check(); err == nil || !strings.Contains(err.Error(), c.name) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), fmt.Sprint(n)) && c.says[0] == 'n' {
				t.Errorf("%s %d: %v, want %q", c.name, n, err, c.says)
			}
		}
	}
	if p := (Profile{Name: "short", Window: 1, Span: 1, History: 1, Chunk: 1, Final: 1, AddressMultiple: 1, OpenTransactions: 1, PeerBuffer: 1}); p.Check() != nil {
		t.Errorf("a buffer without a rate is no matter: %v", p.Check())
	}
}

// TestFirstIDs: a peer without introduction takes none of our first ids for a copy: they
// are 1 to lastFirst, all of them; to one that looks ids up by remainder, all with the same.
func TestFirstIDs(t *testing.T) {
	for _, table := range []int{0, 256} {
		p := Profile{SlotTable: table}
		step := ack.Wide(max(table, 1))
		found := make(map[ack.Wide]bool)
		for random := range ack.Wide(1 << 16) {
			for _, r := range []ack.Wide{random, 1<<32 - 1 - random} {
				first := p.begin(r)
				if first < 1 || first > lastFirst || first%step != 1%step {
					t.Fatalf("table of %d, random number %d: first id %d", table, r, first)
				}
				found[first] = true
			}
		}
		if len(found) != int(lastFirst/step) {
			t.Errorf("table of %d: %d first ids, want %d", table, len(found), lastFirst/step)
		}
	}
}

// TestStandstill checks for how long the second driver may stand still, with which buffer, at which pace (O2).
func TestStandstill(t *testing.T) {
	driver, unpaced, quick := OpenCPI2(), OpenCPI(true), OpenCPI2()
	quick.Drain = 200_000_000
	for _, x := range []struct {
		name       string
		p          Profile
		buffer     int
		still      time.Duration
		drain, has int
	}{
		{"default", driver, 0, 53248 * time.Microsecond, 2_000_000, 212_992},
		{"small", driver, 16384, 53248 * time.Microsecond, 153_846, 16384},
		{"twice as large", driver, 2 * 212_992, 53248 * time.Microsecond, 4_000_000, 2 * 212_992},
		{"so large that it cannot take as much", driver, 1 << 30, 10737418 * time.Microsecond, dg2Most, 1 << 30},
		{"chosen", quick, 2 * 212_992, 1064960 * time.Nanosecond, 200_000_000, 2 * 212_992},
		{"acknowledges", unpaced, 1 << 20, 0, 0, 0},
	} {
		p := x.p
		if x.buffer > 0 {
			p = p.WithBuffer(x.buffer)
		}
		if d := (p.Standstill() - x.still).Abs(); d > time.Microsecond || p.Drain != x.drain || p.PeerBuffer != x.has {
			t.Errorf("%s: %d bytes a second, a buffer of %d, %v", x.name, p.Drain, p.PeerBuffer, p.Standstill())
		}
	}
}

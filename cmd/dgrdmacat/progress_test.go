package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestMeterLine(t *testing.T) {
	began := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		total, moved int64
		after        time.Duration
		width        int
		colour       bool
		want         string
	}{
		{100e6, 25e6, time.Second, 80, false, " 25% [========>                        ] 25.0 MB of 100 MB  25.0 MB/s  ETA 0:03"},
		{100e6, 25e6, time.Second, 80, true, " 25% [\x1b[32m========>                        \x1b[0m] 25.0 MB of 100 MB  25.0 MB/s  ETA 0:03"},
		{100e6, 25e6, time.Second, 0, false, " 25% [========>                        ] 25.0 MB of 100 MB  25.0 MB/s  ETA 0:03"},
		{100e6, 25e6, time.Second, 40, false, " 25% 25.0 MB of 100 MB  25.0 MB/s  ETA 0:03"},
		{4e9, 4e9, 2 * time.Second, 200, false, "100% [========================================] 4.00 GB of 4.00 GB  2000 MB/s  ETA 0:00"},
		{4e9, 0, 2 * time.Second, 60, false, "  0% [>                  ] 0 B of 4.00 GB  0 MB/s  ETA -:--"},
		{1000, 2000, time.Second, 60, false, "100% 2.00 kB of 1.00 kB  0.00200 MB/s  ETA 0:00"},
		{0, 0, time.Second, 60, false, "100% [=======================] 0 B of 0 B  0 MB/s  ETA 0:00"},
		{-1, 1.5e9, 65 * time.Second, 80, true, "1.50 GB  23.1 MB/s  1:05"},
		{1e15, 1e6, time.Second, 40, false, "  0% 1.00 MB of 1.00 PB  1.00 MB/s  ETA 277:46:40"},
	} {
		m := &meter{total: c.total, began: began}
		m.moved.Store(c.moved)
		if got := m.line(began.Add(c.after), c.width, c.colour); got != c.want {
			t.Errorf("%d of %d: %q, want %q", c.moved, c.total, got, c.want)
		}
	}
}

// TestMeterShowsAStall: the rate is that of the last seconds, not of all.
func TestMeterShowsAStall(t *testing.T) {
	began := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	m := &meter{total: 1e9, began: began}
	now := began
	var line string
	for i := range 60 {
		if i < 30 {
			m.moved.Add(1e6)
		}
		now = now.Add(progressTick)
		line = m.line(now, 40, false)
	}
	if want := "  3% 30.0 MB of 1.00 GB  0 MB/s  ETA -:--"; line != want {
		t.Errorf("%q, want %q", line, want)
	}
}

func TestBytesForPeople(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 999: "999 B", 1000: "1.00 kB", 10e3: "10.0 kB", 999_600: "1.00 MB", 999e3: "999 kB",
		1e9: "1.00 GB", 1<<63 - 1: "9.22 EB",
	} {
		if got := amount(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

// TestMegabytes: three digits that count, as few as there are.
func TestMegabytes(t *testing.T) {
	for n, want := range map[float64]string{
		0: "0", 4e-7: "0.000000", 1.6e-6: "0.000002", 0.00167: "0.00167", 0.5: "0.500", 0.9994: "0.999", 1: "1.00", 9.994: "9.99", 9.996: "10.0",
		12: "12.0", 94.12: "94.1", 99.94: "99.9", 99.95: "100", 100.4: "100", 4938.2: "4938",
	} {
		if got := threeDigits(n); got != want {
			t.Errorf("%v: %s, want %s", n, got, want)
		}
	}
}

// TestMeterTellsALog checks that progress is a line every few seconds where no terminal shows it.
func TestMeterTellsALog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		m := newMeter(100e6)
		stop := m.tell(&log)
		time.Sleep(time.Second / 2) // between ticks
		for range 11 {
			time.Sleep(time.Second)
			m.moved.Add(1e6)
		}
		stop()
		synctest.Wait()
		if got, want := log.String(), "  4% 4.00 MB of 100 MB  0.800 MB/s  ETA 2:00\n  9% 9.00 MB of 100 MB  0.900 MB/s  ETA 1:41\n"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

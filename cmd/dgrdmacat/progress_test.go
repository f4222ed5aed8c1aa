package main

import (
	"testing"
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
		{100 << 20, 25 << 20, time.Second, 80, false, " 25% [========>                        ] 25.0 MiB of 100 MiB  26 MB/s  ETA 0:03"},
		{100 << 20, 25 << 20, time.Second, 80, true, " 25% [\x1b[32m========>                        \x1b[0m] 25.0 MiB of 100 MiB  26 MB/s  ETA 0:03"},
		{100 << 20, 25 << 20, time.Second, 0, false, " 25% [========>                        ] 25.0 MiB of 100 MiB  26 MB/s  ETA 0:03"},
		{100 << 20, 25 << 20, time.Second, 40, false, " 25% 25.0 MiB of 100 MiB  26 MB/s  ETA 0:03"},
		{4 << 30, 4 << 30, 2 * time.Second, 200, false, "100% [========================================] 4.00 GiB of 4.00 GiB  2147 MB/s  ETA 0:00"},
		{4 << 30, 0, 2 * time.Second, 60, false, "  0% [>               ] 0 B of 4.00 GiB  0.0 MB/s  ETA -:--"},
		{1000, 2000, time.Second, 60, false, "100% [=============] 1.95 KiB of 1000 B  0.0 MB/s  ETA 0:00"},
		{0, 0, time.Second, 60, false, "100% [=====================] 0 B of 0 B  0.0 MB/s  ETA 0:00"},
		{-1, 3 << 29, 65 * time.Second, 80, true, "1.50 GiB  25 MB/s  1:05"},
		{1 << 50, 1 << 20, time.Second, 40, false, "  0% 1.00 MiB of 1.00 PiB  1.0 MB/s  ETA 277:46:40"},
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
	m := &meter{total: 1 << 30, began: began}
	now := began
	var line string
	for i := range 60 {
		if i < 30 {
			m.moved.Add(1 << 20)
		}
		now = now.Add(progressTick)
		line = m.line(now, 40, false)
	}
	if want := "  3% 30.0 MiB of 1.00 GiB  0.0 MB/s  ETA -:--"; line != want {
		t.Errorf("%q, want %q", line, want)
	}
}

func TestBytesForPeople(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.00 KiB", 10 << 10: "10.0 KiB", 1023 << 10: "1.00 MiB", 999 << 10: "999 KiB",
		1 << 30: "1.00 GiB", 1<<63 - 1: "8.00 EiB",
	} {
		if got := binaryBytes(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

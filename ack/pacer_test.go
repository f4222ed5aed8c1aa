package ack

import (
	"testing"
	"time"
)

// TestPacerLeavesRoom: a reader that drains as fast as said, in steps of 2 ms, never
// has more waiting than the buffer holds, and all of that rate is used.
func TestPacerLeavesRoom(t *testing.T) {
	const buffer, drain = 212_992, 50_000_000
	for _, size := range []int{34, 100, 1500, 4000, 9000} {
		p := NewPacer(buffer, drain)
		now, sent, waiting, most := Instant(0), 0, 0, 0
		step := Instant(2 * time.Millisecond)
		for now < Instant(time.Second) {
			at := p.NextSend(now, size)
			if at > now {
				if at/step != now/step {
					waiting = 0 // it ran at least once
				}
				now = at
				continue
			}
			p.OnSent(now, 0, size)
			sent += bufferBytes(size)
			waiting += bufferBytes(size)
			most = max(most, waiting)
		}
		if most > buffer {
			t.Errorf("frames of %d bytes: %d waited", size, most)
		}
		if sent < drain*95/100 || sent > drain*105/100+buffer/2 {
			t.Errorf("frames of %d bytes: %d in a second", size, sent)
		}
	}
}

// TestPacerAfterIdle: what was not used is not saved up beyond the buffer.
func TestPacerAfterIdle(t *testing.T) {
	p := NewPacer(212_992, 50_000_000)
	for _, now := range []Instant{0, Instant(time.Hour)} {
		n := 0
		for ; p.NextSend(now, 1500) <= now; n++ {
			p.OnSent(now, 0, 1500)
		}
		if n != 46 {
			t.Errorf("%d frames at once", n)
		}
	}
}

// Frames take powers of two of a socket buffer, as Linux counts them.
func TestPacerBufferBytes(t *testing.T) {
	for bytes, want := range map[int]int{34: 2304, 1500: 2304, 1664: 2304, 1665: 4352, 3712: 4352, 3713: 8448, 9000: 16640} {
		if got := bufferBytes(bytes); got != want {
			t.Errorf("a frame of %d bytes counts as %d, want %d", bytes, got, want)
		}
	}
}

// A buffer with less room than a full frame takes is full: then frames wait until a
// quarter of it is free, and leave together.
func TestPacerSendsTogether(t *testing.T) {
	const drain = 50_000_000
	for _, left := range []int{0, 1, fullFrame / 2, fullFrame - 1} {
		p := NewPacer(2*(40*fullFrame+left), drain)
		now := Instant(0)
		for _, want := range []int{40, 10, 10} {
			n := 0
			for ; p.NextSend(now, 1500) <= now; n++ {
				p.OnSent(now, 0, 1500)
			}
			if n != want {
				t.Errorf("%d bytes left: %d frames together, want %d", left, n, want)
			}
			now = p.NextSend(now, 1500)
		}
	}
}

// A frame that leaves in spite of the pace takes nothing from those that wait for
// company.
func TestPacerKeepsWaiting(t *testing.T) {
	const drain = 50_000_000
	p := NewPacer(2*40*fullFrame, drain)
	now := Instant(0)
	for range 40 {
		p.OnSent(now, 0, 1500)
	}
	now = now.Add(drainTime(5*fullFrame, drain))
	p.OnSent(now, 0, 34)
	if got, want := p.NextSend(now, 1500).Sub(now), drainTime(6*fullFrame, drain); got != want {
		t.Errorf("the next frame waits %v, want %v", got, want)
	}
}

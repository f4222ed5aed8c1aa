package netns

import (
	"encoding/binary"
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"
)

// Faults says what a [Switch] does to the frames of one direction. The zero
// Faults are none. Chances are from 0 to 1.
type Faults struct {
	Drop      float64
	Duplicate float64
	Reorder   float64 // sent a millisecond later, so that others overtake it
	Corrupt   float64 // a byte is changed
	Delay     time.Duration
	Rate      int // bytes per second; 0: no limit
	Queue     int // bytes waiting for the rate; what does not fit is lost. 0: 256 KiB
}

// Passed counts what a switch did in one direction.
type Passed struct {
	Frames, Dropped, Duplicated, Reordered, Corrupted, Overflowed uint64
}

const (
	reorderDelay = time.Millisecond
	usualQueue   = 256 << 10
	etherHeader  = 14
)

// journey is when a frame is to be sent on. The frame may have been changed.
type journey struct {
	due   time.Time
	frame []byte
}

// direction decides about the frames of one direction. Decisions about the i-th
// frame depend on the seed and i alone; those about the rate on the time too.
type direction struct {
	faults Faults
	rng    *rand.Rand
	free   time.Time // when the last frame is out at the limited rate
	passed Passed
}

func newDirection(f Faults, seed, side uint64) *direction {
	if f.Queue == 0 {
		f.Queue = usualQueue
	}
	return &direction{faults: f, rng: rand.New(rand.NewPCG(seed, side))}
}

// pass appends to out the copies of a frame that are sent on.
func (d *direction) pass(now time.Time, f []byte, out []journey) []journey {
	payload := payloadOf(f)
	if payload < 0 {
		return append(out, journey{now, f}) // neighbours find each other undisturbed
	}
	drop, twice := d.chance(d.faults.Drop), d.chance(d.faults.Duplicate)
	late, spoil, where := d.chance(d.faults.Reorder), d.chance(d.faults.Corrupt), d.rng.Uint64()
	d.passed.Frames++
	due := now.Add(d.faults.Delay)
	switch {
	case drop:
		d.passed.Dropped++
		return out
	case spoil:
		d.passed.Corrupted++
		if !checksummed(f) || payload == len(f) {
			return out // the next device drops what fails the wire's own check
		}
		at := payload + int(where>>8%uint64(len(f)-payload))
		f[at] ^= byte(where) | 1
	}
	if d.faults.Rate > 0 {
		if d.free.Before(now) {
			d.free = now
		}
		takes := time.Duration(float64(len(f)) / float64(d.faults.Rate) * float64(time.Second))
		if waiting := d.free.Sub(now).Seconds() * float64(d.faults.Rate); int(waiting) > d.faults.Queue {
			d.passed.Overflowed++
			return out
		}
		d.free = d.free.Add(takes)
		due = d.free.Add(d.faults.Delay)
	}
	if late {
		d.passed.Reordered++
		due = due.Add(reorderDelay)
	}
	out = append(out, journey{due, f})
	if twice {
		d.passed.Duplicated++
		out = append(out, journey{due.Add(reorderDelay / 2), f})
	}
	return out
}

func (d *direction) chance(c float64) bool { return d.rng.Float64() < c }

// payloadOf returns where the payload of a datagram or of a DG/RDMA frame
// begins, or -1 for any other frame.
func payloadOf(f []byte) int {
	if len(f) < etherHeader {
		return -1
	}
	start, next := etherHeader, -1
	switch kind := binary.BigEndian.Uint16(f[12:]); {
	case kind == EtherType:
		return start
	case kind == unix.ETH_P_IP && len(f) >= start+20:
		next = int(f[start+9])
		start += int(f[start]&15) * 4
	case kind == unix.ETH_P_IPV6 && len(f) >= start+40:
		next = int(f[start+6])
		start += 40
	}
	if start += 8; next != unix.IPPROTO_UDP || len(f) < start {
		return -1
	}
	return start
}

func checksummed(f []byte) bool { return binary.BigEndian.Uint16(f[12:]) != EtherType }

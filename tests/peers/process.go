package peers

import (
	"math/rand/v2"
	"slices"
	"time"
)

// DefaultBuffer is what Linux gives a socket for frames that its process has not read
// (net.core.rmem_default), in bytes.
const DefaultBuffer = 212_992

// Busy describes a machine that has something else to do: each thread of the process runs
// for Every on average, and then stands still for between Least and Most. The seed decides
// when. The zero value is an idle machine.
type Busy struct {
	Seed               uint64
	Every, Least, Most time.Duration
}

// pauses says when one thread stands still.
type pauses struct {
	busy        Busy
	dice        *rand.Rand
	begin, over time.Time // of the next one, or of the one that lasts
}

func newPauses(b Busy, thread uint64, now time.Time) *pauses {
	p := &pauses{busy: b, dice: rand.New(rand.NewPCG(b.Seed, thread))}
	p.draw(now)
	return p
}

func (p *pauses) draw(from time.Time) {
	p.begin = from.Add(time.Duration(p.dice.ExpFloat64() * float64(p.busy.Every)))
	p.over = p.begin.Add(p.busy.Least + time.Duration(p.dice.Float64()*float64(p.busy.Most-p.busy.Least)))
}

// wait returns when the thread runs again, if it stands still now.
func (p *pauses) wait() {
	if p.busy.Every == 0 {
		return
	}
	now := time.Now()
	for !now.Before(p.over) {
		p.draw(p.over)
	}
	if !now.Before(p.begin) {
		time.Sleep(p.over.Sub(now))
	}
}

// Truesize is what a packet takes of a socket's buffer: the data with what the
// kernel keeps around it, in the next size of its allocator, and a sk_buff.
// Measured with veth and Linux 6.18, a buffer of 212,992 bytes keeps 256 frames of
// 60 bytes, 167 of 512, and 93 of 1000 or 1502: the one that no longer fits
// is kept, too. Drivers that take whole pages charge more.
func Truesize(payload int) int {
	const skbuff, headroom, shared = 256, 64 + 14, 320
	n := headroom + payload + shared
	size := 576 // the small ones have a cache of their own
	for n > size {
		size = max(1024, 2*size&^1023)
	}
	return skbuff + size
}

// packetHeaders is what a packet has in front of a frame: two bytes and the headers of
// UDP and IPv4, or none, as Ethernet's own are in Truesize.
func packetHeaders(udp bool) int {
	if udp {
		return 2 + 8 + 20
	}
	return 0
}

// socket is the receive buffer of a process, and the thread that reads it.
type socket struct {
	size    int           // bytes; 0: any number
	headers int           // of each packet
	perRead time.Duration // what the thread takes for each frame
	waiting [][]byte
	bytes   int
	wake    chan struct{} // one token: something is waiting
}

// put keeps a frame for the process, and reports whether there was room. Guarded by the
// port's mutex.
func (s *socket) put(b []byte) bool {
	if s.size > 0 && s.bytes >= s.size {
		return false
	}
	s.waiting = append(s.waiting, slices.Clone(b))
	s.bytes += Truesize(s.headers + len(b))
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return true
}

// next takes the oldest one out.
func (s *socket) next() (b []byte, ok bool) {
	if len(s.waiting) == 0 {
		return nil, false
	}
	b = s.waiting[0]
	s.waiting = s.waiting[1:]
	s.bytes -= Truesize(s.headers + len(b))
	return b, true
}

// read is the receiving thread.
func (p *Port) read(receive func([]byte)) {
	t := newPauses(p.cfg.busy, 1, time.Now())
	for {
		select {
		case <-p.stop:
			return
		case <-p.socket.wake:
		}
		for more := true; more; {
			t.wait()
			p.mu.Lock()
			b, ok := p.socket.next()
			if more = ok; ok {
				receive(b)
			}
			p.mu.Unlock()
			if ok && p.socket.perRead > 0 {
				time.Sleep(p.socket.perRead)
			}
		}
	}
}

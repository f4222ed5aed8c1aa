package main

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link/stream"
)

// silentFor is how long a sender may send nothing before another one gets its place. Arbitrary: a
// sender that reads a pipe is silent for long, and keeps its place while no other wants it.
const silentFor = 10 * time.Second

var (
	errBusy    = errors.New("busy")
	errGaveWay = errors.New("another sender came, and this one was silent")
)

// busy is errBusy in words that say with what.
type busy string

func (b busy) Error() string { return string(b) + ": try again later" }
func (busy) Unwrap() error   { return errBusy }

// senderPlaces are the senders that listen serves at once.
type senderPlaces struct {
	most int

	mu    sync.Mutex
	taken map[*stream.Stream]*place
}

// place is that of a sender.
type place struct {
	peer  dgrdma.PeerName
	moved int64     // bytes that had come when it was looked at
	since time.Time // when it was first seen with as many
	fixed bool      // it is not taken away: this side is not ready, or what it had cannot be taken back
}

// room makes a place for another sender of a peer, or returns why there is none. A peer gets no more
// than it leaves for others. Where all are taken, the sender that has been silent for longest gives way.
func (p *senderPlaces) room(peer dgrdma.PeerName) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := 0
	var silent *stream.Stream
	var longest time.Duration
	for s, x := range p.taken {
		if x.peer == peer {
			own++
		}
		if moved := s.Result().Received; moved != x.moved {
			x.moved, x.since = moved, time.Now()
		}
		if d := time.Since(x.since); !x.fixed && d >= max(silentFor, longest) && (p.most > 1 || x.moved == 0) {
			silent, longest = s, d
		}
	}
	switch n := len(p.taken); {
	case own > 0 && p.most > 1 && own >= p.most-n:
		return busy(fmt.Sprintf("busy with %d senders, %d of them yours", n, own))
	case n < p.most:
	case silent != nil:
		delete(p.taken, silent)
		go silent.Abort(errGaveWay)
	case p.most == 1:
		return busy("busy with another sender")
	default:
		return busy(fmt.Sprintf("busy with %d senders", n))
	}
	return nil
}

// take gives a sender its place. It is not taken away before start.
func (p *senderPlaces) take(s *stream.Stream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken[s] = &place{peer: s.Link().Peer().Name(), fixed: true}
}

// start notes that a sender is waited for from now on.
func (p *senderPlaces) start(s *stream.Stream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x := p.taken[s]; x != nil {
		x.fixed, x.since = false, time.Now()
	}
}

// has reports whether a sender still has its place.
func (p *senderPlaces) has(s *stream.Stream) (yes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, yes = p.taken[s]
	return yes
}

// leave reports whether a sender kept its place to the end.
func (p *senderPlaces) leave(s *stream.Stream) (kept bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, kept = p.taken[s]
	delete(p.taken, s)
	return kept
}

// any reports whether there is a sender.
func (p *senderPlaces) any() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.taken) > 0
}

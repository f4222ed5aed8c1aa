// Package places gives the places of a server to its clients, so that no host can keep the others out.
//
// A server has so many places, and so many bytes for those who have them. When there is none left for a newcomer, a
// client gives way:
//
//   - of the host that has the most places, if the newcomer's own host has fewer;
//   - otherwise one of the newcomer's host, or else of any, that has done nothing for [Room.Patience].
//
// It is always the one that has been silent for longest. If there is none, the newcomer is refused.
package places

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Room has the places. Its exported fields do not change once it is used.
type Room struct {
	// Most is how many places there are, and Bytes how much all of them may take; 0: any amount.
	Most  int
	Bytes uint64
	// Patience is for how long a client may do nothing while others want its place.
	Patience time.Duration

	mu      sync.Mutex
	taken   []*Place
	bytes   uint64
	waiting int           // newcomers, for a place that is being given up
	left    chan struct{} // closed when somebody leaves, if anybody waits
}

// Place is one client's. The zero value is of no use: see [Room.Enter].
type Place struct {
	room  *Room
	host  netip.Prefix
	bytes uint64
	done  func() uint64
	evict func()
	going bool // it was asked to leave

	// As it was seen last.
	seen  uint64
	since time.Time
}

// ErrFull says that there is no place, and that none will be soon.
var ErrFull = errors.New("all places are taken")

// soon is how long a client that gives way may take to leave. Arbitrary: a server closes its connection, and waits for
// nothing.
const soon = time.Second

// Enter takes a place for a client at an address that needs so many bytes. If one has to give way, Enter waits until that has left,
// no longer than a second. The place's client is to be named with [Place.Serve] next.
func (r *Room) Enter(ctx context.Context, at netip.Addr, bytes uint64) (*Place, error) {
	ctx, stop := context.WithTimeout(ctx, soon)
	defer stop()
	p := &Place{room: r, host: hostOf(at), bytes: bytes, since: time.Now()}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.look(p.since)
	for !r.fits(bytes) {
		if r.waiting >= r.Most || !r.makeRoom(p) {
			return nil, ErrFull
		}
		if r.left == nil {
			r.left = make(chan struct{})
		}
		left := r.left
		r.waiting++
		r.mu.Unlock()
		var err error
		select {
		case <-left:
		case <-ctx.Done():
			err = ErrFull
		}
		r.mu.Lock()
		r.waiting--
		if err != nil {
			return nil, err
		}
	}
	r.taken = append(r.taken, p)
	r.bytes += bytes
	return p, nil
}

// hostOf is what has an address: a network of 64 bits is one host's, which may have any address in it.
func hostOf(at netip.Addr) netip.Prefix {
	at = at.Unmap().WithZone("")
	bits := at.BitLen()
	if at.Is6() {
		bits = 64
	}
	host, _ := at.Prefix(bits)
	return host
}

// Serve says how the client is seen, and asked to leave: done changes with whatever the client does, and evict returns at once. Both are
// called with the room's lock, and must not call the room.
func (p *Place) Serve(done func() uint64, evict func()) {
	p.room.mu.Lock()
	defer p.room.mu.Unlock()
	p.done, p.evict = done, evict
	p.seen, p.since = done(), time.Now()
}

// Leave gives the place back.
func (p *Place) Leave() {
	r := p.room
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken = slices.DeleteFunc(r.taken, func(q *Place) bool { return q == p })
	r.bytes -= p.bytes
	if r.left != nil {
		close(r.left)
		r.left = nil
	}
}

// Len is how many places are taken.
func (r *Room) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.taken)
}

func (r *Room) fits(bytes uint64) bool {
	return len(r.taken) < r.Most && (r.Bytes == 0 || r.bytes+bytes <= r.Bytes)
}

// look sees which clients have done something since it looked last.
func (r *Room) look(now time.Time) {
	for _, p := range r.taken {
		if p.done == nil {
			continue
		}
		if n := p.done(); n != p.seen {
			p.seen, p.since = n, now
		}
	}
}

// makeRoom asks clients to leave, as many as the newcomer needs the places or bytes of, and reports whether it will have them. It asks
// none if that is not enough.
func (r *Room) makeRoom(newcomer *Place) bool {
	places, bytes := len(r.taken), r.bytes
	counts := make(map[netip.Prefix]int)
	for _, p := range r.taken {
		if p.going {
			places, bytes = places-1, bytes-p.bytes
			continue
		}
		counts[p.host]++
	}
	mine := counts[newcomer.host]
	var gone []*Place
	for places >= r.Most || r.Bytes != 0 && bytes+newcomer.bytes > r.Bytes {
		p := r.next(newcomer, counts, mine, gone)
		if p == nil {
			return false
		}
		gone = append(gone, p)
		counts[p.host]--
		places, bytes = places-1, bytes-p.bytes
	}
	for _, p := range gone {
		p.going = true
		p.evict()
	}
	return true
}

// next is the client that gives way next, nil: none does.
func (r *Room) next(newcomer *Place, counts map[netip.Prefix]int, mine int, gone []*Place) *Place {
	top := 0
	for _, n := range counts {
		top = max(top, n)
	}
	var best *Place
	rank := 0
	for _, p := range r.taken {
		if p.going || p.evict == nil || slices.Contains(gone, p) {
			continue
		}
		silent := newcomer.since.Sub(p.since) >= r.Patience
		is := 0
		switch {
		case counts[p.host] == top && top > mine+1:
			is = 3
		case silent && p.host == newcomer.host:
			is = 2
		case silent:
			is = 1
		}
		if is > rank || is == rank && is > 0 && p.since.Before(best.since) {
			best, rank = p, is
		}
	}
	return best
}

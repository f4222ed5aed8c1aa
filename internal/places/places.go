// Package places gives the places of a server to its clients, so that no host can keep the others out.
//
// A server has so many places, and so many bytes for those who have them. When there is none left of one of the two for a
// newcomer, a client gives way:
//
//   - of the host that has the most of it, if that is more than the newcomer's own host would have. All addresses of one
//     IPv6 network of 64 bits are one host's, which may have any of them;
//   - or of the address that has the most of it among those of the newcomer's host, if that is more than the newcomer's own would
//     have: the network may be a whole link, with many machines;
//   - otherwise one of the newcomer's host, or else of any, that has done nothing for [Room.Patience].
//
// It is always the one that has been silent for longest. If there is none, the newcomer is refused. What is given up is
// for the newcomer that it is given up for, and for no other that comes before that has left.
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
	waiting []*Place      // newcomers, for what is being given up, in the order in which they came
	left    chan struct{} // closed when somebody leaves, if anybody waits
}

// Place is one client's. The zero value is of no use: see [Room.Enter].
type Place struct {
	room  *Room
	host  netip.Prefix
	at    netip.Addr
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
	p := &Place{room: r, at: at.Unmap().WithZone(""), bytes: bytes, since: time.Now()}
	p.host = hostOf(p.at)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.look(p.since)
	for waits := false; !r.fits(p); waits = true {
		if !r.makeRoom(p) {
			r.stopWaiting(p)
			return nil, ErrFull
		}
		if !waits {
			r.waiting = append(r.waiting, p)
		}
		if r.left == nil {
			r.left = make(chan struct{})
		}
		left := r.left
		r.mu.Unlock()
		var err error
		select {
		case <-left:
		case <-ctx.Done():
			err = ErrFull
		}
		r.mu.Lock()
		if err != nil {
			r.stopWaiting(p)
			return nil, err
		}
	}
	r.stopWaiting(p)
	r.taken = append(r.taken, p)
	r.bytes += bytes
	return p, nil
}

// stopWaiting ends the wait of a newcomer, if it waits. What others that wait may take depends on it.
func (r *Room) stopWaiting(p *Place) {
	if i := slices.Index(r.waiting, p); i >= 0 {
		r.waiting = slices.Delete(r.waiting, i, i+1)
		r.wake()
	}
}

// wake has those who wait look again.
func (r *Room) wake() {
	if r.left != nil {
		close(r.left)
		r.left = nil
	}
}

// hostOf is what has an address.
func hostOf(at netip.Addr) netip.Prefix {
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
	r.wake()
}

// Len is how many places are taken.
func (r *Room) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.taken)
}

// share is what a host has, or all have.
type share struct {
	places int
	bytes  uint64
}

func (s share) with(bytes uint64) share    { return share{s.places + 1, s.bytes + bytes} }
func (s share) without(bytes uint64) share { return share{s.places - 1, s.bytes - bytes} }

// before is what is taken, and what is promised to newcomers that came before p and wait.
func (r *Room) before(p *Place) share {
	all := share{len(r.taken), r.bytes}
	for _, w := range r.waiting {
		if w == p {
			break
		}
		all = all.with(w.bytes)
	}
	return all
}

func (r *Room) lacksPlaces(all share) bool { return all.places >= r.Most }

func (r *Room) lacksBytes(all share, need uint64) bool {
	return r.Bytes != 0 && all.bytes+need > r.Bytes
}

func (r *Room) fits(p *Place) bool {
	all := r.before(p)
	return !r.lacksPlaces(all) && !r.lacksBytes(all, p.bytes)
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
	all := r.before(newcomer)
	of, at := make(map[netip.Prefix]share), make(map[netip.Addr]share)
	for _, p := range r.taken {
		if p.going {
			all = all.without(p.bytes)
			continue
		}
		of[p.host], at[p.at] = of[p.host].with(p.bytes), at[p.at].with(p.bytes)
	}
	for _, w := range r.waiting {
		if w == newcomer {
			break
		}
		of[w.host], at[w.at] = of[w.host].with(w.bytes), at[w.at].with(w.bytes)
	}
	own, ownAt := of[newcomer.host].with(newcomer.bytes), at[newcomer.at].with(newcomer.bytes)
	var gone []*Place
	for r.lacksPlaces(all) || r.lacksBytes(all, newcomer.bytes) {
		weight := func(s share) uint64 { return uint64(s.places) }
		if !r.lacksPlaces(all) {
			weight = func(s share) uint64 { return s.bytes }
		}
		top, topAt := uint64(0), uint64(0)
		for _, p := range r.taken {
			top = max(top, weight(of[p.host]))
			if p.host == newcomer.host {
				topAt = max(topAt, weight(at[p.at]))
			}
		}
		p := r.next(gone, func(p *Place) int {
			switch silent := newcomer.since.Sub(p.since) >= r.Patience; {
			case weight(of[p.host]) == top && top > weight(own):
				return 4
			case p.host == newcomer.host && weight(at[p.at]) == topAt && topAt > weight(ownAt):
				return 3
			case silent && p.host == newcomer.host:
				return 2
			case silent:
				return 1
			}
			return 0
		})
		if p == nil {
			return false
		}
		gone = append(gone, p)
		of[p.host], at[p.at], all = of[p.host].without(p.bytes), at[p.at].without(p.bytes), all.without(p.bytes)
	}
	for _, p := range gone {
		p.going = true
		p.evict()
	}
	return true
}

// next is the client that gives way next, nil: none does. Rank says in which order they do, 0: not at all.
func (r *Room) next(gone []*Place, rank func(*Place) int) (best *Place) {
	highest := 0
	for _, p := range r.taken {
		if p.going || p.evict == nil || slices.Contains(gone, p) {
			continue
		}
		if is := rank(p); is > highest || is == highest && is > 0 && p.since.Before(best.since) {
			best, highest = p, is
		}
	}
	return best
}

package link

import (
	"context"
	"sync/atomic"
)

// waiting is how one goroutine waits for words of the peer.
type waiting struct {
	host   *Host
	asleep atomic.Bool
	wake   chan struct{} // capacity 1
	enough func() bool   // to help: what is there, others wait too, or waiting ends

	// Of the goroutine that waits and helps: what it waits for, and what ends that.
	what             readier
	down, gone, done <-chan struct{}
}

func (w *waiting) init(h *Host) {
	w.host, w.wake = h, make(chan struct{}, 1)
	w.enough = func() bool { return w.what.ready() || !w.alone() || w.ended() }
}

// ended reports whether who helps is to wait no more. It is asked after every batch
// of datagrams: while they keep coming, nothing else would look.
func (w *waiting) ended() bool {
	select {
	case <-w.done:
	case <-w.down:
	case <-w.gone:
	default:
		return false
	}
	return true
}

// alone reports whether nobody else waits at this host.
func (w *waiting) alone() bool { return w.host.waiters.Load() == 1 }

// help does the endpoint's work meanwhile, if there is but one who waits.
func (w *waiting) help(r readier, done, down, gone <-chan struct{}) {
	if w.alone() {
		w.what, w.done, w.down, w.gone = r, done, down, gone
		w.host.ep.Help(w.enough)
	}
	if !w.alone() {
		w.host.ep.HelpEnds()
	}
}

// rouse is called after something changed that may be waited for.
func (w *waiting) rouse() {
	if w.asleep.Load() {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// readier says whether what is waited for is there.
type readier interface{ ready() bool }

// polls is how often a host is polled between two looks at the context.
const polls = 64

// until waits until r is ready. What is ready wins over a link that is down, and
// that over a context that is done.
func (w *waiting) until(ctx context.Context, l *Link, down <-chan struct{}, r readier) error {
	if r.ready() {
		return nil
	}
	l.host.waiters.Add(1)
	defer l.host.waiters.Add(-1)
	for i := 1; ; i++ {
		if r.ready() {
			return nil
		}
		if l.host.manual {
			if err := l.host.Poll(); err != nil {
				return l.wrap("poll link with", err)
			}
			if i%polls != 0 {
				continue
			}
			select {
			case <-down:
			case <-l.gone:
				l.lost()
			case <-ctx.Done():
			default:
				continue
			}
		} else {
			w.help(r, ctx.Done(), down, l.gone)
			again := false
			w.asleep.Store(true)
			if !r.ready() {
				select {
				case <-w.wake:
					again = true
				case <-l.host.ep.HelpWanted():
					again = true
				case <-down:
				case <-l.gone:
					l.lost()
				case <-ctx.Done():
				}
			}
			w.asleep.Store(false)
			if again {
				continue
			}
		}
		switch {
		case r.ready():
			return nil
		case ctx.Err() == nil || down != nil && l.failed() != nil:
			return l.Err()
		default:
			return context.Cause(ctx)
		}
	}
}

// turn lets one goroutine at a time through, and waits no longer than a context.
// Unlike a mutex it may be held while its owner waits for the peer.
type turn struct {
	held  atomic.Bool
	queue atomic.Int32  // who waits
	free  chan struct{} // capacity 1: it was given while someone waited
}

func (t *turn) init() { t.free = make(chan struct{}, 1) }

func (t *turn) try() bool { return t.held.CompareAndSwap(false, true) }

func (t *turn) take(ctx context.Context) error {
	if t.try() {
		return nil
	}
	t.queue.Add(1)
	defer t.queue.Add(-1)
	for !t.try() {
		select {
		case <-t.free:
		case <-ctx.Done():
			t.pass() // it may have been meant for us
			return context.Cause(ctx)
		}
	}
	return nil
}

func (t *turn) give() {
	t.held.Store(false)
	t.pass()
}

func (t *turn) pass() {
	if t.queue.Load() > 0 {
		select {
		case t.free <- struct{}{}:
		default:
		}
	}
}

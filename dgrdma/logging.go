package dgrdma

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// loggedEach second are so many events at most: a peer causes one with each 24 bytes.
// Arbitrary: more than a person reads.
const loggedEach = 100

// quiet keeps a flood of events out of the log.
type quiet struct {
	mu      sync.Mutex
	since   ack.Instant // when the present second began
	logged  int         // in it
	skipped uint64      // in it and those before, and not told yet
}

// ask reports whether an event is to be logged, and how many before it were not.
func (q *quiet) ask(now ack.Instant) (skipped uint64, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now.Sub(q.since) >= time.Second {
		q.since, q.logged = now, 0
	}
	if q.logged == loggedEach {
		q.skipped++
		return 0, false
	}
	q.logged++
	skipped, q.skipped = q.skipped, 0
	return skipped, true
}

// event tells the application, and the log.
func (e *Endpoint) event(ev Event) {
	if ev.Conn != nil && (ev.Kind == PeerUp || ev.Kind == PeerRestarted || ev.Kind == PeerDown) {
		for _, ch := range ev.Conn.channels.all() {
			ch.handler.Event(ev)
		}
	}
	if f := e.cfg.OnEvent; f != nil {
		f(ev)
	}
	l := e.cfg.Logger
	if l == nil {
		return
	}
	level := ev.level()
	if !l.Enabled(context.Background(), level) {
		return
	}
	skipped, ok := e.quiet.ask(e.now())
	if !ok {
		return
	}
	if skipped > 0 {
		l.Warn("too many events to log", "endpoint", e.cfg.ID, "left_out", skipped)
	}
	l.LogAttrs(context.Background(), level, ev.words(), ev.attrs(e.cfg.ID)...)
}

// level is how much a person wants to know: of what was lost, or has to be looked after, more.
func (ev *Event) level() slog.Level {
	switch {
	case ev.Kind == FrameRefused:
		return slog.LevelDebug
	case ev.Kind == PeerUp, errors.Is(ev.Err, ErrPeerClosed):
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

// words are what happened, in the log.
func (ev *Event) words() string {
	if errors.Is(ev.Err, ErrPeerClosed) {
		return "peer closed"
	}
	return ev.Kind.String()
}

// attrs are the fields of an endpoint's event that say something.
func (ev *Event) attrs(own frame.EndpointID) []slog.Attr {
	all := []slog.Attr{slog.Any("endpoint", own), slog.Any("peer", ev.Peer.ID), slog.String("addr", ev.Peer.Addr.String())}
	if ev.Reason != RefusedNone {
		all = append(all, slog.String("reason", ev.Reason.String()))
	}
	if ev.Txn != 0 || ev.Kind == TransactionLost {
		all = append(all, slog.Uint64("txn", uint64(ev.Txn)))
	}
	if ev.Frames != 0 {
		all = append(all, slog.Int("frames", ev.Frames))
	}
	if ev.Size != 0 {
		all = append(all, slog.Int("size", ev.Size))
	}
	if ev.Err != nil && !errors.Is(ev.Err, ErrPeerClosed) { // which the words say
		all = append(all, slog.Any("err", ev.Err))
	}
	return all
}

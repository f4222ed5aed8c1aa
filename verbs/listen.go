package verbs

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/rdmap/mpa"
)

// Listener takes requests for connections at a port.
type Listener struct {
	host *Host
	nl   net.Listener
	// ready are requests that are whole.
	ready chan *Request
	lobby *lobby
	away  *turnedAway
	ctx   context.Context
	stop  context.CancelFunc
	all   sync.WaitGroup
	once  sync.Once
}

// Backlog is how many requests wait for [Listener.Accept]. Connections of those that come when there
// are as many are closed.
const Backlog = 128

// A listener that cannot accept tries again after a pause between these, as that of net/http does.
const (
	leastPause = 5 * time.Millisecond
	mostPause  = time.Second
)

// Listen listens at a port of TCP, as in "7471"; "0" takes any that is free.
func (h *Host) Listen(port string) (*Listener, error) {
	nl, err := net.Listen("tcp", net.JoinHostPort(h.local, port))
	if err != nil {
		return nil, fmt.Errorf("listen at port %s: %w", port, h.explain(err))
	}
	l := &Listener{host: h, nl: nl, ready: make(chan *Request, Backlog), lobby: newLobby(&h.bounds), away: newTurnedAway()}
	l.ctx, l.stop = context.WithCancel(context.Background())
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		nl.Close()
		return nil, fmt.Errorf("listen at %s: the host is closed: %w", port, net.ErrClosed)
	}
	h.open[l] = true
	l.all.Add(1)
	go l.accept()
	return l, nil
}

func (l *Listener) accept() {
	defer l.all.Done()
	pause := time.Duration(0)
	for {
		nc, err := l.nl.Accept()
		if err != nil {
			if l.ctx.Err() != nil {
				return
			}
			// No descriptors are left, as an example. One is when somebody has left.
			l.lobby.showOut()
			pause = min(max(2*pause, leastPause), mostPause)
			select {
			case <-time.After(pause):
			case <-l.ctx.Done():
				return
			}
			continue
		}
		pause = 0
		g := l.lobby.enter(l.ctx)
		l.all.Add(1)
		go func() {
			defer l.all.Done()
			r, err := mpa.Await(g.ctx, nc, 0)
			l.lobby.leave(g)
			if err != nil {
				if l.ctx.Err() == nil {
					l.host.setUps.failed.Add(1)
				}
				return
			}
			select {
			case l.ready <- newRequest(l.host, l.away, r, nc):
			default:
				l.host.setUps.failed.Add(1)
				l.host.bounds.dropped.Add(1)
				nc.Close()
			}
		}()
	}
}

// Addr is where the listener listens.
func (l *Listener) Addr() net.Addr { return l.nl.Addr() }

// String is what a peer dials, as in "tcp:10.0.0.1:7471", if the listener is one of a host at an address; else it has the
// address of all addresses, which means this machine to whoever dials.
func (l *Listener) String() string { return "tcp:" + l.Addr().String() }

// Accept waits for a request. [ErrClosed]: the listener, or its host, is closed.
func (l *Listener) Accept(ctx context.Context) (*Request, error) {
	select {
	case r, open := <-l.ready:
		if !open {
			return nil, l.closed()
		}
		return r, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.ctx.Done():
		return nil, l.closed()
	}
}

func (l *Listener) closed() error {
	return fmt.Errorf("accept at %v: %w", l.Addr(), net.ErrClosed)
}

// Close stops listening. What [Listener.Accept] has returned stays; the connections of those who wait
// for it are closed, and of those who were turned away.
func (l *Listener) Close() error {
	l.once.Do(func() {
		l.stop()
		l.nl.Close()
		l.away.end()
		l.all.Wait()
		close(l.ready)
		for r := range l.ready {
			r.nc.Close()
		}
		l.host.mu.Lock()
		delete(l.host.open, l)
		l.host.mu.Unlock()
	})
	return nil
}

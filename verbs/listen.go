package verbs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
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
	ctx   context.Context
	stop  context.CancelFunc
	all   sync.WaitGroup
	once  sync.Once

	mu    sync.Mutex
	parts int  // requests that were turned away, and have not gone
	over  bool // none is waited for any more
}

// Backlog is how many requests wait for [Listener.Accept]. Connections of those that come when there
// are as many are closed.
const Backlog = 128

// MostTurnedAway is how many requests of a listener are waited for that [Request.TurnAway] has answered.
const MostTurnedAway = 2 * Backlog

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
	l := &Listener{host: h, nl: nl, ready: make(chan *Request, Backlog), lobby: newLobby(&h.bounds)}
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
			case l.ready <- &Request{listener: l, r: r, nc: nc, Private: r.Private()}:
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
		l.mu.Lock()
		l.over = true
		l.mu.Unlock()
		l.nl.Close()
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

// Request is a peer that asks for a connection. It waits until it is accepted or rejected, or for as long as the peer
// likes.
type Request struct {
	// Private is what the peer's program says, by [Options.Private].
	Private []byte

	listener *Listener
	r        *mpa.Request
	nc       net.Conn
	counted  atomic.Bool // what became of it
}

// count counts what became of the request, once.
func (r *Request) count(counter *atomic.Uint64) {
	if !r.counted.Swap(true) {
		counter.Add(1)
	}
}

// RemoteAddr is the address of the peer.
func (r *Request) RemoteAddr() net.Addr { return r.nc.RemoteAddr() }

// LocalAddr is the address to which the peer has connected.
func (r *Request) LocalAddr() net.Addr { return r.nc.LocalAddr() }

// String says who asks.
func (r *Request) String() string { return fmt.Sprintf("request of %v", r.RemoteAddr()) }

// Accept opens a queue pair. Errors are those of [Host.Dial]; after [ErrOption] the request can still be answered.
func (r *Request) Accept(ctx context.Context, o *Options) (*QueuePair, error) {
	if o == nil {
		o = &Options{}
	}
	if err := o.check(); err != nil {
		return nil, setUp("accept", r.RemoteAddr(), err)
	}
	h := r.listener.host
	conn, err := r.r.Accept(ctx, o.mpa())
	if err != nil {
		if !errors.Is(err, ErrOption) { // it may still come about
			r.count(&h.setUps.failed)
		}
		return nil, setUp("accept", r.RemoteAddr(), err)
	}
	r.counted.Store(true) // that is, by start
	return h.start(conn, o, &h.setUps.accepted)
}

// Close closes the connection of who asks without a word, and at once.
func (r *Request) Close() error {
	r.count(&r.listener.host.setUps.rejected)
	return r.nc.Close()
}

// Reject refuses the connection, and tells the peer's program why in private data, at most [MaxPrivate] bytes: it
// finds them in its [RejectedError]. Reject may wait a second for the peer to close the connection.
func (r *Request) Reject(ctx context.Context, private []byte) error {
	if err := (&Options{Private: private}).check(); err != nil {
		return setUp("reject", r.RemoteAddr(), err)
	}
	r.count(&r.listener.host.setUps.rejected)
	if err := r.r.Reject(ctx, private); err != nil {
		return setUp("reject", r.RemoteAddr(), err)
	}
	return nil
}

// TurnAway is [Request.Reject] for servers that are to serve others meanwhile: it returns at once, and the listener waits for the peer to
// close the connection, of [MostTurnedAway] peers at a time. The connections of more are closed behind the answer, of which Linux's siw tells its
// program nothing then.
func (r *Request) TurnAway(private []byte) error {
	if err := (&Options{Private: private}).check(); err != nil {
		return setUp("reject", r.RemoteAddr(), err)
	}
	l := r.listener
	r.count(&l.host.setUps.rejected)
	// A socket that nothing was sent by takes that at once.
	ctx, stop := context.WithTimeout(context.Background(), lastWords)
	defer stop()
	if err := r.r.Refuse(ctx, private); err != nil {
		return setUp("reject", r.RemoteAddr(), err)
	}
	if !l.parting() {
		l.host.bounds.cutShort.Add(1)
		return r.nc.Close()
	}
	go func() {
		defer l.all.Done()
		r.r.Part(l.ctx)
		l.mu.Lock()
		l.parts--
		l.mu.Unlock()
	}()
	return nil
}

// parting says whether one more can be waited for that was turned away.
func (l *Listener) parting() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over || l.parts == MostTurnedAway {
		return false
	}
	l.parts++
	l.all.Add(1)
	return true
}

package verbs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/dgrdma/dgrdma/rdmap/mpa"
)

// Request is a peer that asks for a connection. It waits until it is accepted or rejected, or for as long as the peer
// likes.
type Request struct {
	// Private is what the peer's program says, by [Options.Private].
	Private []byte

	host    *Host
	away    *turnedAway
	r       *mpa.Request
	nc      net.Conn
	counted atomic.Bool // what became of it
}

func newRequest(h *Host, away *turnedAway, r *mpa.Request, nc net.Conn) *Request {
	return &Request{host: h, away: away, r: r, nc: nc, Private: r.Private()}
}

// Await waits for the request of the side that calls [Host.Connect], over a connection that the program has accepted: of TLS, as an
// example. The request is answered as one of [Listener.Accept]. The connection is the host's from then on, and closed if that
// fails. It fails if nothing whole comes within ten seconds. A [Listener] bounds how many connections wait, and how many of a
// program that calls Await is up to the program. Errors are those of [Host.Dial], and [ErrClosed] if the host is closed.
func (h *Host) Await(ctx context.Context, nc net.Conn) (*Request, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(h.away.ctx, func() { end(net.ErrClosed) })()
	r, err := mpa.Await(ctx, nc, 0)
	if err != nil {
		h.setUps.failed.Add(1)
		return nil, err
	}
	return newRequest(h, h.away, r, nc), nil
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

// Reads are the IRD and ORD of the peer: how many Reads, and other requests that are answered, it takes at a time, and how many it would
// like to have outstanding. [Options.ORD] and [Options.IRD] of this side are lowered to them, see [QueuePair.Limits]. Not ok: the
// request does not say, as one of revision 1 never does, and the programs have to know.
func (r *Request) Reads() (ird, ord int, ok bool) {
	if ird, ord, ok = r.r.Reads(); !ok {
		return 0, 0, false
	}
	return ird, ord, true
}

// Revision is that of MPA which the peer asks for, 1 or 2.
func (r *Request) Revision() int { return r.r.Rev() }

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
	h := r.host
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
	r.count(&r.host.setUps.rejected)
	return r.nc.Close()
}

// Reject refuses the connection, and tells the peer's program why in private data, at most [MaxPrivate] bytes: it
// finds them in its [RejectedError]. Reject may wait a second for the peer to close the connection.
func (r *Request) Reject(ctx context.Context, private []byte) error {
	if err := (&Options{Private: private}).check(); err != nil {
		return setUp("reject", r.RemoteAddr(), err)
	}
	r.count(&r.host.setUps.rejected)
	if err := r.r.Reject(ctx, private); err != nil {
		return setUp("reject", r.RemoteAddr(), err)
	}
	return nil
}

// TurnAway is [Request.Reject] for servers that are to serve others meanwhile: it returns at once, and the listener, or the host for those of
// [Host.Await], waits for the peer to close the connection, of [MostTurnedAway] peers at a time. The connections of more are closed behind the answer, of which Linux's siw tells its
// program nothing then.
func (r *Request) TurnAway(private []byte) error {
	if err := (&Options{Private: private}).check(); err != nil {
		return setUp("reject", r.RemoteAddr(), err)
	}
	r.count(&r.host.setUps.rejected)
	// A socket that nothing was sent by takes that at once.
	ctx, stop := context.WithTimeout(context.Background(), lastWords)
	defer stop()
	if err := r.r.Refuse(ctx, private); err != nil {
		return setUp("reject", r.RemoteAddr(), err)
	}
	if !r.away.leaves(r.r) {
		r.host.bounds.cutShort.Add(1)
		return r.nc.Close()
	}
	return nil
}

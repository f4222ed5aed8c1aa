package rpc

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// streamServer is the half of a client's connection over a stream that answers calls of the server. What reads the
// stream never waits for it: replies that its handlers wait for come by the same stream.
type streamServer struct {
	stream   *stream
	server   *Server
	ctx      context.Context
	cancel   context.CancelFunc
	handlers sync.WaitGroup
	// calls has one for each call that is in work, or whose reply was not sent. Beyond Credits they are refused, and beyond the
	// same number again the connection ends.
	calls    chan struct{}
	strange  atomic.Int32 // malformed messages within this minute
	minute   time.Time    // when it began; of Server.look
	draining atomic.Bool
}

var (
	errBusy    = errors.New("the server has more calls to the client than ServerOptions.Credits of Callbacks")
	errTooMany = errors.New("the server calls the client without reading the replies")
)

func newStreamServer(of *stream, s *Server) error {
	a := &streamServer{stream: of, server: s, calls: make(chan struct{}, 2*s.opts.Credits), minute: time.Now()}
	a.ctx, a.cancel = context.WithCancel(s.ctx)
	of.answers = a
	if err := s.enter(a); err != nil {
		a.cancel()
		return err
	}
	return nil
}

// call has a call carried out.
func (a *streamServer) call(rec record) {
	if rec.tooLong == 0 && len(rec.b) > a.server.opts.MaxCall { // of replies there may be longer ones
		rec.tooLong = len(rec.b)
	}
	if a.draining.Load() {
		rec.mem.release()
		return
	}
	select {
	case a.calls <- struct{}{}:
		a.server.arrived(a, a.server.pool.Get().(*serverCall), rec, nil)
	default:
		rec.mem.release()
		a.stream.close(errTooMany)
	}
}

// leave waits for the handlers. The stream is at its end.
func (a *streamServer) leave() {
	a.cancel()
	a.handlers.Wait()
	a.server.leave(a)
}

func (a *streamServer) client() string           { return "" }
func (a *streamServer) context() context.Context { return a.ctx }
func (a *streamServer) caller() *Client          { return a.stream.client }
func (a *streamServer) RemoteAddr() net.Addr     { return a.stream.nc.RemoteAddr() }
func (a *streamServer) transport() string        { return overTCP }

func (a *streamServer) answer(c *serverCall) {
	c.out.inline, c.out.items = c.enc.Bytes(), c.enc.Items()
	if !a.stream.sender.put(&c.out) {
		c.done()
		return
	}
	a.stream.flush(nil)
}

func (a *streamServer) reply(c *serverCall)      { a.answer(c) }
func (a *streamServer) replyLater(c *serverCall) { a.answer(c) }

// refuse gives up a call without a reply.
func (a *streamServer) refuse(c *serverCall) { c.done() }

// dispatch has a call carried out when the server has a place for it, or refuses it if there are too many.
func (a *streamServer) dispatch(c *serverCall) {
	if len(a.calls) > a.server.opts.Credits {
		c.fail(errBusy)
		a.answer(c)
		return
	}
	a.handlers.Add(1)
	c.all = &a.handlers
	a.server.start(c)
}

func (a *streamServer) done(*serverCall) {
	<-a.calls
	if a.draining.Load() && len(a.calls) == 0 {
		a.stream.close(errDraining)
	}
}

// malformed counts a message that is no call.
func (a *streamServer) malformed() {
	if a.strange.Add(1) > mostMalformed {
		a.stream.close(errMalformed)
	}
}

// idle: the connection is the client's, and not closed for others.
func (a *streamServer) idle() bool        { return false }
func (a *streamServer) lastActive() int64 { return 0 }

func (a *streamServer) look(now time.Time) {
	if now.Sub(a.minute) >= time.Minute {
		a.minute = now
		a.strange.Store(0)
	}
}

// drain has the half carry out no more calls, and the connection end when those in work are answered.
func (a *streamServer) drain() {
	a.draining.Store(true)
	if len(a.calls) == 0 {
		a.stream.close(errDraining)
	}
}

func (a *streamServer) close(why error) {
	a.cancel()
	a.stream.close(why)
}

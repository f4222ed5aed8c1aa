package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// serverConn is a connection over a stream, at the server.
type serverConn struct {
	server *Server
	nc     net.Conn
	host   string // of the client, without port
	ctx    context.Context
	cancel context.CancelFunc
	sender sender
	// credits has one for each call that is in work, or whose reply was not sent.
	credits chan struct{}
	reads   atomic.Uint64 // of the stream
	records atomic.Uint64 // that are complete
	begun   atomic.Bool   // a record has begun to come, and the rest is waited for
	strange atomic.Int32  // malformed messages within this minute
	active  atomic.Int64  // when something has come, in nanoseconds: as of the last look

	pending bool // of the goroutine that reads: it has queued replies

	callbacks callbacks
	roomed    chan struct{} // has one when the call that waits for it has memory for its reply

	mu  sync.Mutex
	why error // the connection was closed

	// Of Server.look.
	seen struct {
		reads, records uint64
		taken          taken
	}
	since struct{ record, write, minute time.Time }
}

var (
	errEvicted   = errors.New("another client needed the place of this one, which was idle")
	errSlow      = fmt.Errorf("a call has not come to its end within %v", recordTime)
	errStuck     = fmt.Errorf("the client has taken nothing for %v", writeTime)
	errMalformed = fmt.Errorf("more than %d messages within a minute were no calls", mostMalformed)
	errDraining  = errors.New("the server shuts down")
)

func newServerConn(s *Server, nc net.Conn) *serverConn {
	c := &serverConn{server: s, nc: nc, credits: make(chan struct{}, s.opts.Credits), roomed: make(chan struct{}, 1)}
	c.host = hostOf(nc.RemoteAddr())
	c.ctx, c.cancel = context.WithCancel(s.ctx)
	c.sender.init(nc)
	now := time.Now()
	c.active.Store(now.UnixNano())
	c.since.record, c.since.write, c.since.minute = now, now, now
	return c
}

func (c *serverConn) client() string           { return c.host }
func (c *serverConn) context() context.Context { return c.ctx }
func (c *serverConn) lastActive() int64        { return c.active.Load() }
func (c *serverConn) caller() *Client          { return c.callbacks.of(c.server, c.RemoteAddr(), c.newCaller) }

func (c *serverConn) RemoteAddr() net.Addr { return c.nc.RemoteAddr() }
func (c *serverConn) transport() string    { return overTCP }

// serve reads calls until the end of the connection, and waits until all are answered or dropped.
func (c *serverConn) serve() error {
	r := records{limit: c.server.opts.MaxCall, long: func(_ []byte, n int) ([]byte, *memory) {
		m := takeMemory(n)
		return m.b[:n:n], m
	}}
	defer r.release()
	err := c.read(&r)
	var rest sync.WaitGroup
	if errors.Is(err, errDraining) {
		c.flush()
		if c.callbacks.made() != nil {
			c.nc.SetReadDeadline(time.Time{})
			rest.Go(func() { c.readReplies(&r) })
		}
		c.quiet() // with the replies of the calls in work
	}
	c.close(err)
	c.sender.end(err)
	rest.Wait()
	c.callbacks.end(c.reason())
	c.quiet()
	if err = c.reason(); err == io.EOF {
		return nil
	}
	return err
}

// read reads calls until the connection ends, or the server shuts down.
func (c *serverConn) read(r *records) error {
	for {
		n, err := c.nc.Read(r.space())
		r.received(n)
		c.reads.Add(1)
		c.begun.Store(false)
		for {
			rec, ok, err := r.next()
			if err != nil {
				c.server.counters.malformed.Add(1)
				return err
			}
			if !ok {
				break
			}
			c.records.Add(1)
			if c.replied(rec) {
				continue
			}
			if !c.credit() {
				rec.mem.release()
				return c.reason()
			}
			c.server.arrived(c, c.server.pool.Get().(*serverCall), rec, nil)
		}
		c.begun.Store(r.partial())
		c.flush()
		if why := c.reason(); why != nil {
			return why
		}
		if err != nil {
			return err
		}
	}
}

// credit takes a credit. It reports false when the connection is closed.
func (c *serverConn) credit() bool { return c.place(c.credits, c.ctx.Done()) }

// place takes a place for a call, and waits for it until end is closed. Nothing is read in that time: replies that handlers wait for
// may be among it, and so they wait for behindTime only.
func (c *serverConn) place(places chan struct{}, end <-chan struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	default:
	}
	return c.wait(places, nil, end)
}

// wait is place that has found none. With given in its stead it waits for that.
func (c *serverConn) wait(places chan<- struct{}, given, end <-chan struct{}) bool {
	c.flush()
	var behind <-chan time.Time
	if c.server.opts.Callbacks > 0 {
		ticker := time.NewTicker(behindTime)
		defer ticker.Stop()
		behind = ticker.C
	}
	for {
		select {
		case places <- struct{}{}:
			return true
		case <-given:
			return true
		case <-end:
			return false
		case <-behind:
			c.callbacks.fail(ErrBehind) // handlers that wait for replies keep places
		}
	}
}

// quiet waits until all credits are back. No call comes any more.
func (c *serverConn) quiet() {
	for range cap(c.credits) {
		c.credits <- struct{}{}
	}
	for range cap(c.credits) {
		<-c.credits
	}
}

// reply queues the reply of a call.
func (c *serverConn) reply(call *serverCall) {
	call.out.inline, call.out.items = call.enc.Bytes(), call.enc.Items()
	if !c.sender.put(&call.out) {
		call.done()
	}
}

// replyLater queues the reply of a call, for flush.
func (c *serverConn) replyLater(call *serverCall) {
	c.pending = true
	c.reply(call)
}

// refuse gives up a call without a reply.
func (c *serverConn) refuse(call *serverCall) { call.done() }

// dispatch has a call carried out. It waits for memory for its reply and for a place, and the connection reads no more until then.
func (c *serverConn) dispatch(call *serverCall) {
	if !call.needsRoom() && !c.wait(nil, c.roomed, c.ctx.Done()) {
		if !c.server.replies.withdraw(&call.room) {
			<-c.roomed // what grants it still knows the call
		}
		call.done()
		return
	}
	c.place(c.server.slots.places, nil) // handlers return when the server is closed
	go call.runs()
}

func (c *serverConn) hasRoom(*serverCall) { c.roomed <- struct{}{} }

// answer sends the reply of a call.
func (c *serverConn) answer(call *serverCall) {
	c.reply(call)
	c.sender.flush()
}

// flush sends the replies that the goroutine that reads has queued.
func (c *serverConn) flush() {
	if c.pending {
		c.pending = false
		c.sender.flush()
	}
}

// done gives the credit of a call back.
func (c *serverConn) done(*serverCall) { <-c.credits }

// malformed counts a message that is no call.
func (c *serverConn) malformed() {
	if c.strange.Add(1) > mostMalformed {
		c.close(errMalformed)
	}
}

// idle reports whether no call is in work, or comes, in either direction.
func (c *serverConn) idle() bool {
	return len(c.credits) == 0 && !c.begun.Load() && c.callbacks.out() == 0
}

// drain has the connection read no more, and end when its calls are answered.
func (c *serverConn) drain() {
	c.mu.Lock()
	if c.why == nil {
		c.why = errDraining
	}
	c.mu.Unlock()
	c.nc.SetReadDeadline(time.Unix(1, 0))
}

// close ends the connection.
func (c *serverConn) close(why error) {
	c.mu.Lock()
	if c.why == nil || c.why == errDraining {
		c.why = why
	}
	c.mu.Unlock()
	c.cancel()
	c.nc.Close()
}

// reason returns why the connection was closed, or nil.
func (c *serverConn) reason() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.why
}

// look closes the connection if its client takes too long.
func (c *serverConn) look(now time.Time) {
	if reads := c.reads.Load(); reads != c.seen.reads {
		c.seen.reads = reads
		c.active.Store(now.UnixNano())
	}
	if records := c.records.Load(); records != c.seen.records || !c.begun.Load() {
		c.seen.records, c.since.record = records, now
	} else if now.Sub(c.since.record) > recordTime {
		c.server.counters.slow.Add(1)
		c.close(errSlow)
	}
	if c.sender.writes.Load()%2 == 0 { // none is in progress
		c.since.write = now
	} else if taken := c.sender.taken(); taken != c.seen.taken {
		c.seen.taken, c.since.write = taken, now
	} else if now.Sub(c.since.write) > writeTime {
		c.server.counters.slow.Add(1)
		c.close(errStuck)
	}
	if now.Sub(c.since.minute) >= time.Minute {
		c.since.minute = now
		c.strange.Store(0)
	}
}

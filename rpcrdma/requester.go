package rpcrdma

import (
	"errors"
	"fmt"
	"time"
)

// Errors of Calls.
var (
	// ErrQueue is that of a Call for which there is no place: too many wait.
	ErrQueue = errors.New("cannot queue the Call: too many wait for the peer")
	// ErrXID is that of a Call whose XID another one of the connection has.
	ErrXID = errors.New("cannot send the Call: its XID is in use")
	// ErrReverse is that of a Call of a server whose client takes none.
	ErrReverse = errors.New("cannot send the Call: the client takes no Calls of the server")
	// ErrCancelled is that of a Call that was cancelled before its Reply came.
	ErrCancelled = errors.New("the Call was cancelled")
	// ErrTooLong is that of a Call that is too long for what the peer takes.
	ErrTooLong = errors.New("cannot send the Call: it is longer than the peer can take")
	// ErrReply is that of a Call whose Reply cannot be used. The error says what was wrong with it.
	ErrReply = errors.New("cannot use the Reply")
	// ErrLongReply is that of a Call whose Reply is longer than [Config.MaxReply], as a [LongReplyError].
	ErrLongReply = errors.New("the Reply is longer than this side takes")
	// ErrNoReply is the reason of an end: the Reply to a cancelled Call did not come in time.
	ErrNoReply = errors.New("the peer has not answered a Call that was cancelled")
)

// LongReplyError is ErrLongReply, with the length of the Reply and the longest one that is taken.
type LongReplyError struct{ Length, Most int }

func (e *LongReplyError) Error() string {
	return fmt.Sprintf("%v: %d octets, at most %d", ErrLongReply, e.Length, e.Most)
}

func (e *LongReplyError) Unwrap() error { return ErrLongReply }

// mostQueued is how many Calls wait, for each that may be out. The number is arbitrary.
const mostQueued = 4

// requester is the half of a machine that makes Calls: the forward ones at a client, and the reverse ones at a server.
type requester struct {
	queue   []*call // nothing of them was sent
	first   int     // in queue
	sending *call   // some parts of it were sent
	out     []*call // those without Reply, of which something was sent
	free    []*call

	sequence sequence
	limits   peerLimits
	lists    lists
	waiting  int // of out, those with a deadline

	unmatched uint64 // Replies and ERRORs without a Call
}

func (r *requester) open() { r.limits = peerLimits{MaxReadChunks, MaxWriteChunks, MaxSegments} }

// Unmatched returns how many Replies and ERRORs came that are to no Call: they were dropped.
func (m *Machine) Unmatched() uint64 { return m.req.unmatched }

// Malformed returns how many messages came that are not what the specification says, as far as they were not refused by an ERROR.
func (m *Machine) Malformed() uint64 { return m.unusable }

// find returns the Call of an XID of which something was sent.
func (r *requester) find(xid uint32) *call {
	for _, o := range r.out {
		if o.xid == xid {
			return o
		}
	}
	return nil
}

// has reports whether a Call has the XID.
func (r *requester) has(xid uint32) bool {
	for _, o := range r.queue[r.first:] {
		if o.xid == xid {
			return true
		}
	}
	return r.find(xid) != nil
}

// Call queues a Call. It is sent when the version is known and the peer has room for it.
func (m *Machine) Call(now time.Time, c *Call) error {
	r := &m.req
	if m.phase == Closed {
		return ErrLost
	}
	if !m.takesCalls() {
		return ErrReverse
	}
	if len(r.queue)-r.first >= mostQueued*m.cfg.Window {
		return ErrQueue
	}
	if len(c.Head) < leastRPC || len(c.Into) > MaxInto {
		return fmt.Errorf("cannot send the Call: it has %d octets and %d Write chunks", len(c.Head), len(c.Into))
	}
	xid := word(c.Head, 0)
	if xid == settleXID || r.has(xid) {
		return ErrXID
	}
	c.Err, c.Sent, c.Kept, c.Message, c.Reply = nil, false, false, nil, nil
	for i := range c.Placed {
		c.Placed[i] = -1
	}
	var o *call
	if n := len(r.free); n > 0 {
		o, r.free = r.free[n-1], r.free[:n-1]
	} else {
		o = &call{leases: make([]Lease, 0, 4)}
	}
	o.of, c.out, o.xid, o.state = c, o, xid, callQueued
	if r.first > 0 && len(r.queue) == cap(r.queue) {
		n := copy(r.queue, r.queue[r.first:])
		clear(r.queue[n:])
		r.queue, r.first = r.queue[:n], 0
	}
	r.queue = append(r.queue, o)
	return nil
}

// Cancel gives a Call up. It returns as soon as the peer can touch nothing that the program uses again: see the states. A Call
// that has returned is not touched.
func (m *Machine) Cancel(now time.Time, c *Call) {
	o := c.out
	if o == nil || m.phase == Closed {
		return // Lost returns it
	}
	if o.state == callQueued {
		m.req.unqueue(o)
		m.finish(o, ErrCancelled)
		return
	}
	if o.state == callSending {
		m.withdrawAll(o) // the peer was not told of it
		o.lent = false
	}
	// A server cannot connect again (RPC2-078): a client that does not answer keeps the credit of its Call, and no memory.
	if o.deadline.IsZero() && m.cfg.GiveUp > 0 && (m.cfg.Side == Client || o.lent && len(o.leases) > 0) {
		o.deadline = now.Add(m.cfg.GiveUp)
		m.req.waiting++
	}
	lent := o.lendsItems()
	if lent && c.Direct {
		return
	}
	c.Kept = lent
	if o.state == callCollecting {
		m.put(o.parts)
		o.parts = nil
	}
	m.giveBack(o, ErrCancelled)
}

// unqueue takes a Call out of the queue.
func (r *requester) unqueue(o *call) {
	for i, q := range r.queue[r.first:] {
		if q == o {
			copy(r.queue[r.first+i:], r.queue[r.first+i+1:])
			r.queue[len(r.queue)-1] = nil
			r.queue = r.queue[:len(r.queue)-1]
			return
		}
	}
}

// begin moves the first Call of the queue to those that are out.
func (r *requester) begin(m *Machine, o *call) {
	r.queue[r.first] = nil
	if r.first++; r.first == len(r.queue) {
		r.queue, r.first = r.queue[:0], 0
	}
	r.out = append(r.out, o)
	m.credits.called()
}

// giveBack returns the Call of a record, if that was not done.
func (m *Machine) giveBack(o *call, err error) {
	c := o.of
	if c == nil {
		return
	}
	o.of, c.out = nil, nil
	c.Err, c.Sent = err, o.state != callQueued
	if err != nil {
		for i := range c.Placed {
			c.Placed[i] = -1
		}
	}
	m.actions.add(Action{Kind: ActReturn, Call: c})
}

// withdrawAll ends all leases of a Call (RPC2-095).
func (m *Machine) withdrawAll(o *call) {
	for i := range o.leases {
		m.withdraw(&o.leases[i])
	}
}

// answered forgets a Call whose Reply or ERROR is there: its XID and credit are free.
func (m *Machine) answered(o *call) {
	r := &m.req
	m.credits.answered()
	for i, x := range r.out {
		if x == o {
			last := len(r.out) - 1
			r.out[i], r.out[last] = r.out[last], nil
			r.out = r.out[:last]
			break
		}
	}
	if r.sequence.of == o {
		r.sequence.of = nil
	}
	if !o.deadline.IsZero() {
		r.waiting--
	}
	o.deadline = time.Time{}
}

// finish returns a Call and has its record ready for another one. Nothing of it is lent afterwards.
func (m *Machine) finish(o *call, err error) {
	m.withdrawAll(o)
	m.giveBack(o, err)
	m.put(o.flat)
	m.put(o.reply)
	m.put(o.parts)
	*o = call{leases: o.leases[:0]}
	m.req.free = append(m.req.free, o)
}

// end returns a Call of which something was sent, after its Reply or ERROR. If not all of it was sent, the record stays until
// an empty part has ended the message.
func (m *Machine) end(o *call, err error) {
	m.answered(o)
	if o != m.req.sending {
		m.finish(o, err)
		return
	}
	m.withdrawAll(o) // the peer was not told of it, but it may be registered: the last part can have waited for a buffer
	m.giveBack(o, err)
	o.state = callAnswered
}

// lost returns all Calls. What was lent is the program's again.
func (r *requester) lost(m *Machine, cause error) {
	err := ErrLost
	if cause != nil {
		err = fmt.Errorf("%w: %w", ErrLost, cause)
	}
	if o := r.sending; o != nil && o.state == callAnswered {
		m.finish(o, err) // it is not in out
	}
	for _, o := range r.out {
		m.finish(o, err)
	}
	for _, o := range r.queue[r.first:] {
		m.finish(o, err)
	}
	*r = requester{unmatched: r.unmatched}
}

// tick ends the connection if the peer leaves parts, or the Reply to a cancelled Call, out for too long.
func (r *requester) tick(m *Machine, now time.Time) (next time.Time) {
	if r.sequence.on && !m.credits.withheld() {
		next = r.sequence.deadline
		if !now.Before(next) {
			m.close(ErrProtocol)
			return time.Time{}
		}
	}
	if r.waiting == 0 {
		return next
	}
	for _, o := range r.out {
		if !o.deadline.IsZero() && !now.Before(o.deadline) {
			m.close(ErrNoReply)
			return time.Time{}
		}
		next = sooner(next, o.deadline)
	}
	return next
}

package rpc

import (
	"encoding/binary"
	"net"
	"sync/atomic"
)

// stream is a connection over a stream, as TCP, at the client.
type stream struct {
	client  *Client
	answers *streamServer // the half that answers calls of the server; nil: none are taken
	nc      net.Conn
	sender  sender
	wake    chan struct{} // has one when something is queued
	done    chan struct{} // closed when nothing is read any more
	reads   atomic.Uint64
	why     atomic.Pointer[error] // this side has closed the connection
}

// newStream makes the connection of a client. It closes nc if that is not to be.
func newStream(c *Client, nc net.Conn) (*stream, error) {
	s := &stream{client: c, nc: nc, wake: make(chan struct{}, 1), done: make(chan struct{})}
	s.sender.init(nc)
	if c.opts.Callbacks != nil {
		if err := newStreamServer(s, c.opts.Callbacks); err != nil {
			nc.Close()
			return nil, err
		}
	}
	return s, nil
}

func (s *stream) begin() {
	s.client.all.Add(2)
	go s.read()
	go s.write()
}

func (s *stream) submit(c *clientCall) { s.sender.put(&c.out) }

func (s *stream) withdraw(c *clientCall) bool { return s.sender.withdraw(&c.out) }

func (s *stream) received() uint64 { return s.reads.Load() }

func (s *stream) close(err error) {
	s.why.CompareAndSwap(nil, &err)
	if err == ErrClosed {
		s.nc.Close()
	} else {
		abort(s.nc)
	}
}

// abort closes a connection over which nothing is to be delivered any more. Over TCP the system forgets it at once, so that the next
// connection can have its port: else the port is taken until the peer has answered the end, or taken all that was written.
func abort(nc net.Conn) {
	if tcp, ok := nc.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	nc.Close()
}

// flush has the goroutine that writes wake up. Callers do not write: their contexts may end.
func (s *stream) flush(*clientCall) {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// write writes what is queued until the connection ends.
func (s *stream) write() {
	defer s.client.all.Done()
	for {
		select {
		case <-s.wake:
			s.sender.flush()
		case <-s.done:
			return
		}
	}
}

// read reads replies until the connection ends.
func (s *stream) read() {
	defer s.client.all.Done()
	err := s.replies()
	if why := s.why.Load(); why != nil {
		err = *why
	}
	close(s.done)
	abort(s.nc)
	s.sender.end(err)
	s.client.lost(s, err)
	if s.answers != nil {
		s.answers.leave()
	}
}

func (s *stream) replies() error {
	r := records{limit: s.client.opts.MaxReply, more: s.into, long: s.memory}
	if s.answers != nil {
		r.limit = max(r.limit, s.answers.server.opts.MaxCall)
	}
	defer r.release()
	for {
		n, err := s.nc.Read(r.space())
		r.received(n)
		s.reads.Add(1)
		for {
			rec, ok, err := r.next()
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			s.reply(rec)
		}
		if err != nil {
			return err
		}
	}
}

// reply tells the client that a record has come.
func (s *stream) reply(rec record) {
	if s.answers != nil && rec.is(kindCall) {
		s.answers.call(rec)
		return
	}
	if !rec.is(kindReply) {
		s.client.counters.malformed.Add(1)
		rec.mem.release()
		return
	}
	if rec.tooLong == 0 && len(rec.b) > s.client.opts.MaxReply && len(rec.b) > s.client.opts.MaxReply+s.into(rec.b) { // calls may be longer
		rec.tooLong = len(rec.b)
	}
	s.client.replied(binary.BigEndian.Uint32(rec.b), rec, nil)
}

// into returns how much longer than MaxReply a record may be: a reply to a call with Into has that room as well, as over RDMA.
func (s *stream) into(head []byte) int {
	if !(record{b: head}).is(kindReply) {
		return 0
	}
	return s.client.into(binary.BigEndian.Uint32(head))
}

// memory returns where a long reply goes: into memory that is used again if the call copies what it needs of
// it, else into memory of its own.
func (s *stream) memory(head []byte, n int) ([]byte, *memory) {
	if (record{b: head}).is(kindCall) || s.client.wantsInto(binary.BigEndian.Uint32(head)) {
		m := takeMemory(n)
		return m.b[:n:n], m
	}
	return make([]byte, n), nil
}

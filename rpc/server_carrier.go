package rpc

import (
	"context"
	"errors"
	"time"
)

// serverCarrier is a connection, as the server sees it.
type serverCarrier interface {
	peer
	client() string           // address without port; empty: its calls do not come again
	context() context.Context // ends with the connection
	// reply queues the reply of a call, and answer sends it. After replyLater the goroutine that told of the call sends what is
	// queued. When nothing of the call is needed any more, out.sent is called.
	reply(c *serverCall)
	replyLater(c *serverCall)
	answer(c *serverCall)
	// refuse gives up a call whose items have been sent as they must not be, or which is none. Nothing of it is needed any more.
	refuse(c *serverCall)
	// dispatch has a call carried out when the server has a place for it.
	dispatch(c *serverCall)
	// done is told that a call is at its end.
	done(c *serverCall)
	malformed()

	idle() bool
	lastActive() int64 // in nanoseconds
	look(now time.Time)
	drain()
	close(why error)
}

// enter adds a connection, if there is a place for it.
func (s *Server) enter(c serverCarrier) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return ErrClosed
	}
	if len(s.conns) >= s.opts.Connections && !s.evict("") || s.ofHost(c.client()) >= s.opts.PerHost && !s.evict(c.client()) {
		s.counters.refused.Add(1)
		return errFull
	}
	s.conns[c] = true
	s.all.Add(1)
	if !s.looking {
		s.looking = true
		s.all.Add(1)
		go s.look()
	}
	return nil
}

// leave takes a connection out that has ended.
func (s *Server) leave(c serverCarrier) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	s.all.Done()
}

var errFull = errors.New("the server has as many connections as it may have, of this host or in all, and none is idle")

// ofHost returns how many connections a host has. Those of an unknown host are not counted.
func (s *Server) ofHost(host string) (n int) {
	for c := range s.conns {
		if host != "" && c.client() == host {
			n++
		}
	}
	return n
}

// evict closes the connection that is idle for longest, of a host or, if that is empty, of all. It reports whether there is one.
func (s *Server) evict(host string) bool {
	var longest serverCarrier
	for c := range s.conns {
		if (host == "" || c.client() == host) && c.idle() && (longest == nil || c.lastActive() < longest.lastActive()) {
			longest = c
		}
	}
	if longest == nil {
		return false
	}
	s.counters.evicted.Add(1)
	delete(s.conns, longest)
	longest.close(errEvicted)
	return true
}

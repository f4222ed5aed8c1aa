package rpc

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"
)

// ServerStats counts what a [Server] has done since it began. Tags name the counters for package metrics.
type ServerStats struct {
	Connections int  // open now
	Credits     int  // calls that each connection may have at once
	Closed      bool // the server is

	Calls       uint64 `count:"calls" help:"Calls that came, those of the following counters as well."`
	Unavailable uint64 `count:"calls_unavailable" help:"Calls that were answered: no such program, version or procedure."`
	Garbage     uint64 `count:"calls_garbage" help:"Calls that were answered: the arguments cannot be decoded."`
	Denied      uint64 `count:"calls_denied" help:"Calls that were answered: not this credential, or not this version of RPC."`
	Failed      uint64 `count:"calls_failed" help:"Calls that were answered by SYSTEM_ERR."`
	Duplicates  uint64 `count:"calls_duplicate" help:"Calls that were sent again, and not carried out again."`
	TooLong     uint64 `count:"calls_too_long" help:"Calls that were longer than the server takes."`
	Malformed   uint64 `count:"malformed" help:"Messages that are no calls, and connections that begin with none."`
	Refused     uint64 `count:"connections_refused" help:"Connections that were closed because there were too many."`
	Evicted     uint64 `count:"connections_evicted" help:"Idle connections that were closed for others."`
	Slow        uint64 `count:"connections_slow" help:"Connections that were closed because the client took too long to send or to take something."`

	Callbacks ClientStats // calls of handlers to clients
}

// ProcedureStats counts the calls of one procedure of a server, the calls that are answered by an error as well.
type ProcedureStats struct {
	Program   *Program
	Number    uint32
	TCP, RDMA uint64
}

// Name is the name of the procedure, or its number if the table has none.
func (p *ProcedureStats) Name() string {
	if of := p.Program.procedure(p.Number); of != nil && of.Name != "" {
		return of.Name
	}
	return strconv.FormatUint(uint64(p.Number), 10)
}

// callsByTransport counts the calls of a procedure.
type callsByTransport struct{ tcp, rdma atomic.Uint64 }

func (n *callsByTransport) add(from peer) {
	if from.transport() == overTCP {
		n.tcp.Add(1)
	} else {
		n.rdma.Add(1)
	}
}

// Procedures returns the counts of all procedures of the server's programs that were called, in the order of programs, versions and numbers.
func (s *Server) Procedures() []ProcedureStats {
	var all []ProcedureStats
	for _, number := range slices.Sorted(maps.Keys(s.programs)) {
		versions := slices.SortedFunc(slices.Values(s.programs[number]), func(a, b *served) int { return cmp.Compare(a.program.Version, b.program.Version) })
		for _, v := range versions {
			for i := range v.calls {
				one := ProcedureStats{v.program, uint32(i), v.calls[i].tcp.Load(), v.calls[i].rdma.Load()}
				if one.TCP+one.RDMA > 0 {
					all = append(all, one)
				}
			}
		}
	}
	return all
}

type serverCounters struct {
	calls, unavailable, garbage, denied, failed, duplicates, tooLong, malformed, refused, evicted, slow atomic.Uint64
}

// answered counts a reply without results.
func (c *serverCounters) answered(s status) {
	switch s {
	case statusProgramUnavailable, statusProgramMismatch, statusProcedureUnavailable:
		c.unavailable.Add(1)
	case statusGarbageArgs:
		c.garbage.Add(1)
	case statusSystem:
		c.failed.Add(1)
	case statusVersion, statusAuth:
		c.denied.Add(1)
	}
}

// Stats returns what the server has counted.
func (s *Server) Stats() ServerStats {
	s.mu.Lock()
	open := len(s.conns)
	s.mu.Unlock()
	c := &s.counters
	return ServerStats{
		Connections: open, Credits: s.opts.Credits, Closed: s.ctx.Err() != nil, Calls: c.calls.Load(), Unavailable: c.unavailable.Load(), Garbage: c.garbage.Load(), Denied: c.denied.Load(), Failed: c.failed.Load(),
		Duplicates: c.duplicates.Load(), TooLong: c.tooLong.Load(), Malformed: c.malformed.Load(), Refused: c.refused.Load(), Evicted: c.evicted.Load(), Slow: c.slow.Load(),
		Callbacks: s.calls.stats(),
	}
}

// ClientStats counts what a [Client] has done since it began.
type ClientStats struct {
	Calls       uint64 // that were begun
	Resent      uint64 // calls that were sent again over a new connection
	Repeated    uint64 // calls that were made again because a server over RDMA took no such chunks as they had
	Lost        uint64 // calls that ended with ErrLost or ErrNoReply
	Abandoned   uint64 // calls whose context ended before the reply came
	Unmatched   uint64 // replies to no call, as to one that was abandoned: they are dropped
	Malformed   uint64 // messages that are no replies, or whose header cannot be read: they are dropped
	Connections uint64 // that were made
}

type clientCounters struct {
	calls, resent, repeated, lost, abandoned, unmatched, malformed, connections atomic.Uint64
}

// Stats returns what the client has counted. That of a server's handlers ([Call.Client]) counts those of all connections.
func (c *Client) Stats() ClientStats { return c.counters.stats() }

func (n *clientCounters) stats() ClientStats {
	return ClientStats{
		Calls: n.calls.Load(), Resent: n.resent.Load(), Repeated: n.repeated.Load(), Lost: n.lost.Load(), Abandoned: n.abandoned.Load(), Unmatched: n.unmatched.Load(), Malformed: n.malformed.Load(), Connections: n.connections.Load(),
	}
}

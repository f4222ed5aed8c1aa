package rpcrdma

import (
	"net/netip"

	codec "github.com/dgrdma/dgrdma/rpcrdma"
)

// Bounds of what is remembered of pairs of hosts. All are arbitrary.
const (
	mostPairs    = 256
	mostLeft     = 1024 // Calls of a pair
	mostSiblings = 16   // connections of a pair that are looked at
)

// hosts are a client and the server that it calls.
type hosts struct {
	client netip.Addr
	server netip.AddrPort
}

// pair is what is known of the connections between two hosts.
type pair struct {
	under    []*Connection // under way
	left     map[uint32]left
	verifier uint64 // that the server wrote last, in record verified; 0: in none
	verified int
	offered  int // record of a message of version 2 that no message of the server followed
}

// left is a Call that was not answered when its connection ended.
type left struct {
	rpc    RPC
	record int
}

// meet has a connection know its pair.
func (d *Decoder) meet(c *Connection) {
	if c.pair != nil || !c.Known {
		return
	}
	ends := &c.IWARP.TCP.Ends
	k := hosts{ends[c.Client].Addr(), ends[1-c.Client]}
	p := d.pairs[k]
	if p == nil {
		if len(d.pairs) >= mostPairs {
			return
		}
		p = &pair{left: map[uint32]left{}}
		d.pairs[k] = p
	}
	c.pair = p
	p.under = append(p.under, c)
}

// leave remembers what a connection leaves unanswered.
func (d *Decoder) leave(c *Connection) {
	p := c.pair
	if p == nil {
		return
	}
	for i, u := range p.under {
		if u == c {
			p.under = append(p.under[:i], p.under[i+1:]...)
			break
		}
	}
	client, server := &c.Sides[c.Client], &c.Sides[1-c.Client]
	for _, call := range client.room.first() {
		if call.Known && len(p.left) < mostLeft {
			p.left[call.XID] = left{call.RPC, call.At.Record}
		}
	}
	p.offered = 0
	if client.sent2 > 0 && !c.fell && server.Messages == 0 && server.holes == 0 {
		p.offered = client.first2
	}
}

// again finds the Call of another connection between the same hosts that this one repeats: it has the same XID and procedure,
// and no Reply. It returns the record of it, 0 if there is none.
func (c *Connection) again(call *Call) int {
	p := c.pair
	if p == nil || call.Reverse {
		return 0
	}
	if l, ok := p.left[call.XID]; ok {
		delete(p.left, call.XID)
		if l.rpc.same(&call.RPC) {
			return l.record
		}
	}
	for _, u := range p.under[max(0, len(p.under)-mostSiblings):] {
		if u == c {
			continue
		}
		if o := u.Sides[u.Client].room.calls[call.XID]; o != nil && o.same(&call.RPC) && o.At.Record < call.At.Record {
			return o.At.Record
		}
	}
	return 0
}

func (r *RPC) same(o *RPC) bool {
	return r.Known && o.Known && r.Program == o.Program && r.ProgramVersion == o.ProgramVersion && r.Procedure == o.Procedure && r.compoundText() == o.compoundText()
}

// falls finds the attempt with version 2 after which a message of version 1 falls back: its record, 0 if there is none. On the same
// connection the server has refused it; an earlier connection ended without an answer.
func (c *Connection) falls(version uint32) (record int, same bool) {
	client := &c.Sides[c.Client]
	switch {
	case version != codec.Version1 || c.fell:
		return 0, false
	case client.sent2 > 0:
		return client.first2, true
	case c.pair != nil && client.Version == 0:
		return c.pair.offered, false
	}
	return 0, false
}

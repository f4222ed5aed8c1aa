package inspect

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/dgrdma/dgrdma/inspect/rpcrdma"
	codec "github.com/dgrdma/dgrdma/rpcrdma"
)

// rpcWording is how a kind of findings is told. The text is given: how many there are as things, is or are, the side that did it,
// how many bytes, what is said of the first one, has or have, it or them, and how the connection ended.
type rpcWording struct {
	severity Severity
	kind     string
	thing    string
	text     string
}

// rpcWordings are those of all kinds.
var rpcWordings = [rpcrdma.Whats]rpcWording{
	rpcrdma.Malformed: {Problem, "RPC malformed", "message",
		"%[1]s of RPC-over-RDMA %[2]s malformed; the first is from %[3]s: %[5]s. What it was to do is not done: its sender is at fault."},
	rpcrdma.Overrun: {Problem, "RPC credits", "message",
		"%[1]s of %[3]s %[2]s beyond the credits that were granted; at the first one: %[5]s. The other side may have no receive for it, which ends the connection: the sender counts its credits wrongly."},
	rpcrdma.TooLong: {Problem, "RPC threshold", "Send",
		"%[1]s of %[3]s %[2]s longer than both sides have said that they take without chunks; the first is a %[5]s. A receive that is too short ends the connection: the sender does not heed what the set-up says, or in version 2 the properties."},
	rpcrdma.SeveralTags: {Note, "RPC STags", "Call",
		"%[1]s of %[3]s %[6]s memory under several STags, of which a Reply can invalidate only one: the caller invalidates the others itself. That takes it time, and is no fault. The first is %[5]s."},
	rpcrdma.InlineData: {Note, "RPC inline data", "message",
		"%[1]s %[6]s file data inline, %[4]s, for which no chunk was given: the data are copied, and not placed. That is usual for what fits into a Send. The first is %[5]s."},
	rpcrdma.Unplaced: {Warning, "RPC data not placed", "Reply",
		"%[1]s of %[3]s %[6]s file data inline, %[4]s, although the Call has a Write chunk for them: the server does not place what it could. The first answers %[5]s."},
	rpcrdma.Returned: {Problem, "RPC chunks", "Reply",
		"%[1]s of %[3]s %[6]s chunks that do not add up, so the caller may take the wrong octets for its data. The first answers %[5]s."},
	rpcrdma.Invalidation: {Problem, "RPC invalidation", "Reply",
		"%[1]s of %[3]s %[6]s an invalidation that the Call does not allow, which ends the connection where the caller checks it. The first: %[5]s."},
	rpcrdma.FallBack: {Note, "RPC version", "connection",
		"%[3]s began with version 2 of RPC-over-RDMA and went on with version 1, on %[5]s: its server did not take version 2."},
	rpcrdma.Again: {Warning, "RPC sent again", "Call",
		"%[1]s of %[3]s %[2]s sent again that an earlier connection had, without a Reply in the capture: a server that keeps no Replies carries such out twice. The first is %[5]s."},
	rpcrdma.Twice: {Problem, "RPC XID twice", "Call",
		"%[1]s of %[3]s %[6]s the XID of a Call that waits for its Reply: its Reply may be taken for that of the other one. The first is %[5]s."},
	rpcrdma.Unanswered: {Problem, "RPC unanswered", "Call",
		"%[1]s of %[3]s %[6]s no Reply at the end of the connection: the caller has to send %[7]s again on a new one, or to give %[7]s up. The first is %[5]s.%[8]s"},
	rpcrdma.Unasked: {Warning, "RPC reply without call", "Reply",
		"%[1]s of %[3]s %[6]s the XID of no Call that waits: the server answers twice, or something that was not asked."},
	rpcrdma.ReverseCalls: {Note, "RPC reverse", "Call",
		"%[1]s %[2]s of the reverse direction: %[3]s, the server, calls its client. The first is %[5]s."},
	rpcrdma.Restarted: {Warning, "RPC server restarted", "Reply",
		"%[1]s of %[3]s %[6]s another write verifier than the one before, %[5]s: the server was restarted, or has lost what it had not on disk. Clients have to write again what they wrote UNSTABLE and had not committed."},
	rpcrdma.NoCredits: {Problem, "RPC no credits", "message",
		"%[1]s of %[3]s %[6]s a grant of 0 credits, which RFC 8166 forbids: a client that takes it at its word may send no Call any more, and others take it for 1. The first is a %[5]s."},
}

// noReplyYet is told of Calls whose connection has not ended.
const noReplyYet = "%[1]s of %[3]s %[6]s no Reply yet where the capture ends. The first is %[5]s."

// rpcGroup is what was found of a kind on connections between the same hosts: one cause is told once.
type rpcGroup struct {
	rpcGroupKey
	found       rpcrdma.Found // of the first one, with N and Bytes of all
	first       *connection
	number      int // of the first one
	connections int
	resets      counted // of connections
	by          string  // the side that did the first of them
}

type rpcGroupKey struct {
	client   netip.Addr
	server   netip.AddrPort
	byClient bool
	ended    bool
	alone    int // the number of a connection whose client is not known
}

// aboutRPC tells what was found of RPC-over-RDMA on one connection.
func (k *connection) aboutRPC(c *findings) { aboutRPC(c, []*connection{k}) }

// aboutRPC tells what was found of RPC-over-RDMA on connections, of which the first has number 1.
func aboutRPC(c *findings, all []*connection) {
	for w := range rpcWordings {
		var groups []*rpcGroup
		by := map[rpcGroupKey]*rpcGroup{}
		for i, k := range all {
			if k.rpc.of == nil || k.rpc.of.Found[w].N == 0 {
				continue
			}
			f := k.rpc.of.Found[w]
			key := k.rpcKey(&f, i+1)
			g := by[key]
			if g == nil {
				g = &rpcGroup{rpcGroupKey: key, found: f, first: k, number: i + 1}
				by[key] = g
				groups = append(groups, g)
			} else {
				g.found.N += f.N
				g.found.Bytes += f.Bytes
			}
			g.connections++
			for d := range k.ways {
				if at := k.ways[d].reset; at != 0 {
					if g.resets.n == 0 {
						g.by = k.name(d)
					}
					g.resets.add(1, at)
					break
				}
			}
		}
		for _, g := range groups {
			g.tell(c, rpcrdma.What(w))
		}
	}
	for i, k := range all {
		if k.rpc.of != nil {
			c.connection = i + 1
			k.aboutCredits(c)
			k.aboutErrors(c)
		}
	}
	c.connection = 0
}

// rpcKey says with what other findings of a kind this one is told.
func (k *connection) rpcKey(f *rpcrdma.Found, number int) rpcGroupKey {
	r, d := k.rpc.of, &k.ways
	key := rpcGroupKey{byClient: f.Way == r.Client, ended: d[0].closed+d[1].closed+d[0].reset+d[1].reset != 0 || d[0].terminate != nil || d[1].terminate != nil}
	if !r.Known {
		key.alone = number
		return key
	}
	ends := &k.of.TCP.Ends
	key.client, key.server = ends[r.Client].Addr(), ends[1-r.Client]
	return key
}

// tell tells a group.
func (g *rpcGroup) tell(c *findings, w rpcrdma.What) {
	f, words := &g.found, &rpcWordings[w]
	severity, text, end := words.severity, words.text, ""
	records := recordsOf(f)
	if w == rpcrdma.Unanswered {
		switch {
		case !g.ended:
			severity, text = Note, noReplyYet
		case g.resets.n > 0 && g.connections == 1:
			end = fmt.Sprintf(" %s reset the connection in record %d.", g.by, g.resets.first)
		case g.resets.n > 0:
			end = fmt.Sprintf(" %d of these connections %s reset, the first in record %d.", g.resets.n, wasWere(g.resets.n), g.resets.first)
		}
	}
	name := g.first.name(int(f.Way))
	switch {
	case g.connections > 1 && g.byClient:
		name = fmt.Sprintf("%v on %d connections to %v", g.client, g.connections, g.server)
	case g.connections > 1:
		name = fmt.Sprintf("%v on %d connections", g.server, g.connections)
	}
	it := "them"
	if f.N == 1 {
		it = "it"
	}
	c.connection = g.number
	c.add(severity, words.kind, f.N, records, text+"%[9]s", count(f.N, words.thing), isAre(f.N), name, Size(float64(f.Bytes)), f.Text, has(f.N), it, end, "")
	c.connection = 0
}

// aboutErrors tells of the errors that a side has reported.
func (k *connection) aboutErrors(c *findings) {
	r := k.rpc.of
	for i := range r.Errors {
		e := &r.Errors[i]
		severity, why := Warning, "what the Calls asked for was not done"
		switch {
		case e.Code == codec.CodeVers.Name(codec.Version1) && r.Found[rpcrdma.FallBack].N > 0:
			severity, why = Note, "the caller takes another version"
		case e.Other == 0:
			why = "what it refuses is not known"
		}
		c.add(severity, "RPC error", e.N, recordsOf(&e.Found), "%s reported %s %s: %s.", k.name(int(e.Way)), e.Code, times(e.N), why)
	}
}

// recordsOf says where to look.
func recordsOf(f *rpcrdma.Found) []int {
	if f.Other > 0 {
		return []int{f.Other, f.Record}
	}
	return []int{f.Record}
}

// A side whose credits were all in use for less than both of these is not told of. Both are arbitrary: a burst may take all for a moment.
const (
	leastFull      = 10 * time.Millisecond
	leastFullShare = 4 // one part of so many
)

// aboutCredits tells of sides that could not send further Calls for long.
func (k *connection) aboutCredits(c *findings) {
	for w := range k.rpc.of.Sides {
		s := &k.rpc.of.Sides[w]
		lasted := k.last - k.first
		if s.Full < leastFull || s.Full < lasted/leastFullShare {
			continue
		}
		severity := Note
		if s.Full >= lasted/2 {
			severity = Warning
		}
		all := fmt.Sprintf("All %d credits", s.Grant)
		was := "were"
		if s.Grant == 1 {
			all, was = "The only credit", "was"
		}
		c.add(severity, "RPC credits in use", 0, []int{s.FullRecord}, "%s that %s grants %s in use for %s of %s, the first time from this record on: further Calls of %s have to wait there until one is answered, and the times of Calls do not show that.",
			all, k.name(1-w), was, Span(s.Full), Span(lasted), k.name(w))
	}
}

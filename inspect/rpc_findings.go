package inspect

import (
	"github.com/dgrdma/dgrdma/inspect/rpcrdma"
	codec "github.com/dgrdma/dgrdma/rpcrdma"
)

// rpcWording is how a kind of findings is told. The text is given: how many there are as things, is or are, the side that did it,
// how many bytes, what is said of the first one, and has or have.
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
		"%[1]s of %[3]s %[6]s no Reply at the end of the connection: the caller has to send them again on a new one, or to give them up. The first is %[5]s."},
	rpcrdma.Unasked: {Warning, "RPC reply without call", "Reply",
		"%[1]s of %[3]s %[6]s the XID of no Call that waits: the server answers twice, or something that was not asked."},
	rpcrdma.ReverseCalls: {Note, "RPC reverse", "Call",
		"%[1]s %[2]s of the reverse direction: %[3]s, the server, calls its client. The first is %[5]s."},
}

// noReplyYet is told of Calls whose connection has not ended.
const noReplyYet = "%[1]s of %[3]s %[6]s no Reply yet where the capture ends. The first is %[5]s."

// aboutRPC tells what was found of RPC-over-RDMA.
func (k *connection) aboutRPC(c *findings) {
	r := k.rpc.of
	if r == nil {
		return
	}
	for w := range r.Found {
		f, words := &r.Found[w], &rpcWordings[w]
		if f.N == 0 {
			continue
		}
		severity, text := words.severity, words.text
		if d := &k.ways; rpcrdma.What(w) == rpcrdma.Unanswered && d[0].closed+d[1].closed+d[0].reset+d[1].reset == 0 && d[0].terminate == nil && d[1].terminate == nil {
			severity, text = Note, noReplyYet
		}
		c.add(severity, words.kind, f.N, recordsOf(f), text+"%[7]s", count(f.N, words.thing), isAre(f.N), k.name(int(f.Way)), Size(float64(f.Bytes)), f.Text, has(f.N), "")
	}
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

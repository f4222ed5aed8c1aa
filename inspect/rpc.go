package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/dgrdma/dgrdma/inspect/rpcrdma"
)

// mostProcedures is how many procedures of a connection are told apart. Arbitrary: NFS 3 has 22.
const mostProcedures = 64

// mostSlow is how many of its slowest Calls a connection has. Arbitrary: a page is to be read.
const mostSlow = 5

// rpcs is what a connection of RPC-over-RDMA did.
type rpcs struct {
	of         *rpcrdma.Connection // nil: it is none
	procedures map[procedureKey]*procedure
	order      []*procedure
	slowest    []SlowCall // with the slowest first
	placed     int64
	fetched    int64
}

// procedureKey tells procedures apart, and COMPOUNDs of NFS 4 by their operations.
type procedureKey struct {
	program, version, procedure uint32
	compound                    string
	known, reverse              bool
}

// procedure counts what was done by one procedure.
type procedure struct {
	name           string
	reverse        bool
	calls, replies int
	failed         int // replies that do not say that the call was carried out
	refused        int // replies with a status of the program that is no success
	placed         int64
	fetched        int64
	times          histogram
	longest        SlowCall
}

// message counts a message.
func (r *rpcs) message(m *rpcrdma.Message) {
	c := m.Call
	if c == nil {
		return
	}
	reply := m.Kind != rpcrdma.CallKind
	if !reply && !c.Known {
		return // it is counted when it is answered, and its program known
	}
	p := r.procedure(c)
	if !reply || c.Special() {
		p.calls++
	}
	if !reply {
		return
	}
	p.replies++
	if m.Kind == rpcrdma.Error || m.Status.Known && !m.Status.Success() {
		p.failed++
	}
	if m.Status.Refused() {
		p.refused++
	}
	p.placed += int64(c.Placed)
	p.fetched += int64(c.Fetched)
	r.placed += int64(c.Placed)
	r.fetched += int64(c.Fetched)
	if !m.Last.Time.IsZero() && !c.At.Time.IsZero() {
		took := m.Last.Time.Sub(c.At.Time)
		p.times.add(took)
		r.slow(p, m, took)
	}
}

// slow notes a Call if it is among the slowest ones.
func (r *rpcs) slow(p *procedure, m *rpcrdma.Message, took time.Duration) {
	last := len(r.slowest) == mostSlow && took <= r.slowest[mostSlow-1].Took
	if p.longest.Record != 0 && took <= p.longest.Took && last {
		return
	}
	c := m.Call
	s := SlowCall{
		XID: fmt.Sprintf("%#x", c.XID), Procedure: c.Name(), Reverse: c.Reverse, Record: c.At.Record, Reply: m.Last.Record, Took: took,
		Reads: min(c.Reading, took), Writes: min(c.Writing, max(took-c.Reading, 0)),
	}
	s.Server = took - s.Reads - s.Writes
	if p.longest.Record == 0 || took > p.longest.Took {
		p.longest = s
	}
	if last {
		return
	}
	at, _ := slices.BinarySearchFunc(r.slowest, took, func(s SlowCall, took time.Duration) int { return cmp.Compare(took, s.Took) })
	for at < len(r.slowest) && r.slowest[at].Took == took { // the first one of several
		at++
	}
	if r.slowest = slices.Insert(r.slowest, at, s); len(r.slowest) > mostSlow {
		r.slowest = r.slowest[:mostSlow]
	}
}

// procedure returns the counts of a Call's procedure. Those beyond the bound have one of their own.
func (r *rpcs) procedure(c *rpcrdma.Call) *procedure {
	k := procedureKey{program: c.Program, version: c.ProgramVersion, procedure: c.Procedure, known: c.Known, reverse: c.Reverse}
	if c.Compound != nil {
		k.compound = c.Name()
	}
	p := r.procedures[k]
	if p == nil && len(r.order) >= mostProcedures {
		k = procedureKey{reverse: c.Reverse}
		p = r.procedures[k]
	}
	if p == nil {
		if p = (&procedure{name: c.Name(), reverse: c.Reverse}); !k.known && c.Known {
			p.name = "other procedures"
		}
		if r.procedures == nil {
			r.procedures = map[procedureKey]*procedure{}
		}
		r.procedures[k] = p
		r.order = append(r.order, p)
	}
	return p
}

// RPC is what a connection carries of RPC-over-RDMA.
type RPC struct {
	Client  string `json:"client,omitempty"` // that makes the forward Calls; empty: not known
	Version int    `json:"version"`          // of the latest message
	// InUse is the most Calls of the client that waited at once, and Granted the most that the server has granted: in version 1 Calls, in
	// version 2 messages. The others are those of the reverse direction.
	InUse          int            `json:"credits_in_use_most"`
	Granted        int            `json:"credits_granted_most"`
	ReverseInUse   int            `json:"reverse_credits_in_use_most,omitempty"`
	ReverseGranted int            `json:"reverse_credits_granted_most,omitempty"`
	Placed         int64          `json:"bytes_placed"`  // by RDMA Write, of Calls that were answered
	Fetched        int64          `json:"bytes_fetched"` // by RDMA Read
	Full           time.Duration  `json:"all_credits_in_use_ns"`
	Procedures     []RPCProcedure `json:"procedures"` // with most calls first
	Slowest        []SlowCall     `json:"slowest"`    // of the Calls with a Reply, with the slowest first
}

// SlowCall is a Call that took long, and where its time went.
type SlowCall struct {
	XID       string        `json:"xid"` // hexadecimal
	Procedure string        `json:"procedure"`
	Reverse   bool          `json:"reverse,omitempty"`
	Record    int           `json:"record"`
	Reply     int           `json:"reply_record"`
	Took      time.Duration `json:"took_ns"`
	Reads     time.Duration `json:"reads_ns"`  // in which RDMA Reads for it waited for their answers: the caller's machine and the network
	Writes    time.Duration `json:"writes_ns"` // from the first RDMA Write for it to the last one
	Server    time.Duration `json:"server_ns"` // the rest
}

// RPCProcedure is how often a procedure was called, and how long that took.
type RPCProcedure struct {
	Name    string        `json:"name"`
	Reverse bool          `json:"reverse,omitempty"`
	Calls   int           `json:"calls"`
	Replies int           `json:"replies"` // and errors
	Failed  int           `json:"failed"`  // of these: the server did not take the call, as with PROG_UNAVAIL
	Errors  int           `json:"errors"`  // of these: the program's status is an error, as NFS3ERR_NOENT
	Placed  int64         `json:"bytes_placed"`
	Fetched int64         `json:"bytes_fetched"`
	Min     time.Duration `json:"min_ns"` // times to the reply
	Median  time.Duration `json:"p50_ns"`
	Max     time.Duration `json:"max_ns"`

	MaxXID    string `json:"max_xid,omitempty"` // of the Call that took Max
	MaxRecord int    `json:"max_record,omitempty"`
}

func (k *connection) rpcReport() *RPC {
	c := k.rpc.of
	if c == nil {
		return nil
	}
	client, server := &c.Sides[c.Client], &c.Sides[1-c.Client]
	r := &RPC{
		Version: int(max(client.Version, server.Version)), InUse: client.InUse, Granted: client.Grant, ReverseInUse: server.InUse, ReverseGranted: server.Grant,
		Placed: k.rpc.placed, Fetched: k.rpc.fetched, Procedures: []RPCProcedure{},
		Full: client.Full, Slowest: append([]SlowCall{}, k.rpc.slowest...),
	}
	if server.InUse == 0 {
		r.ReverseGranted = 0
	}
	if c.Known {
		r.Client = k.name(int(c.Client))
	}
	for _, p := range k.rpc.order {
		r.Procedures = append(r.Procedures, RPCProcedure{
			Name: p.name, Reverse: p.reverse, Calls: p.calls, Replies: p.replies, Failed: p.failed, Errors: p.refused, Placed: p.placed, Fetched: p.fetched,
			Min: p.times.min, Median: p.times.quantile(0.5), Max: p.times.max,
			MaxXID: p.longest.XID, MaxRecord: p.longest.Record,
		})
	}
	slices.SortStableFunc(r.Procedures, func(a, b RPCProcedure) int { return cmp.Compare(b.Calls, a.Calls) })
	return r
}

package truth

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/capture/tcp"
	"github.com/dgrdma/dgrdma/inspect"
	"github.com/dgrdma/dgrdma/inspect/iwarp"
	"github.com/dgrdma/dgrdma/inspect/rpcrdma"
	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/tests/worlds"
)

// rpcSeen is what is told of a capture.
type rpcSeen struct {
	report   *inspect.Report
	found    map[uint16]*[rpcrdma.Whats]int // by the port of the client
	errors   map[uint16]int
	first    map[rpcrdma.What]string // what is said of one of each
	messages []rpcMessage
}

// rpcMessage is a Call, or what answers one.
type rpcMessage struct {
	record int
	port   uint16
	way    tcp.Way
	xid    uint32
	call   bool
}

// inspectRPC reads records as the command does.
func inspectRPC(t *testing.T, records []capture.Record) *rpcSeen {
	s := &rpcSeen{found: map[uint16]*[rpcrdma.Whats]int{}, errors: map[uint16]int{}, first: map[rpcrdma.What]string{}}
	a, d := inspect.New(), rpcrdma.New()
	streams := iwarp.New(iwarp.Options{}, func(e *iwarp.Event) error {
		a.Event(e)
		port := clientPort(e.Conn.TCP.Ends[0].Port(), e.Conn.TCP.Ends[1].Port())
		c := d.Of(e.Conn)
		if m := d.Event(e); m != nil && (m.Kind == rpcrdma.CallKind || m.Kind == rpcrdma.ReplyKind || m.Kind == rpcrdma.Error) {
			s.messages = append(s.messages, rpcMessage{m.Last.Record, port, m.Way, m.Header.XID, m.Kind == rpcrdma.CallKind})
		}
		if e.Kind == iwarp.Gone && c != nil {
			if s.found[port] == nil {
				s.found[port] = new([rpcrdma.Whats]int)
			}
			for w := range c.Found {
				s.found[port][w] += c.Found[w].N
				if f := &c.Found[w]; f.N > 0 {
					s.first[rpcrdma.What(w)] = fmt.Sprintf("record %d, %d: %s", f.Record, f.Other, f.Text)
				}
			}
			for _, r := range c.Errors {
				s.errors[port] += r.N
			}
		}
		return nil
	})
	for i := range records {
		if err := streams.Add(i+1, &records[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := streams.End(); err != nil {
		t.Fatal(err)
	}
	s.report = a.Report()
	return s
}

// clientPort returns the port that is not the server's.
func clientPort(a, b uint16) uint16 {
	if a == rpcPort {
		return b
	}
	return a
}

// procedures counts calls and replies by procedure.
func (s *rpcSeen) procedures() (calls, replies map[string]int) {
	calls, replies = map[string]int{}, map[string]int{}
	for _, c := range s.report.Connections {
		if c.RPC == nil {
			continue
		}
		for _, p := range c.RPC.Procedures {
			if !strings.HasSuffix(p.Name, "unknown procedure") {
				calls[p.Name] += p.Calls
			}
			replies[p.Name] += p.Replies
		}
	}
	return calls, replies
}

// waiting counts the Calls of each connection that no message up to a record answers.
func (s *rpcSeen) waiting(end int) map[uint16]int {
	type key struct {
		port uint16
		way  tcp.Way
		xid  uint32
	}
	open := map[key]bool{}
	for _, m := range s.messages {
		if m.record > end {
			continue
		}
		if m.call {
			open[key{m.port, m.way, m.xid}] = true
		} else {
			delete(open, key{m.port, 1 - m.way, m.xid})
		}
	}
	n := map[uint16]int{}
	for k := range open {
		n[k.port]++
	}
	return n
}

// never are findings that tell of a fault of one side. The peers of these worlds have none.
var never = []rpcrdma.What{rpcrdma.Malformed, rpcrdma.Overrun, rpcrdma.TooLong, rpcrdma.Unplaced, rpcrdma.Returned, rpcrdma.Invalidation, rpcrdma.Twice, rpcrdma.Unasked}

// TestReportsOfRPCAreTrue checks what is told of RPC-over-RDMA against what a client and a server of NFS did, over a relay that writes all octets down. The whole
// capture has each call by its procedure, each Reply, and no finding that blames a side. What lost records, has them cut, doubled or out of order, begins late or ends early
// tells nothing that the whole capture does not.
func TestReportsOfRPCAreTrue(t *testing.T) {
	from, n := *firstFlag, *worldsFlag
	if n == 0 {
		n = fixture.Fewer(16, 4)
	}
	if *seedFlag >= 0 {
		from, n = uint64(*seedFlag), 1
	}
	told := map[rpcrdma.What]int{}
	captures, messages := 0, 0
	for seed := from; seed < from+uint64(n); seed++ {
		p := drawRPCPlan(seed)
		truth := runRPC(t, p)
		d := worlds.NewDice(seed, 33)
		records := truth.records(d.Pick(576, 1500, 1500, 9000))
		whole := inspectRPC(t, records)
		var wrong []string
		falsely := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
		judgeWhole(truth, whole, falsely)
		messages += len(whole.messages)
		for _, f := range whole.found {
			for w, n := range f {
				told[rpcrdma.What(w)] += n
			}
		}
		for range 12 {
			k := drawRPCTaking(d, len(records))
			captures++
			taken, last := k.take(d, records)
			judgePart(k, whole, inspectRPC(t, taken), last, int(truth.stats.Resent), falsely)
		}
		if len(wrong) > 0 {
			t.Errorf("seed %d: %v\n\t%s", seed, p, strings.Join(wrong, "\n\t"))
		}
	}
	t.Logf("%d worlds with %d messages, %d captures; findings by kind: %v", n, messages, captures, told)
}

// judgeWhole compares what is told of the whole capture with what happened.
func judgeWhole(truth *rpcTruth, s *rpcSeen, falsely func(string, ...any)) {
	calls, replies := s.procedures()
	if truth.quiet {
		if !maps.Equal(calls, truth.calls) || !maps.Equal(replies, truth.calls) {
			falsely("calls %v, replies %v, and the program made %v", calls, replies, truth.calls)
		}
	}
	for name, n := range calls {
		if made := truth.calls[name]; n > made+int(truth.stats.Resent) && !strings.HasSuffix(name, " NULL") {
			falsely("%d calls of %s, and the program made %d, of which it sent %d again", n, name, made, truth.stats.Resent)
		}
	}
	for port, waiting := range s.waiting(1 << 40) {
		if s.found[port][rpcrdma.Unanswered] != waiting {
			falsely("%d Calls without a Reply, and %d have none", s.found[port][rpcrdma.Unanswered], waiting)
		}
	}
	again := 0
	for _, f := range s.found {
		for _, w := range never {
			if f[w] > 0 {
				falsely("finding %d, %d times: %s", w, f[w], s.first[w])
			}
		}
		again += f[rpcrdma.Again]
		if truth.quiet && f[rpcrdma.Unanswered] > 0 {
			falsely("%d Calls without a Reply", f[rpcrdma.Unanswered])
		}
	}
	if again > int(truth.stats.Resent) {
		falsely("%d Calls were sent again, and the client sent %d again", again, truth.stats.Resent)
	}
	for i := range s.report.Findings {
		if f := &s.report.Findings[i]; truth.quiet && f.Severity != inspect.Note && strings.HasPrefix(f.Kind, "RPC") {
			falsely("%s (%s): %s", f.Severity, f.Kind, f.Text)
		}
	}
}

// judgePart compares what is told of a part of a capture with what is told of the whole one.
func judgePart(k rpcTaking, whole, part *rpcSeen, last map[uint16]int, resent int, falsely func(string, ...any)) {
	calls, replies := part.procedures()
	allCalls, allReplies := whole.procedures()
	for name, n := range calls {
		if n > allCalls[name] {
			falsely("%v: %d calls of %s, and there were %d", k, n, name, allCalls[name])
		}
	}
	for name, n := range replies {
		if n > allReplies[name] && name != "unknown procedure" {
			falsely("%v: %d replies of %s, and there were %d", k, n, name, allReplies[name])
		}
	}
	for port, f := range part.found {
		for w, n := range f {
			most := 0
			switch all := whole.found[port]; {
			case rpcrdma.What(w) == rpcrdma.Unanswered:
				most = whole.waiting(last[port])[port]
			case rpcrdma.What(w) == rpcrdma.Again:
				most = resent // a Reply that the client did not get may be lost for the capture, too
			case all != nil:
				most = all[w]
			}
			if n > most {
				falsely("%v: finding %d, %d times, and it is true of %d: %s", k, w, n, most, part.first[rpcrdma.What(w)])
			}
		}
		if part.errors[port] > whole.errors[port] {
			falsely("%v: %d errors, and there were %d", k, part.errors[port], whole.errors[port])
		}
	}
}

// rpcTaking is how a capture of a world was taken.
type rpcTaking struct {
	begins, ends int // numbers of records
	lost         float64
	run          int // how many are lost at once
	snap         int
	doubled      float64
	swapped      float64
	oneWay       int // -1: both
}

func drawRPCTaking(d worlds.Dice, records int) rpcTaking {
	k := rpcTaking{begins: 1, ends: records, oneWay: -1}
	if d.Chance(0.4) {
		k.begins = 1 + d.IntN(records)
	}
	if d.Chance(0.3) {
		k.ends = k.begins + d.IntN(records-k.begins+1)
	}
	if d.Chance(0.6) {
		k.lost, k.run = 0.1*d.Float64()*d.Float64(), d.Pick(1, 1, 3, 20)
	}
	if d.Chance(0.25) {
		k.snap = d.Pick(60, 68, 80, 96, 128, 256, 1000)
	}
	if d.Chance(0.3) {
		k.doubled = 0.1 * d.Float64()
	}
	if d.Chance(0.3) {
		k.swapped = 0.1 * d.Float64()
	}
	if d.Chance(0.1) {
		k.oneWay = d.IntN(2)
	}
	return k
}

// take makes the capture, and returns which record of the whole one is the last one that it has of each connection. Numbers of its
// records are not those of the whole one.
func (k rpcTaking) take(d worlds.Dice, records []capture.Record) (all []capture.Record, last map[uint16]int) {
	last = map[uint16]int{}
	losing := 0
	for i := k.begins - 1; i < k.ends; i++ {
		r := records[i]
		if losing == 0 && k.lost > 0 && d.Chance(k.lost) {
			losing = k.run
		}
		if losing > 0 {
			losing--
			continue
		}
		if k.oneWay >= 0 && int(r.Data[15]) != 1+k.oneWay {
			continue
		}
		last[clientPort(binary.BigEndian.Uint16(r.Data[20:]), binary.BigEndian.Uint16(r.Data[22:]))] = i + 1
		r.Data = bytes.Clone(r.Data)
		if k.snap > 0 && len(r.Data) > k.snap {
			r.Data = r.Data[:k.snap]
		}
		all = append(all, r)
		if k.doubled > 0 && d.Chance(k.doubled) {
			all = append(all, r)
		}
		if n := len(all); n > 1 && k.swapped > 0 && d.Chance(k.swapped) {
			all[n-1], all[n-2] = all[n-2], all[n-1]
			all[n-1].Time, all[n-2].Time = all[n-2].Time, all[n-1].Time
		}
	}
	return all, last
}

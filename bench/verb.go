package bench

import (
	"errors"
	"fmt"

	"github.com/dgrdma/dgrdma/verbs"
)

// Verb is what a run between queue pairs posts.
type Verb uint32

const (
	VerbWrite Verb = iota
	VerbRead
	VerbSend
	VerbFetchAdd
	VerbCompareSwap
	VerbFlush // a Write, and a Flush of what it wrote
)

var verbNames = [...]string{"write", "read", "send", "fetchadd", "cmpswap", "flush"}

// Verbs are what can be posted, by name.
var Verbs = func() map[string]Verb {
	all := make(map[string]Verb)
	for i, name := range verbNames {
		all[name] = Verb(i)
	}
	return all
}()

func (v Verb) String() string {
	if int(v) < len(verbNames) {
		return verbNames[v]
	}
	return fmt.Sprintf("verb %d", uint32(v))
}

// AtomicSize is how many bytes an atomic operation has.
const AtomicSize = 8

// Atomic reports whether it is of [AtomicSize] bytes.
func (v Verb) Atomic() bool { return v == VerbFetchAdd || v == VerbCompareSwap }

// MostQueued bounds what a plan has a side hold: work requests, receives, and requests of the other side that it has to answer, of
// all queue pairs together. Each takes a kilobyte at most, so all of them 256 MiB, beside the memory that is written to, and what
// an idle queue pair takes.
const MostQueued = 1 << 18

// mostReads bounds what a side keeps of the other's requests that it has to answer: more of them are
// queued at who asks.
const mostReads = 128

// queues are how much each queue pair of a side holds.
type queues struct {
	sends, receives int
	reads           int // requests of the other side
}

// queues returns those of a side that posts operations (source), that has memory for those of the other side (target), or both.
func (v Verb) queues(p Plan, source, target bool) queues {
	depth := int(p.Depth)
	q := queues{sends: 2, reads: 2}
	if source {
		// Twice: credits come before the sending goroutine has noted what it has sent.
		q.sends += 2 * v.perOp(p.Verify) * depth
	}
	if v.credits(p.Verify) && source {
		q.receives += depth
	}
	if v.credits(p.Verify) && target {
		q.sends += depth
		q.receives += depth
	}
	if v.answered() {
		q.reads = min(depth+2, mostReads)
	}
	return q
}

// queued returns how much a plan has the side hold that holds more. Requests of the other side have room for twice as many.
func (v Verb) queued(p Plan, receive bool) int {
	most := 0
	for _, q := range []queues{v.queues(p, !receive, p.BothWays != 0), v.queues(p, p.BothWays != 0, !receive)} {
		most = max(most, int(p.Peers)*(q.sends+q.receives+2*q.reads))
	}
	return most
}

// Check reports why a plan cannot be run with it. With receive only the server posts.
func (v Verb) Check(p Plan, receive bool) error {
	switch {
	case int(v) >= len(verbNames):
		return fmt.Errorf("there is no %v: is the client a newer one?", v)
	case p.Peers > MostQueued || p.Depth > MostQueued || v.queued(p, receive) > MostQueued:
		return fmt.Errorf("peers %d and depth %d: queue pairs of %v with that would hold more than %d work requests and receives at a side, which take a kilobyte each: choose less of one of them",
			p.Peers, p.Depth, v, MostQueued)
	case v.Atomic() && p.Size != AtomicSize:
		return fmt.Errorf("%v is of %d bytes", v, AtomicSize)
	case v == VerbSend && p.BothWays != 0 && !receive:
		return errors.New("messages that are sent both ways at a time would take each other's receives: send one way after the other")
	}
	return nil
}

// answered reports whether it is complete when the other side has answered.
func (v Verb) answered() bool { return v != VerbWrite && v != VerbSend }

// Noted reports whether the side that is written to is told of each operation, by immediate data
// behind it, so that it can look at all of them.
func (v Verb) Noted(verify Verify) bool {
	return verify == VerifyFull && (v == VerbWrite || v == VerbFlush)
}

// credits reports whether an operation is complete when the other side's program has taken it.
func (v Verb) credits(verify Verify) bool { return v == VerbSend || v.Noted(verify) }

// perOp is how many work requests an operation is.
func (v Verb) perOp(verify Verify) int {
	n := 1
	if v == VerbFlush {
		n++
	}
	if v.Noted(verify) {
		n++
	}
	return n
}

// rights are those of the memory that the operations go to. The rounds of the slots are written there,
// whatever the operation is.
func (v Verb) rights() verbs.Rights {
	switch v {
	case VerbRead:
		return verbs.RemoteWrite | verbs.RemoteRead
	case VerbFetchAdd, VerbCompareSwap:
		return verbs.RemoteWrite | verbs.RemoteAtomic
	case VerbFlush:
		return verbs.RemoteWrite | verbs.FlushGlobal
	}
	return verbs.RemoteWrite
}

// extensions are those that both sides use.
func (v Verb) extensions() verbs.Extensions {
	switch v {
	case VerbFetchAdd, VerbCompareSwap:
		return verbs.Atomics
	case VerbFlush:
		return verbs.Commit | verbs.Immediates
	}
	return verbs.Immediates
}

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

// MostVerbs bounds how many are outstanding, on all queue pairs together: queues take a third of a
// kilobyte for each.
const MostVerbs = 1 << 18

// Check reports why a plan cannot be run with it. With receive only the server posts.
func (v Verb) Check(p Plan, receive bool) error {
	switch {
	case int(v) >= len(verbNames):
		return fmt.Errorf("there is no %v: is the client a newer one?", v)
	case p.slots() > MostVerbs:
		return fmt.Errorf("peers %d times depth %d is more than the %d work requests that can be outstanding", p.Peers, p.Depth, MostVerbs)
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

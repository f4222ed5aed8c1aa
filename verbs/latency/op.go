package latency

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dgrdma/dgrdma/verbs"
)

// Op is an operation that can be measured.
type Op uint8

// The operations. Their numbers are on the wire.
const (
	Send Op = 1 + iota
	Write
	Read
	FetchAdd
	CompareSwap
	Flush
)

// names are those of perftest's programs, where it has one.
var names = []string{Send: "send", Write: "write", Read: "read", FetchAdd: "fetchadd", CompareSwap: "cmpswap", Flush: "flush"}

// Names are the names of all operations.
func Names() []string { return slices.Clone(names[Send:]) }

// ParseOp reads a name.
func ParseOp(name string) (Op, error) {
	if i := slices.Index(names, name); i >= int(Send) {
		return Op(i), nil
	}
	return 0, fmt.Errorf("no operation %q: there are %s", name, strings.Join(Names(), ", "))
}

func (o Op) known() bool { return o >= Send && o <= Flush }

// String is the name.
func (o Op) String() string {
	if !o.known() {
		return fmt.Sprintf("operation %d", uint8(o))
	}
	return names[o]
}

// OneWay says that an operation is measured there and back, so that half of the time is one way.
func (o Op) OneWay() bool { return o == Send || o == Write }

// Atomic says that an operation is about one word.
func (o Op) Atomic() bool { return o == FetchAdd || o == CompareSwap }

// WordSize is how many bytes an atomic operation is about.
const WordSize = 8

// extensions are what both sides have to know.
func (o Op) extensions() verbs.Extensions {
	switch {
	case o.Atomic():
		return verbs.Atomics
	case o == Flush:
		return verbs.Commit
	}
	return 0
}

// rights are those of the server's memory.
func (o Op) rights() verbs.Rights {
	switch o {
	case Write:
		return verbs.RemoteWrite
	case Read:
		return verbs.RemoteRead
	case FetchAdd, CompareSwap:
		return verbs.RemoteAtomic
	case Flush:
		return verbs.RemoteWrite | verbs.FlushGlobal
	}
	return 0
}

// Command soak runs the project for as long as one likes: random endpoints on a simulated
// network, or on UDP or Ethernet between network namespaces, with transactions, links and
// letters at once, while the network, the machines and strangers do what they do. An oracle
// looks at every byte and every completion.
//
//	go run ./tests/soak -for 2h -wire udp
//
// It says every minute what was done, and at once what should not have happened, with the
// seed of the round, and captures of the frames around it. It ends with 1 if there was anything of
// that. The real wires need root.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/tests/netns"
	"github.com/dgrdma/dgrdma/tests/soak/round"
)

// options are what the command line says.
type options struct {
	total   time.Duration
	wire    round.Wire
	seed    uint64
	rounds  uint64
	longest time.Duration
	dir     string
	every   time.Duration
}

func main() {
	o, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(2)
	}
	// Virtual time is only for tests, so this is one.
	os.Args = os.Args[:1]
	all := func(string, string) (bool, error) { return true, nil }
	testing.Main(all, []testing.InternalTest{{Name: "soak", F: func(t *testing.T) {
		if !soak(t, o, os.Stdout, round.Run) {
			t.Fail()
		}
	}}}, nil, nil)
}

func parse(args []string, out io.Writer) (o options, err error) {
	f := flag.NewFlagSet("soak", flag.ContinueOnError)
	f.SetOutput(out)
	f.DurationVar(&o.total, "for", 10*time.Minute, "`time` after which no further round begins")
	wire := f.String("wire", string(round.Simnet), "`wire`: simnet, udp or ether")
	f.Uint64Var(&o.seed, "seed", 0, "`number` of the first round; the next ones follow. 0: a random one")
	f.Uint64Var(&o.rounds, "rounds", 0, "`number` of rounds after which it ends; 0: any number")
	f.DurationVar(&o.longest, "longest", time.Minute, "`time` that a round may last")
	f.StringVar(&o.dir, "dir", ".", "`directory` for captures of rounds in which something was wrong")
	f.DurationVar(&o.every, "every", time.Minute, "`time` from one line to the next")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.wire = round.Wire(*wire)
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("%q: there are only flags; see -h", f.Arg(0))
	case !slices.Contains(round.Wires, o.wire):
		return o, fmt.Errorf("no wire %q; there are %v", *wire, round.Wires)
	case o.total <= 0 || o.longest <= 0 || o.every <= 0:
		return o, errors.New("a time is not positive")
	}
	if o.wire.Real() {
		if why := netns.Missing(); why != "" {
			return o, fmt.Errorf("no network namespaces for wire %s: %s", o.wire, why)
		}
	}
	if o.seed == 0 {
		o.seed = rand.Uint64N(1 << 40)
	}
	o.longest = min(o.longest, o.total)
	return o, nil
}

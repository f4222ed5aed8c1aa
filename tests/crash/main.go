// Command crash kills processes in the midst of what they do, thousands of times: two sides write into each other's
// memory, or send each other messages by links, and each is killed with SIGKILL, or stopped for longer than its peer has
// patience, in random moments and in chosen ones, and begins anew under its address and its id. What the sides
// report, and what is in their memory, outlives them; who started them judges it.
//
//	go run ./tests/crash -wire udp -for 10m -sealed
//
// It says every minute what was done, and at once what should not have happened, and ends with 1 if there was anything of
// that. The wires between namespaces need root.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/tests/netns"
)

const (
	wireLoopback = "loopback"
	wireUDP      = "udp"
	wireEther    = "ether"

	transactions = "transactions"
	links        = "links"
)

// options are what the command line says.
type options struct {
	total   time.Duration
	kills   uint64
	wire    string
	load    string
	sealed  bool
	seed    uint64
	giveUp  time.Duration
	every   time.Duration
	within  time.Duration // in which a pair has to work again
	variant string        // what is wrong with the sides, for tests
}

func main() {
	if text := os.Getenv(sideVariable); text != "" {
		fmt.Fprintln(os.Stderr, "crash: side:", runSide(text))
		os.Exit(1)
	}
	o, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "crash:", err)
		os.Exit(2)
	}
	if !crash(o, os.Stdout) {
		os.Exit(1)
	}
}

func parse(args []string, out io.Writer) (o *options, err error) {
	o = &options{}
	f := flag.NewFlagSet("crash", flag.ContinueOnError)
	f.SetOutput(out)
	f.DurationVar(&o.total, "for", 10*time.Minute, "`time` after which nobody is killed any more")
	f.Uint64Var(&o.kills, "kills", 0, "`number` of kills after which it ends; 0: any number")
	f.StringVar(&o.wire, "wire", wireLoopback, "`wire`: loopback, which is UDP on this machine, or udp or ether between namespaces")
	f.StringVar(&o.load, "load", transactions, "what goes on: transactions or links")
	f.BoolVar(&o.sealed, "sealed", false, "seal the connections")
	f.Uint64Var(&o.seed, "seed", 0, "`number` that all chance follows from; 0: a random one")
	f.DurationVar(&o.giveUp, "giveup", 2*time.Second, "`time` after which a peer that is silent is given up")
	f.DurationVar(&o.within, "within", 0, "`time` in which a pair has to work again; 0: twice giveup, and 2s for a busy machine")
	f.DurationVar(&o.every, "every", time.Minute, "`time` from one line to the next")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("%q: there are only flags; see -h", f.Arg(0))
	case !slices.Contains([]string{wireLoopback, wireUDP, wireEther}, o.wire):
		return o, fmt.Errorf("no wire %q; there are loopback, udp and ether", o.wire)
	case o.load != transactions && o.load != links:
		return o, fmt.Errorf("no load %q; there are transactions and links", o.load)
	case o.total <= 0 || o.giveUp <= 0 || o.every <= 0 || o.within < 0:
		return o, errors.New("a time is not positive")
	}
	if o.wire != wireLoopback {
		if why := netns.Missing(); why != "" {
			return o, fmt.Errorf("no network namespaces for wire %s: %s", o.wire, why)
		}
	}
	if o.within == 0 {
		o.within = 2*o.giveUp + 2*time.Second
	}
	if o.seed == 0 {
		o.seed = rand.Uint64N(1 << 40)
	}
	return o, nil
}

// crash runs a pair, and reports whether nothing was wrong.
func crash(o *options, out io.Writer) (ok bool) {
	var mu sync.Mutex
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(out, format, args...)
	}
	sealed := "not sealed"
	if o.sealed {
		sealed = "sealed"
	}
	say("%s over %s, %s, for %v, from seed %d; peers are given up after %v\n", o.load, o.wire, sealed, o.total, o.seed, o.giveUp)
	var c counts
	began := time.Now()
	stop := make(chan struct{})
	var lines sync.WaitGroup
	lines.Go(func() {
		tick := time.NewTicker(o.every)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				say("%v: %v\n", time.Since(began).Round(time.Second), &c)
			}
		}
	})
	err := runPair(o, &c, func(what string) { say("VIOLATION %s\n", what) })
	close(stop)
	lines.Wait()
	if err != nil {
		say("%v\n", err)
	}
	say("end: %v\n", &c)
	if err != nil || c.violations.Load() > 0 {
		say("FAIL\n")
		return false
	}
	say("PASS\n")
	return true
}

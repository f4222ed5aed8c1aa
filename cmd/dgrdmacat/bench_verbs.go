package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/dgrdma/dgrdma/bench"
	"github.com/dgrdma/dgrdma/internal/refused"
	"github.com/dgrdma/dgrdma/rdmap/mpa"
	"github.com/dgrdma/dgrdma/verbs"
)

// notOverTCP are flags that are about endpoints of DG/RDMA, or about links.
var notOverTCP = []string{"link", "stream", "buffers", "profile", "window", "mtu", "sockbuf", "gso", "gro", "busy-poll", "loss", "seed"}

// onlyOverTCP are flags that are about queue pairs.
var onlyOverTCP = []string{"op", "no-crc", "strict", "revision"}

// checkTCP finds out whether work requests are to be posted, and refuses what does not go together with that.
func (o *benchOptions) checkTCP(fs *flag.FlagSet) error {
	at := cmp.Or(o.serve, o.to)
	only, not := given(fs, onlyOverTCP...), given(fs, notOverTCP...)
	switch {
	case at == "" && o.op == "" && only != "":
		return badUsage("%s is for RDMA over TCP: say what is to be posted, as in --op write", only)
	case at == "" && o.op == "":
		return nil
	case at != "" && !isTCP(at) && only != "":
		return badUsage("%s is for RDMA over TCP: give an address such as tcp:10.0.0.2:%s, not %s", only, chosenPort, at)
	case at != "" && !isTCP(at):
		return nil
	case not != "":
		return badUsage("%s is not for RDMA over TCP", not)
	case o.wire.keyFile.text != "":
		return o.wire.keyFile.notOverTCP()
	case o.to == "" && o.local != "": // check says it
		return nil
	}
	verb, known := bench.Verbs[cmp.Or(o.op, bench.VerbWrite.String())]
	o.tcp = &verb
	switch {
	case !known:
		return badUsage("--op %s: need one of %s", o.op, strings.Join(slices.Sorted(maps.Keys(bench.Verbs)), ", "))
	case verb.Atomic() && o.sweep.from != 0:
		return badUsage("--op %v: atomic operations have %d bytes: leave out --sweep", verb, bench.AtomicSize)
	case verb.Atomic() && o.size.given && o.size.value != bench.AtomicSize:
		return badUsage("--op %v: atomic operations have %d bytes: leave out --size", verb, bench.AtomicSize)
	case verb == bench.VerbSend && o.bidir:
		return badUsage("--op send: messages that are sent both ways at a time would take each other's receives: leave out --bidir, or give --reverse")
	case o.framing.revision == 1 && (o.bidir || o.reverse):
		return badUsage("--revision 1 has the client send first: leave out --bidir and --reverse")
	}
	for _, c := range o.compare.all {
		if c == bench.Raw {
			return badUsage("--compare raw is of datagrams or frames, and this is over TCP: compare with tcp or tls")
		}
	}
	if verb.Atomic() {
		o.size.value = bench.AtomicSize
	}
	return nil
}

// checkVerbs refuses what no server could do.
func (o *benchOptions) checkVerbs() error {
	p := o.plan
	p.Size, p.Depth = uint32(o.size.value), uint32(o.depth)
	if o.tcp == nil || o.depth == 0 {
		return nil
	}
	if err := o.tcp.Check(p, o.reverse); err != nil {
		return usageError{err}
	}
	return nil
}

// openVerbsServer opens the serving side.
func openVerbsServer(at tcpAddress, memory uint64, private bool, log *peerLog) (*bench.VerbsServer, error) {
	h, err := at.open()
	if err != nil {
		return nil, err
	}
	l, err := h.Listen(at.port)
	if err != nil {
		h.Close()
		return nil, err
	}
	s := &bench.VerbsServer{Host: h, Listener: l, Memory: make([]byte, memory)}
	if private {
		s.Idle = bench.MemoryInUse()
	}
	s.Runs = tellRuns(log, func(r bench.Run) {
		back := ""
		if r.Saw.Transactions > 0 {
			back = fmt.Sprintf("; %d by this side, %s", r.Saw.Transactions, rateText(perSecond(r.Saw.Bytes, time.Duration(r.Saw.Nanoseconds))))
		}
		fmt.Fprintf(log, "%v: %s of %s on %s, %s%s\n", r.Client, count(r.Saw.Arrived, "operation"), count(uint64(r.Plan.Size), "byte"),
			count(uint64(r.Plan.Peers), "queue pair"), rateText(perSecond(r.Saw.Arrived*uint64(r.Plan.Size), r.Took)), back)
	})
	s.Failed = func(client fmt.Stringer, err error) { fmt.Fprintf(log, "%v: %v\n", client, goneTCP("", err)) }
	s.Rejected = func(client net.Addr, private []byte) {
		log.rejected(client, strangerTCP("bench --op", private, nil))
	}
	return s, nil
}

func verbsServe(ctx context.Context, o *benchOptions, stderr io.Writer) error {
	at, err := parseTCP("--serve", o.serve, "0")
	if err != nil {
		return err
	}
	log := newPeerLog(stderr)
	defer log.close()
	s, err := openVerbsServer(at, o.memory.value, true, log)
	if err != nil {
		return err
	}
	defer s.Host.Close()
	at, others := reachedAt(s.Listener.Addr().(*net.TCPAddr))
	o.metrics.rdma(s.Host, at)
	fmt.Fprintf(stderr, "serving on %v\n%sany client of dgrdmacat bench may use its memory\n", at, others)
	if err := o.urlFile.write(at.String()); err != nil {
		return err
	}
	return goneTCP("", s.Serve(ctx, o.once))
}

func verbsTo(ctx context.Context, o *benchOptions, stdout, stderr io.Writer) error {
	to, err := parseTCPPeer("--to", o.to, "")
	if err != nil {
		return err
	}
	h, err := openTCPLocal(o.local)
	if err != nil {
		return err
	}
	defer h.Close()
	return measureVerbs(ctx, o, h, to, false, stdout, stderr)
}

// verbsBoth runs both ends in this process.
func verbsBoth(ctx context.Context, o *benchOptions, stdout, stderr io.Writer) error {
	memory, err := o.memoryHere()
	if err != nil {
		return err
	}
	loopback := tcpAddress{"127.0.0.1", "0"}
	s, err := openVerbsServer(loopback, memory, false, newPeerLog(io.Discard))
	if err != nil {
		return err
	}
	defer s.Host.Close()
	h, err := loopback.open()
	if err != nil {
		return err
	}
	defer h.Close()
	both, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	served := make(chan error, 1)
	go func() { served <- s.Serve(both, true) }()
	there, _ := reachedAt(s.Listener.Addr().(*net.TCPAddr))
	err = measureVerbs(ctx, o, h, there, true, stdout, stderr)
	if err != nil {
		spare := refused.Spare(filesOfAPair * (1 + o.peers)) // while both ends are open
		cancel(err)
		return failedHere(err, <-served, spare)
	}
	return <-served
}

// measureVerbs runs a client and prints what it measured.
func measureVerbs(ctx context.Context, o *benchOptions, h *verbs.Host, to tcpAddress, oneProcess bool, stdout, stderr io.Writer) error {
	o.metrics.rdma(h, to)
	c := &bench.VerbsClient{Verb: *o.tcp, Host: h, Address: to.String(), NoCRC: o.framing.noCRC, Strict: o.framing.strict, Revision: o.framing.revision}
	c.Receive, c.WarmUp, c.Every, c.Rivals, c.Congestion = o.reverse, o.warmUp, o.interval, o.compare.all, string(o.congestion)
	if o.interval == 0 {
		c.Began = func(moved func() (bench.Moved, time.Duration)) (over func()) {
			return showProgress(stderr, func() string {
				m, took := moved()
				return fmt.Sprintf("%4.1f of %.1f s  %s  %s", took.Seconds(), o.perTurn().Seconds(),
					rateText(perSecond(m.Bytes, took)), countPerSecond(perSecond(m.Transactions, took), "operation"))
			})
		}
	}
	if err := c.Join(ctx); err != nil {
		if errors.Is(err, bench.ErrNoBench) && !unanswered(err) && !errors.Is(err, mpa.ErrNotMPA) {
			return fmt.Errorf("%w; does %s run there, of this version?", err, verbsThere)
		}
		return (&dialing{to, bench.Introduction, verbsThere}).explain(err)
	}
	defer c.Close()
	plans := o.plans(c.ServerMemory())
	for _, p := range plans {
		if err := cmp.Or(fitsEndpoint(p), c.Verb.Check(p, c.Receive)); err != nil {
			return usageError{err}
		}
		if err := p.Check(c.ServerMemory()); err != nil {
			return o.toFit(err, c.ServerMemory())
		}
	}
	return runPlans(ctx, o, plans, stdout, func(ctx context.Context, p bench.Plan, more bool, each func(bench.Interval), out *bench.Outcome) error {
		c.Plan, c.MoreRuns, c.Each = p, more, each
		err := c.Run(ctx, o.duration, out)
		return verbsInWords(goneTCP(to.String(), err))
	}, func(out *bench.Outcome) *verbsResult { return verbsResultOf(o, &c.Plan, out, oneProcess) })
}

// verbsThere is what has to run where a client of work requests dials.
const verbsThere = "dgrdmacat bench --serve tcp:ADDRESS:PORT"

// verbsInWords names the flag that an error is about, if it is about one.
func verbsInWords(err error) error {
	var rival *bench.CarrierError
	if errors.As(err, &rival) && !errors.Is(err, bench.ErrInterrupted) {
		return compareInWords(rival)
	}
	return err
}

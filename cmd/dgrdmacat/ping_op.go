package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/settings"
	"github.com/dgrdma/dgrdma/verbs"
	"github.com/dgrdma/dgrdma/verbs/latency"
)

const (
	opThere = "dgrdmacat ping --serve tcp:ADDRESS"
	// opGiveUp is how long a server over TCP may be silent, as over DG/RDMA.
	opGiveUp = 10 * time.Second
	// opSetUp is how long a server may take to accept, at least: who serves something else says nothing at all.
	opSetUp = 2 * time.Second
)

// opResult is what there is to say of an operation over TCP.
type opResult struct {
	Op         string `json:"op,omitempty"`
	CRC        *bool  `json:"crc,omitempty"`
	Persistent bool   `json:"persistent,omitempty"`
	oneWay     bool
}

func (r *opResult) heading(wire string) string {
	s := r.Op
	if r.Op == latency.Flush.String() {
		s = "global flush"
		if r.Persistent {
			s = "persistent flush"
		}
	}
	s += " over " + wire
	if r.oneWay {
		s += ", one way"
	}
	if r.CRC != nil {
		s += " " + crcInWords(*r.CRC)
	}
	return s + ", "
}

// checkOp refuses what does not fit RDMA over TCP, or only that.
func (o *pingOptions) checkOp(fs *flag.FlagSet) error {
	tcp := isTCP(o.serve) || isTCP(o.to)
	stray := given(fs, "link", settings.BusyPoll.Flag)
	op, err := latency.ParseOp(o.op)
	switch {
	case !tcp && o.op != "" && o.to != "":
		return badUsage("--op measures RDMA over TCP: --to %s is not tcp:HOST:PORT", o.to)
	case !tcp && o.op != "":
		return badUsage("--op is for the client: a server over TCP, --serve tcp:ADDRESS, answers all operations")
	case !tcp && (o.noCRC || o.file != ""):
		return badUsage("%s is for RDMA over TCP, as in tcp:HOST:PORT", given(fs, "no-crc", "file"))
	case !tcp:
		return nil
	case stray != "":
		return badUsage("%s is for DG/RDMA: over TCP it means nothing", stray)
	case o.file != "" && o.serve == "":
		return badUsage("--file belongs to --serve")
	case o.size.value > math.MaxUint32/2:
		return badUsage("--size %v: need at most 2G", &o.size)
	case o.to == "":
		return nil
	case o.op == "":
		return badUsage("--to %s: over TCP say which operation to measure with --op: %s", o.to, strings.Join(latency.Names(), ", "))
	case err != nil:
		return badUsage("--op %s: need one of %s", o.op, strings.Join(latency.Names(), ", "))
	case op.Atomic() && o.size.given && o.size.value != latency.WordSize:
		return badUsage("--op %v: atomic operations have %d bytes: leave out --size", op, latency.WordSize)
	case op.Atomic():
		o.size.value = latency.WordSize
	}
	return nil
}

func (o *pingOptions) verbs() verbs.Options {
	return verbs.Options{NoCRC: o.noCRC, Timeout: max(o.wait, opSetUp)}
}

func pingOpTo(ctx context.Context, o *pingOptions, stdout, stderr io.Writer) error {
	to, err := parseTCPPeer("--to", o.to, "")
	if err != nil {
		return err
	}
	op, err := latency.ParseOp(o.op)
	if err != nil {
		return err
	}
	h, err := openTCPLocal(o.local)
	if err != nil {
		return err
	}
	defer h.Close()
	o.metrics.rdma(h, to)
	c := newPingClient(o, tcpScheme, stdout, stderr)
	c.op = opResult{Op: op.String(), oneWay: op.OneWay()}
	if !op.OneWay() {
		c.rounds.legs = 1
	}
	d := &dialing{to, max(o.wait, opSetUp), opThere}
	c.explain = func(err error) error {
		if errors.Is(err, latency.ErrSize) {
			return badUsage("--size %v: %w", &o.size, d.explain(err))
		}
		return d.explain(err)
	}
	soon, stop := d.context(ctx)
	defer stop()
	v := o.verbs()
	l, err := latency.Dial(soon, h, to.String(), op, uint32(o.size.value), &v)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return c.report(ctx, err, stdout)
	}
	crc := l.QueuePair().CRC()
	c.op.CRC, c.op.Persistent = &crc, l.Persistent()
	p := &opPing{client: c, ops: l}
	c.giveUp, c.explain = opGiveUp, func(err error) error {
		if errors.Is(err, dgrdma.ErrPeerDown) {
			does := "does not answer any more"
			if errors.As(err, new(pingSilence)) {
				does = "answered no ping"
			}
			return &tcpError{fmt.Sprintf("%v %s: nothing has come from it for %v; is the program there stopped, or its machine or the network down?", to, does, opGiveUp), err}
		}
		return goneTCP(to.String(), err)
	}
	c.send, c.resend = p.send, p.send
	c.dead = func() error { return nil } // what waits hears of it
	c.heard = func() uint64 { return 1 } // it has accepted
	waiting, enough := context.WithCancelCause(context.WithoutCancel(ctx))
	p.idle = make(chan struct{})
	go p.receive(waiting)
	err = c.run(ctx, nil)
	idle := p.finish()
	enough(errMeasured)
	<-p.idle
	if idle {
		closing, stop := context.WithTimeout(context.Background(), 10*farewell)
		defer stop()
		l.Close(closing) // whether the server heard of it changes nothing of what was measured
	} else {
		l.Abort()
	}
	return c.report(ctx, err, stdout)
}

// errMeasured is why nobody waits for answers any more.
var errMeasured = errors.New("all are answered, or given up")

// opPing does the operations of a client over TCP. There is one at a time: what comes behind one that is overdue comes no
// sooner than that.
type opPing struct {
	client *pingClient
	ops    *latency.Client

	idle chan struct{} // closed when nobody waits any more

	mu     sync.Mutex
	over   bool   // nothing begins any more
	number uint32 // of what is under way; 0: nothing is
	owed   uint32 // what is to be done then
}

func (p *opPing) send(number uint32) {
	p.mu.Lock()
	if p.over || p.number != 0 {
		p.owed = number
		p.mu.Unlock()
		return
	}
	p.number, p.owed = number, 0
	p.mu.Unlock()
	p.client.left(number, time.Now())
	if err := p.ops.Start(); err != nil {
		p.client.fail(err)
	}
}

// receive waits for answers until it is over.
func (p *opPing) receive(ctx context.Context) {
	defer close(p.idle)
	for {
		if err := p.ops.Wait(ctx); err != nil {
			if !errors.Is(err, errMeasured) {
				p.client.fail(err)
			}
			return
		}
		p.mu.Lock()
		number, owed, over := p.number, p.owed, p.over
		p.number = 0
		p.mu.Unlock()
		p.client.arrived(number)
		if over {
			return
		}
		if owed != 0 {
			p.send(owed)
		}
	}
}

// finish lets nothing begin any more, and gives what is under way a moment to be answered, so that there is a good-bye. It says
// whether nothing is under way.
func (p *opPing) finish() (idle bool) {
	p.mu.Lock()
	p.over = true
	busy := p.number != 0
	p.mu.Unlock()
	if busy {
		attendFor(farewell, nil, p.idle)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.number == 0
}

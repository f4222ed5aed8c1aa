package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/settings"
	"github.com/dgrdma/dgrdma/url"
	"github.com/dgrdma/dgrdma/verbs/latency"
)

var pingCommand = command{
	name: "ping", summary: "measure how long a write takes to arrive", elsewhere: ofPing, dials: true,
	about: fmt.Sprintf(`Measures how long a write with completion takes to arrive: half of what it takes
until the peer's answer, the same in the other direction, is complete.

  dgrdmacat ping --serve URL          answer
  dgrdmacat ping --to URL             measure
  dgrdmacat ping --op read --to URL   measure an operation of RDMA

URL as for bench. --busy-poll drives the endpoint from one thread that never
sleeps; give it to both sides.

Pings have 64 bytes, or as many as --size says. A server takes pings of up to 1M,
or of the --size that it is given; over links of any size that messages can have.
With --interval a timer sends them, one per interval, as long as answers come within it.

A ping is lost if its answer does not come within a second (--wait), or, where
round trips are long, within more than such a one takes. Each lost one is printed and counted, and the command then
ends with 1. If no answer comes for as long as a silent peer is waited for
(giveup=TIME in the URL, otherwise 10 seconds), it ends with 1, and at ^C by the
signal; both print what was measured so far. As many pings as are measured go before, unmeasured,
but at most %d, and with --interval one; -v and lost pings are numbered behind those.

With --op it measures RDMA over TCP (iWARP): URL is then tcp:HOST:PORT, and the server,
which is at tcp:ADDRESS or tcp:ADDRESS:PORT, answers all operations. send and write go
there and back, and half of that is one way, as with ib_send_lat and ib_write_lat; but an
empty Send tells the other side of each Write, where ib_write_lat looks at the memory until
it changes. read, fetchadd and cmpswap take until the answer is there, as with ib_read_lat
and ib_atomic_lat. flush is a Write, and the Flush that makes it visible to all of the
server's machine, or, if the server has a --file, brings it to storage.`, pingWarmUp),
	flags: func(fs *flag.FlagSet) action {
		o := new(pingOptions)
		o.register(fs)
		return func(ctx context.Context, std *stdio, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			if err := o.checkOp(fs); err != nil {
				return err
			}
			if stray := given(fs, "n", "c", "interval", "i", "v", "wait", "histogram", "json", "op"); stray != "" && o.serve != "" {
				return badUsage("%s is for the client: give it beside --to", stray)
			}
			if err := o.keys.into(&o.serve, &o.to); err != nil {
				return err
			}
			stop, err := o.metrics.start(std.err)
			if err != nil {
				return err
			}
			defer stop()
			switch {
			case isTCP(o.serve):
				return pingOpServe(ctx, o, std.err)
			case isTCP(o.to):
				return pingOpTo(ctx, o, std.out, std.err)
			case o.link && o.serve != "":
				return pingLinkServe(ctx, o, std.err)
			case o.link:
				return pingLinkTo(ctx, o, std.out, std.err)
			case o.serve != "":
				return pingServe(ctx, o, std.err)
			}
			return pingTo(ctx, o, std.out, std.err)
		}
	},
}

type pingOptions struct {
	serve, to, local string
	urlFile          urlFile
	once, json       bool
	busyPoll, link   bool
	n                int
	histogram        bool
	verbose          bool
	size             sizeFlag
	wait, interval   time.Duration
	metrics          metricsFlag
	keys             keyFlag
	op               string
	file             fileFlag
	noCRC            bool
}

func (o *pingOptions) register(fs *flag.FlagSet) {
	fs.StringVar(&o.serve, "serve", "", "`URL` to answer on; "+tcpServes(chosenPort, anyFreePort))
	fs.BoolVar(&o.once, "once", false, "with --serve: end after one client")
	o.urlFile.register(fs, "with --serve: ")
	fs.StringVar(&o.to, "to", "", "`URL` of the server: udp:HOST:PORT, with --op tcp:HOST:PORT, or what it printed")
	fs.StringVar(&o.local, "local", "", "with --to: `URL` of this side; Ethernet needs it")
	fs.IntVar(&o.n, "n", 10000, "how many pings to measure, 1 to 100000000")
	sameAs(fs, "c", "n")
	o.size.value = pingBytes
	fs.Var(&o.size, "size", "`bytes` of a ping and of its answer, such as 64k, 4 to 1G, with --link at most 2097151; with --serve: of the largest that are taken, otherwise 1M")
	fs.DurationVar(&o.interval, "interval", 0, "how long from one ping to the next, up to 1h, and half of giveup; 0: the next one follows the answer")
	sameAs(fs, "i", "interval")
	fs.BoolVar(&o.verbose, "v", false, "show each answer, as with --interval on a terminal")
	fs.DurationVar(&o.wait, "wait", pingWait, "how long to wait for an answer at least, before it is lost, up to 1h")
	fs.BoolVar(&o.busyPoll, settings.BusyPoll.Flag, false, settings.BusyPoll.Means)
	fs.BoolVar(&o.link, "link", false, "over a link; both sides need it")
	fs.Var(&oneOf{&o.op, latency.Names()}, "op", "over TCP: the `operation` to measure: "+strings.Join(latency.Names(), ", "))
	fs.BoolVar(&o.noCRC, "no-crc", false, "over TCP: "+noCRCMeans)
	fs.Var(&o.file, "file", "with --serve tcp: the `file` that flush brings to storage; the server makes it, so it must not be there, and removes it at the end")
	fs.BoolVar(&o.histogram, "histogram", false, histogramMeans)
	fs.BoolVar(&o.json, "json", false, "print one JSON object")
	o.metrics.register(fs)
	o.keys.register(fs)
}

func (o *pingOptions) check() error {
	switch {
	case o.serve == "" && o.to == "":
		example := "udp:HOST:PORT"
		if o.op != "" {
			example = "tcp:HOST:PORT"
		}
		return badUsage("give --serve or --to, as in --to %s", example)
	case o.serve != "" && o.to != "":
		return badUsage("--serve and --to are the two ends: give one of them")
	case o.serve == "" && (o.once || o.urlFile.given()):
		return badUsage("--once and --url-file belong to --serve")
	case o.to == "" && o.local != "":
		return badUsage("--local belongs to --to")
	case o.n < 1 || o.n > 100_000_000:
		return badUsage("-n %d: need 1 to 100000000", o.n)
	case o.size.value < leastPing || o.size.value > mostPing:
		return badUsage("--size %v: need %d to 1G", &o.size, leastPing)
	case o.interval < 0 || o.interval > time.Hour:
		return badUsage("--interval %v: need 0, or up to an hour", o.interval)
	case o.link && o.serve != "" && o.size.given:
		return badUsage("--size is for the client of a link: give it beside --to")
	case o.link && o.size.value > link.MaxMessage:
		return badUsage("--size %v: messages of links have at most %d bytes", &o.size, link.MaxMessage)
	case o.verbose && o.json:
		return badUsage("--json prints one object: leave out -v")
	case o.wait <= 0 || o.wait > time.Hour:
		return badUsage("--wait %v: need more than 0, and an hour at most", o.wait)
	}
	return nil
}

// pingResult is the object that --json prints: one-way times in microseconds, of
// the pings that were measured.
type pingResult struct {
	builtFrom
	Transport string `json:"transport"`
	BusyPoll  bool   `json:"busy_poll"`
	opResult
	Bytes int    `json:"bytes"`
	N     int    `json:"n"`
	Lost  uint32 `json:"lost"` // not answered in time
	latencies
	Error string `json:"error,omitempty"`
}

func pingTo(ctx context.Context, o *pingOptions, stdout, stderr io.Writer) error {
	local, peer, err := parseEnds(ctx, stderr, o.to, o.local)
	if err != nil {
		return o.notFound(peer, err, stdout)
	}
	to, err := dgrdma.ParsePeer(peer.String())
	if err != nil {
		return err
	}
	if to.Size > pingAt {
		return badUsage("--to: memory of %d bytes, which no ping --serve has", to.Size)
	}
	if o.size.value > pingBytes && to.Size > pingAt-o.size.value {
		return badUsage("--size %v: such pings would go into the last of the %d bytes of memory that --to says", &o.size, to.Size)
	}
	to.Size = 1 << 32 // pings go behind its memory
	c := newPingClient(o, wireName(peer), stdout, stderr)
	var p *pingPeer
	memory := newPings(o.size.value, func(x *pingPeer) dgrdma.Memory {
		p, x.arrived, x.left, x.failed = x, c.arrived, c.left, c.fail
		c.send, c.resend = x.write, x.writeAnyway
		return x
	})
	e, err := openSaying(stderr, withMemory(local, memory.Size()).String(), &dgrdma.Config{Memory: memory, Service: pingService, Manual: o.busyPoll, BusyPoll: o.busyPoll})
	if err != nil {
		return err
	}
	defer e.Close()
	o.metrics.endpoint(e)
	conn, err := e.Connect(to)
	if err != nil {
		return err
	}
	stopSaying := sayUnheard(stderr, e, local, peer)
	defer stopSaying()
	c.giveUp, c.dead = e.GiveUp(), conn.Err
	if o.interval > c.giveUp/2 {
		return badUsage("--interval %v: need at most %v, half of the time after which a silent client is given up; giveup=TIME in the URL of both sides makes that longer", o.interval, c.giveUp/2)
	}
	c.heard = func() uint64 { return conn.Stats().FramesReceived }
	poll := o.pollOf(e)
	if err = c.agree(ctx, p, poll); err == nil {
		err = c.run(ctx, poll)
	}
	if !errors.Is(err, dgrdma.ErrPeerDown) {
		p.farewell(poll)
	}
	return c.report(ctx, orTold(err, stopSaying(), peer), stdout)
}

// notFound has --json print its object where no server was found.
func (o *pingOptions) notFound(peer url.Endpoint, err error, stdout io.Writer) error {
	if wrong := (usageError{}); !o.json || errors.As(err, &wrong) {
		return err
	}
	r := o.summary(wireName(peer), newRounds(o.n, o.wait, o.interval))
	r.Error = err.Error()
	return errors.Join(err, r.print(stdout, o.json))
}

// pollOf returns what drives an endpoint, if it has no goroutines.
func (o *pingOptions) pollOf(e *dgrdma.Endpoint) func() error {
	if !o.busyPoll {
		return nil
	}
	return func() error { _, err := e.Progress(0); return err }
}

// farewell tells the server that the client has finished.
func (p *pingPeer) farewell(poll func() error) {
	told := make(chan struct{}, 1)
	t := dgrdma.Transaction{
		Completion: dgrdma.Word(pingBye, 1), Done: func(*dgrdma.Transaction, error) { told <- struct{}{} },
	}
	if p.conn.Post(&t) == nil {
		attendFor(10*farewell, poll, told)
	}
}

// summary sums up what was measured.
func (o *pingOptions) summary(wire string, r *rounds) pingResult {
	return pingResult{
		Transport: wire, BusyPoll: o.busyPoll, Bytes: int(o.size.value), N: r.measured(), Lost: r.lost, latencies: latenciesOf(r.times, o.histogram),
	}
}

// heading says what was measured.
func (r *pingResult) heading() string {
	how := "sleeping"
	switch {
	case r.Op != "":
		return r.opResult.heading(r.Transport)
	case r.BusyPoll:
		how = "busy polling"
	}
	return fmt.Sprintf("one way over %s, %s, ", r.Transport, how)
}

func (r *pingResult) print(w io.Writer, asJSON bool) error {
	if asJSON {
		r.builtFrom = thisBuild()
		return json.NewEncoder(w).Encode(r)
	}
	text := r.heading()
	if r.N == 0 {
		text += "nothing measured"
	} else {
		text += fmt.Sprintf("%s %d bytes: %v", count(r.N, "time"), r.Bytes, &r.latencies)
	}
	if r.Lost > 0 {
		text += fmt.Sprintf("; %d lost", r.Lost)
	}
	return buffered(w, func(w io.Writer) error {
		fmt.Fprintln(w, text)
		r.draw(w)
		return nil
	})
}

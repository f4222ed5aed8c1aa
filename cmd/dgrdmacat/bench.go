package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/dgrdma/dgrdma/bench"
	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/settings"
	"github.com/dgrdma/dgrdma/url"
)

// farewell is how long a side that has finished still acknowledges.
const farewell = bench.Linger

// benchOptions are the flags of bench.
type benchOptions struct {
	serve, to, local string
	once             bool
	urlFile          urlFile
	memory           sizeFlag
	wire             wireFlags
	metrics          metricsFlag
	plan             bench.Plan
	size             sizeFlag
	peers, depth     int
	seconds          secondsFlag
	duration         time.Duration
	bidir            bool
	busyPoll         bool
	json             bool
	verify           string
	compare          string
	link, stream     bool
	histogram        bool
	buffers          int
}

var benchCommand = command{
	name: "bench", summary: "measure throughput and completion times between two endpoints",
	about: `Measures one-sided writes: throughput, completion time, and what they cost.

  dgrdmacat bench                    both ends in this process, over loopback
  dgrdmacat bench --serve URL        the server, which prints its complete URL
  dgrdmacat bench --to URL           the client, which writes to that server

URL is udp, udp:7100, udp:10.0.0.2:7100, ether:eth0 or a complete endpoint string.
Options follow it, as in udp:7100?giveup=2s.

A completion takes from when a transaction is posted until it is acknowledged: then
it is in the server's memory. With --link it is measured how long buffers are away:
from when one is filled until it can be filled again, after the consumer gave it
back. Of small ones each eighth is timed.`,
	flags: func(fs *flag.FlagSet) action {
		o := new(benchOptions)
		o.register(fs)
		return func(ctx context.Context, std *stdio, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			if stray := given(fs, "size", "depth", "seconds", "bidir", "peers", "verify", "compare", "buffers", "histogram", "json"); stray != "" && o.serve != "" {
				return badUsage("%s is for the client: give it beside --to", stray)
			}
			if end := given(fs, "serve", "to"); end != "" && o.serve == "" && o.to == "" {
				return badUsage("%s is empty: is what it comes from missing?", end)
			}
			stop, err := o.metrics.start(std.err)
			if err != nil {
				return err
			}
			defer stop()
			switch {
			case o.link && o.serve != "":
				return linkServe(ctx, o, std.err)
			case o.link && o.to != "":
				return linkTo(ctx, o, std.out, std.err)
			case o.link:
				return linkBoth(ctx, o, std.out, std.err)
			case o.serve != "":
				return benchServe(ctx, o, std.err)
			case o.to != "":
				return benchTo(ctx, o, std.out, std.err)
			}
			return benchBoth(ctx, o, std.out, std.err)
		}
	},
}

func (o *benchOptions) register(fs *flag.FlagSet) {
	fs.StringVar(&o.serve, "serve", "", "`URL` to serve on")
	fs.BoolVar(&o.once, "once", false, "with --serve: end after one client")
	o.urlFile.register(fs, "with --serve: ")
	o.memory.value = servedMemory
	fs.Var(&o.memory, "memory", fmt.Sprintf("with --serve: `bytes` of memory, %d to 4G: more for larger or more transactions, peers or buffers; the size in a complete URL counts for nothing", bench.LeastMemory))
	fs.StringVar(&o.to, "to", "", "complete `URL` of the server")
	fs.StringVar(&o.local, "local", "", "with --to: `URL` of this side; Ethernet needs it")
	o.size.value = 1 << 20
	fs.Var(&o.size, "size", "`bytes` per transaction, such as 64k, 1 to 1G; with --link per message, at most 2097151")
	fs.IntVar(&o.depth, "depth", 0, "transactions that each peer keeps outstanding; 0: as many as make up 4 MiB, of all peers together, at most 4096")
	o.seconds = secondsFlag(3 * time.Second)
	fs.Var(&o.seconds, "seconds", "how many `seconds` to write, such as 10 or 10s, at most 86400 (a day)")
	fs.BoolVar(&o.bidir, "bidir", false, "the server writes too")
	fs.IntVar(&o.peers, "peers", 1, "how many peers the client plays, 1 to 4096, each with an id and a connection of its own")
	fs.BoolVar(&o.busyPoll, settings.BusyPoll.Flag, false, settings.BusyPoll.Means)
	fs.BoolVar(&o.json, "json", false, "print one JSON object")
	o.verify = "sample"
	fs.Var(&oneOf{&o.verify, slices.Sorted(maps.Keys(bench.Verifications))}, "verify", "how much of the data the receiver verifies: sample, full or off")
	fs.Var(&oneOf{&o.compare, []string{"tcp"}}, "compare", "take turns with another `protocol` between the same addresses: tcp")
	fs.BoolVar(&o.link, "link", false, "measure a link with credits in place of bare transactions; both sides need it")
	fs.BoolVar(&o.stream, "stream", false, "with --link: io.Copy at both ends")
	fs.IntVar(&o.buffers, "buffers", 64, "with --link: how many buffers of --size bytes, 1 to 65536")
	fs.BoolVar(&o.histogram, "histogram", false, histogramMeans)
	o.wire.register(fs)
	o.metrics.register(fs)
}

// mostDepth is what a connection can hold.
var mostDepth = int(settings.Queue.Most)

// check refuses what does not go together and makes the plan.
func (o *benchOptions) check() error {
	verify, known := bench.Verifications[o.verify]
	switch {
	case o.serve != "" && o.to != "":
		return badUsage("--serve and --to are the two ends: give one, or none for both in this process")
	case o.serve == "" && (o.once || o.urlFile.given()):
		return badUsage("--once and --url-file belong to --serve")
	case o.serve == "" && o.memory.given:
		return badUsage("--memory belongs to --serve")
	case o.memory.value < bench.LeastMemory || o.memory.value > url.MaxSize:
		return badUsage("--memory %v: need %d to 4G", &o.memory, bench.LeastMemory)
	case o.to == "" && o.local != "":
		return badUsage("--local belongs to --to")
	case o.size.value < 1 || o.size.value > 1<<30:
		return badUsage("--size %v: need 1 to 1G", &o.size)
	case o.depth < 0 || o.depth > mostDepth:
		return badUsage("--depth %d: need 1 to %d, or 0, with which as many are outstanding as make up 4 MiB", o.depth, mostDepth)
	case o.seconds <= 0 || o.seconds > secondsFlag(24*time.Hour):
		return badUsage("--seconds %v: need more than 0, at most 86400", &o.seconds)
	case o.peers < 1 || o.peers > 4096:
		return badUsage("--peers %d: need 1 to 4096", o.peers)
	case !known:
		return badUsage("--verify %s: need sample, full or off", o.verify)
	case !o.link && (o.stream || o.buffers != 64):
		return badUsage("--stream and --buffers belong to --link")
	case o.link && (o.compare != "" || o.peers != 1 || o.depth != 0 || o.bidir || o.wire.profile.text != "" || o.verify != "sample"):
		return badUsage("--compare, --peers, --depth, --bidir, --profile and --verify are not for links")
	case o.link && o.size.value > link.MaxMessage:
		return badUsage("--size %v: messages of links have at most %d bytes", &o.size, link.MaxMessage)
	case o.buffers < 1 || o.buffers > 65536:
		return badUsage("--buffers %d: need 1 to 65536", o.buffers)
	case o.compare != "" && o.compare != "tcp":
		return badUsage("--compare %s: only tcp", o.compare)
	}
	o.duration = time.Duration(o.seconds)
	o.plan = bench.Plan{Size: uint32(o.size.value), Peers: uint32(o.peers), Verify: verify}
	if o.bidir {
		o.plan.BothWays = 1
	}
	return nil
}

// perTurn returns how long DG/RDMA writes at a time: with --compare it takes turns.
func (o *benchOptions) perTurn() time.Duration {
	if o.compare == "" {
		return o.duration
	}
	return o.duration / bench.TurnsBeside
}

func benchTo(ctx context.Context, opt *benchOptions, stdout, stderr io.Writer) error {
	peer, err := parsePeer(opt.to)
	if err != nil {
		return err
	}
	if opt.compare != "" && peer.Scheme != url.UDP {
		return badUsage("--compare tcp: there is no TCP on bare Ethernet; compare over UDP")
	}
	local, peer, err := endsFor(opt.local, peer)
	if err != nil {
		return err
	}
	return measure(ctx, opt, local, peer, false, stdout, stderr)
}

// memoryHere returns how much memory the server needs that is in this process.
func (o *benchOptions) memoryHere() (uint64, error) {
	p := o.plan.WithDepth(o.depth, servedMemory)
	if err := fitsEndpoint(p); err != nil {
		return 0, err
	}
	return max(p.ServerMemory(), servedMemory), nil
}

// fitsEndpoint refuses a plan for which no server can have the memory.
func fitsEndpoint(p bench.Plan) error {
	if needed := p.ServerMemory(); needed > url.MaxSize {
		return badUsage("peers %d, depth %d and size %d need %d bytes of memory, and an endpoint has at most 4G: choose less of one of them",
			p.Peers, p.Depth, p.Size, needed)
	}
	return nil
}

// benchBoth runs both ends in this process.
func benchBoth(ctx context.Context, opt *benchOptions, stdout, stderr io.Writer) error {
	const loopback = "udp:127.0.0.1"
	local, err := parseLocal("serve", loopback)
	if err != nil {
		return err
	}
	memory, err := opt.memoryHere()
	if err != nil {
		return err
	}
	s, err := openServer(opt, local, memory, false, io.Discard)
	if err != nil {
		return err
	}
	defer s.Close()
	peer, err := parsePeer(s.Endpoint.URL())
	if err != nil {
		return err
	}
	both, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	served := make(chan error, 1)
	go func() { served <- s.Serve(both, true) }()
	err = measure(ctx, opt, local, peer, true, stdout, stderr)
	if err != nil {
		cancel(err)
		<-served // fails for the same reason
		return err
	}
	return <-served
}

package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/dgrdma/dgrdma/bench"
	"github.com/dgrdma/dgrdma/internal/emulator"
	"github.com/dgrdma/dgrdma/internal/refused"
	"github.com/dgrdma/dgrdma/url"
)

// farewell is how long a side that has finished still acknowledges.
const farewell = bench.Linger

var benchCommand = command{
	name: "bench", summary: "measure throughput and completion times between two endpoints", elsewhere: ofIperf, dials: true,
	about: fmt.Sprintf(`Measures throughput, completion times, and what they cost: of one-sided writes, or with
--op of RDMA over TCP.

  dgrdmacat bench                    both ends in this process, over loopback
  dgrdmacat bench --serve URL        the server, which prints its complete URL
  dgrdmacat bench --to URL           the client, which writes to that server

The server's URL is udp, udp:7100, udp:10.0.0.2:7100, ether:eth0 or a complete endpoint
string; the client's is udp:10.0.0.2:7100, or what the server printed. A name does in
place of an address. Options follow it, as in udp:7100?giveup=2s.

Over TCP it measures RDMA between queue pairs, as iWARP has it:

  dgrdmacat bench --op write               both ends in this process
  dgrdmacat bench --serve tcp:HOST:PORT    the server, at any free port without one
  dgrdmacat bench --op read --to tcp:HOST:PORT

The client says what is posted, and how, and the server goes along; --peers are then queue
pairs. A write is complete when its buffer is free again, and throughput counts what has
arrived when the run is over. A send is complete when the server's program has taken it,
posted the receive again, and given a credit; all others when the answer is there. The side
that is written to verifies what is in each piece of memory when the run is over. With
--verify full it is told of each operation, by immediate data, and verifies what that
brought, which costs throughput. With --reverse the server posts in place of the client,
with --bidir as well: it reads from the client, say. --peers and --depth are bounded
together, so that the queues of a run take %d MiB at most at either side.

A completion takes from when a transaction is posted until it is acknowledged: then
it is in the server's memory. With --reverse that is not measured. With --link it is
measured how long buffers are away: from when one is filled until it can be filled
again, after the consumer gave it back; not with --rate, with which they wait for us.
Of what has less than 4 KiB each eighth is timed.

With -i each interval is a line on its own, and in --json an element of intervals; what
was sent again are frames of this side. With --sweep each size is a line, and --json
prints an array. A server of any version does what --reverse, --warm-up and --sweep
need; an older one that is to write at a --rate is found out before anything is measured,
and with --link --sweep one that serves --once leaves after the first size.

--compare takes turns, five each, and moves the same memory between the same two ends
as the transactions do: by a TCP stream (tcp), by TLS 1.3 over one (tls), or in datagrams
or frames as large, with a window of 1 MiB and nothing that repairs what is lost (raw):
what the kernel carries with nothing above it, over Ethernet by packet sockets (xdp=off).
MB/s are those that arrived, medians, with the least and the most. On a machine that
others take more than a tenth of, ratios are not to be relied on, and it says so. The
server opens a TCP port only for that: its own number if it is free.
What runs over TCP has the congestion controller with which it is fastest here, found by
short trials of each that the kernel has and lets this user choose; those that it does not
are named. The line says which one, and if that is not the machine's default, another one
what that does. --congestion default, or a name, does without trials. Work requests over
TCP always have the machine's default.

--loss loses frames that came before the endpoint sees them, at the side that it is given
to; with both ends in this process at both. Whether one is lost depends on its number,
first to last, and on the --seed.

--path runs both ends over a slow path, as processes of their own in network namespaces
of their own, which an ordinary user can make too where the kernel has user namespaces:
a bottleneck with a queue, a delay and losses, the same each way.

  dgrdmacat bench --path 'rate=20M,rtt=40ms,queue=1bdp,loss=1%%' --compare tcp

rate and rtt are needed; the queue has one bdp by default.

%s
A line says how all fared at the bottleneck of the way to the server. Bytes are those of
IP packets there.

At ^C, or when the server dies, what was measured until then is printed, with the
error; the command ends by the signal, or with 1. --json has the error in its object, also
where nothing was measured.`, bench.MostQueued>>10, emulator.Help()),
	flags: func(fs *flag.FlagSet) action {
		o := new(benchOptions)
		o.register(fs)
		return func(ctx context.Context, std *stdio, _ []string) error {
			if err := cmp.Or(o.checkTCP(fs), o.check()); err != nil {
				return err
			}
			if o.path.given() {
				return o.overPath(ctx, fs, std)
			}
			if stray := given(fs, "size", "depth", "seconds", "t", "bidir", "peers", "verify", "compare", "congestion", "buffers", "histogram", "i", "reverse", "rate", "warm-up", "sweep", "json", "op", "no-crc", "strict", "revision"); stray != "" && o.serve != "" {
				return badUsage("%s is for the client: give it beside --to", stray)
			}
			if end := given(fs, "serve", "to"); end != "" && o.serve == "" && o.to == "" {
				return badUsage("%s is empty (unset variable?)", end)
			}
			if err := o.wire.keyFile.into(&o.serve, &o.to); err != nil { // before a peer is asked for the rest of its string, which takes the key
				return err
			}
			stop, err := o.metrics.start(std.err)
			if err != nil {
				return err
			}
			defer stop()
			if o.serve == "" && o.json {
				return o.objectOf(std, func(std *stdio) error { return o.run(ctx, std) })
			}
			return o.run(ctx, std)
		}
	},
}

// run runs the ends that are in this process.
func (o *benchOptions) run(ctx context.Context, std *stdio) error {
	switch {
	case o.tcp != nil && o.serve != "":
		return verbsServe(ctx, o, std.err)
	case o.tcp != nil && o.to != "":
		return verbsTo(ctx, o, std.out, std.err)
	case o.tcp != nil:
		return verbsBoth(ctx, o, std.out, std.err)
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

// perTurn returns how long DG/RDMA writes at a time: with --compare it takes turns.
func (o *benchOptions) perTurn() time.Duration {
	if len(o.compare.all) == 0 {
		return o.duration
	}
	return o.duration / bench.TurnsBeside
}

func benchTo(ctx context.Context, opt *benchOptions, stdout, stderr io.Writer) error {
	peer, err := parsePeer("--to", opt.to)
	if err != nil {
		return err
	}
	if err := opt.compare.checkWire(peer.Scheme); err != nil {
		return err
	}
	local, peer, err := endsFor(ctx, stderr, opt.local, peer)
	if err != nil {
		return err
	}
	return measure(ctx, opt, local, peer, false, stdout, stderr)
}

// plans are the runs, one after the other, with a server that has so much memory.
func (o *benchOptions) plans(memory uint64) (all []bench.Plan) {
	for _, size := range o.sizes {
		p := o.plan
		p.Size = size
		all = append(all, p.WithDepth(o.depth, memory))
	}
	return all
}

// memoryHere returns how much memory the server needs that is in this process.
func (o *benchOptions) memoryHere() (uint64, error) {
	most := uint64(servedMemory)
	for _, p := range o.plans(servedMemory) {
		if err := fitsEndpoint(p); err != nil {
			return 0, err
		}
		most = max(most, p.ServerMemory())
	}
	return most, nil
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
	s, err := openServer(opt, local, memory, false, newPeerLog(io.Discard))
	if err != nil {
		return err
	}
	defer s.Close()
	peer, err := parsePeer("--serve", s.Endpoint.URL())
	if err != nil {
		return err
	}
	both, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	served := make(chan error, 1)
	go func() { served <- s.Serve(both, true) }()
	err = measure(ctx, opt, local, peer, true, stdout, stderr)
	if err != nil {
		spare := refused.Spare(filesOfAPair) // while both ends are open
		cancel(err)
		return failedHere(err, <-served, spare)
	}
	return <-served
}

package main

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dgrdma/dgrdma/bench"
	"github.com/dgrdma/dgrdma/internal/emulator"
	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/settings"
	"github.com/dgrdma/dgrdma/url"
)

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
	sizes            []uint32 // of the runs, one after the other
	peers, depth     int
	seconds          secondsFlag
	duration         time.Duration
	bidir            bool
	busyPoll         bool
	json             bool
	verify           string
	compare          compareFlag
	congestion       congestionFlag
	loss             lossFlag
	link, stream     bool
	histogram        bool
	interval, warmUp time.Duration
	reverse          bool
	rate             rateFlag
	sweep            sweepFlag
	buffers          int
	op               string
	framing          framingFlags
	path             pathFlag
	tcp              *bench.Verb // what is posted between queue pairs; nil: transactions, or a link
}

func (o *benchOptions) register(fs *flag.FlagSet) {
	fs.StringVar(&o.serve, "serve", "", "`URL` to serve on; "+tcpServes(chosenPort, anyFreePort))
	fs.BoolVar(&o.once, "once", false, "with --serve: end after one client")
	o.urlFile.register(fs, "with --serve: ")
	o.memory.value = servedMemory
	fs.Var(&o.memory, "memory", fmt.Sprintf("with --serve: `bytes` of memory, %d to 4G: more for larger or more transactions, peers or buffers; the size in a complete URL counts for nothing", bench.LeastMemory))
	fs.StringVar(&o.to, "to", "", "`URL` of the server: udp:HOST:PORT, tcp:HOST:PORT, or what it printed")
	fs.StringVar(&o.local, "local", "", "with --to: `URL` of this side; Ethernet needs it")
	o.size.value = uint64(bench.PieceAt(0))
	fs.Var(&o.size, "size", "`bytes` per transaction, such as 64k, 1 to 1G; with --link per message, at most 2097151; atomic operations have 8, and by default at a --rate all have what that brings in 10 ms, at most")
	fs.IntVar(&o.depth, "depth", 0, "transactions, or work requests, that each peer keeps outstanding; 0: as many as make up 4 MiB, of all peers together, at most 4096")
	o.seconds = secondsFlag(3 * time.Second)
	fs.Var(&o.seconds, "seconds", "how many `seconds` to write, such as 10 or 10s, at most 86400 (a day)")
	sameAs(fs, "t", "seconds")
	fs.BoolVar(&o.bidir, "bidir", false, "the server writes too")
	fs.BoolVar(&o.reverse, "reverse", false, "the server writes, and the client does not")
	fs.DurationVar(&o.interval, "i", 0, "show what is moved in each interval that is so long, 10ms to 1h")
	fs.DurationVar(&o.warmUp, "warm-up", 0, "write for so long before anything is measured, up to 1h")
	fs.Var(&o.rate, "rate", "write no faster than `rate`, each way, in bits or bytes per second: 1Gbit, 100MB, 2.5Mbit; each transaction waits until the rate has brought it, the first one, too")
	fs.Var(&o.sweep, "sweep", "measure sizes `from..to`, each twice the one before, for --seconds each, in place of --size")
	fs.IntVar(&o.peers, "peers", 1, "how many peers the client plays, 1 to 16384, each with an id and a connection of its own; over TCP, queue pairs")
	fs.BoolVar(&o.busyPoll, settings.BusyPoll.Flag, false, settings.BusyPoll.Means)
	fs.BoolVar(&o.json, "json", false, "print one JSON object")
	o.verify = "sample"
	fs.Var(&oneOf{&o.verify, slices.Sorted(maps.Keys(bench.Verifications))}, "verify", "how much of the data the receiver verifies: sample, full or off")
	fs.Var(&o.compare, "compare", "take turns with other `protocols` between the same two ends, of the same memory: tcp, tls, or raw, the kernel's sockets alone; or several, as in tcp,raw")
	fs.Var(&o.congestion, "congestion", "with --compare tcp or tls: congestion `controller` of its connections: auto, the fastest of those that this machine has, which is the default here, default, which is the machine's, or a name such as cubic")
	fs.Var(&o.loss, "loss", "lose `percent` of the frames that come to this side, at random, such as 1 or 0.5%, at most 50: at a client that writes these are acknowledgements alone, so give it to the server, or to both")
	fs.Uint64Var(&o.loss.seed, "seed", 0, "with --loss: what chance begins with; 0: any, which is printed")
	fs.Var(&oneOf{&o.op, slices.Sorted(maps.Keys(bench.Verbs))}, "op", "over TCP: `what` is posted between queue pairs: write (the default), read, send, fetchadd, cmpswap, or flush, which is a write and a flush of it")
	o.framing.register(fs, "over TCP: ")
	fs.BoolVar(&o.link, "link", false, "measure a link with credits in place of bare transactions; both sides need it. Not with "+notForLinks())
	fs.BoolVar(&o.stream, "stream", false, "with --link: io.Copy at both ends")
	fs.IntVar(&o.buffers, "buffers", 64, "with --link: how many buffers of --size bytes, 1 to 65536")
	fs.BoolVar(&o.histogram, "histogram", false, histogramMeans)
	fs.Var(&o.path, "path", "run both ends over a slow `path` of this machine, such as "+emulator.Example+"; see above")
	o.wire.register(fs)
	o.metrics.register(fs)
}

// linkExcludes are the flags that do not go with --link.
var linkExcludes = []struct {
	flag  string
	given func(o *benchOptions) bool
}{
	{"--compare", func(o *benchOptions) bool { return len(o.compare.all) > 0 }},
	{"--peers", func(o *benchOptions) bool { return o.peers != 1 }},
	{"--depth", func(o *benchOptions) bool { return o.depth != 0 }},
	{"--bidir", func(o *benchOptions) bool { return o.bidir }},
	{"--reverse", func(o *benchOptions) bool { return o.reverse }},
	{"--profile", func(o *benchOptions) bool { return o.wire.profile.text != "" }},
	{"--verify", func(o *benchOptions) bool { return o.verify != "sample" }},
}

// notForLinks names them.
func notForLinks() (all string) {
	for i, x := range linkExcludes {
		switch i {
		case 0:
		case len(linkExcludes) - 1:
			all += " and "
		default:
			all += ", "
		}
		all += x.flag
	}
	return all
}

// excludedByLink returns the first of them that was given, or "".
func (o *benchOptions) excludedByLink() string {
	for _, x := range linkExcludes {
		if x.given(o) {
			return x.flag
		}
	}
	return ""
}

// mostPlayed bounds the peers that a client plays. It is arbitrary: a quarter of all ids.
const mostPlayed = 1 << 14

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
	case o.to == "" && o.local != "" && !o.path.given():
		return badUsage("--local belongs to --to")
	case o.size.value < 1 || o.size.value > 1<<30:
		return badUsage("--size %v: need 1 to 1G", &o.size)
	case o.depth < 0 || o.depth > mostDepth:
		return badUsage("--depth %d: need 1 to %d, or 0, with which as many are outstanding as make up 4 MiB", o.depth, mostDepth)
	case o.seconds <= 0 || o.seconds > secondsFlag(24*time.Hour):
		return badUsage("--seconds %v: need more than 0, at most 86400", &o.seconds)
	case o.peers < 1 || o.peers > mostPlayed:
		return badUsage("--peers %d: need 1 to %d", o.peers, mostPlayed)
	case !known:
		return badUsage("--verify %s: need sample, full or off", o.verify)
	case !o.link && (o.stream || o.buffers != 64):
		return badUsage("--stream and --buffers belong to --link")
	case o.link && o.excludedByLink() != "":
		return badUsage("%s is for transactions, and not for links: leave out one of it and --link", o.excludedByLink())
	case o.link && o.size.value > link.MaxMessage:
		return badUsage("--size %v: messages of links have at most %d bytes", &o.size, link.MaxMessage)
	case o.buffers < 1 || o.buffers > 65536:
		return badUsage("--buffers %d: need 1 to 65536", o.buffers)
	}
	if err := o.checkRuns(); err != nil {
		return err
	}
	o.duration = time.Duration(o.seconds)
	o.plan = bench.Plan{Peers: uint32(o.peers), Verify: verify, Rate: o.rate.bytes}
	if o.bidir || o.reverse {
		o.plan.BothWays = 1
	}
	return o.checkVerbs()
}

// leastInterval is the shortest interval that is shown: below it, what is measured is how
// the scheduler shares out its time.
const leastInterval = 10 * time.Millisecond

// checkRuns refuses what does not go together of how it is measured, and makes the sizes.
func (o *benchOptions) checkRuns() error {
	switch {
	case o.reverse && o.bidir:
		return badUsage("--reverse is one way and --bidir both: give one of them")
	case o.interval != 0 && (o.interval < leastInterval || o.interval > time.Hour):
		return badUsage("-i %v: need %v to 1h", o.interval, leastInterval)
	case o.warmUp < 0 || o.warmUp > time.Hour:
		return badUsage("--warm-up %v: need up to an hour", o.warmUp)
	case o.sweep.from != 0 && o.size.given:
		return badUsage("--sweep has the sizes: leave out --size")
	case o.sweep.from != 0 && o.interval != 0:
		return badUsage("--sweep prints a line for each size, -i for each interval: give one of them")
	}
	if err := cmp.Or(o.compare.check(o), o.congestion.checkFor(&o.compare), o.loss.check(o)); err != nil {
		return err
	}
	if !o.size.given {
		o.size.value = min(o.size.value, uint64(bench.PieceAt(o.rate.bytes)))
	}
	if o.sizes = []uint32{uint32(o.size.value)}; o.sweep.from != 0 {
		o.sizes = o.sweep.sizes()
	}
	if most := o.sizes[len(o.sizes)-1]; o.link && most > link.MaxMessage {
		return badUsage("--sweep %v: messages of links have at most %d bytes", &o.sweep, link.MaxMessage)
	}
	return nil
}

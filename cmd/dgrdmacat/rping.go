package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/dgrdma/dgrdma/bench"
	"github.com/dgrdma/dgrdma/verbs"
	"github.com/dgrdma/dgrdma/verbs/rping"
)

var rpingCommand = command{
	name: "rping", summary: "ping as rdma-core's rping does, over iWARP", elsewhere: ofRping,
	about: fmt.Sprintf(`Speaks the protocol of rping, the program of rdma-core, over TCP (iWARP): in each ping
the server reads the client's data, and writes it back. The other side may be rping on an
iWARP NIC or on Linux's siw.

  dgrdmacat rping --serve tcp:ADDRESS[:PORT]    as rping -s -P
  dgrdmacat rping --to tcp:HOST[:PORT]          as rping -c -V

The port is %s unless the address has another. -v prints the data of each ping, as rping
does: "rdma-ping-0: ABC...". Both sides know what it should be and compare it, byte by byte,
unless --verify=false. -c, -s, -a, -p, -P, -C, -S, -v and -V are rping's own flags, and mean the same.

The client pings until ^C, or --count times. It ends with 1 if an answer does not come
within --wait, if data is wrong, or if the server is gone; what was done until then is
printed. The server serves up to %d clients at once until ^C, or with --once a single one;
if more come, one that is silent for 10 s gives way, or one of the host that has the most.
If it cannot print what -v has it print, it ends with 1 as well, and no ping is lost for that.`, rping.Port, mostTCPClients),
	flags: func(fs *flag.FlagSet) action {
		o := new(rpingOptions)
		o.register(fs)
		return func(ctx context.Context, std *stdio, _ []string) error {
			if err := o.check(fs); err != nil {
				return err
			}
			stop, err := o.metrics.start(std.err)
			if err != nil {
				return err
			}
			defer stop()
			if o.serve != "" {
				return rpingServe(ctx, o, std)
			}
			return rpingTo(ctx, o, std.out, std.err)
		}
	},
}

type rpingOptions struct {
	serve, to, local string
	urlFile          urlFile
	once, json       bool
	count            int
	size             sizeFlag
	verify, verbose  bool
	wait             time.Duration
	histogram        bool
	carrier          carrierFlags
	metrics          metricsFlag
	theirs           rpingFlags
}

// rpingFlags are flags of rdma-core's rping for which there are others here.
type rpingFlags struct {
	client, server, persistent bool
	address                    string
	port                       string
}

func (f *rpingFlags) register(fs *flag.FlagSet) {
	fs.BoolVar(&f.client, "c", false, "with -a: what --to tcp:HOST:PORT is")
	fs.BoolVar(&f.server, "s", false, "what --once --serve tcp:ADDRESS:PORT is, or with -P without --once")
	fs.StringVar(&f.address, "a", "", "with -c: the server's `host`; with -s: the address to serve on, without it all")
	fs.StringVar(&f.port, "p", rping.Port, "with -c or -s: the `port`")
	fs.BoolVar(&f.persistent, "P", false, "with -s: serve one client after the other, until ^C")
}

// apply has them said in our own.
func (f *rpingFlags) apply(fs *flag.FlagSet, o *rpingOptions) error {
	stray := given(fs, "a", "p", "P")
	port, err := strconv.ParseUint(f.port, 10, 16)
	switch {
	case !f.client && !f.server && stray == "":
		return nil
	case !f.client && !f.server:
		return badUsage("%s is for -c and -s, the client and the server of rdma-core's rping: give one of them", stray)
	case f.client && f.server || o.to != "" || o.serve != "":
		return badUsage("-c and -s, --to and --serve are the two ends: give one of them")
	case f.client && f.address == "":
		return badUsage("-c needs the server's address, as in -a 10.0.0.2")
	case f.client && f.persistent:
		return badUsage("-P is for -s, the server")
	case err != nil || port == 0:
		return badUsage("-p %s: need a number from 1 to 65535", f.port)
	case f.client:
		o.to = tcpAddress{f.address, f.port}.String()
	case f.address == "":
		o.serve = tcpScheme + ":" + f.port
	default:
		o.serve = tcpAddress{f.address, f.port}.String()
	}
	o.once = o.once || f.server && !f.persistent
	return nil
}

// rpingWait is how long an answer is waited for. TCP sends what is lost again meanwhile.
const rpingWait = 5 * time.Second

func (o *rpingOptions) register(fs *flag.FlagSet) {
	fs.StringVar(&o.serve, "serve", "", "`address` to serve on: "+tcpServes("7175", "without a port, "+rping.Port))
	fs.BoolVar(&o.once, "once", false, "with --serve: end after one client, as rping -s without -P")
	o.urlFile.register(fs, "with --serve: ")
	fs.StringVar(&o.to, "to", "", "`address` of the server, as in tcp:10.0.0.2 or tcp:host:7174")
	fs.StringVar(&o.local, "local", "", "with --to: `address` of this side, as in tcp:10.0.0.1")
	fs.IntVar(&o.count, "count", 0, "with --to: end after so many pings; 0: ping until ^C")
	sameAs(fs, "C", "count")
	o.size.value = rping.DefaultSize
	const size = "`bytes` of a ping, 26 to 65535; with --serve: of the largest that the server takes, without it 65535"
	fs.Var(&o.size, "size", size)
	sameAs(fs, "S", "size")
	fs.BoolVar(&o.verify, "verify", true, "compare data with what it should be")
	sameAs(fs, "V", "verify")
	fs.BoolVar(&o.verbose, "verbose", false, "print the data of each ping")
	sameAs(fs, "v", "verbose")
	fs.DurationVar(&o.wait, "wait", rpingWait, "how long each answer may take, up to 1h")
	fs.BoolVar(&o.histogram, "histogram", false, "with --to: "+histogramMeans)
	fs.BoolVar(&o.json, "json", false, "with --to: print one JSON object")
	o.carrier.register(fs)
	o.metrics.register(fs)
	o.theirs.register(fs)
}

func (o *rpingOptions) check(fs *flag.FlagSet) error {
	if err := o.theirs.apply(fs, o); err != nil {
		return err
	}
	stray := given(fs, "local", "count", "C", "histogram", "json", "revision", "peer-to-peer", "ready")
	switch {
	case o.serve == "" && o.to == "":
		return badUsage("give --serve or --to, as in --to tcp:HOST")
	case o.serve != "" && o.to != "":
		return badUsage("--serve and --to are the two ends: give one of them")
	case o.serve == "" && (o.once || o.urlFile.given()):
		return badUsage("--once and --url-file belong to --serve")
	case o.serve != "" && stray != "":
		return badUsage("%s is for the client: give it beside --to", stray)
	case o.count < 0 || o.count > 100_000_000:
		return badUsage("--count %d: need 0 to 100000000", o.count)
	case o.size.value < rping.MinSize || o.size.value > rping.MaxSize:
		return badUsage("--size %v: need %d to %d, as rping has it", &o.size, rping.MinSize, rping.MaxSize)
	case o.verbose && o.json:
		return badUsage("--json prints one object: leave out -v")
	case o.wait <= 0 || o.wait > time.Hour:
		return badUsage("--wait %v: need more than 0, and an hour at most", o.wait)
	}
	return o.carrier.check()
}

func (o *rpingOptions) room() *rping.Options {
	r := &rping.Options{Verbs: o.carrier.options(), Wait: o.wait, Unverified: !o.verify}
	r.Verbs.Timeout = o.wait
	if o.size.given {
		r.Most = int(o.size.value)
	}
	return r
}

// rpingResult is the object that --json prints: times of whole pings, there and back, in microseconds.
type rpingResult struct {
	builtFrom
	Transport string `json:"transport"`
	CRC       bool   `json:"crc"`
	Verified  bool   `json:"verified"`
	Bytes     int    `json:"bytes"`
	N         int    `json:"n"`
	latencies
	Error string `json:"error,omitempty"`
}

func (o *rpingOptions) result(q *verbs.QueuePair, n int, times *bench.Histogram) *rpingResult {
	return &rpingResult{Transport: tcpScheme, CRC: q.CRC(), Verified: o.verify && n > 0, Bytes: int(o.size.value), N: n, latencies: latenciesOf(times, o.histogram)}
}

func (r *rpingResult) print(w io.Writer, asJSON bool) error {
	if asJSON {
		r.builtFrom = thisBuild()
		return json.NewEncoder(w).Encode(r)
	}
	verified := ""
	switch {
	case r.N == 0:
	case r.Verified:
		verified = ", verified"
	default:
		verified = ", not verified"
	}
	return buffered(w, func(w io.Writer) error {
		text := fmt.Sprintf("%s of %d bytes over tcp %s%s", count(r.N, "ping"), r.Bytes, crcInWords(r.CRC), verified)
		if r.measured() {
			text += fmt.Sprintf(", there and back: %v", &r.latencies)
		}
		fmt.Fprintln(w, text)
		r.draw(w)
		return nil
	})
}

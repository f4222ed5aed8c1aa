package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/url"
)

// benchOptions are the flags of bench.
type benchOptions struct {
	serve, to, local string
	once             bool
	urlFile          string
	wire             wireFlags
	plan             plan
	peers, depth     int
	duration         time.Duration
	busyPoll         bool
	json             bool
	verify           string
	compare          string
	link, stream     bool
	buffers          int
}

const benchIntro = `Measures one-sided writes: throughput, completion time, and what they cost.

  dgrdmacat bench                    both ends in this process, over loopback
  dgrdmacat bench --serve URL        be written to by any peer
  dgrdmacat bench --to URL           write to a server, whose complete URL it prints

URL is udp, udp:7100, udp:10.0.0.2:7100, ether:eth0 or a complete endpoint string.
Its options, as in udp:7100?giveup=2s, count before the flags.`

func bench(ctx context.Context, fs *flag.FlagSet, args []string, stdout, stderr io.Writer) error {
	opt, err := parseBench(fs, args, stdout)
	if err != nil {
		return err
	}
	switch {
	case opt.link && opt.serve != "":
		return linkServe(ctx, opt, stderr)
	case opt.link && opt.to != "":
		return linkTo(ctx, opt, stdout, stderr)
	case opt.link:
		return linkBoth(ctx, opt, stdout, stderr)
	case opt.serve != "":
		return benchServe(ctx, opt, stderr)
	case opt.to != "":
		return benchTo(ctx, opt, stdout, stderr)
	}
	return benchBoth(ctx, opt, stdout, stderr)
}

func parseBench(fs *flag.FlagSet, args []string, stdout io.Writer) (*benchOptions, error) {
	var o benchOptions
	fs.StringVar(&o.serve, "serve", "", "`URL` to serve on")
	fs.BoolVar(&o.once, "once", false, "with --serve: end after one client")
	fs.StringVar(&o.urlFile, "url-file", "", "with --serve: write the complete URL to this `file`")
	fs.StringVar(&o.to, "to", "", "complete `URL` of the server")
	fs.StringVar(&o.local, "local", "", "with --to: `URL` of this side; Ethernet needs it")
	size := fs.Int("size", 1<<20, "bytes per transaction")
	fs.IntVar(&o.depth, "depth", 0, "transactions outstanding, of each peer; 0: of all peers together what makes up 4 MiB,\nat most 4096")
	seconds := fs.Float64("seconds", 3, "how long to write")
	bidir := fs.Bool("bidir", false, "the server writes too")
	fs.IntVar(&o.peers, "peers", 1, "endpoints of the client, each with an id and a port of its own")
	fs.BoolVar(&o.busyPoll, "busy-poll", false, "receive without sleeping")
	fs.BoolVar(&o.json, "json", false, "print one JSON object")
	fs.StringVar(&o.verify, "verify", "sample", "what the receiver looks at: sample, full, off")
	fs.StringVar(&o.compare, "compare", "", "take turns with another protocol between the same addresses: tcp")
	fs.BoolVar(&o.link, "link", false, "measure a link with credits in place of bare transactions; both sides need it")
	fs.BoolVar(&o.stream, "stream", false, "with --link: io.Copy at both ends")
	fs.IntVar(&o.buffers, "buffers", 64, "with --link: buffers of --size bytes")
	o.wire.register(fs)
	if err := parse(fs, args, stdout, benchIntro); err != nil {
		return nil, err
	}
	verify, known := verifyNames[o.verify]
	bad := func(format string, args ...any) (*benchOptions, error) {
		return nil, usageError{fmt.Errorf(format, args...)}
	}
	switch {
	case o.serve != "" && o.to != "":
		return bad("--serve and --to are the two ends: give one, or none for both in this process")
	case o.serve == "" && (o.once || o.urlFile != ""):
		return bad("--once and --url-file belong to --serve")
	case o.to == "" && o.local != "":
		return bad("--local belongs to --to")
	case *size < 1 || *size > 1<<30:
		return bad("--size %d: need 1 to %d bytes", *size, 1<<30)
	case o.depth < 0 || o.depth > 1<<20:
		return bad("--depth %d: need 1 to %d", o.depth, 1<<20)
	case !(*seconds > 0 && *seconds <= 86400):
		return bad("--seconds %v: need more than 0, at most 86400", *seconds)
	case o.peers < 1 || o.peers > 4096:
		return bad("--peers %d: need 1 to 4096", o.peers)
	case !known:
		return bad("--verify %s: need sample, full or off", o.verify)
	case !o.link && (o.stream || o.buffers != 64):
		return bad("--stream and --buffers belong to --link")
	case o.link && (o.compare != "" || o.peers != 1 || o.depth != 0 || *bidir):
		return bad("--compare, --peers, --depth and --bidir are not for links")
	case o.link && *size > link.MaxMessage:
		return bad("--size %d: messages of links have at most %d bytes", *size, link.MaxMessage)
	case o.buffers < 1 || o.buffers > 65536:
		return bad("--buffers %d: need 1 to 65536", o.buffers)
	case o.compare != "" && o.compare != "tcp":
		return bad("--compare %s: only tcp", o.compare)
	}
	if err := o.wire.check(); err != nil {
		return nil, err
	}
	o.duration = time.Duration(*seconds * float64(time.Second))
	o.plan = plan{Size: uint32(*size), Peers: uint32(o.peers), Verify: verify}
	if *bidir {
		o.plan.BothWays = 1
	}
	return &o, nil
}

func benchServe(ctx context.Context, opt *benchOptions, stderr io.Writer) error {
	local, err := parseLocal("serve", opt.serve)
	if err != nil {
		return err
	}
	s, err := openServer(opt, local, true, stderr)
	if err != nil {
		return err
	}
	defer s.close()
	fmt.Fprintf(stderr, "serving on %s\nany peer may write into its memory\n", s.endpoint.URL())
	if opt.urlFile != "" {
		if err := writeURL(opt.urlFile, s.endpoint.URL()); err != nil {
			return err
		}
	}
	return s.serve(ctx, opt.once)
}

func benchTo(ctx context.Context, opt *benchOptions, stdout, stderr io.Writer) error {
	peer, err := parsePeer(opt.to)
	if err != nil {
		return err
	}
	if opt.compare != "" && peer.Scheme != url.UDP {
		return usageError{errors.New("--compare tcp: there is no TCP on bare Ethernet; compare over UDP")}
	}
	local, err := localFor(opt.local, peer)
	if err != nil {
		return err
	}
	return measure(ctx, opt, local, peer, false, stdout, stderr)
}

// measure is what a client does.
func measure(ctx context.Context, opt *benchOptions, local, peer url.Endpoint, oneProcess bool, stdout, stderr io.Writer) error {
	c, err := openClient(opt, local, peer, stderr)
	if err != nil {
		return err
	}
	defer c.close()
	var o outcome
	err = c.run(ctx, &o)
	if o.mine.Transactions == 0 {
		if err == nil {
			err = errors.New("nothing was done in so short a time")
		}
		return err
	}
	r := c.result(&o, oneProcess)
	return errors.Join(err, r.print(stdout, opt.json))
}

// benchBoth runs both ends in this process.
func benchBoth(ctx context.Context, opt *benchOptions, stdout, stderr io.Writer) error {
	const loopback = "udp:127.0.0.1"
	local, err := parseLocal("serve", loopback)
	if err != nil {
		return err
	}
	s, err := openServer(opt, local, false, io.Discard)
	if err != nil {
		return err
	}
	defer s.close()
	peer, err := parsePeer(s.endpoint.URL())
	if err != nil {
		return err
	}
	both, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	served := make(chan error, 1)
	go func() { served <- s.serve(both, true) }()
	err = measure(ctx, opt, local, peer, true, stdout, stderr)
	if err != nil {
		cancel(err)
		<-served // fails for the same reason
		return err
	}
	return <-served
}

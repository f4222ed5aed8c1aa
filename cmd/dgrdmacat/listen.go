package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/inspect/text"
	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/link/stream"
)

var listenCommand = command{
	name: "listen", summary: "receive what dgrdmacat send sends", args: "[URL]", elsewhere: ofNetcat,
	about: `Receives a stream from dgrdmacat send and writes it to standard output, or to a
file. Its complete URL goes to standard error; over UDP a sender needs of it only
the address and port.

  dgrdmacat listen -o backup.tar             any UDP port
  dgrdmacat listen udp:9000 | tar x
  dgrdmacat listen -o part-%03d --keep udp:9000

URL is udp, udp:9000, udp:10.0.0.2:9000, ether:eth0 or a complete endpoint string;
options follow it, as in udp:9000?giveup=2s. Any peer may send: udp:9000 hears those
who reach any address of this machine, IPv4 or IPv6, udp:10.0.0.2:9000 that one alone.

A file gets its name when all of it has arrived and is on disk. If the transfer
fails nothing is left, and nothing is replaced, not even with --force. What went to
standard output cannot be taken back. A new file has the usual mode, and one that
replaces another has the mode of that.

Without --keep one sender is served, and others are refused until it ends. One that
sends nothing for 10 s gives way to another, and one that speaks nonsense is sent away.
With --keep many are served, up to 16 at once: each gets a file of its own, whose number
replaces %d (or %03d) in FILE or follows it, as in FILE.1. Without --force numbers
of files that exist are passed over. To standard output they are written one after
the other. --keep ends when it is interrupted, with 1 if a stream failed.`,
	flags: func(fs *flag.FlagSet) action {
		o := new(listenOptions)
		fs.Var((*fileFlag)(&o.file), "o", "write to this `FILE`; - is standard output, as without it")
		fs.BoolVar(&o.force, "force", false, "with -o: replace a file that exists")
		fs.BoolVar(&o.keep, "keep", false, "serve again and again")
		fs.BoolVar(&o.duplex, "duplex", false, "send standard input back; both sides need it")
		fs.BoolVar(&o.checksum, "checksum", false, "compare SHA-256 at both ends, whether or not the sender wishes it")
		o.urlFile.register(fs, "")
		fs.BoolVar(&o.json, "json", false, "with -o: print a JSON object for each stream on standard output")
		o.metrics.register(fs)
		o.keys.register(fs)
		return func(ctx context.Context, std *stdio, args []string) error {
			o.url = "udp"
			if len(args) > 0 {
				o.url = args[0]
			}
			if o.file == "-" {
				o.file = ""
			}
			switch {
			case len(args) > 1:
				return badUsage("unexpected argument %q", args[1])
			case o.force && o.file == "":
				return badUsage("--force belongs to -o")
			case o.json && o.file == "":
				return badUsage("--json needs standard output for itself: add -o FILE")
			case o.keep && o.duplex:
				return badUsage("--duplex is for one sender: there is but one standard input")
			}
			if err := o.keys.into(&o.url); err != nil {
				return err
			}
			return runListen(ctx, o, std)
		}
	},
}

type listenOptions struct {
	file, url                     string
	urlFile                       urlFile
	force, keep, duplex, checksum bool
	keys                          keyFlag
	metrics                       metricsFlag
	json                          bool
}

// mostSenders is how many are served at once with --keep.
const mostSenders = 16

// listener is what serves streams.
type listener struct {
	*listenOptions
	std     *stdio
	port    *stream.Listener
	targets *targets
	back    *input        // what is sent back; nil: nothing
	stdout  chan struct{} // capacity 1: whose turn it is to write there
	places  senderPlaces
	log     *peerLog

	mu            sync.Mutex
	whole, failed int
	cut           int // of those that failed: because we were interrupted
}

func runListen(ctx context.Context, o *listenOptions, std *stdio) error {
	local, err := parseServed("URL", o.url)
	if err != nil {
		return err
	}
	t, err := newTargets(o)
	if err != nil {
		return err
	}
	stop, err := o.metrics.start(std.err)
	if err != nil {
		return err
	}
	defer stop()
	most := 1
	if o.keep {
		most = mostSenders
	}
	memory := stream.Memory * (most + 1) // that of one that is gone is free a little later
	var back *input
	if o.duplex {
		if back, err = openInput(ctx, "-", std.in); err != nil {
			return err
		}
		defer back.Close()
	}
	h, err := openHost(std.err, local, memory, dgrdma.Config{})
	if err != nil {
		return err
	}
	defer h.Close()
	o.metrics.host(h)
	l := &listener{listenOptions: o, std: std, targets: t, back: back, stdout: make(chan struct{}, 1), log: newPeerLog(std.err),
		places: senderPlaces{most: most, taken: make(map[*stream.Stream]*place)}}
	defer l.log.close()
	if l.port, err = stream.Listen(h, &stream.Options{Duplex: o.duplex, Checksum: o.checksum, Filter: l.agree, Refused: l.sentAway}); err != nil {
		return err
	}
	fmt.Fprintf(std.err, "listening on %s\n%s", h.URL(), reach(h.Endpoint()))
	if zone := local.Addr.Addr().Zone(); zone != "" {
		fmt.Fprintf(std.err, "%s is this machine's interface: a sender elsewhere puts its own behind the %%\n", zone)
	}
	if err := o.urlFile.write(h.URL()); err != nil {
		return err
	}
	if o.keep {
		return l.serveMany(ctx)
	}
	return l.serveOne(ctx)
}

func (l *listener) sentAway(peer dgrdma.PeerName, why error) {
	if errors.Is(why, errBusy) {
		return // which says nothing new, and may come often
	}
	fmt.Fprintf(l.log, "%v was sent away: %v\n", peer, strangerInWords(why))
}

// agree returns why a sender is not served: it wants something back, or nothing, or there is no
// place for it.
func (l *listener) agree(peer dgrdma.PeerName, duplex bool) error {
	switch {
	case duplex && !l.duplex:
		return errors.New("the receiver was started without --duplex")
	case l.duplex && !duplex:
		return errors.New("the receiver was started with --duplex: both sides need it")
	}
	return l.places.room(peer)
}

// serveOne returns when a stream was received, or failed after something of it came. Other senders
// are accepted until then, so that a silent one may give way.
func (l *listener) serveOne(ctx context.Context) error {
	accepting, stop := context.WithCancel(ctx)
	defer stop()
	type end struct {
		s   *stream.Stream // nil: of accepting
		err error
	}
	ends := make(chan end, 2)
	go func() {
		for {
			s, err := l.port.Accept(accepting)
			if err != nil {
				ends <- end{nil, err}
				return
			}
			l.places.take(s)
			go func() { ends <- end{s, l.serve(ctx, s)} }()
		}
	}()
	var failed error // of accepting
	for {
		e := <-ends
		if e.s == nil {
			failed = e.err
		} else if kept := l.places.leave(e.s); kept && !wrong(e.s, e.err) {
			return e.err
		} else {
			fmt.Fprintf(l.log, "%v was sent away: %v\n", e.s.Link().Peer().Name(), e.err)
		}
		switch {
		case failed == nil || l.places.any():
		case ctx.Err() != nil:
			return fmt.Errorf("%w before a sender came", errInterrupted)
		default:
			return failed
		}
	}
}

// wrong reports whether a sender spoke nonsense before anything came that was written.
func wrong(s *stream.Stream, err error) bool {
	return s.Result().Received == 0 && (errors.Is(err, link.ErrProtocol) || errors.Is(err, stream.ErrMismatch))
}

func (l *listener) serveMany(ctx context.Context) error {
	var all sync.WaitGroup
	for {
		s, err := l.port.Accept(ctx)
		if err != nil {
			interrupted := ctx.Err() != nil
			all.Wait()
			fmt.Fprintf(l.std.err, "streams received: %d, failed: %d\n", l.whole, l.failed)
			switch {
			case !interrupted:
				return err
			case l.cut > 0:
				return fmt.Errorf("%w in the middle of %d", errInterrupted, l.cut)
			case l.failed > 0:
				return fmt.Errorf("%s failed", count(l.failed, "stream"))
			}
			return nil
		}
		l.places.take(s)
		all.Go(func() {
			err := l.serve(ctx, s)
			l.places.leave(s)
			if errors.Is(err, errGaveWay) {
				err = fmt.Errorf("the sender, %v, was sent away: %w", s.Link().Peer().Name(), err)
			}
			if err != nil {
				fmt.Fprintf(l.log, "dgrdmacat listen: %s\n", inPlain(err, nil))
			}
		})
	}
}

// serve receives one stream.
func (l *listener) serve(ctx context.Context, s *stream.Stream) error {
	t := &transfer{Stream: s, from: l.back, meter: newMeter(s.Size())}
	if l.back != nil {
		t.meter.total = stream.Unknown // of what is sent, which is shown
	}
	announced := ""
	if s.Size() >= 0 {
		announced = ", " + count(s.Size(), "byte")
	}
	fmt.Fprintf(l.log, "receiving from %v%s\n", s.Link().Peer().Name(), announced)
	name, err := l.receive(ctx, t)
	switch {
	case err == nil:
	case !l.places.has(s):
		err = errGaveWay // of the link it is only known that this side ended it
	default:
		err = inWords(err, "sender", s)
	}
	r := t.result(name, err)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.whole++
	} else {
		l.failed++
	}
	if errors.Is(err, errInterrupted) {
		l.cut++
	}
	var line strings.Builder
	if l.keep && !l.json {
		fmt.Fprintf(&line, "%s: ", r.Peer)
		if name != "" {
			fmt.Fprintf(&line, "%s: ", text.Plain(name))
		}
	}
	err = errors.Join(err, r.print(l.json, &stdio{out: l.std.out, err: &line}))
	if line.Len() > 0 {
		_, unsaid := io.WriteString(l.log, line.String())
		err = errors.Join(err, unsaid)
	}
	return err
}

// receive runs a stream into where it belongs, and returns the name of that.
func (l *listener) receive(ctx context.Context, t *transfer) (name string, err error) {
	if l.file == "" {
		select {
		case l.stdout <- struct{}{}:
			defer func() { <-l.stdout }()
		case <-t.Link().Done():
			return "", t.Link().Err()
		case <-ctx.Done():
			t.Abort(errInterrupted)
			return "", errInterrupted
		}
		out := &output{Writer: l.std.out}
		if !l.keep {
			out.end = closerOf(l.std.out)
		}
		t.into = out
	} else {
		name = l.targets.next()
		if t.into, err = stream.CreateFile(name, l.force); err != nil {
			t.Abort(&stream.LocalError{What: "cannot write the file", Err: err})
			return name, err
		}
	}
	t.meter.began = time.Now()
	if l.back == nil { // else what it got of standard input would be lost
		l.places.start(t.Stream)
	}
	if l.keep {
		return name, t.run(ctx)
	}
	return name, t.runShown(ctx, l.std)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link/stream"
	"github.com/dgrdma/dgrdma/settings"
	"github.com/dgrdma/dgrdma/url"
)

func serve(ctx context.Context, o *serveOptions, std *stdio) error {
	peers, err := o.named()
	if err != nil {
		return err
	}
	region, release, err := o.region()
	if err != nil {
		return err
	}
	defer release()
	if err := o.fits(region.Size()); err != nil {
		return err
	}
	if o.dump != "" {
		// Not only at the end, when it is too late.
		if err := o.tryDump(); err != nil {
			return err
		}
	}
	// Who reads may go away first, and the memory is to be dumped all the same.
	closedPipes := make(chan os.Signal, 1)
	signal.Notify(closedPipes, syscall.SIGPIPE)
	defer signal.Stop(closedPipes)

	j := newJournal()
	var s *served
	if err := o.untilCut(region.Size(), func() error { s = newServed(region, o, j); return nil }); err != nil {
		return err
	}
	if o.file != "" {
		s.file = newServedFile()
	}
	stop, err := o.metrics.start(std.err)
	if err != nil {
		return err
	}
	defer stop()
	e, err := o.open(std.err, s, peers)
	if err != nil {
		return err
	}
	defer e.Close()
	o.metrics.endpoint(e)
	began := time.Now()
	p := &printer{w: std.out, json: o.json}
	fmt.Fprintf(std.err, "serving %s on %s\n%s%s\n", sizeInWords(region.Size()), e.URL(), reach(e), o.whoMay())
	sayOpenCPIsIDs(std.err, e.ID(), o.kinds(peers)...)
	p.serving(e.URL(), region.Size())
	if err := o.urlFile.write(e.URL()); err != nil {
		return err
	}
	driven := make(chan error, 1)
	if o.file != "" {
		go func() { driven <- o.drive(e, region.Size()) }()
	}
	why := o.untilCut(region.Size(), func() error { return o.watchOver(ctx, s, p, driven) })
	e.Close()
	p.print(j.rest())
	if o.dump != "" && !errors.Is(why, errCut) {
		why = errors.Join(why, o.untilCut(region.Size(), func() error { return o.writeDump(region) }))
	}
	sum := summaryOf(e, time.Since(began))
	if p.summary(sum); !o.json {
		sum.print(std.err)
	}
	return errors.Join(why, p.failed())
}

// tryDump finds out whether the file of --dump can be written.
func (o *serveOptions) tryDump() error {
	if info, err := os.Stat(o.dump); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("--dump %s: is no ordinary file", o.dump)
	}
	s, err := stream.CreateFile(o.dump, o.force)
	if err != nil {
		return orForce(err)
	}
	s.Discard()
	return nil
}

// writeDump writes what --dump wishes.
func (o *serveOptions) writeDump(r *dgrdma.Region) error {
	dumped := r.Bytes()
	if o.dumpRange != nil {
		dumped = dumped[o.dumpRange.from:o.dumpRange.to]
	}
	return orForce(writeWhole(o.dump, o.force, func(w io.Writer) error {
		_, err := w.Write(dumped)
		return err
	}))
}

// askedAfter is after how long of silence a writer is asked whether it is still there, as serve
// writes nothing to it that would tell.
const askedAfter = 10 * time.Second

// open opens the endpoint and connects those who are named.
func (o *serveOptions) open(stderr io.Writer, s *served, peers []dgrdma.Peer) (*dgrdma.Endpoint, error) {
	local := o.local
	if local.Dialect == url.Short || !local.Complete() {
		local.Size = 0 // the memory says it
	}
	cfg := &dgrdma.Config{Memory: s, AcceptAny: o.accept.text == "any", OnEvent: s.journal.event, ID: dgrdma.EndpointID(o.id), Manual: o.file != ""}
	if _, said := local.Options.Get(settings.KeepAlive.Option); !said {
		cfg.KeepAlive = askedAfter
	}
	e, err := openSaying(stderr, local.String(), cfg)
	if err != nil {
		return nil, err
	}
	for _, p := range peers {
		if _, err := e.Connect(p); err != nil {
			e.Close()
			return nil, err
		}
	}
	return e, nil
}

func (o *serveOptions) whoMay() string {
	if accept, _ := o.local.Options.Get("accept"); o.accept.text == "any" || accept == "any" {
		return anybody(o.local) + " may write into it"
	}
	return count(len(o.peers), "peer") + " may write into it"
}

// watchOver prints what happens until it is over, and returns whether that was
// too early. driven has the error with which who drives the endpoint ended.
func (o *serveOptions) watchOver(ctx context.Context, s *served, p *printer, driven <-chan error) error {
	var cut <-chan struct{}
	if s.file != nil {
		cut = s.file.cut
	}
	var out <-chan time.Time
	if o.limit > 0 {
		timer := time.NewTimer(o.limit)
		defer timer.Stop()
		out = timer.C
	}
	tick := time.NewTicker(refusedEvery)
	defer tick.Stop()
	for p.err == nil {
		select {
		case <-s.reached:
			// What came last may have to be acknowledged again.
			select {
			case <-time.After(farewell):
			case <-ctx.Done():
			}
			return nil
		default:
		}
		select {
		case err := <-driven:
			return err
		case <-cut:
			return o.cut(s.Size())
		case <-s.reached:
		case <-s.journal.wake:
			o.shown(p, s.journal.take())
		case <-tick.C:
			o.shown(p, s.journal.take())
		case <-ctx.Done():
			return o.tooEarly(s, errInterrupted)
		case <-out:
			return o.tooEarly(s, fmt.Errorf("%v are over", o.limit))
		}
	}
	return nil // the printer has the reason
}

// shown prints entries, and resets the peers that --readmit takes back.
func (o *serveOptions) shown(p *printer, list []entry) {
	for i := range list {
		if e := &list[i]; e.readmit != nil && o.readmit {
			e.kind = "restarted"
			if e.err = e.readmit.Reset(0); e.err != nil {
				e.kind = "down"
			}
		}
	}
	p.print(list)
}

// tooEarly returns the error if the word of --until does not have its value.
func (o *serveOptions) tooEarly(s *served, how error) error {
	if u := o.until; u != nil && !s.over.Load() {
		return fmt.Errorf("%w, and the word at %#x is %#x, not %#x", how, u.addr, s.Load32(u.addr), u.value)
	}
	return nil
}

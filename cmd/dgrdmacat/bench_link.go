package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/dgrdma/dgrdma/bench"
	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/url"
)

// linkReserve is how much memory a host of links has for what is not buffers.
const linkReserve = 1 << 20

// linkResult is the object that bench --link --json prints.
type linkResult struct {
	builtFrom
	Transport   string  `json:"transport"`
	MTU         int     `json:"mtu"`
	Link        bool    `json:"link"`
	Stream      bool    `json:"stream"`
	Size        int     `json:"size"`
	Buffers     int     `json:"buffers"`
	OneProcess  bool    `json:"one_process"`
	Seconds     float64 `json:"seconds"`
	Bytes       uint64  `json:"bytes"`
	Messages    uint64  `json:"messages"`
	MBPerS      float64 `json:"mb_per_s"`
	MessagesPS  float64 `json:"messages_per_s"`
	Frames      uint64  `json:"frames"` // of this side, those that carry messages of the protocol
	Retransmits uint64  `json:"retransmits"`
	KernelDrops *uint64 `json:"kernel_drops,omitempty"` // of both sides; nil: the server did not tell
	latencies           // of buffers, until they can be filled again
	Rate        uint64  `json:"rate_bytes_per_s,omitempty"` // at most
	WarmUp      float64 `json:"warm_up_seconds,omitempty"`
	lossResult
	Intervals []benchInterval `json:"intervals,omitempty"`
	Error     string          `json:"error,omitempty"` // it ended early, and this is what was measured until then
}

// openLinkServer opens the serving side of bench --link.
func openLinkServer(ctx context.Context, o *benchOptions, local url.Endpoint, log *peerLog) (*link.Host, *bench.LinkServer, error) {
	local, err := o.wire.apply(local)
	if err = cmp.Or(err, fitsHere(local)); err != nil {
		return nil, nil, err
	}
	h, err := openHostBy(o.loss.open, local, int(o.memory.value)+2*linkReserve, dgrdma.Config{BusyPoll: o.busyPoll})
	if err != nil {
		return nil, nil, err
	}
	o.metrics.host(h)
	s, err := bench.ServeLinks(ctx, h, func(r bench.LinkRun) {
		fmt.Fprintf(log, "%v: %s in %s of %s, %s; %s\n", r.Client, count(r.Messages, "message"), count(r.Buffers, "buffer"), count(r.Size, "byte"),
			rateText(perSecond(r.Bytes, r.Took)), droppedText(r.KernelDrops))
	})
	if err != nil {
		h.Close()
		return nil, nil, err
	}
	return h, s, nil
}

func linkServe(ctx context.Context, o *benchOptions, stderr io.Writer) error {
	local, err := parseLocal("serve", o.serve)
	if err != nil {
		return err
	}
	log := newPeerLog(stderr)
	defer log.close()
	h, s, err := openLinkServer(ctx, o, local, log)
	if err != nil {
		return err
	}
	defer h.Close()
	fmt.Fprintf(stderr, "serving on %s\n%s%s may dial port %q or %q\n", h.URL(), reach(h.Endpoint()), anybody(local), bench.MessagePort, bench.StreamPort)
	o.loss.announce(stderr)
	if err := o.urlFile.write(h.URL()); err != nil {
		return err
	}
	for {
		select {
		case err := <-s.Ended():
			if o.once {
				if err == nil {
					partFrom(ctx, h.Endpoint())
				}
				return err
			}
			if err != nil {
				fmt.Fprintln(log, err)
			}
		case <-ctx.Done():
			if o.once {
				return fmt.Errorf("%w before a client was through", errInterrupted)
			}
			return nil
		}
	}
}

// mostParting is how long a server that is through waits for its client to leave, which asks once
// more as long as acknowledgements are lost, ever more seldom, and whose goodbye may be lost. Arbitrary: where a fifth of all frames
// is lost each way, 1 client in 60 asks for longer than a second.
const mostParting = 60 * farewell

// partFrom acknowledges until everybody has left.
func partFrom(ctx context.Context, e *dgrdma.Endpoint) {
	ctx, cancel := context.WithTimeout(ctx, mostParting)
	defer cancel()
	for _, c := range e.Conns() {
		select {
		case <-c.Done():
		case <-ctx.Done():
		}
	}
}

func linkTo(ctx context.Context, o *benchOptions, stdout, stderr io.Writer) error {
	local, peer, err := parseEnds(ctx, stderr, o.to, o.local)
	if err != nil {
		return err
	}
	return o.linkMeasure(ctx, local, peer, false, stdout, stderr)
}

func (o *benchOptions) linkMeasure(ctx context.Context, local, peer url.Endpoint, oneProcess bool, stdout, stderr io.Writer) error {
	local, err := o.wire.apply(local)
	if err = cmp.Or(err, fitsWay(local, peer)); err != nil {
		return err
	}
	h, err := openHostBy(o.loss.open, local, linkReserve, dgrdma.Config{BusyPoll: o.busyPoll})
	if err != nil {
		return err
	}
	defer h.Close()
	o.metrics.host(h)
	stopSaying := func() error { return nil }
	if !oneProcess {
		stopSaying = sayUnheard(stderr, h.Endpoint(), local, peer)
	}
	results, err := o.runLinks(ctx, h, local, peer, oneProcess, stdout, stderr)
	err = orTold(err, stopSaying(), peer)
	if o.json && len(results) > 0 {
		err = errors.Join(err, printJSON(stdout, results, o.sweep.from != 0))
	}
	return err
}

// runLinks measures a link of each size, and prints what it measured for people.
func (o *benchOptions) runLinks(ctx context.Context, h *link.Host, local, peer url.Endpoint, oneProcess bool, stdout, stderr io.Writer) (results []*linkResult, err error) {
	for i, size := range o.sizes {
		p := bench.LinkPlan{Stream: o.stream, Buffers: o.buffers, Size: int(size), Rate: o.rate.bytes, MoreRuns: true}
		if o.warmUp > 0 {
			if _, err := o.runLink(ctx, h, peer, p, o.warmUp, nil, stderr); err != nil {
				return results, fmt.Errorf("while it warmed up: %w", err)
			}
		}
		p.MoreRuns = i < len(o.sizes)-1
		log, ctx := o.follow(ctx, stdout)
		r, err := o.runLink(ctx, h, peer, p, o.duration, log.each(), stderr)
		intervals, unread := log.close()
		if unread != nil {
			return results, unread
		}
		if r == nil && len(results) > 0 { // else benchCommand prints it
			results = append(results, &linkResult{Transport: wireName(peer), Link: true, Size: p.Size, Buffers: p.Buffers, Error: err.Error()})
		}
		if r == nil {
			return results, err
		}
		r.Transport, r.MTU, r.OneProcess, r.Intervals = wireName(peer), mtuTo(local, peer), oneProcess, intervals
		if err != nil {
			r.Error = err.Error()
		}
		results = append(results, r)
		switch {
		case o.json:
		case o.sweep.from != 0:
			err = errors.Join(err, printRow(stdout, i == 0, "messages/s", &sweepRow{r.Size, r.MBPerS, r.MessagesPS, fmt.Sprint(r.Retransmits), &r.latencies}))
		default:
			err = errors.Join(err, r.print(stdout))
		}
		if err != nil {
			return results, err
		}
	}
	return results, nil
}

// runLink measures one link. What was measured is good even if that fails; nil: nothing was.
func (o *benchOptions) runLink(ctx context.Context, h *link.Host, peer url.Endpoint, p bench.LinkPlan, long time.Duration, each func(bench.Interval), stderr io.Writer) (*linkResult, error) {
	times := bench.NewHistogram()
	l, load, err := bench.DialLink(ctx, h, peer.String(), p, times)
	if needed := 2 * uint64(p.Buffers) * uint64(p.Size); errors.Is(err, link.ErrRefused) && !errors.Is(err, link.ErrNoPort) && needed > peer.Size {
		return nil, fmt.Errorf("%w: smaller --buffers or --size here, or --memory beside its --serve", err)
	}
	if err != nil {
		return nil, elsewhere(err, "bench", true)
	}
	sent := func() (frames, again uint64) {
		s := h.Endpoint().Stats()
		return s.FramesSent - s.AcksAlone, s.RetransmitsFast + s.RetransmitsTimed
	}
	drops := countLinkDrops(ctx, h, peer)
	framesBefore, againBefore := sent()
	load.Start(long)
	sampled := bench.Sample(o.interval, func() bench.Moved {
		n, bytes, _ := load.Progress()
		_, again := sent()
		return bench.Moved{Bytes: bytes, Transactions: n, Resent: again - againBefore}
	}, each)
	stopped := func() {}
	if o.interval == 0 {
		stopped = showProgress(stderr, func() string {
			_, bytes, took := load.Progress()
			return fmt.Sprintf("%4.1f of %.1f s  %s", took.Seconds(), long.Seconds(), rateText(perSecond(bytes, took)))
		})
	}
	interrupted := load.Over(ctx)
	err = load.Drain(context.WithoutCancel(ctx))
	stopped()
	until := sampled()
	messages, bytes, _ := load.Progress()
	if messages == 0 {
		return nil, cmp.Or(err, interrupted, o.nothing(p.Size))
	}
	took := load.Elapsed()
	frames, again := sent()
	var dropped *uint64
	if err == nil {
		dropped = drops.result()
	} else {
		took, err = until, benchInWords(err, true)
	}
	buffers, size := l.Out.Buffers()
	return &linkResult{
		Link: true, Stream: p.Stream, Size: size, Buffers: buffers, Rate: p.Rate, WarmUp: o.warmUp.Seconds(),
		Seconds: took.Seconds(), Bytes: bytes, Messages: messages,
		MBPerS: perSecond(bytes, took) / 1e6, MessagesPS: perSecond(messages, took),
		Frames: frames - framesBefore, Retransmits: again - againBefore, KernelDrops: dropped, latencies: latenciesOf(times, o.histogram), lossResult: o.loss.result(),
	}, cmp.Or(err, interrupted)
}

func (r *linkResult) print(w io.Writer) error {
	return buffered(w, func(w io.Writer) error {
		describeMoved(w, r.Bytes, r.Seconds, r.Transport, r.MBPerS, countPerSecond(r.MessagesPS, "message")+r.spares(r.OneProcess))
		by := "messages"
		if r.Stream {
			by = "io.Copy"
		}
		fmt.Fprintf(w, "load         1 link by %s, %s of %s%s\n", by, count(r.Buffers, "buffer"), count(r.Size, "byte"), mtuText(r.MTU))
		r.latencies.describe(w, "buffers back")
		fmt.Fprintf(w, "frames       %d, of them sent again %d (client)", r.Frames, r.Retransmits)
		if r.KernelDrops == nil {
			fmt.Fprintln(w)
		} else {
			fmt.Fprintf(w, "; %s\n", droppedText(*r.KernelDrops))
			adviseOnDrops(w, *r.KernelDrops, r.Retransmits, r.Frames, r.Loss, r.Transport, "fewer or smaller --buffers")
		}
		r.lossResult.describe(w)
		return nil
	})
}

// linkBoth runs both ends in this process.
func linkBoth(ctx context.Context, o *benchOptions, stdout, stderr io.Writer) error {
	local, err := parseLocal("serve", "udp:127.0.0.1")
	if err != nil {
		return err
	}
	// The server ends by what the client does, also if that is interrupted.
	both, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	h, s, err := openLinkServer(both, o, local, newPeerLog(io.Discard))
	if err != nil {
		return err
	}
	defer h.Close()
	peer, err := parsePeer("--serve", h.URL())
	if err != nil {
		return err
	}
	if err := o.linkMeasure(ctx, local, peer, true, stdout, stderr); err != nil {
		return err
	}
	return <-s.Ended()
}

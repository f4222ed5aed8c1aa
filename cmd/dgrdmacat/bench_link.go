package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

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
	Retransmits uint64  `json:"retransmits"`
	latencies           // of buffers, until they can be filled again
}

// openLinkServer opens the serving side of bench --link.
func openLinkServer(ctx context.Context, o *benchOptions, local url.Endpoint) (*link.Host, *bench.LinkServer, error) {
	local, err := o.wire.apply(local)
	if err != nil {
		return nil, nil, err
	}
	h, err := openHost(local, int(o.memory.value)+2*linkReserve, dgrdma.Config{BusyPoll: o.busyPoll})
	if err != nil {
		return nil, nil, err
	}
	o.metrics.host(h)
	s, err := bench.ServeLinks(ctx, h)
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
	h, s, err := openLinkServer(ctx, o, local)
	if err != nil {
		return err
	}
	defer h.Close()
	fmt.Fprintf(stderr, "serving on %s\nany peer may dial port %q or %q\n", h.URL(), bench.MessagePort, bench.StreamPort)
	if err := o.urlFile.write(h.URL()); err != nil {
		return err
	}
	for {
		select {
		case err := <-s.Ended():
			if o.once {
				attendFor(farewell, nil, nil) // for the last acknowledgements
				return err
			}
			if err != nil {
				fmt.Fprintln(stderr, err)
			}
		case <-ctx.Done():
			if o.once {
				return fmt.Errorf("%w before a client was through", errInterrupted)
			}
			return nil
		}
	}
}

func linkTo(ctx context.Context, o *benchOptions, stdout, stderr io.Writer) error {
	local, peer, err := parseEnds(o.to, o.local)
	if err != nil {
		return err
	}
	return o.linkMeasure(ctx, local, peer, false, stdout, stderr)
}

func (o *benchOptions) linkMeasure(ctx context.Context, local, peer url.Endpoint, oneProcess bool, stdout, stderr io.Writer) error {
	local, err := o.wire.apply(local)
	if err != nil {
		return err
	}
	h, err := openHost(local, linkReserve, dgrdma.Config{BusyPoll: o.busyPoll})
	if err != nil {
		return err
	}
	defer h.Close()
	o.metrics.host(h)
	times := bench.NewHistogram()
	l, load, err := bench.DialLink(ctx, h, peer.String(), bench.LinkPlan{Stream: o.stream, Buffers: o.buffers, Size: int(o.plan.Size)}, times)
	if needed := 2 * uint64(o.buffers) * uint64(o.plan.Size); errors.Is(err, link.ErrRefused) && needed > peer.Size {
		return fmt.Errorf("%w: smaller --buffers or --size here, or --memory beside its --serve", err)
	}
	if err != nil {
		return err
	}
	load.Start(o.duration)
	stopped := showProgress(stderr, func() string {
		_, bytes, took := load.Progress()
		return fmt.Sprintf("%4.1f of %.1f s  %.0f MB/s", took.Seconds(), o.duration.Seconds(), perSecond(bytes, took)/1e6)
	})
	interrupted := load.Over(ctx)
	err = load.Drain(context.WithoutCancel(ctx))
	stopped()
	if err != nil {
		return err
	}
	s := h.Endpoint().Stats()
	buffers, size := l.Out.Buffers()
	messages, bytes, _ := load.Progress()
	took := load.Elapsed()
	r := linkResult{
		Transport: wireName(peer), Link: true, Stream: o.stream, Size: size, Buffers: buffers, OneProcess: oneProcess,
		Seconds: took.Seconds(), Bytes: bytes, Messages: messages,
		MBPerS: perSecond(bytes, took) / 1e6, MessagesPS: perSecond(messages, took),
		Retransmits: s.RetransmitsFast + s.RetransmitsTimed, latencies: latenciesOf(times, o.histogram),
	}
	return errors.Join(interrupted, r.print(stdout, o.json))
}

func (r *linkResult) print(w io.Writer, asJSON bool) error {
	if asJSON {
		r.builtFrom = thisBuild()
		return json.NewEncoder(w).Encode(r)
	}
	return buffered(w, func(w io.Writer) error {
		fmt.Fprintf(w, "link over %s, %s of %s: %.0f MB/s, %s in %.1f s, %s sent again\n",
			r.Transport, count(r.Buffers, "buffer"), count(r.Size, "byte"), r.MBPerS, countPerSecond(r.MessagesPS, "message"), r.Seconds, count(r.Retransmits, "frame"))
		r.latencies.describe(w, "buffers back")
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
	h, s, err := openLinkServer(both, o, local)
	if err != nil {
		return err
	}
	defer h.Close()
	peer, err := parsePeer(h.URL())
	if err != nil {
		return err
	}
	if err := o.linkMeasure(ctx, local, peer, true, stdout, stderr); err != nil {
		return err
	}
	return <-s.Ended()
}

package main

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
)

// Ping over a link: messages of 64 bytes there and back, each answered where it
// arrives.
const (
	pingPort        = "ping"
	pingLinkBuffers = 64
	pingLinkMemory  = 1 << 20
)

func pingLinkServe(ctx context.Context, o *pingOptions, stderr io.Writer) error {
	local, err := parseLocal("serve", o.serve)
	if err != nil {
		return err
	}
	h, err := openHost(local, pingLinkMemory, dgrdma.Config{Manual: o.busyPoll})
	if err != nil {
		return err
	}
	defer h.Close()
	o.metrics.host(h)
	port, err := h.Listen(pingPort, &link.Options{Directions: link.Both, Buffers: pingLinkBuffers, Size: pingBytes, Handle: answer})
	if err != nil {
		return err
	}
	fmt.Fprintf(stderr, "answering on %s\nany peer may dial port %q\n", h.URL(), pingPort)
	for {
		l, err := port.Accept(ctx)
		if err != nil {
			if ctx.Err() != nil && !o.once {
				return nil
			}
			return err
		}
		_, err = l.In.Recv(ctx) // the end
		if err == io.EOF {
			err = nil
		}
		l.Close()
		if o.once {
			linger(h, o.busyPoll)
			return err
		}
		if err != nil {
			fmt.Fprintln(stderr, err)
		}
	}
}

// answer sends a message back.
func answer(l *link.Link, m link.Message) {
	if m.EOF {
		return
	}
	// The client waits for each answer, so there is a free buffer but for a moment.
	if b, ok := l.Out.TryAcquire(); ok {
		l.Out.Commit(b, m.Opcode, copy(b.Bytes, m.Bytes))
		return
	}
	body := append([]byte(nil), m.Bytes...)
	go l.Out.Send(context.Background(), m.Opcode, body)
}

// linger lets the last acknowledgements out.
func linger(h *link.Host, manual bool) {
	for until := time.Now().Add(farewell); time.Now().Before(until); {
		if manual {
			h.Poll()
		} else {
			time.Sleep(farewell)
		}
	}
}

func pingLinkTo(ctx context.Context, o *pingOptions, stdout, stderr io.Writer) error {
	local, peer, err := parseEnds(o.to, o.local)
	if err != nil {
		return err
	}
	h, err := openHost(local, pingLinkMemory, dgrdma.Config{Manual: o.busyPoll})
	if err != nil {
		return err
	}
	defer h.Close()
	o.metrics.host(h)
	trips := make([]time.Duration, 0, o.n)
	through := make(chan error, 1)
	var count atomic.Int64
	var sentAt time.Time
	var body [pingBytes]byte
	send := func(l *link.Link) {
		sentAt = time.Now()
		if b, ok := l.Out.TryAcquire(); ok {
			l.Out.Commit(b, 0, copy(b.Bytes, body[:]))
		} else {
			go l.Out.Send(context.Background(), 0, body[:])
		}
	}
	var over atomic.Bool
	l, err := h.Dial(ctx, peer.String(), pingPort, &link.Options{
		Directions: link.Both, Buffers: pingLinkBuffers, Size: pingBytes,
		Handle: func(l *link.Link, m link.Message) {
			took := time.Since(sentAt)
			if m.EOF {
				return
			}
			if k := count.Add(1); k > pingWarmUp {
				trips = append(trips, took)
			}
			if len(trips) == o.n {
				over.Store(true)
				through <- nil
				return
			}
			send(l)
		},
	})
	if err != nil {
		return err
	}
	stopped := showProgress(stderr, func() string { return fmt.Sprintf("%d of %d", count.Load(), o.n+pingWarmUp) })
	send(l)
	for i := 1; o.busyPoll && !over.Load() && (i%1024 != 0 || ctx.Err() == nil && l.Err() == nil); i++ {
		if err := h.Poll(); err != nil {
			return err
		}
	}
	select {
	case <-through:
	case <-l.Done():
		err = l.Err()
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	stopped()
	if err != nil {
		return err
	}
	if err := l.Close(); err != nil {
		return err
	}
	linger(h, o.busyPoll)
	r := o.summary(wireName(peer), trips)
	return r.print(stdout, o.json)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/url"
)

const (
	// writeAhead is how many bytes are posted before the first of them are
	// acknowledged. Arbitrary: more than is under way on any wire.
	writeAhead = 8 << 20
	// writeDepth bounds the transactions of it.
	writeDepth = 64
)

func write(ctx context.Context, o *writeOptions, std *stdio) error {
	var profile dgrdma.Profile
	r, err := o.run(ctx, std, &profile)
	switch {
	case r != nil:
	case owesObject(o.json, err):
		r = &written{To: o.to, Profile: profile.Name, Error: err.Error()}
	default:
		return err
	}
	return errors.Join(err, r.print(std.out, o.json))
}

// owesObject reports whether who asked for an object gets one of what could not begin: of a mistake in the command line there is none.
func owesObject(asked bool, err error) bool {
	var wrong usageError
	return asked && !errors.As(err, &wrong)
}

// run writes, to a peer of whom that is assumed which it says. There is no result where nothing could be written.
func (o *writeOptions) run(ctx context.Context, std *stdio, profile *dgrdma.Profile) (*written, error) {
	src, err := o.openSource(ctx, std.in)
	if err != nil {
		return nil, err
	}
	defer src.close()
	local, peer, assumed, err := o.ends(ctx, std.err)
	if *profile = assumed; err != nil {
		return nil, err
	}
	if err := src.read(o.room(profile, peer.Size)); err != nil {
		return nil, err
	}
	if err := o.suits(profile, peer.Size, src.size); err != nil {
		return nil, err
	}
	stop, err := o.metrics.start(std.err)
	if err != nil {
		return nil, err
	}
	defer stop()
	own, err := openSaying(std.err, local.String(), &dgrdma.Config{ID: o.idFor(local, peer, profile)})
	if err != nil {
		return nil, err
	}
	defer own.Close()
	o.metrics.endpoint(own)
	sayOpenCPIsIDs(std.err, own.ID(), profile.Name)
	conn, err := own.Dial(peer.String())
	if err != nil {
		return nil, err
	}
	w := newWriter(o, conn, src, profile)
	began := time.Now()
	err = w.attended(ctx, std.err, own, local, peer)
	r := w.result(time.Since(began))
	r.To, r.From = o.to, own.URLTo(conn)
	if err = w.explained(ctx, err, own); err != nil {
		r.Error, r.Acknowledged = err.Error(), false
	}
	return r, err
}

// writer writes it all to one peer, again and again.
type writer struct {
	o       *writeOptions
	conn    *dgrdma.Conn
	profile *dgrdma.Profile
	src     *source
	chunk   uint64 // bytes per transaction
	depth   int
	queue   *dgrdma.CompletionQueue
	done    []dgrdma.Completion
	free    []*dgrdma.Transaction

	meter               *meter        // of the bytes that are done
	transactions, times atomic.Uint64 // done
	flag                uint32        // of the last time that is done
}

func newWriter(o *writeOptions, conn *dgrdma.Conn, src *source, p *dgrdma.Profile) *writer {
	chunk := o.size.value
	if p.NoSentinel || src.size < chunk {
		chunk = max(src.size, 1)
	}
	depth := int(min(max(writeAhead/chunk, 1), writeDepth))
	w := &writer{
		o: o, conn: conn, profile: p, src: src, chunk: chunk, depth: depth,
		queue: dgrdma.NewCompletionQueue(depth), done: make([]dgrdma.Completion, depth), meter: newMeter(-1),
	}
	if o.count > 0 {
		w.meter.total = int64(src.size) * int64(o.count)
	}
	for range depth {
		w.free = append(w.free, &dgrdma.Transaction{Segments: make([]dgrdma.Segment, 1)})
	}
	return w
}

// attended is watched, and says what is wrong as early as that is known.
func (w *writer) attended(ctx context.Context, stderr io.Writer, own *dgrdma.Endpoint, local, peer url.Endpoint) error {
	stopSaying := func() error { return nil }
	told := stopSaying
	switch { // others may never say anything
	case w.profile.Session:
		stopSaying = sayUnheard(stderr, own, local, peer)
	case w.profile.NoAcks:
		told = watchUnacknowledged(ctx, stderr, local, peer)
	}
	doubting, stop := w.sizeDoubted(ctx, local, peer)
	defer stop()
	err := w.watched(doubting, stderr)
	err = orTold(err, stopSaying(), peer)
	if why := told(); err == nil {
		err = why
	}
	if ctx.Err() == nil && doubting.Err() != nil {
		return context.Cause(doubting)
	}
	return err
}

// watched is all with progress on a terminal.
func (w *writer) watched(ctx context.Context, stderr io.Writer) error {
	defer w.meter.show(stderr)()
	return w.all(ctx)
}

func (w *writer) all(ctx context.Context) error {
	flag := w.o.flagValue.value
	for n := 0; w.o.count == 0 || n < w.o.count; n++ {
		if n > 0 && w.o.interval > 0 {
			select {
			case <-time.After(w.o.interval):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if err := w.once(ctx, flag); err != nil {
			return err
		}
		w.flag = flag
		w.times.Add(1)
		flag += w.o.flagStep.value
	}
	return nil
}

// once writes it all, and the flag when everything else is acknowledged: there is
// no order between transactions.
func (w *writer) once(ctx context.Context, flag uint32) error {
	last := (max(w.src.size, 1) - 1) / w.chunk * w.chunk
	for at := uint64(0); at < last; at += w.chunk {
		if err := w.post(ctx, at, w.chunk, dgrdma.CompletionWord{}); err != nil {
			return err
		}
	}
	if err := w.await(ctx, w.depth); err != nil {
		return err
	}
	var word dgrdma.CompletionWord
	if w.o.flagAddr.given {
		word = dgrdma.Word(w.o.flagAddr.value, flag)
	}
	if err := w.post(ctx, last, w.src.size-last, word); err != nil {
		return err
	}
	return w.await(ctx, w.depth)
}

func (w *writer) post(ctx context.Context, at, n uint64, word dgrdma.CompletionWord) error {
	if err := w.await(ctx, 1); err != nil {
		return err
	}
	t := w.free[len(w.free)-1]
	s := &t.Segments[0]
	if uint64(cap(s.Bytes)) < n {
		s.Bytes = make([]byte, n)
	}
	s.Addr, s.Bytes = w.o.addr.value+uint32(at), s.Bytes[:n]
	if err := w.src.fill(s.Bytes, at); err != nil {
		return err
	}
	t.Completion = word
	if err := w.queue.Post(w.conn, t); err != nil {
		return err
	}
	w.free = w.free[:len(w.free)-1]
	return nil
}

// await waits until that many transactions are free.
func (w *writer) await(ctx context.Context, n int) error {
	for len(w.free) < n {
		got, err := w.queue.Wait(ctx, w.done)
		if err != nil {
			return err
		}
		for _, c := range w.done[:got] {
			if c.Err != nil {
				return c.Err
			}
			w.free = append(w.free, c.Transaction)
			w.transactions.Add(1)
			w.meter.moved.Add(int64(c.Transaction.Bytes()))
		}
	}
	return nil
}

// explained adds what a user may do about an error.
func (w *writer) explained(ctx context.Context, err error, own *dgrdma.Endpoint) error {
	interrupted := ctx.Err() != nil && errors.Is(err, context.Cause(ctx))
	switch {
	case interrupted && w.o.count == 0:
		return nil // as it was meant to end
	case interrupted:
		return fmt.Errorf("%w after %d of %s, %s", errInterrupted, w.times.Load(), count(w.o.count, "time"), count(w.meter.moved.Load(), "byte"))
	case errors.Is(err, dgrdma.ErrRefused):
		return fmt.Errorf("%w; this one is %s", err, own.URLTo(w.conn))
	case saysAll(err):
		return err
	case errors.Is(err, dgrdma.ErrPeerDown) && w.conn.Stats().FramesReceived == 0:
		return fmt.Errorf("%w; is it there, and does it take %s for one? --profile says what the other side is: %s", err, own.URLTo(w.conn), noneBetweenUs)
	case errors.Is(err, dgrdma.ErrPeerDown) && w.there(ctx, own.GiveUp()):
		return fmt.Errorf("%w; it is there, but does not acknowledge this: does it refuse the addresses, or is it not of the kind %s? --profile says what the other side is: %s", err, w.profile.Name, noneBetweenUs)
	case errors.Is(err, dgrdma.ErrPeerDown):
		return fmt.Errorf("%w; it was heard, and then nothing came any more: was it killed, did it come back under another id, or is the network down?", err)
	case errors.Is(err, dgrdma.ErrStaleCard):
		return fmt.Errorf("%w; or is it no card but of another kind? Another dgrdmacat is of the kind native, as it is without --profile", err)
	case errors.Is(err, dgrdma.ErrTooLarge) && !w.profile.NoSentinel:
		return fmt.Errorf("%w: a smaller --size does", err)
	}
	return err
}

// askFor is how long a peer that was given up is asked whether it is there. Arbitrary:
// several round trips of any network.
const askFor = 2 * time.Second

// there reports whether a peer answers that was given up. One of our own kind that took
// nothing yet had answered HELLO just before. One that took something is
// asked by an empty write, which it takes whatever addresses it refuses. What others
// would make of that is not known: of them it is told by when they were heard last.
func (w *writer) there(ctx context.Context, giveUp time.Duration) bool {
	switch s := w.conn.Stats(); {
	case !w.profile.Session:
		return s.Silent < giveUp/2
	case s.AcksReceived == 0:
		return true
	}
	if w.conn.Reset(0) != nil {
		return false
	}
	queue := dgrdma.NewCompletionQueue(1)
	empty := &dgrdma.Transaction{}
	if queue.Post(w.conn, empty) != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, min(giveUp, askFor))
	defer cancel()
	var done [1]dgrdma.Completion
	n, _ := queue.Wait(ctx, done[:])
	return n == 1 && done[0].Err == nil
}

package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/dgrdma/dgrdma/url"
)

// sizeDoubted returns a context that ends when what is written turns out not to fit the peer, with why: a peer of our own kind
// over UDP is asked for the size of its memory when nothing is acknowledged for a moment. The string says one, which may be an old
// one's. stop ends that.
func (w *writer) sizeDoubted(ctx context.Context, local, peer url.Endpoint) (doubting context.Context, stop func()) {
	doubting, cancel := context.WithCancelCause(ctx)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if !w.profile.Session || !w.stalls(doubting) {
			return
		}
		if size, other := otherSize(doubting, local, peer); other {
			if err := w.o.suits(w.profile, size, w.src.size); err != nil {
				cancel(saidBy(err, peer))
			}
		}
	}()
	return doubting, func() { cancel(nil); <-gone }
}

// otherSize asks a peer over UDP for the size of its memory, and reports whether it has another one than its string says.
func otherSize(ctx context.Context, local, peer url.Endpoint) (size uint64, other bool) {
	if peer.Scheme != url.UDP {
		return 0, false
	}
	is, err := found(ctx, io.Discard, local, url.Endpoint{Scheme: url.UDP, Dialect: url.Short, Addr: peer.Addr})
	return is.Size, err == nil && is.ID == peer.ID && is.Size != peer.Size
}

// saidBy adds to what is wrong with the size that a peer says that its string says another.
func saidBy(err error, peer url.Endpoint) error {
	return usageError{fmt.Errorf("%w; --to says that it has %d bytes: take the string that it prints now, or its address alone, which has it asked", err, peer.Size)}
}

// stalls waits until nothing was acknowledged for a moment, or the context ends, and reports which.
func (w *writer) stalls(ctx context.Context) bool {
	tick := time.NewTicker(soonHeard)
	defer tick.Stop()
	for before := uint64(0); ; {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
		now := w.transactions.Load()
		if now == before {
			return true
		}
		before = now
	}
}

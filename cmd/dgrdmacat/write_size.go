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
		if !w.profile.Session || peer.Scheme != url.UDP || !w.stalls(doubting) {
			return
		}
		is, err := found(doubting, io.Discard, local, url.Endpoint{Scheme: url.UDP, Dialect: url.Short, Addr: peer.Addr})
		if err != nil || is.ID != peer.ID || is.Size == peer.Size {
			return
		}
		if err := w.o.suits(w.profile, is.Size, w.src.size); err != nil {
			cancel(usageError{fmt.Errorf("%w, and not at %#x, as --to says; what it prints now says so, and its address alone has it asked", err, peer.Size)})
		}
	}()
	return doubting, func() { cancel(nil); <-gone }
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

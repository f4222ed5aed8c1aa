package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/dgrdma/dgrdma/bench"
	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/url"
)

// droppedText says what kernels dropped, for which they had no room.
func droppedText(n uint64) string { return fmt.Sprintf("%d dropped by the kernel", n) }

// muchAgain is of how many frames one was sent again where that is worth advice.
const muchAgain = 100

// adviseOnDrops writes what a user may do where so much was dropped that much was sent again, and not for --loss; less says what
// to send less of.
func adviseOnDrops(w io.Writer, drops, again, frames uint64, loss float64, transport, less string) {
	if drops == 0 || loss > 0 || again*muchAgain < frames {
		return
	}
	room := "the socket's buffer had no room: raise net.core.rmem_max there"
	if transport != "udp" {
		room = "the ring had no room: give a larger --sockbuf there"
	}
	fmt.Fprintf(w, "advice       at the side that receives %s, or give %s\n", room, less)
}

// linkDrops counts what the kernels of both ends of a link drop.
type linkDrops struct {
	h     *link.Host
	peer  string
	knows bool   // the server tells
	began uint64 // what both had dropped before
}

// askDrops is how long a server that has just been heard is asked. Arbitrary: many round trips.
const askDrops = time.Second

func countLinkDrops(ctx context.Context, h *link.Host, peer url.Endpoint) *linkDrops {
	d := &linkDrops{h: h, peer: peer.String()}
	d.began, d.knows = d.now(ctx)
	return d
}

// now returns what both sides have dropped, if the server tells.
func (d *linkDrops) now(ctx context.Context) (n uint64, knows bool) {
	ctx, cancel := context.WithTimeout(ctx, askDrops)
	defer cancel()
	there, err := bench.ServerDrops(ctx, d.h, d.peer)
	return there + d.h.Endpoint().Stats().Transport.KernelDrops, err == nil
}

// result returns what was dropped meanwhile, or nil where the server does not tell.
func (d *linkDrops) result() *uint64 {
	if !d.knows {
		return nil
	}
	// Also of what was measured before an interrupt.
	n, knows := d.now(context.Background())
	if !knows {
		return nil
	}
	return new(n - d.began)
}

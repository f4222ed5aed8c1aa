package link

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/endpoint/space"
	"github.com/dgrdma/dgrdma/link/budget"
)

// Host makes links over an endpoint, of whose addresses it has a window. It is one of the
// endpoint's services.
type Host struct {
	ep           *dgrdma.Endpoint
	ownsEndpoint bool   // the endpoint is the host's, and ends with it
	size         uint64 // of the window
	block        *space.Block
	manual       bool
	number       atomic.Uint32 // of the latest link
	registry     registry
	replies      atomic.Int32 // letters of all peers that wait to be sent, of a kind that may be left out
	counters     boundCounters
	budget       budget.Budget // for messages that links send
	endedLinks   endedLinks    // see endedLink

	mu             sync.Mutex
	ports          map[string]*Listener
	heartbeatTimer *time.Timer // for heartbeat
	acceptsAny     bool        // a port was listened on: peers are learned that dial
	closed         bool
}

// Endpoint returns the host's endpoint.
func (h *Host) Endpoint() *dgrdma.Endpoint {
	return h.ep
}

// String returns the endpoint string, or else where the endpoint is.
func (h *Host) String() string { return h.Endpoint().String() }

// URL returns the complete endpoint string that peers dial.
func (h *Host) URL() string {
	return h.ep.URL()
}

// poll receives and sends, for a host that was opened with Manual, until there reports true, over is
// closed, or the context is done.
func (h *Host) poll(ctx context.Context, there func() bool, over <-chan struct{}) {
	if h.manual {
		var w dgrdma.Waiter // no goroutine wakes it
		h.ep.Await(ctx, &w, there, over, nil)
	}
}

// waitFor waits until happened is closed, no longer than the context and the endpoint last.
func (h *Host) waitFor(ctx context.Context, happened <-chan struct{}) {
	h.poll(ctx, func() bool { return false }, happened)
	select {
	case <-happened:
	case <-h.ep.Done():
	case <-ctx.Done():
	}
}

// checkOpen returns ErrClosed once the host was closed.
func (h *Host) checkOpen() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return ErrClosed
	}
	return nil
}

// newNumber returns a number for a link, which is not 0.
func (h *Host) newNumber() (n uint32) {
	for n == 0 {
		n = h.number.Add(1)
	}
	return n
}

// ServiceName is the name by which peers know link hosts.
const ServiceName = "link"

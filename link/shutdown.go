package link

import (
	"context"
	"errors"
	"time"
)

// Close ends all links at once, and the endpoint if it is the host's own. What was sent and not
// acknowledged may be lost: close the links first.
//
// If no frame is lost, each peer is notified, with an [*AbortError], of the end of links that have
// nothing in flight, as many as letters can be under way. It hears of its other links when it gives this
// host up. In the same way peers are notified once that what they sent last has arrived. If they wait for
// that, as in Close of a link, end with Shutdown.
func (h *Host) Close() error {
	return h.close(func() {}, func() error {
		if !h.ownsEndpoint {
			return nil
		}
		return h.ep.Close()
	})
}

// Shutdown waits until everything that was sent is acknowledged, or the context is done, and closes.
// Peers are notified of the end of links that have nothing in flight. Peers that were notified before, by
// Close or Finish, get a second at most to end their links as well: this host could not acknowledge
// what they say later, and they would wait for that.
func (h *Host) Shutdown(ctx context.Context) error {
	return h.close(func() { h.waitForPeers(ctx) }, func() error {
		if !h.ownsEndpoint {
			return h.closeLinks(ctx)
		}
		return h.ep.Shutdown(ctx)
	})
}

// peerEndWait is how long Shutdown waits for peers to end links. Arbitrary: short for a person, and
// long for a program that reads an end of file.
const peerEndWait = time.Second

// waitForPeers waits until the peers were notified of the end of links, and have ended them too.
func (h *Host) waitForPeers(ctx context.Context) {
	if !h.ownsEndpoint {
		return // the endpoint stays, and acknowledges
	}
	var notified, ended []<-chan struct{}
	for _, c := range h.ep.Conns() {
		p := h.peerOf(c)
		for _, l := range p.all() {
			if l.finishing.Load() || l.closed.Load() {
				notified, ended = append(notified, l.notified), append(ended, l.ended)
			}
		}
		for _, e := range p.allEnded() {
			notified, ended = append(notified, e.notified), append(ended, e.ended)
		}
	}
	for _, c := range notified {
		h.waitFor(ctx, c)
	}
	ctx, cancel := context.WithTimeout(ctx, peerEndWait)
	defer cancel()
	for _, c := range ended {
		h.waitFor(ctx, c)
	}
}

// closeLinks closes all links, as far as the context allows.
func (h *Host) closeLinks(ctx context.Context) error {
	var all []error
	for _, c := range h.ep.Conns() {
		for _, l := range h.peerOf(c).all() {
			all = append(all, l.CloseContext(ctx))
		}
	}
	return errors.Join(all...)
}

func (h *Host) close(part func(), how func() error) error {
	h.mu.Lock()
	h.closed = true
	if h.acceptsAny {
		h.acceptsAny = false
		h.ep.Welcome(false)
	}
	h.heartbeatTimer.Stop()
	var ports []*Listener
	for _, l := range h.ports {
		ports = append(ports, l)
	}
	h.mu.Unlock()
	for _, l := range ports {
		l.Close()
	}
	part()
	conns := h.ep.Conns()
	if h.ownsEndpoint {
		for _, c := range conns {
			h.peerOf(c).disconnect() // as far as letters leave before the endpoint ends
		}
	}
	err := how()
	for _, c := range conns {
		if p := h.peerOf(c); h.ownsEndpoint {
			p.fail(ErrClosed, everyLife)
		} else {
			p.abortAll()
		}
	}
	return err
}

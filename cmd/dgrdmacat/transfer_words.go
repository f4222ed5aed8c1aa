package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/link/stream"
	"github.com/dgrdma/dgrdma/url"
)

// inWords says why a stream failed, in words of streams; who names the other side.
func inWords(err error, who string, s *stream.Stream) error {
	name := s.Link().Peer().Name()
	var aborted *link.AbortError
	switch {
	case errors.As(err, &aborted):
		return fmt.Errorf("the %s, %v, gave up: %s", who, name, aborted.Reason)
	case errors.Is(err, dgrdma.ErrPeerClosed):
		return fmt.Errorf("the %s, %v, ended before all was there", who, name)
	case errors.Is(err, dgrdma.ErrPeerDown):
		return fmt.Errorf("the %s, %v, does not answer any more%s: was the %[1]s killed, or is the network down?", who, name, meanwhile(err))
	case errors.Is(err, dgrdma.ErrPeerRestarted):
		return fmt.Errorf("the %s, %v, was started anew", who, name)
	case errors.Is(err, stream.ErrIncomplete), errors.Is(err, link.ErrPeerClosed):
		return fmt.Errorf("the %s, %v, ended before all was there", who, name)
	}
	return orForce(strangerInWords(err))
}

// meanwhile says what was waited for when a peer was given up: large frames may be the reason.
func meanwhile(err error) string {
	var peer *dgrdma.PeerError
	if !errors.As(err, &peer) {
		return ""
	}
	return "; this side gave up while " + peer.Op
}

// strangerInWords says what to do about a peer that is not this dgrdmacat.
func strangerInWords(err error) error {
	var stranger *stream.HelloError
	switch {
	case !errors.As(err, &stranger):
		return err
	case stranger.OtherVersion():
		return fmt.Errorf("%w: use the same dgrdmacat at both ends", err)
	}
	return fmt.Errorf("the other side is no dgrdmacat: it introduced itself with % x", stranger.Said)
}

// explainDial says what to check when nobody answers.
func explainDial(err error, named string, peer url.Endpoint) error {
	if saysAll(err) {
		return err
	}
	if errors.Is(err, link.ErrNoAnswer) || errors.Is(err, dgrdma.ErrPeerDown) || errors.Is(err, context.DeadlineExceeded) {
		way := "do routes and firewalls let its datagrams through"
		if peer.Scheme == url.Ether {
			way = "is that its MAC address, on the network of the interface that --local names"
		}
		unsealed := ""
		if u, wrong := url.Parse(named); wrong == nil && !sealed(u) {
			unsealed = " without --key-file"
		}
		return fmt.Errorf("no answer from %s: does dgrdmacat listen run there%s, is this the URL that it printed when it was last started, is it not full, and %s?", named, unsealed, way)
	}
	return err
}

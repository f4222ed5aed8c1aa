package verbs

import (
	"errors"
	"net"
)

// How connections end that no fault ended: see [QueuePair.Err].
var (
	// ErrPeerClosed is the end of a connection that the peer closed.
	ErrPeerClosed = errors.New("the peer closed the connection")
	// ErrClosed is the end of a connection that this side closed, and what a closed host, listener or queue pair
	// says. It is net.ErrClosed.
	ErrClosed = net.ErrClosed
)

package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/transport/ether"
)

// openSaying opens an endpoint, and says by which way its frames leave over Ethernet.
func openSaying(stderr io.Writer, local string, cfg *dgrdma.Config) (*dgrdma.Endpoint, error) {
	return dgrdma.OpenOver(local, cfg, func(t dgrdma.Transport) dgrdma.Transport {
		sayWay(stderr, t)
		return t
	})
}

// sayWay says by which way frames leave over Ethernet, unless the user chose it: a capture on this machine shows
// one way only.
func sayWay(stderr io.Writer, t dgrdma.Transport) {
	e, is := t.(*ether.Conn)
	if !is {
		return
	}
	switch why := e.WithoutXDP(); {
	case why == nil:
		fmt.Fprintf(stderr, "sending from %s by AF_XDP: captures on this machine do not show it, unless xdp=off\n", e.Interface())
	case !errors.Is(why, ether.ErrXDPOff):
		fmt.Fprintf(stderr, "sending from %s by system calls: %v\n", e.Interface(), why)
	}
}

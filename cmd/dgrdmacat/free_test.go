package main

import (
	"net/netip"
	"testing"

	"github.com/dgrdma/dgrdma/tests/fixture"
)

// free returns an address of this host with a port of [fixture.FreePort].
func free(t *testing.T) netip.AddrPort {
	t.Helper()
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), fixture.FreePort(t))
}

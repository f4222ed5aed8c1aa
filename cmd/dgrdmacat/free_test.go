package main

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
)

// Ports that the system gives out to nobody by itself (net.ipv4.ip_local_port_range begins at
// 32768), so that one that was free stays so though other tests run beside this one.
const firstFree, freePorts = 20_000, 12_000

// lastFree counts on from somewhere, as the tests of two clones may run at once.
var lastFree atomic.Uint32

func init() { lastFree.Store(rand.Uint32N(freePorts)) }

// free returns an address that is free for UDP and TCP, for who must know it before somebody
// has it. No other test of this run gets it.
func free(t *testing.T) netip.AddrPort {
	t.Helper()
	for range 100 {
		at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(firstFree+lastFree.Add(1)%freePorts))
		u, err := net.ListenPacket("udp4", at.String())
		if err != nil {
			continue
		}
		u.Close()
		if l, err := net.Listen("tcp4", at.String()); err == nil {
			l.Close()
			return at
		}
	}
	t.Fatalf("no port is free of 100 from %d on", firstFree)
	panic("unreachable")
}

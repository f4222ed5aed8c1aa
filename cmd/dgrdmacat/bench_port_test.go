package main

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/bench"
	"github.com/dgrdma/dgrdma/dgrdma"
)

// TestBenchTakesAPortThatIsFreeForTCP: a port that is free for UDP may be another program's
// for TCP. A server takes another one, if it may choose, and else says that nothing can be
// compared.
func TestBenchTakesAPortThatIsFreeForTCP(t *testing.T) {
	noGoroutineLeft(t)
	for _, others := range []int{0, 1, portTries - 1, portTries} {
		t.Run(fmt.Sprint(others), func(t *testing.T) {
			local, err := parseLocal("serve", "udp:127.0.0.1")
			if err != nil {
				t.Fatal(err)
			}
			asked := 0
			serve := func(at netip.AddrPort) (*bench.TCPServer, error) {
				if asked++; asked > others {
					return bench.ServeTCP(at)
				}
				if l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at)); err == nil {
					defer l.Close() // else it is another program's anyway
				}
				return bench.ServeTCP(at)
			}
			var log strings.Builder
			e, tcp, err := openBeside(local, &dgrdma.Config{AcceptAny: true}, serve, &log)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			defer tcp.Close()
			if found := others < portTries; found != (tcp != nil) || found != (log.Len() == 0) {
				t.Errorf("served %v, and said %q", tcp != nil, log.String())
			}
		})
	}
}

// TestBenchKeepsThePortThatItIsGiven, and says that nothing can be compared there.
func TestBenchKeepsThePortThatItIsGiven(t *testing.T) {
	noGoroutineLeft(t)
	for range 20 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		local, err := parseLocal("serve", "udp:"+l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		e, tcp, err := openBeside(local, &dgrdma.Config{AcceptAny: true}, bench.ServeTCP, &log)
		if err != nil {
			continue // it is another program's for UDP
		}
		defer e.Close()
		if tcp != nil || !strings.Contains(log.String(), "--compare will fail") || e.LocalAddr().AddrPort().String() != l.Addr().String() {
			t.Errorf("served %v at %v, and said %q", tcp != nil, e.LocalAddr(), log.String())
		}
		return
	}
	t.Error("no port is free")
}

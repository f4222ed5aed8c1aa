package main

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// TestRejectedTold: of clients that are rejected a server tells once for each address and reason, and of so many an hour.
func TestRejectedTold(t *testing.T) {
	var said lockedBuffer
	l := clientLog{Writer: &said}
	now := time.Unix(1_000_000, 0)
	from := func(host byte, port int) net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, host), Port: port} }
	no, never := errors.New("no"), errors.New("never")
	for port := range 1000 {
		l.rejected(now, from(1, port), no)
		l.rejected(now, from(2, port), no)
		l.rejected(now, from(2, port), never)
	}
	if want := "10.0.0.1:0: no\n10.0.0.2:0: no\n10.0.0.2:0: never\n"; said.String() != want {
		t.Errorf("said %s", &said)
	}
	now = now.Add(20 * time.Minute)
	for n := range 10_000 {
		l.rejected(now, from(3, n), fmt.Errorf("no, %d", n))
	}
	const last = "more clients are rejected, of which nothing is said for 40m0s\n"
	if n := strings.Count(said.String(), "\n"); n != mostRejectedTold+1 || !strings.HasSuffix(said.String(), last) || len(l.told) > mostRejectedTold+1 {
		t.Errorf("%d lines, and %d are kept: %s", n, len(l.told), &said)
	}
	now = now.Add(40 * time.Minute)
	l.rejected(now, from(1, 7), no)
	if !strings.HasSuffix(said.String(), last+"10.0.0.1:7: no\n") {
		t.Errorf("an hour later: %s", &said)
	}
}

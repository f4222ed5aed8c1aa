package rpcrdma_test

import (
	"strings"
	"testing"
)

// TestRestarted checks that another write verifier of the same server is found, on another connection and of COMMIT too, and that of one that repeats its verifier nothing is.
func TestRestarted(t *testing.T) {
	s := newScript(t)
	xid := uint32(0)
	write := func(verifier uint32) {
		xid++
		s.send(client, v1(client, xid), callOf(xid, nfs, 3, 7, writeArgs(8, 8)))
		s.send(server, reply1(server, xid, 64), replyOf(xid, numbers(0, 0, 0, 8, 0, 0, verifier)))
	}
	s.connect(private, private)
	write(1)
	write(1)
	first := s.found()
	s.gone()
	s.connect(private, private)
	write(1)
	xid++
	s.send(client, v1(client, xid), callOf(xid, nfs, 3, 21, readArgs(0)))
	s.send(server, reply1(server, xid, 64), replyOf(xid, numbers(0, 0, 0, 0, 2)))
	write(2)
	if got := strings.Join(append(first, s.found()...), "; "); got != "restarted 1 at 12/10 of 1: 0x0000000000000001 and then 0x0000000000000002" {
		t.Error(got)
	}
}

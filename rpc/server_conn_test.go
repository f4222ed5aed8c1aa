package rpc

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// TestClientOfAnotherProtocol checks that the server closes a connection, and counts it, as soon as what came is not the beginning of a
// call: text, TLS, the request of iWARP.
func TestClientOfAnotherProtocol(t *testing.T) {
	s, address := serve(t, new(service), nil)
	for i, begins := range []string{"GET / HTTP/1.1\r\n", "SSH-2.0-OpenSSH_9.2\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 and more of it", "MPA ID Req Frame\x50\x02\x00\x00"} {
		nc, err := net.Dial("tcp", strings.TrimPrefix(address, "tcp:"))
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		nc.Write([]byte(begins))
		nc.SetReadDeadline(time.Now().Add(10 * time.Second))
		if n, err := nc.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("%q: %d octets, %v", begins, n, err)
		}
		if n := s.Stats().Malformed; n != uint64(i+1) {
			t.Errorf("%q: Malformed is %d", begins, n)
		}
	}
}

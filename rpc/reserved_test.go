package rpc

import (
	"context"
	"net"
	"os"
	"strconv"
	"testing"
)

// TestDialReserved checks that a process that may have a port below 1024 connects from one, several times, and that others connect.
func TestDialReserved(t *testing.T) {
	_, address := serve(t, &service{}, nil)
	for range 20 {
		c := dial(t, address, &ClientOptions{Dial: DialReserved})
		var who data
		if err := c.Bind(testProgram, None).Call(context.Background(), procWhoami, nil, &who, nil); err != nil {
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(string(who.b))
		n, _ := strconv.Atoi(port)
		if reserved := n >= firstReserved && n <= lastReserved; reserved != (os.Geteuid() == 0) {
			t.Errorf("from port %d as user %d", n, os.Geteuid())
		}
	}
}

package main

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/tests/fixture"
)

// TestServerThatStartsLate: the client of a server that does not say when it listens begins when it does.
func TestServerThatStartsLate(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	at := fmt.Sprintf("127.0.0.1:%d", fixture.FreePort(t))
	g := &rig{ctx: t.Context(), row: &row{}, opt: options{long: time.Millisecond}, tools: &tools{self: self}}
	s := g.child(server, "echo-tcp", at)
	late := g.command(server, "sh", "-c", `sleep 1; exec "$0" "$@"`, self, at)
	late.Env = s.Env
	if o, err := g.programs(late, g.child(client, "ping-tcp", at, "10")); err != nil || len(o) == 0 {
		t.Errorf("%v, %v", o, err)
	}
}

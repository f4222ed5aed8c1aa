package main

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/tests/fixture"
)

func TestMain(m *testing.M) {
	fixture.EndHangs()
	m.Run()
}

func TestRequests(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan error)
	go func() { ended <- serve(ctx, "udp:127.0.0.1", in) }()
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	for opcode, want := range map[uint8]string{toUpper: "HELLO", toLower: "hello"} {
		if got, err := ask(ctx, strings.TrimSpace(url), opcode, "Hello"); got != want || err != nil {
			t.Errorf("answer %q, %v", got, err)
		}
	}
	cancel()
	<-ended
}

package main

import (
	"context"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/dgrdma/dgrdma/link"
)

// TestPingServerEnds checks that a client whose server ends in the midst says so in one line, with what to do, over links and without.
// Over a link the end of the link may be told before the end of the connection.
func TestPingServerEnds(t *testing.T) {
	noGoroutineLeft(t)
	for _, with := range []string{"", " --link"} {
		args := []string{"ping", "--serve", "udp:127.0.0.1"}
		client := []string{"ping", "-v", "-i", "10ms", "-n", "100000"}
		if with != "" {
			args, client = append(args, "--link"), append(client, "--link")
		}
		ctx, stop := context.WithCancel(t.Context())
		file := filepath.Join(t.TempDir(), "url")
		served := make(chan struct{})
		go func() {
			defer close(served)
			runFor(t, ctx, append(args, "--url-file", file)...)
		}()
		p := asProcess(t, append(client, "--to", urlIn(t, file))...)
		p.Stdout = nil
		out, err := p.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		p.start()
		if _, err := out.Read(make([]byte, 1)); err != nil { // there are answers
			t.Error(err)
		}
		stop()
		<-served
		io.Copy(io.Discard, out)
		code := p.code()
		says := regexp.MustCompile(`(?m)^dgrdmacat ping: .*peer \d+ at 127\.0\.0\.1:\d+: the peer closed (?:the connection|the link before the end of file): the server ended; start dgrdmacat ping` + with + ` --serve there again\n`)
		if said := p.err.String(); code == exitOK || !says.MatchString(said) {
			t.Errorf("ping%s: code %d, %s", with, code, said)
		}
	}
}

// TestPingLinkEnds checks that the same is said if the end of the link is all that is told.
func TestPingLinkEnds(t *testing.T) {
	noGoroutineLeft(t)
	h, err := link.Open("udp:127.0.0.1", &link.Config{Memory: pingLinkMemory})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	var out outbox
	came, measured := 0, make(chan *link.Link, 1)
	port, err := h.Listen(pingPort, &link.Options{
		Directions: link.Both, Buffers: pingLinkBuffers, Size: pingBytes, Handle: func(l *link.Link, m link.Message) {
			out.answer(l, m)
			if came++; came == 3 { // the client has measured the second: it sends one after the other
				measured <- l
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var server sync.WaitGroup
	server.Go(func() {
		if _, err := port.Accept(t.Context()); err != nil {
			t.Error(err)
			return
		}
		l := <-measured
		l.Close()
	})
	code, got, stderr := ping(t, "--link", "-i", "10ms", "-n", "100000", "--wait", "9s", "--to", h.URL())
	server.Wait()
	if code == exitOK || got.N == 0 || !strings.Contains(stderr, "the peer closed the link before the end of file: the server ended; start dgrdmacat ping --link --serve there again") {
		t.Errorf("code %d, %+v, %s", code, got, stderr)
	}
}

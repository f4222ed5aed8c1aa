package main

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
)

// answeringLinks answers that many pings over a link, each behind what before does, and takes no notice
// of anything then. Who calls end waits for that.
func answeringLinks(t *testing.T, all int, before func(answered int)) (url string, end func()) {
	t.Helper()
	h, err := link.Open("udp:127.0.0.1", &link.Config{Memory: pingLinkMemory, Endpoint: dgrdma.Config{Manual: true}})
	if err != nil {
		t.Fatal(err)
	}
	answered, out := 0, new(outbox)
	port, err := h.Listen(pingPort, &link.Options{
		Directions: link.Both, Buffers: pingLinkBuffers, Size: pingBytes, Handle: func(l *link.Link, m link.Message) {
			before(answered)
			out.answer(l, m)
			answered++
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var server sync.WaitGroup
	server.Go(func() {
		if _, err := port.Accept(ctx); err != nil {
			t.Error(err)
			return
		}
		for answered < all && ctx.Err() == nil {
			h.Endpoint().Progress(time.Millisecond)
		}
	})
	return h.URL(), func() {
		stop()
		server.Wait()
		h.Close()
	}
}

// TestPingServerFallsSilent: who answered every ping, and says nothing of the link's end, has
// answered every ping.
func TestPingServerFallsSilent(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"--link", "--link --busy-poll"} {
		url, end := answeringLinks(t, 20+20, func(int) {})
		code, got, stderr := ping(t, append(strings.Fields(mode), "-n", "20", "--wait", "9s", "--to", url)...)
		if code != exitOK || got.N != 20 || got.Lost != 0 || got.Error != "" {
			t.Errorf("%s: code %d, %+v, %s", mode, code, got, stderr)
		}
		end()
	}
}

// TestPingLinkAnswersLate: an answer over a link that comes when its ping is lost is no other's, and the
// ping behind a lost one is sent beside those that answers send.
func TestPingLinkAnswersLate(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"--link", "--link --busy-poll"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			// A busy machine is waited for longer: then it is tried again.
			for late := 400 * time.Millisecond; ; late *= 2 {
				url, end := answeringLinks(t, 20+20, func(answered int) {
					if answered > 20 && answered%3 == 0 {
						time.Sleep(late)
					}
				})
				code, got, stderr := ping(t, append(strings.Fields(mode), "-n", "20", "--wait", "300ms", "--to", url)...)
				end()
				if got.Lost == 0 && late < patience/8 {
					continue
				}
				if code != exitError || got.Lost == 0 || got.N+int(got.Lost)-strings.Count(stderr, "unmeasured ping ") != 20 || !strings.Contains(stderr, " pings were not answered in time") {
					t.Errorf("code %d, %+v, %s", code, got, stderr)
				}
				break
			}
		})
	}
}

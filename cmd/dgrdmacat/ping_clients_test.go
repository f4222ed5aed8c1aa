package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/bench"
	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/link"
)

// TestPingClientsAtOnce: each gets its own answers.
func TestPingClientsAtOnce(t *testing.T) {
	// Beside four busy loops the kernel lets a thread wait for half a second, and with more
	// for longer than a ping is waited for.
	const wait = "9s"
	for _, mode := range pingModes {
		_, url := startPingServer(t, mode, "udp:127.0.0.1")
		ctx, interrupt := context.WithCancelCause(t.Context())
		first := make(chan string)
		go func() {
			// Asleep between answers: who polls besides takes others' processor.
			sleeping := strings.Fields(strings.ReplaceAll(mode, "--busy-poll", ""))
			_, out, stderr := runFor(t, ctx, append([]string{"ping", "-n", "5000000", "--wait", wait, "--to", url}, sleeping...)...)
			first <- out + stderr
		}()
		for range 3 {
			if code, got, stderr := ping(t, append(strings.Fields(mode), "-n", "50", "--wait", wait, "--to", url)...); code != exitOK || got.N != 50 {
				t.Errorf("%s: code %d, %+v, %s", mode, code, got, stderr)
			}
		}
		interrupt(errInterrupted)
		if said := <-first; strings.Contains(said, "lost") || !strings.Contains(said, "interrupted after ") {
			t.Errorf("%s: %s", mode, said)
		}
	}
}

// deaf takes nothing, and says when something came.
type deaf struct{ called chan struct{} }

func (deaf) Size() uint64 { return pingMemory }

func (d deaf) Admit(_ dgrdma.EndpointID, m *frame.Message) ([]byte, error) {
	if m.Len > 0 {
		select {
		case d.called <- struct{}{}:
		default:
		}
	}
	return nil, errors.New("deaf")
}
func (deaf) Complete(dgrdma.EndpointID, *frame.Message) {}

// TestPingAfterAKilledClient: a client that never took its answer holds up nobody.
func TestPingAfterAKilledClient(t *testing.T) {
	for _, mode := range pingModes {
		// A server that waits for the lost client waits for ever.
		_, url := startPingServer(t, mode, "udp:127.0.0.1?giveup=1h")
		if strings.Contains(mode, "--link") {
			h, err := link.Open("udp:127.0.0.1", &link.Config{Memory: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			both := &link.Options{Directions: link.Both, Buffers: 1, Size: pingBytes}
			l, err := h.Dial(t.Context(), url, pingPort, both)
			if err != nil {
				t.Fatal(err)
			}
			l.Out.Send(t.Context(), 0, []byte("an answer that is not taken"))
		} else {
			memory := deaf{make(chan struct{}, 1)}
			e, err := dgrdma.Open("udp:127.0.0.1", &dgrdma.Config{Memory: memory, Service: pingService})
			if err != nil {
				t.Fatal(err)
			}
			to, err := dgrdma.ParsePeer(url)
			if err != nil {
				t.Fatal(err)
			}
			to.Size = 1 << 32
			conn, err := e.Connect(to)
			if err != nil {
				t.Fatal(err)
			}
			if err := conn.Write(t.Context(), &dgrdma.Transaction{Completion: dgrdma.Word(pingWord, 1)}); err != nil {
				t.Fatal(err)
			}
			<-memory.called // the answer
			e.Close()
		}
		if code, got, stderr := ping(t, append(strings.Fields(mode), "-n", "10", "--to", url)...); code != exitOK || got.N != 10 {
			t.Errorf("%s: code %d, %+v, %s", mode, code, got, stderr)
		}
	}
}

// TestPingOnceAndAKilledClient: a server for one client ends when that is gone.
func TestPingOnceAndAKilledClient(t *testing.T) {
	at := localString(free(t), pingMemory, 2)
	served := make(chan string)
	go func() {
		_, _, stderr := runFor(t, patient(t), "ping", "--once", "--serve", at+soon)
		served <- stderr
	}()
	e, err := dgrdma.Open("udp:127.0.0.1", &dgrdma.Config{Service: pingService, Memory: newPings(pingBytes, func(p *pingPeer) dgrdma.Memory { return p })})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	to, _ := dgrdma.ParsePeer(at)
	to.Size = 1 << 32
	conn, err := e.Connect(to)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Write(t.Context(), &dgrdma.Transaction{Completion: dgrdma.Word(pingWord, 1)}); err != nil {
		t.Fatal(err)
	}
	if stderr := <-served; !strings.Contains(stderr, bench.ErrSilent.Error()) {
		t.Error(stderr)
	}
}

// TestPingInterrupted: what was measured until then is printed.
func TestPingInterrupted(t *testing.T) {
	for _, mode := range []string{"", "--busy-poll"} {
		ctx, interrupt := context.WithCancelCause(t.Context())
		url := answering(t, func(number uint32) bool {
			if number == 20+8 {
				interrupt(errInterrupted)
				return false
			}
			return true
		})
		code, out, stderr := runFor(t, ctx, append([]string{"ping", "-n", "20", "--to", url}, strings.Fields(mode)...)...)
		if code != exitInterrupted || !strings.Contains(out, ", 7 times 64 bytes: min ") || stderr != "dgrdmacat ping: interrupted after 7 of 20\n" {
			t.Errorf("%s: code %d, %s%s", mode, code, out, stderr)
		}
	}
	var both bytes.Buffer
	ctx, interrupt := context.WithCancelCause(t.Context())
	interrupt(errInterrupted)
	code := run(ctx, strings.Fields("ping --to "+answering(t, func(uint32) bool { return false })), &stdio{strings.NewReader(""), &both, &both})
	if code != exitInterrupted || !strings.Contains(both.String(), "nothing measured") {
		t.Errorf("code %d, %s", code, &both)
	}
}

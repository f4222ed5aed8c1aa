package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/bench"
	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
)

var pingModes = []string{"", "--busy-poll", "--link", "--link --busy-poll"}

// soon is the time that tests of silent peers give up after.
const soon = "?giveup=300ms"

// startServer starts a command that serves, and returns its URL. It is a process
// of its own, since one that polls takes others' processor; it ends with the test.
func startServer(t *testing.T, args ...string) (*process, string) {
	t.Helper()
	p := asProcess(t, args...).start()
	var url string
	eventually(t, "it serves", func() bool {
		_, rest, found := strings.Cut(p.err.String(), " on ocpi-")
		url, _, _ = strings.Cut("ocpi-"+rest, "\n")
		return found && strings.Contains(rest, "\n")
	})
	t.Cleanup(func() {
		p.Process.Signal(os.Interrupt)
		if p.code(); strings.Contains(p.err.String(), "SIGQUIT") {
			t.Errorf("%v: no end after an interrupt: %s", args, &p.err)
		}
	})
	return p, url
}

func startPingServer(t *testing.T, mode, at string) (*process, string) {
	t.Helper()
	return startServer(t, append([]string{"ping", "--serve", at}, strings.Fields(mode)...)...)
}

// patient returns a context that ends what hangs. It has no deadline: with one,
// some wait for that.
func patient(t *testing.T) context.Context {
	ctx, stop := context.WithCancelCause(t.Context())
	late := time.AfterFunc(patience, func() { stop(errors.New("it hung")) })
	t.Cleanup(func() { late.Stop() })
	return ctx
}

// ping runs a client, which must end by itself.
func ping(t *testing.T, args ...string) (code int, got pingResult, stderr string) {
	t.Helper()
	code, out, stderr := runFor(t, patient(t), append([]string{"ping", "--json"}, args...)...)
	if strings.Contains(stderr, "it hung") {
		t.Fatalf("ping %v: no end: %s%s", args, out, stderr)
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Errorf("ping %v: %v: %q", args, err, out)
	}
	if said := strings.Count(stderr, ": no answer "); said != int(got.Lost) {
		t.Errorf("ping %v: %d lost, and says %d: %s", args, got.Lost, said, stderr)
	}
	if (code == exitOK) != (got.Error == "" && got.Lost == 0) || !strings.HasSuffix(stderr, got.Error+"\n") && got.Error != "" {
		t.Errorf("ping %v: code %d, %+v, %s", args, code, got, stderr)
	}
	return code, got, stderr
}

// answering opens an endpoint that answers pings if does says so.
func answering(t *testing.T, does func(number uint32) bool) (url string) {
	t.Helper()
	e, err := dgrdma.Open("udp:127.0.0.1", &dgrdma.Config{
		Service:   pingService,
		AcceptAny: true, Memory: newPings(pingMemory, func(p *pingPeer) dgrdma.Memory {
			p.arrived = func(number uint32) {
				if does(number) {
					p.write(number)
				}
			}
			return p
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e.URL()
}

// TestPingUnanswered: who takes pings and does not answer, from some ping on or
// never, is waited for no longer than a silent peer.
func TestPingUnanswered(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mode string
		upTo uint32
		n    int
		says string
	}{
		{"", 0, 0, "it is there, but answers no pings"},
		{"", 1, 0, "was the server killed, or is the network down?"},
		{"", 20 + 5, 5, "was the server killed, or is the network down?"},
		{"--busy-poll", 20 + 5, 5, "was the server killed, or is the network down?"},
	} {
		t.Run(fmt.Sprintf("%s up to %d", c.mode, c.upTo), func(t *testing.T) {
			t.Parallel() // most of it is waiting
			url := answering(t, func(number uint32) bool { return number <= c.upTo })
			code, got, stderr := ping(t, append(strings.Fields(c.mode), "-n", "20", "--wait", "9s", "--to", url+"?giveup=3s")...)
			if code != exitError || got.N != c.n || got.Lost != 1 || strings.Count(stderr, ": no answer within ") != 1 || !strings.Contains(stderr, c.says) || (got.Max > 0) != (c.n > 0) {
				t.Errorf("%+v: code %d, %+v, %s", c, code, got, stderr)
			}
		})
	}
}

// TestPingLosesOne: a single answer that does not come is said and counted, and the
// next ones are measured.
func TestPingLosesOne(t *testing.T) {
	t.Parallel()
	const lost = 20 + 7
	// A busy machine does not let who polls poll for longer than pings are waited for.
	for mode, wait := range map[string]time.Duration{"": pingWait, "--busy-poll --wait 4s": 4 * time.Second, "--wait 2100ms": 2100 * time.Millisecond} {
		t.Run("mode "+mode, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			url := answering(t, func(number uint32) bool { return number != lost })
			code, got, stderr := ping(t, append(strings.Fields(mode), "-n", "20", "--to", url)...)
			var waited float64 // longer than it needs to be where round trips were long
			said, err := fmt.Sscanf(stderr, "ping 7: no answer within %f s\n", &waited)
			if code != exitError || got.N != 19 || got.Lost != 1 || got.Error != "1 of 40 pings were not answered in time" || said != 1 || waited < wait.Seconds() {
				t.Errorf("%s: code %d, %+v, %s, %v", mode, code, got, stderr, err)
			}
			code, out, stderr := runFor(t, t.Context(), append(strings.Fields("ping -n 20 --to "+url), strings.Fields(mode)...)...)
			if code != exitError || !strings.Contains(out, ", 19 times 64 bytes: min ") || !strings.HasSuffix(out, "; 1 lost\n") {
				t.Errorf("%s: code %d, %s%s", mode, code, out, stderr)
			}
		})
	}
}

// TestPingLooksInTime: who polls looks at everything else as often as who does not, however long the
// polls of a busy machine take, and at once when woken.
func TestPingLooksInTime(t *testing.T) {
	for _, long := range []time.Duration{100 * time.Microsecond, time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			looked, looks := time.Now(), 0
			wake := make(chan struct{}, 1)
			poll := func() error { time.Sleep(long); return nil }
			err := attend(t.Context(), poll, wake, pingTick, func(now time.Time) (over bool) {
				looks++
				took, want := now.Sub(looked), pingTick
				if looks == 5 { // the one before has woken it
					want = 0
				}
				if took < want || took > want+pingPolls*long {
					t.Errorf("polls of %v: look %d after %v, want %v", long, looks, took, want)
				}
				if looks == 4 {
					wake <- struct{}{}
				}
				looked = now
				return looks == 8
			})
			if err != nil || looks != 8 {
				t.Errorf("%d looks, %v", looks, err)
			}
		})
	}
}

// TestPingNobody: a ping that never left, since nothing was heard of the peer, is not lost.
func TestPingNobody(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"", "--busy-poll"} {
		nobody := localString(free(t), 4096, 2)
		code, got, stderr := ping(t, append(strings.Fields(mode), "--wait", "200ms", "--to", nobody+"?giveup=700ms")...)
		if code != exitError || got.Lost != 0 || strings.Contains(stderr, "no answer within") || !strings.Contains(stderr, "never answered") || strings.Contains(stderr, "any more") || !strings.Contains(stderr, "nothing was ever heard of it") {
			t.Errorf("%s: code %d, %+v, %s", mode, code, got, stderr)
		}
	}
}

// TestPingServerIsKilled: or was never there.
func TestPingServerIsKilled(t *testing.T) {
	t.Parallel()
	for _, mode := range pingModes {
		t.Run("mode "+mode, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			server, url := startPingServer(t, mode, "udp:127.0.0.1")
			kill := time.AfterFunc(200*time.Millisecond, func() { server.Process.Kill() })
			for _, when := range []string{"in mid-run", "before"} {
				code, got, stderr := ping(t, append(strings.Fields(mode), "-n", "5000000", "--to", url+soon)...)
				if code != exitError || when == "before" && got.N != 0 {
					t.Errorf("%s %s: code %d, %+v, %s", mode, when, code, got, stderr)
				}
			}
			kill.Stop()
		})
	}
}

// TestPingWrongKind: neither ping nor others wait for long when they speak to each
// other, and the memory of others is left alone (attack A18, SECURITY.md).
func TestPingWrongKind(t *testing.T) {
	file := filepath.Join(t.TempDir(), "memory")
	others := map[string][]string{
		"serve":  {"serve", "--accept", "any", "--create", "--size", "64k", "--file", file},
		"listen": {"listen", "-o", "/dev/null"},
		"bench":  {"bench", "--serve"},
		"ping":   {"ping", "--serve"},
		"links":  {"ping", "--link", "--serve"},
	}
	for name, args := range others {
		_, url := startServer(t, append(args, "udp:127.0.0.1")...)
		for _, mode := range pingModes {
			if name == "ping" && !strings.Contains(mode, "--link") || strings.Contains(mode, "--link") && (name == "links" || name == "serve") {
				continue
			}
			if code, got, stderr := ping(t, append(strings.Fields(mode), "--to", url+soon)...); code != exitError || got.N != 0 {
				t.Errorf("ping %s to %s: code %d, %+v, %s", mode, name, code, got, stderr)
			}
		}
	}
	if b, err := os.ReadFile(file); err != nil || !bytes.Equal(b, make([]byte, 64<<10)) {
		t.Errorf("the memory of serve was written into; %v", err)
	}
}

// TestOthersToPing: what is not a ping is refused.
func TestOthersToPing(t *testing.T) {
	for _, mode := range []string{"", "--busy-poll"} {
		_, serves := startPingServer(t, mode, "udp:127.0.0.1")
		url := strings.Replace(serves, fmt.Sprintf(";%d.", pingMemory), ";134217728.", 1) // as large as the bench wants
		for _, args := range [][]string{
			{"write", "--addr", "0x1000", "--text", "x", "--to", url + soon},
			{"write", "--flag-addr", "0", "--flag-value", "1", "--to", url + soon},
			{"send", os.Args[0], url + soon},
			{"bench", "--seconds", "0.1", "--to", url + soon},
			{"bench", "--link", "--seconds", "0.1", "--to", url + soon},
		} {
			code, out, stderr := runFor(t, patient(t), args...)
			if code != exitError || strings.Contains(stderr, "it hung") {
				t.Errorf("%v: code %d, %s%s", args, code, out, stderr)
			}
		}
		if code, got, stderr := ping(t, append(strings.Fields(mode), "-n", "10", "--to", url)...); code != exitOK || got.N != 10 {
			t.Errorf("%s: code %d, %+v, %s", mode, code, got, stderr)
		}
	}
}

// TestSendLeavesMemoryAlone: nothing is written into the memory of an endpoint of
// another kind, and who dials it is told at once what is there and what was wanted
// (attack A18, SECURITY.md).
func TestSendLeavesMemoryAlone(t *testing.T) {
	for want, commands := range map[string][][]string{
		"link":  {{"send", os.Args[0]}, {"ping", "--link", "--to"}, {"bench", "--link", "--seconds", "0.1", "--to"}},
		"ping":  {{"ping", "--to"}},
		"bench": {{"bench", "--seconds", "0.1", "--size", "64", "--depth", "1", "--to"}, {"bench", "--size", "1G", "--bidir", "--to"}},
	} {
		for _, args := range commands {
			file := filepath.Join(t.TempDir(), "memory")
			_, url := startServer(t, "serve", "--accept", "any", "--create", "--size", "1M", "--file", file, "udp:127.0.0.1")
			code, out, stderr := runFor(t, t.Context(), append(args, url)...)
			if stderr += out; strings.Contains(stderr, "of memory") || strings.Contains(stderr, "lost") {
				t.Errorf("%v: %s; want nothing of what was not tried", args, stderr)
			}
			if says := "it serves memory, not " + want; code != exitError || !strings.Contains(stderr, says) {
				t.Errorf("%v: code %d, %s; want it to say: %s", args, code, stderr, says)
			}
			if b, err := os.ReadFile(file); err != nil || !bytes.Equal(b, make([]byte, 1<<20)) {
				t.Errorf("%v: the memory was written into; %v", args, err)
			}
		}
	}
}

// TestMeasuringOtherServices: bench and ping tell who dials the wrong server what may run there, or
// that --link is missing at one side, and print nothing of what was not measured.
func TestMeasuringOtherServices(t *testing.T) {
	t.Parallel()
	const linkMissing = "; is it the peer that you mean? Both sides of dgrdmacat COMMAND need --link, or neither\n"
	const noPort = "and that this host listens on it by now; does dgrdmacat COMMAND --link --serve run there, and no other command?\n"
	urls := make(map[string]string)
	for _, server := range []string{"listen -o /dev/null", "bench --serve", "bench --link --serve", "ping --serve", "ping --link --serve", "serve --accept any"} {
		_, urls[server] = startServer(t, append(strings.Fields(server), "udp:127.0.0.1")...)
	}
	for _, c := range []struct{ client, server, says string }{
		{"bench", "bench --link --serve", linkMissing},
		{"bench", "listen -o /dev/null", linkMissing},
		{"bench --link", "bench --serve", linkMissing},
		{"bench --link", "listen -o /dev/null", noPort},
		{"bench --link --buffers 1 --size 1k", "ping --link --serve", noPort},
		{"bench --link", "serve --accept any", "it serves memory, not link; is it the peer that you mean?\n"},
		{"ping", "ping --link --serve", linkMissing},
		{"ping --link", "ping --serve", linkMissing},
		{"ping --link --size 1M", "listen -o /dev/null", noPort},
		{"ping", "bench --serve", "it serves bench, not ping; is it the peer that you mean?\n"},
	} {
		command, _, _ := strings.Cut(c.client, " ")
		code, out, stderr := runFor(t, t.Context(), append(strings.Fields(c.client), "--to", urls[c.server])...)
		if says := strings.ReplaceAll(c.says, "COMMAND", command); code != exitError || out != "" || !strings.HasSuffix(stderr, says) {
			t.Errorf("%s to %s: code %d, %q, %s; want it to say: %s", c.client, c.server, code, out, stderr, says)
		}
	}
}

// TestOthersWordsOfAPort checks that the client of a server of another kind, whose own words of refusal are those of a host that does not
// listen on the port, is not told that it dialed the wrong command (L1).
func TestOthersWordsOfAPort(t *testing.T) {
	h, err := link.Open("udp:127.0.0.1", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for _, port := range []string{bench.MessagePort, pingPort} {
		l, err := h.Listen(port, &link.Options{Directions: link.Both})
		if err != nil {
			t.Fatal(err)
		}
		l.Refuse("it is under repair: no port of mine is free")
	}
	for _, command := range []string{"bench", "ping"} {
		code, _, stderr := runFor(t, t.Context(), command, "--link", "--to", h.URL())
		if code != exitError || !strings.Contains(stderr, "no port of mine is free") || strings.Contains(stderr, "and no other command?") {
			t.Errorf("%s: code %d, %s", command, code, stderr)
		}
	}
}

// TestWriteToOtherServices: write tells what it found in place of memory.
func TestWriteToOtherServices(t *testing.T) {
	for serves, args := range map[string][]string{
		"link":  {"listen", "-o", "/dev/null"},
		"bench": {"bench", "--serve"},
		"ping":  {"ping", "--serve"},
	} {
		_, url := startServer(t, append(args, "udp:127.0.0.1")...)
		code, _, stderr := runFor(t, t.Context(), "write", "--addr", "0x100", "--text", "x", "--to", url)
		if says := "it serves " + serves + ", not memory"; code != exitError || !strings.Contains(stderr, says) {
			t.Errorf("code %d, %s; want it to say: %s", code, stderr, says)
		}
	}
}

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// copied is a string as another command printed it once, with less memory than any needs.
func copied(t *testing.T, id int) string { return localString(free(t), 4096, id) }

// TestCopiedStringLimitsNothing: a string copied from somewhere says where an endpoint is to
// be; the memory that it names was another run's.
func TestCopiedStringLimitsNothing(t *testing.T) {
	noGoroutineLeft(t)
	for _, c := range []struct{ serve, client string }{
		{"bench --once --serve", "bench --seconds 0.2 --to URL --local"},
		{"bench --once --serve", "bench --seconds 0.2 --bidir --to URL --local"},
		{"bench --link --once --serve", "bench --link --seconds 0.2 --to URL --local"},
		{"ping --once --serve", "ping -n 1 --to URL --local"},
		{"ping --link --once --serve", "ping --link -n 1 --to URL --local"},
		{"listen -o FILE", "send --local"},
	} {
		file := filepath.Join(t.TempDir(), "copy")
		url, there, here := servesOnce(t, strings.ReplaceAll(c.serve, "FILE", file)+" "+copied(t, 4), func(url string) string {
			client := strings.ReplaceAll(c.client, "URL", url) + " " + copied(t, 5)
			if strings.HasPrefix(client, "send") {
				client += " " + fileOf(t, random(1, 3<<20)) + " " + url
			}
			return client
		})
		if here.code != exitOK {
			t.Errorf("%s: %+v", c.client, here)
		}
		if there.code != exitOK || strings.Contains(url, ";4096.") && !strings.HasPrefix(c.serve, "ping --once") {
			t.Errorf("%s: on %s, %+v", c.serve, url, there)
		}
	}
}

// TestBenchSaysHowToGiveTheServerMore, and what it says does.
func TestBenchSaysHowToGiveTheServerMore(t *testing.T) {
	t.Parallel()
	noGoroutineOfItsOwnLeft(t)
	const plan = "bench --size 1M --depth 20 --seconds 0.2 --to "
	server, url := startServer(t, "bench", "--memory", "8k", "--serve", "udp:127.0.0.1")
	code, _, stderr := runFor(t, patient(t), strings.Fields(plan+url)...)
	advice := regexp.MustCompile(`which has 8192: choose less of one of them, or give the server more: (--memory \d+M) beside its --serve\n$`).FindStringSubmatch(stderr)
	if code != exitUsage || advice == nil {
		t.Fatalf("code %d: %s", code, stderr)
	}
	server.Process.Signal(os.Interrupt)
	server.code()
	_, url = startServer(t, append(strings.Fields("bench --serve udp:127.0.0.1"), strings.Fields(advice[1])...)...)
	if code, _, stderr := runFor(t, patient(t), strings.Fields(plan+url)...); code != exitOK {
		t.Errorf("code %d: %s", code, stderr)
	}
	code, _, stderr = runFor(t, patient(t), strings.Fields("bench --size 1G --depth 5 --to "+url)...)
	if code != exitUsage || !strings.Contains(stderr, "an endpoint has at most 4G") || strings.Contains(stderr, "--memory") {
		t.Errorf("code %d: %s", code, stderr)
	}
	_, url = startServer(t, strings.Fields("bench --link --memory 8k --serve udp:127.0.0.1")...)
	code, _, stderr = runFor(t, patient(t), strings.Fields("bench --link --buffers 64 --seconds 0.2 --to "+url)...)
	if code != exitError || !strings.Contains(stderr, "--memory") {
		t.Errorf("code %d: %s", code, stderr)
	}
}

// TestDocumentedStringsOfListen checks that the strings of listen in the documents and in the help of send name the memory that listen
// has (F3).
func TestDocumentedStringsOfListen(t *testing.T) {
	t.Parallel()
	l, url := listenCat(t, []string{anyPort})
	memory := regexp.MustCompile(`;(\d+)\.\d+\.65535\b`)
	want := memory.FindStringSubmatch(url)[1]
	l.cmd.Process.Kill()
	_, help, _ := runFor(t, t.Context(), "send", "-h")
	texts := map[string]string{"send -h": help}
	for _, name := range []string{"README.md", "docs/commands.md"} {
		b, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(b)
	}
	for name, text := range texts {
		found := 0
		for _, line := range strings.Split(text, "\n") {
			if m := memory.FindStringSubmatch(line); m != nil && regexp.MustCompile(`^listening on|\b(listen|send) `).MatchString(line) {
				if found++; m[1] != want {
					t.Errorf("%s: memory %s, listen has %s: %s", name, m[1], want, line)
				}
			}
		}
		if found == 0 {
			t.Errorf("%s: no string of listen", name)
		}
	}
}

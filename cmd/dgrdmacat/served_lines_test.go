package main

import (
	"regexp"
	"strings"
	"testing"
)

// TestServersTellOfEachClient: bench --link and ping do so in a line, as bench does.
func TestServersTellOfEachClient(t *testing.T) {
	const peer = `(?m)^peer \d+ at 127\.0\.0\.1:\d+: `
	for _, c := range []struct{ command, client, says string }{
		{"bench", "--seconds 0.1 --size 4k", `\d+ transactions of 4096 bytes, [\d.]+ MB/s; `},
		{"bench --link", "--seconds 0.1 --size 4k --buffers 32", `\d+ messages in 32 buffers of 4096 bytes, [\d.]+ MB/s; \d+ dropped by the kernel$`},
		{"bench --link --stream", "--seconds 0.1 --size 4k", `\d+ messages in 64 buffers of 4096 bytes, [\d.]+ MB/s; \d+ dropped by the kernel$`},
		{"ping", "-c 30", `60 pings of 64 bytes$`}, // as many before, unmeasured
		{"ping", "-c 3 --size 64k", `6 pings of 65536 bytes$`},
		{"ping --link", "-c 30", `60 pings of 64 bytes$`},
		{"ping --busy-poll", "-c 30", `60 pings of 64 bytes$`},
	} {
		server, url := startServer(t, append(strings.Fields(strings.ReplaceAll(c.command, "--stream", "")), "--serve", "udp:127.0.0.1")...)
		ran := 0
		for range 2 {
			times, code, out, stderr := runTimes(t.Context(), strings.Fields(c.command+" "+c.client+" --to "+url)...)
			if code != exitOK || stderr != "" {
				t.Fatalf("%s %s: code %d, %s%s", c.command, c.client, code, out, stderr)
			}
			ran += times
		}
		says := regexp.MustCompile(peer + c.says)
		eventually(t, c.command+" says "+c.says, func() bool { return len(says.FindAllString(server.err.String(), -1)) == ran })
	}
}

// TestBenchPrintsLinksAlike: a link has the lines that transactions have.
func TestBenchPrintsLinksAlike(t *testing.T) {
	alike := func(load, times string) *regexp.Regexp {
		return regexp.MustCompile(`^moved +[\d.]+ [kMG]B in [\d.]+ s over udp: [\d.]+ MB/s \([\d.]+ Gbit/s\), \d+ (transaction|message)s/s
load +` + load + `, MTU 65535.*
` + times + ` +min .* max .*
frames +[1-9]\d*, of them sent again \d+.*; .*\d+ dropped by the kernel
`)
	}
	for args, want := range map[string]*regexp.Regexp{
		"":                alike(`1 peer, \d+ transactions of 4096 bytes outstanding`, "completion"),
		"--link":          alike(`1 link by messages, 64 buffers of 4096 bytes`, "buffers back"),
		"--link --stream": alike(`1 link by io\.Copy, 64 buffers of 4096 bytes`, "buffers back"),
	} {
		if out := benchUntil(t, 0.05, "--size 4k "+args, want.MatchString); !want.MatchString(out) {
			t.Errorf("%s: %s", args, out)
		}
	}
	if help := strings.Join(strings.Fields(runOK(t, "bench -h")), " "); !strings.Contains(help, "Not with "+notForLinks()) {
		t.Error(help)
	}
	moved := func(got map[string]any) bool { return wanting(got, []string{"frames"}) == "" }
	if got := benchJSON(t, 0.05, "--link --size 4k", moved); !moved(got) || got["mtu"] != 65535.0 {
		t.Errorf("%v", got)
	}
}

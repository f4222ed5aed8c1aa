package main

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestBenchSaysWhatKernelsDrop: of links as of transactions, at both ends, with what to do about it. The server's buffer
// is so small that two frames do not fit.
func TestBenchSaysWhatKernelsDrop(t *testing.T) {
	for mode, advice := range map[string]string{
		"":                "or give a smaller --depth or --size\n",
		"--link":          "or give fewer or smaller --buffers\n",
		"--link --stream": "or give fewer or smaller --buffers\n",
	} {
		t.Run("mode "+mode, func(t *testing.T) {
			t.Parallel()
			server, url := startServer(t, append(strings.Fields("bench "+strings.TrimSuffix(mode, "--stream")), "--serve", "udp:127.0.0.1", "--sockbuf", "4096")...)
			dropped := func(got map[string]any) bool { return wanting(got, []string{"kernel_drops", "retransmits"}) == "" }
			got := benchJSON(t, 0.2, mode+" --to "+url, dropped)
			if !dropped(got) {
				t.Fatalf("%s: %v", mode, got)
			}
			line := regexp.MustCompile(`(?m)^peer .* (\d+) dropped by the kernel.*$`)
			eventually(t, "the server says what was dropped", func() bool {
				for _, said := range line.FindAllStringSubmatch(server.err.String(), -1) {
					if n, _ := strconv.ParseFloat(said[1], 64); n > 0 && n <= got["kernel_drops"].(float64) {
						return true
					}
				}
				return false
			})
			want := "advice       at the side that receives the socket's buffer had no room: raise net.core.rmem_max there, " + advice
			if out := benchUntil(t, 0.2, mode+" --to "+url, func(out string) bool { return strings.Contains(out, want) }); !strings.Contains(out, want) {
				t.Errorf("%s: no advice\n%s", mode, out)
			}
		})
	}
}

// TestAdviceOnDrops: there is none where little was sent again, or where the network lost it, and over Ethernet it is about the ring.
func TestAdviceOnDrops(t *testing.T) {
	for _, c := range []struct {
		drops, again, frames uint64
		loss                 float64
		transport, want      string
	}{
		{1, 1, 100, 0, "udp", "raise net.core.rmem_max there, or give less\n"},
		{1, 1, 100, 0, "ether", "the ring had no room: give a larger --sockbuf there, or give less\n"},
		{1, 1, 101, 0, "udp", ""},
		{0, 100, 100, 0, "udp", ""},
		{1, 100, 100, 0.5, "udp", ""},
	} {
		var b strings.Builder
		if adviseOnDrops(&b, c.drops, c.again, c.frames, c.loss, c.transport, "less"); !strings.HasSuffix(b.String(), c.want) || (b.Len() > 0) != (c.want != "") {
			t.Errorf("%+v: %q", c, b.String())
		}
	}
}

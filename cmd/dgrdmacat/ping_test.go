package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPing(t *testing.T) {
	for _, mode := range []string{"", "--busy-poll", "--link", "--busy-poll --link"} {
		t.Run("mode"+mode, func(t *testing.T) {
			noGoroutineLeft(t)
			file := filepath.Join(t.TempDir(), "url")
			served := make(chan int)
			var said lockedBuffer
			go func() {
				served <- run(t.Context(), strings.Fields("ping --once --serve udp:127.0.0.1 --url-file "+file+" "+mode), &stdio{strings.NewReader(""), &said, &said})
			}()
			// Before the port is there, links to it are refused.
			eventually(t, "it answers", func() bool { return strings.HasPrefix(said.String(), "answering on ") })
			url, err := os.ReadFile(file) // there before people are told
			if err != nil {
				t.Fatal(err)
			}
			got := runJSON(t, "ping --json -n 200 --histogram --to "+strings.TrimSpace(string(url))+" "+mode)
			wantLatencies(t, got, 200)
			if got["n"] != 200.0 || got["busy_poll"] != strings.Contains(mode, "--busy-poll") {
				t.Errorf("%v", got)
			}
			if code := <-served; code != exitOK {
				t.Errorf("server: code %d", code)
			}
		})
	}
}

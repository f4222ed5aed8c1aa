package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/metrics"
)

// TestVersion: it is what dgrdma_build_info says.
func TestVersion(t *testing.T) {
	version, revision, goVersion := metrics.Build()
	want := fmt.Sprintf("dgrdmacat %s, revision %s, %s\n", version, revision, goVersion)
	for _, asked := range []string{"version", "--version", "-version", "-v"} {
		if code, out, stderr := runFor(t, t.Context(), asked); code != exitOK || out != want || stderr != "" {
			t.Errorf("%s: code %d: %q %q, want %q", asked, code, out, stderr, want)
		}
	}
}

// TestObjectsSayTheBuild: what is kept of a measurement says which build made it.
func TestObjectsSayTheBuild(t *testing.T) {
	version, _, _ := metrics.Build()
	for name, print := range map[string]func(w io.Writer) error{
		"bench":        func(w io.Writer) error { return printJSON(w, []*benchResult{{}}, false) },
		"bench --link": func(w io.Writer) error { return printJSON(w, []*linkResult{{}}, false) },
		"ping":         func(w io.Writer) error { return (&pingResult{}).print(w, true) },
		"write":        func(w io.Writer) error { return (&written{}).print(w, true) },
		"send":         func(w io.Writer) error { return (&streamResult{}).print(true, &stdio{out: w}) },
	} {
		var b strings.Builder
		var got map[string]any
		if err := print(&b); err != nil || json.Unmarshal([]byte(b.String()), &got) != nil || version == "" || got["version"] != version {
			t.Errorf("%s: %v: %s", name, err, b.String())
		}
	}
}

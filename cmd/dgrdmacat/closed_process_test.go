package main

import (
	"os/exec"
	"strings"
	"testing"
)

// TestOutputClosed: what is to be written to an output that is closed is not taken for written.
func TestOutputClosed(t *testing.T) {
	t.Parallel()
	path := program(t)
	for _, command := range []string{"version", "url udp:192.0.2.1:7100", "completion bash"} {
		for redirect, want := range map[string]string{
			">&-":                "standard output is closed",
			">/dev/full":         "no space left",
			">/dev/null":         "",
			"> /dev/null 2>&1":   "",
			"3>&1 > /dev/stderr": "",
		} {
			out, err := exec.Command("sh", "-c", path+" "+command+" "+redirect).CombinedOutput()
			if (err != nil) != (want != "") || want != "" && !strings.Contains(string(out), want) {
				t.Errorf("%s %s: %v, %s", command, redirect, err, out)
			}
		}
	}
}

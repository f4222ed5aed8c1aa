package main

import (
	"strings"
	"testing"
)

// TestProfilesBetweenUs: whoever gives both sides of two dgrdmacats a profile, or one of them, reads that neither has one.
func TestProfilesBetweenUs(t *testing.T) {
	t.Parallel()
	const says = "--profile says what the other side is: between two dgrdmacats neither side has one\n"
	for _, c := range []struct{ serves, writes string }{{"fpga", "fpga"}, {"", "opencpi"}, {"fpga", ""}} {
		args := []string{"--accept", "any", "--id", "3", "udp:127.0.0.1"}
		if c.serves != "" {
			args = append([]string{"--profile", c.serves}, args...)
		}
		url, _, end := servingMemory(t, args...)
		args = []string{"write", "--to", url + "?giveup=1s", "--addr", "0", "--text", "abcd", "--flag-addr", "64"}
		if c.writes != "" {
			args = append(args, "--profile", c.writes)
		}
		if code, _, stderr := runFor(t, t.Context(), args...); code != exitError || !strings.HasSuffix(stderr, says) {
			t.Errorf("serve --profile %q, write --profile %q: code %d: %s", c.serves, c.writes, code, stderr)
		}
		end()
	}
	url, out, end := servingMemory(t, "--accept", "any", "--id", "3", "udp:127.0.0.1")
	if code, _, stderr := runFor(t, t.Context(), "write", "--profile", "opencpi2", "--to", url, "--addr", "0", "--text", "abcd"); code != exitOK {
		t.Errorf("code %d: %s", code, stderr)
	}
	eventually(t, "serve says why it refuses", func() bool {
		return strings.Contains(out.String(), ", or its --profile is opencpi2, which we are not\n")
	})
	end()
	for _, command := range []string{"serve", "write"} {
		_, help, _ := runFor(t, t.Context(), command, "-h")
		if words := strings.Join(strings.Fields(help), " "); !strings.Contains(words, "between two dgrdmacats neither side has one") {
			t.Errorf("%s -h does not say it: %s", command, help)
		}
	}
}

// TestWriteOfAnotherKind: where the two ends take each other for different kinds of peers,
// both ask about that.
func TestWriteOfAnotherKind(t *testing.T) {
	t.Parallel()
	noGoroutineOfItsOwnLeft(t)
	url, out, end := servingMemory(t, "--accept", "any", "udp:127.0.0.1")
	code, _, stderr := runFor(t, t.Context(), "write", "--profile", "opencpi", "--to", url+"?giveup=2s", "--addr", "0", "--text", "x")
	if code != exitError || !strings.Contains(stderr, "or it is of another kind and needs its profile") || !strings.HasSuffix(stderr, noneBetweenUs+"\n") {
		t.Errorf("code %d: %s", code, stderr)
	}
	code, _, stderr = runFor(t, t.Context(), "write", "--profile", "fpga", "--to", url+"?giveup=2s", "--addr", "0", "--text", "abcd", "--flag-addr", "64")
	if code != exitError || !strings.Contains(stderr, "or it is of another kind and needs its profile") || !strings.HasSuffix(stderr, noneBetweenUs+"\n") {
		t.Errorf("code %d: %s", code, stderr)
	}
	if code, stderr := end(); code != exitOK {
		t.Errorf("serve: code %d: %s", code, stderr)
	}
	for _, raw := range []string{"refused: no_session\n", "it is not one of the peers\n"} {
		if strings.Contains(out.String(), raw) {
			t.Errorf("serve says %q alone: %s", raw, out.String())
		}
	}
	if !strings.Contains(out.String(), ": no_session: it has no session with this run: does it know an earlier one, or is it of another kind? --profile") {
		t.Errorf("serve does not ask for the kind: %s", out.String())
	}
}

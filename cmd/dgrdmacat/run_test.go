package main

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"testing"
)

func runFor(t *testing.T, ctx context.Context, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = run(ctx, args, &out, &err)
	return code, out.String(), err.String()
}

func TestCommandLine(t *testing.T) {
	for _, c := range []struct {
		args           string
		code           int
		stdout, stderr string // what they contain; "" means nothing at all
	}{
		{"", exitUsage, "", "usage: dgrdmacat"},
		{"-h", exitOK, "usage: dgrdmacat", ""},
		{"help", exitOK, "demo", ""},
		{"nonsense", exitUsage, "", `no command "nonsense"`},
		{"demo -h", exitOK, "default 0.05", ""},
		{"demo -loss 2", exitUsage, "", "need 0 to 0.4"},
		{"demo -size 0", exitUsage, "", "need 1 to 1024 MiB"},
		{"demo -what", exitUsage, "", "-what"},
		{"demo stray", exitUsage, "", `unexpected argument "stray"`},
		{"demo -size 1", exitOK, "1 transactions, 1 completion words", ""},
		{"demo -size 3 -loss 0.3 -duplicate 0.5 -reorder 0.5 -seed 7", exitOK, "every byte verified", ""},
	} {
		t.Run(strings.ReplaceAll(c.args, " ", "_"), func(t *testing.T) {
			code, stdout, stderr := runFor(t, context.Background(), strings.Fields(c.args)...)
			if code != c.code {
				t.Errorf("exit code %d, want %d; %s", code, c.code, stderr)
			}
			for _, s := range []struct{ name, got, want string }{{"stdout", stdout, c.stdout}, {"stderr", stderr, c.stderr}} {
				if s.want == "" && s.got != "" || !strings.Contains(s.got, s.want) {
					t.Errorf("%s %q, want %q", s.name, s.got, s.want)
				}
			}
		})
	}
}

func TestDemoSaysWhatWasLostAndRecovered(t *testing.T) {
	code, out, stderr := runFor(t, context.Background(), "demo", "-size", "8", "-loss", "0.1")
	if code != exitOK {
		t.Fatal(stderr)
	}
	m := regexp.MustCompile(`(\d+) datagrams out, (\d+) lost;.*\nrecovered +(\d+) frames sent again`).FindStringSubmatch(out)
	if m == nil || m[2] == "0" || m[3] == "0" {
		t.Errorf("no losses or no repairs at 10 %% loss:\n%s", out)
	}
}

func TestInterruptedDemoFails(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	code, out, stderr := runFor(t, ctx, "demo", "-size", "64")
	if code != exitError || !strings.Contains(stderr, "interrupted") || strings.Contains(out, "verified") {
		t.Errorf("code %d, %q, %q", code, out, stderr)
	}
}

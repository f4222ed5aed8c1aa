package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/dgrdma/dgrdma/tests/netns"
)

// TestPathMistakes checks that what is wrong with a path, or beside it, is said, and how it is written.
func TestPathMistakes(t *testing.T) {
	for args, want := range map[string][]string{
		"--path rate=20Q,rtt=40ms":                           {"rate cannot be 20Q", "bits per second, as 20M"},
		"--path rate=20M":                                    {"rtt is missing", "rate=20M,rtt=40ms"},
		"--path rate=20M,rtt=40ms,delay=1ms":                 {`"delay" is no property`, "rate, rtt, queue"},
		"--path rate=20M,rtt=40ms --serve udp":               {"--path runs both ends: leave out --serve"},
		"--path rate=20M,rtt=40ms --to udp:127.0.0.1:1":      {"leave out --to"},
		"--path rate=20M,rtt=40ms --loss 1":                  {"write loss=1% into it, in place of --loss"},
		"--path rate=20M,rtt=40ms --metrics 127.0.0.1:12345": {"leave out --metrics"},
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), append([]string{"bench"}, strings.Fields(args)...), &stdio{out: &out, err: &errs})
		if code != exitUsage {
			t.Errorf("%s: code %d, %s", args, code, &errs)
		}
		for _, w := range want {
			if !strings.Contains(errs.String(), w) {
				t.Errorf("%s: %s, want %s in it", args, &errs, w)
			}
		}
	}
}

// TestPathDepth checks that a path that holds more than is outstanding by default gets twice of what it holds, within the memory of a server, unless somebody
// chooses.
func TestPathDepth(t *testing.T) {
	for args, want := range map[string]int{
		"--path rate=20M,rtt=40ms":                          0,
		"--path rate=100M,rtt=300ms":                        8,
		"--path rate=100M,rtt=300ms --size 64k":             115,
		"--path rate=100M,rtt=300ms --size 64k --peers 5":   23,
		"--path rate=100M,rtt=300ms --depth 3":              0,
		"--path rate=100M,rtt=300ms --sweep 64..1M":         0,
		"--path rate=10G,rtt=1s":                            65,
		"--path rate=100M,rtt=300ms --local udp?cc=bbr":     8,
		"--path rate=100M,rtt=300ms --size 64 --seconds .1": 117188,
	} {
		o := new(benchOptions)
		fs := flag.NewFlagSet("bench", flag.ContinueOnError)
		o.register(fs)
		if err := cmp.Or(fs.Parse(strings.Fields(args)), o.check()); err != nil {
			t.Fatalf("%s: %v", args, err)
		}
		if got := o.pathDepth(); got != want {
			t.Errorf("%s: depth %d, want %d", args, got, want)
		}
	}
}

// TestWithoutFlag checks every form in which a flag may be written.
func TestWithoutFlag(t *testing.T) {
	args := strings.Fields("bench -path x --json --path y --path=z -path=a --size 64k")
	if got := withoutFlag(args, "path"); !slices.Equal(got, strings.Fields("bench --json --size 64k")) {
		t.Errorf("%q", got)
	}
}

var pathLine = regexp.MustCompile(`(?m)^path +rate=20M,rtt=20ms: [0-9.e+]+ MB in [1-9][0-9]* packets came to its bottleneck, [0-9.]+ % dropped there and 0 packets lost after it; 95 % waited [0-9.]+ ms at most$`)

// TestBenchOverAPath checks that both ends run over the path, at its rate at most, as root and as an ordinary user.
func TestBenchOverAPath(t *testing.T) {
	netns.Require(t)
	for name, who := range map[string]*syscall.Credential{"root": nil, "user": {Uid: 65534, Gid: 65534}} {
		t.Run(name, func(t *testing.T) {
			if out, err := userNamespace(who); err != nil {
				t.Skipf("this system refuses user namespaces: %v, %s", err, out)
			}
			c := exec.Command(program(t), "bench", "--path", "rate=20M,rtt=20ms", "--seconds", "1", "--size", "16k", "--json")
			c.SysProcAttr = &syscall.SysProcAttr{Credential: who}
			c.Env = append(c.Environ(), "TMPDIR=/tmp")
			var out, errs bytes.Buffer
			c.Stdout, c.Stderr = &out, &errs
			if err := c.Run(); err != nil {
				t.Fatalf("%v: %s", err, &errs)
			}
			var got struct {
				Rate  float64 `json:"mb_per_s"`
				Least float64 `json:"min_us"`
			}
			if err := json.Unmarshal(out.Bytes(), &got); err != nil {
				t.Fatalf("%v: %s", err, &out)
			}
			if got.Rate <= 0 || got.Rate > 20/8. || got.Least < 20_000 {
				t.Errorf("%+v over 20 Mbit/s and 20 ms", got)
			}
			if !pathLine.Match(errs.Bytes()) {
				t.Errorf("standard error: %s", &errs)
			}
		})
	}
}

// userNamespace tries what an ordinary user needs for a path.
func userNamespace(who *syscall.Credential) ([]byte, error) {
	if who == nil {
		return nil, nil
	}
	c := exec.Command("unshare", "-Urn", "true")
	c.SysProcAttr = &syscall.SysProcAttr{Credential: who}
	return c.CombinedOutput()
}

// TestPathOfTCP checks that queue pairs go over the path, too, and that what a client refuses ends both.
func TestPathOfTCP(t *testing.T) {
	netns.Require(t)
	out, err := exec.Command(program(t), "bench", "--path", "rate=20M,rtt=20ms", "--op", "write", "--seconds", "0.5", "--size", "16k").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "over RDMA on TCP") || !pathLine.Match(out) {
		t.Errorf("%v: %s", err, out)
	}
	out, err = exec.Command(program(t), "bench", "--path", "rate=20M,rtt=20ms", "--seconds", "0.5", "--op", "write", "--link").CombinedOutput()
	if ended := (*exec.ExitError)(nil); err == nil || !errors.As(err, &ended) || ended.ExitCode() != exitUsage {
		t.Errorf("--link over TCP: %v: %s", err, out)
	}
}

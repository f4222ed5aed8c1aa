package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// runOK runs a command that ends well, and returns what it prints.
func runOK(t *testing.T, args string) string {
	t.Helper()
	code, out, stderr := runFor(t, t.Context(), strings.Fields(args)...)
	if code != exitOK || stderr != "" {
		t.Fatalf("%s: code %d, %s%s", args, code, out, stderr)
	}
	return out
}

// TestBenchIntervals: a line for each, or an array, that has all that was moved.
func TestBenchIntervals(t *testing.T) {
	t.Parallel()
	noGoroutineOfItsOwnLeft(t)
	for mode, perS := range map[string]string{
		"": "transactions_per_s", "--reverse": "transactions_per_s", "--link": "messages_per_s", "--link --stream": "messages_per_s", "--op write": "operations_per_s",
	} {
		moved := func(one any) bool { return wanting(one.(map[string]any), []string{"bytes"}) == "" }
		got := benchJSON(t, 0.1, "-i 20ms --size 64k --rate 20MB "+mode, func(got map[string]any) bool {
			all, _ := got["intervals"].([]any)
			return len(all) >= 2 && slices.ContainsFunc(all, moved)
		})
		all, _ := got["intervals"].([]any)
		bytes, last := 0.0, 0.0
		for _, one := range all {
			i := one.(map[string]any)
			from, to := i["from_seconds"].(float64), i["to_seconds"].(float64)
			if from != last || to <= from {
				t.Errorf("%s: %v behind %v", mode, i, last)
			}
			for _, key := range []string{"transactions_per_s", "messages_per_s", "operations_per_s"} {
				if i[key] != nil != (key == perS) || got[key] != nil != (key == perS) {
					t.Errorf("%s: %s is %v of an interval, %v of all", mode, key, i[key], got[key])
				}
			}
			last = to
			bytes += i["bytes"].(float64)
		}
		if total := got["bytes"].(float64); len(all) < 2 || bytes > total || bytes == 0 { // what is left at the end may be too short
			t.Errorf("%s: %d intervals up to %v s, %v of %v bytes in them", mode, len(all), last, bytes, total)
		}
		line := regexp.MustCompile(`(?m)^ +\d\.\d\d\.\. +\d\.\d\d s +[\d.]+ [kMG]?B +[\d.]+ MB/s +[\d.]+ (transactions/s  \d+ frames? sent again|messages/s  \d+ frames? sent again|operations/s)$`)
		if out := benchUntil(t, 0.1, "-i 20ms "+mode, line.MatchString); !line.MatchString(out) {
			t.Errorf("%s:\n%s", mode, out)
		}
	}
}

// TestBenchIntervalsAreCutOff: who reads no more of them has enough.
func TestBenchIntervalsAreCutOff(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"", "--link"} {
		p := asProcess(t, append(strings.Fields("bench --seconds 86400 -i 20ms"), strings.Fields(mode)...)...)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		p.Stdout = w
		p.start()
		w.Close()
		r.Read(make([]byte, 10))
		r.Close()
		if code := p.code(); code != exitOK || p.err.String() != "" {
			t.Errorf("%s: code %d, %s", mode, code, &p.err)
		}
	}
}

// TestBenchReverse: what the server wrote came here, and both say so.
func TestBenchReverse(t *testing.T) {
	t.Parallel()
	noGoroutineOfItsOwnLeft(t)
	_, there, here := servesOnce(t, "bench --once --serve udp:127.0.0.1", func(url string) string {
		return "bench --json --reverse --warm-up 200ms --rate 400Mbit --seconds 1 --size 10000 --verify full --to " + url
	})
	got := here.object(t)
	if got["reverse"] != true || got["bidir"] != false || got["rate_bytes_per_s"] != 50e6 || got["warm_up_seconds"] != 0.2 ||
		got["bytes"].(float64) < 10000 || got["back_mb_per_s"] != got["mb_per_s"] || got["p50_us"] != nil || got["mb_per_s"].(float64) > 60 {
		t.Errorf("%v", got)
	}
	wrote := regexp.MustCompile(`: 0 transactions of 10000 bytes, 0 MB/s; [1-9]\d* written back, [\d.]+ MB/s;`)
	if there.code != exitOK || strings.Count(there.err, ": 0 transactions of 10000 bytes, 0 MB/s;") != 2 || !wrote.MatchString(there.err) {
		t.Errorf("server: %+v", there)
	}
	if out := runOK(t, "bench --reverse --seconds 0.1"); !strings.Contains(out, "\ndirection    the server wrote\n") {
		t.Error(out)
	}
}

// TestBenchRate: what is moved is no more than was asked for, each way, and not much less.
func TestBenchRate(t *testing.T) {
	t.Parallel()
	for mode, ways := range map[string]float64{"": 1, "--bidir": 2, "--reverse": 1, "--peers 5": 1, "--link": 1, "--link --stream": 1} {
		t.Run("mode "+mode, func(t *testing.T) {
			t.Parallel() // so little leaves the machine to others
			noGoroutineOfItsOwnLeft(t)
			rate := 0.0
			for try := 0; rate < 1.5e6 && try < 10; try++ { // a busy machine is late
				got := runJSON(t, "bench --json --seconds 1 --size 8000 --rate 16Mbit "+mode)
				if rate = got["bytes"].(float64) / got["seconds"].(float64) / ways; rate > 2.05e6 {
					t.Errorf("%.0f bytes a second, want 2e6: %v", rate, got)
				}
			}
			if rate < 1.5e6 {
				t.Errorf("%.0f bytes a second at best, want 2e6", rate)
			}
		})
	}
}

// TestBenchSweep: a line, or an object, for each size, and the server stays for all.
func TestBenchSweep(t *testing.T) {
	t.Parallel()
	noGoroutineOfItsOwnLeft(t)
	for _, mode := range []string{"", "--bidir --depth 2", "--reverse", "--link", "--link --stream --warm-up 10ms"} {
		serve := "bench --once --serve udp:127.0.0.1"
		if strings.Contains(mode, "--link") {
			serve += " --link"
		}
		// A busy machine may do nothing in so short a time, which ends all.
		for seconds := 0.05; ; seconds *= 4 {
			url, end := serving(t, t.Context(), serve)
			code, out, stderr := runOnce(t.Context(), strings.Fields(fmt.Sprintf("bench --json --seconds %g --sweep 100..1k %s --to %s", seconds, mode, url))...)
			serverCode, said := end()
			if strings.Contains(stderr, tooShort) && seconds < 10 {
				continue
			}
			var got []map[string]any
			if err := json.Unmarshal([]byte(out), &got); err != nil || len(got) != 4 || code != exitOK || stderr != "" {
				t.Fatalf("%s: %v: code %d, %s%s; server: code %d, %s", mode, err, code, out, stderr, serverCode, said)
			}
			for i, size := range []float64{100, 200, 400, 800} {
				if got[i]["size"] != size || got[i]["mb_per_s"].(float64) <= 0 {
					t.Errorf("%s: %v", mode, got[i])
				}
			}
			if serverCode != exitOK {
				t.Errorf("%s: server: code %d, %s", mode, serverCode, said)
			}
			break
		}
	}
	for mode, head := range map[string]string{"": "transactions/s", "--link": "messages/s"} {
		lines := strings.Split(benchUntil(t, 0.05, "--sweep 64k..128k "+mode, func(string) bool { return true }), "\n")
		if len(lines) != 4 || !strings.Contains(lines[0], head) {
			t.Fatalf("%q", lines)
		}
		for i, size := range []string{"65536", "131072"} {
			if f := strings.Fields(lines[i+1]); len(f) != 8 || f[0] != size {
				t.Errorf("%q", lines[i+1])
			}
		}
	}
}

// moves waits until bench -i says that something was moved.
func (p *process) moves() {
	p.t.Helper()
	eventually(p.t, "something was moved", func() bool { return regexp.MustCompile(` [1-9][\d.]* MB/s`).MatchString(p.out.String()) })
}

// TestBenchServerIsKilled: what was measured until then is printed, and why it is no more.
func TestBenchServerIsKilled(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"", "--reverse", "--link", "--link --stream"} {
		t.Run("mode "+mode, func(t *testing.T) {
			t.Parallel() // most of it is waiting for who is gone
			serve := append(strings.Fields("bench --serve udp:127.0.0.1?giveup=3s"), strings.Fields(strings.ReplaceAll(mode, "--reverse", ""))...)
			server, url := startServer(t, serve...)
			client := asProcess(t, append(strings.Fields("bench --seconds 3600 -i 50ms --to "+url+"?giveup=3s"), strings.Fields(mode)...)...).start()
			client.moves()
			server.Process.Kill()
			code, out, said := client.code(), client.out.String(), client.err.String()
			if code != exitError || strings.Count(said, "does not answer any more: was the server killed") != 1 {
				t.Errorf("%s: code %d, %s", mode, code, said)
			}
			summary := regexp.MustCompile(`(?m)^moved +[\d.]+ [kMG]B in .* [1-9][\d.]* MB/s`)
			if !summary.MatchString(out) || strings.Contains(out, "\nverified") {
				t.Errorf("%s: %s", mode, out)
			}
		})
	}
}

func TestParseRate(t *testing.T) {
	for s, want := range map[string]uint64{
		"1Gbit": 125e6, "100MB": 100e6, "2.5Mbit": 312500, "2.5Mbit/s": 312500, "8bit": 1, "1B": 1, "1kB/s": 1000, "1TB": 1e12, "1e3B": 1000,
	} {
		if got, err := parseRate(s); err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", s, got, err, want)
		}
	}
	for _, s := range []string{
		"", "1", "1G", "1Gb", "Gbit", "-1MB", "0MB", "7bit", "NaNB", "infB", "+InfB", "1e300GB", "1 MB", "1MiB", "1MBit", "0x1MB", "1_0MB", "1MB/s/s", "bit", "/s",
	} {
		if got, err := parseRate(s); err == nil {
			t.Errorf("%q is taken for %d", s, got)
		}
	}
}

package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/bench"
)

// bothMoved reports whether ours and each that it was compared to moved something in most turns.
func bothMoved(got map[string]any) bool {
	all, _ := got["compare"].([]any)
	return !slices.ContainsFunc(all, func(one any) bool { return wanting(one.(map[string]any), []string{"ratio"}) != "" })
}

// wantComparison checks what a run with --compare, or without, says of others.
func wantComparison(t *testing.T, got map[string]any, args string) {
	t.Helper()
	machine, _ := got["machine"].(map[string]any)
	others, measured := machine["others_cpu_share"].(float64)
	if n, _ := machine["processors"].(float64); n < 1 || !measured || others < 0 || others > 1 || machine["busy"] != (others > 0.1) || got["server_machine"] != nil {
		t.Errorf("the machine is %v, and %v", machine, got["server_machine"])
	}
	_, list, _ := strings.Cut(args, "--compare ")
	list, _, _ = strings.Cut(list, " ")
	compared, _ := got["compare"].([]any)
	ours, _ := got["ours"].(map[string]any)
	if list == "" {
		if compared != nil || ours != nil {
			t.Errorf("compared with %v", compared)
		}
		return
	}
	turns := func(of map[string]any, protocol string) (median float64) {
		median, _ = of["mb_per_s"].(float64)
		least, _ := of["least_mb_per_s"].(float64)
		most, _ := of["most_mb_per_s"].(float64)
		if of["protocol"] != protocol || of["turns"] != float64(bench.TurnsBeside) || least > median || median > most || most <= 0 || of["cpu_ns_per_kb"] == nil || of["waits_per_mb"] == nil {
			t.Errorf("%s has %v", protocol, of)
		}
		return median
	}
	median := turns(ours, "dgrdma")
	names := strings.Split(list, ",")
	if len(compared) != len(names) {
		t.Fatalf("compared with %v", compared)
	}
	for i, name := range names {
		other := compared[i].(map[string]any)
		theirs := turns(other, name)
		ratio, _ := other["ratio"].(float64)
		if want := median / theirs; theirs > 0 && (ratio < 0.999*want || ratio > 1.001*want) {
			t.Errorf("%s: ratio %v of %v to %v", name, ratio, median, theirs)
		}
	}
}

// TestBenchComparesBetweenProcesses: what is at the other end takes processor time that counts, and is no
// other; the server says what came.
func TestBenchComparesBetweenProcesses(t *testing.T) {
	t.Parallel()
	line := `(?m)^%s +[\d.]+ MB/s \([\d.]+\.\.[\d.]+\), \d+ ns of processor time per kB, [\d.]+ waits per MB`
	lines := []string{
		strings.Replace(line, "%s", "dgrdma", 1) + `; median of 5 turns$`, strings.Replace(line, "%s", "tcp", 1), strings.Replace(line, "%s", "raw", 1),
		`(?m)^machine +\d+ processors?(, load [\d.]+)?, others took \d+ % of their time(: busy, do not rely on ratios)?$`,
	}
	var server *process
	// A busy machine may do nothing in so short a turn.
	for seconds := 0.2; ; seconds *= 4 {
		var url string
		server, url = startServer(t, "bench", "--once", "--serve", "udp:127.0.0.1")
		code, out, stderr := runOnce(t.Context(), strings.Fields(fmt.Sprintf("bench --seconds %g --compare tcp,raw --congestion default --to %s", seconds, url))...)
		serverCode := server.code()
		missing := slices.IndexFunc(lines, func(want string) bool { return !regexp.MustCompile(want).MatchString(out) })
		if missing >= 0 && seconds < 10 {
			continue
		}
		if code != exitOK || serverCode != exitOK {
			t.Fatalf("code %d, and of the server %d: %s", code, serverCode, stderr)
		}
		if missing >= 0 {
			t.Errorf("no %s in\n%s", lines[missing], out)
		}
		break
	}
	for _, want := range []string{" by tcp, ", " by raw, "} {
		if n := strings.Count(server.err.String(), want); n != bench.TurnsBeside {
			t.Errorf("the server says %q %d times:\n%s", want, n, &server.err)
		}
	}
}

// TestBenchServerIsKilledAmidAComparison: the turns until then are printed, and why there are no more.
func TestBenchServerIsKilledAmidAComparison(t *testing.T) {
	t.Parallel()
	server, url := startServer(t, "bench", "--serve", "udp:127.0.0.1?giveup=3s")
	client := asProcess(t, strings.Fields("bench --json --seconds 3 --compare tcp --congestion default --to "+url+"?giveup=3s")...).start()
	// What it says of a turn comes before the client knows of it.
	eventually(t, "both had a turn", func() bool { return strings.Count(server.err.String(), " by tcp, ") == 2 })
	server.Process.Kill()
	if code := client.code(); code != exitError || strings.Count(client.err.String(), "\n") != 1 {
		t.Errorf("code %d: %s", code, &client.err)
	}
	var got struct {
		Error   string
		Ours    struct{ Turns int }
		Compare []struct{ Turns int }
	}
	if err := json.Unmarshal([]byte(client.out.String()), &got); err != nil || got.Error == "" || got.Ours.Turns < 1 || len(got.Compare) != 1 || got.Compare[0].Turns < got.Ours.Turns {
		t.Errorf("%v: %s", err, &client.out)
	}
}

// TestBenchLossIsOfItsSide: a server that loses says so, with the seed, and the client that does not is
// sent what was lost once more.
func TestBenchLossIsOfItsSide(t *testing.T) {
	t.Parallel()
	server, url := startServer(t, "bench", "--serve", "udp:127.0.0.1", "--loss", "5%", "--seed", "9")
	eventually(t, "the server says what it loses", func() bool { return strings.Contains(server.err.String(), "5 % of what comes is lost, seed 9\n") })
	resent := 0.0
	for try := 0; resent == 0 && try < 10; try++ { // a busy machine sends little
		got := runJSON(t, "bench --json --verify full --seconds 0.5 --to "+url)
		if got["lost_frames"] != nil || got["loss_seed"] != nil || got["verifications_failed"] != 0.0 {
			t.Fatalf("%v", got)
		}
		resent = got["retransmits"].(float64)
	}
	if resent == 0 {
		t.Error("nothing was sent again")
	}
	// At a client that writes, what it writes is not lost, and the figure says so.
	const spared = " transactions?/s; nothing was lost on the way to the server, unless by its own --loss\n"
	for args, says := range map[string]bool{"--to " + url + " --loss 5": true, "--to " + url + " --loss 5 --reverse": false, "--loss 5": false, "--to " + url: false} {
		if out := runOK(t, "bench --seconds 0.3 --size 64k "+args); regexp.MustCompile(spared).MatchString(out) != says {
			t.Errorf("%s: %s", args, out)
		}
	}
	for _, link := range []string{"", " --link"} {
		out := runOK(t, "bench --seconds 0.3 --loss 3"+link)
		if !regexp.MustCompile(`(?m)^loss +3 % of what comes to this process, seed [1-9]\d*: \d+ frames?$`).MatchString(out) {
			t.Errorf("%s: %s", link, out)
		}
	}
}

// TestBenchLossOfLinks: messages and streams go over a link all the same, whichever side loses;
// each side says what it loses itself.
func TestBenchLossOfLinks(t *testing.T) {
	t.Parallel()
	const spared = "messages?/s; nothing was lost on the way to the server, unless by its own --loss\n"
	// run measures until something is lost: a busy machine sends little.
	run := func(args, counter string) (got map[string]any) {
		for try := 0; try < 10; try++ {
			got = runJSON(t, "bench --json --seconds 0.2 "+args)
			if n, _ := got[counter].(float64); n > 0 {
				return got
			}
		}
		t.Errorf("%s: nothing was lost: %v", args, got)
		return got
	}
	for _, mode := range []string{"--link", "--link --stream"} {
		server, url := startServer(t, append(strings.Fields("bench --serve udp:127.0.0.1 --loss 5% --seed 9"), strings.Fields(mode)...)...)
		eventually(t, "the server says what it loses", func() bool { return strings.Contains(server.err.String(), "5 % of what comes is lost, seed 9\n") })
		if got := run(mode+" --to "+url, "retransmits"); got["lost_frames"] != nil || got["loss_seed"] != nil {
			t.Errorf("%s: %v", mode, got)
		}
		_, there, here := servesOnce(t, "bench --once --loss 20 --seed 1 "+mode+" --serve udp:127.0.0.1", func(url string) string {
			return "bench --seconds 0.1 --loss 20 --seed 2 " + mode + " --to " + url
		})
		if there.code != exitOK || here.code != exitOK {
			t.Errorf("%s: the server ended with %+v, the client with %+v", mode, there, here)
		}
		_, url = startServer(t, append(strings.Fields("bench --serve udp:127.0.0.1"), strings.Fields(mode)...)...)
		if got := run("--loss 20 --seed 5 "+mode+" --to "+url, "lost_frames"); got["loss_percent"] != 20.0 || got["loss_seed"] != 5.0 {
			t.Errorf("%s: %v", mode, got)
		}
		for args, says := range map[string]bool{" --loss 5": true, "": false} {
			if out := runOK(t, "bench --seconds 0.1 "+mode+" --to "+url+args); regexp.MustCompile(spared).MatchString(out) != says {
				t.Errorf("%s%s: %s", mode, args, out)
			}
		}
	}
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// TestBenchOps: every operation with what goes with it, both ends here.
func TestBenchOps(t *testing.T) {
	noGoroutineLeft(t)
	for _, c := range []struct {
		args string
		want map[string]any
	}{
		{"write", map[string]any{"transport": "tcp", "op": "write", "size": 65536.0, "peers": 1.0, "depth": 64.0, "crc": true, "strict": false, "revision": 2.0, "verify": "sample", "one_process": true}},
		{"write --no-crc --strict --depth 3", map[string]any{"crc": false, "strict": true, "depth": 3.0, "outstanding": 3.0}},
		{"write --revision 1 --verify full", map[string]any{"revision": 1.0, "verify": "full"}},
		{"write --bidir --verify full --peers 3", map[string]any{"bidir": true, "peers": 3.0}},
		{"write --reverse --no-crc", map[string]any{"reverse": true}},
		{"write --rate 100MB --warm-up 20ms", map[string]any{"rate_bytes_per_s": 1e8, "warm_up_seconds": 0.02}},
		{"read --verify full", map[string]any{"op": "read"}},
		{"read --reverse --no-crc", map[string]any{"reverse": true}},
		{"read --bidir", map[string]any{"bidir": true}},
		{"send --verify full", map[string]any{"op": "send"}},
		{"send --reverse", map[string]any{"reverse": true}},
		{"fetchadd --peers 4", map[string]any{"op": "fetchadd", "size": 8.0, "peers": 4.0}},
		{"cmpswap --bidir", map[string]any{"op": "cmpswap", "size": 8.0}},
		{"flush --verify full", map[string]any{"op": "flush"}},
		{"flush --reverse --verify off", map[string]any{"verify": "off"}},
		{"write --compare tcp,tls", map[string]any{}},
		{"send --compare tcp --reverse --warm-up 10ms", map[string]any{}},
	} {
		t.Run(strings.ReplaceAll(c.args, " ", "_"), func(t *testing.T) {
			args := "--histogram --op " + c.args
			if !strings.Contains(c.args, "fetchadd") && !strings.Contains(c.args, "cmpswap") {
				args += " --size 65536"
			}
			figures := []string{"seconds", "bytes", "mb_per_s", "operations_per_s", "cpu_ns_per_operation"}
			if strings.Contains(c.args, "--bidir") {
				figures = append(figures, "back_mb_per_s")
			}
			got := benchJSON(t, 0.03, args, func(got map[string]any) bool {
				return (strings.Contains(c.args, "--reverse") || got["p50_us"] != nil) && wanting(got, figures) == "" && bothMoved(got)
			})
			for key, want := range c.want {
				if got[key] != want {
					t.Errorf("%s is %v, want %v", key, got[key], want)
				}
			}
			if key := wanting(got, figures); key != "" {
				t.Errorf("%s is %v", key, got[key])
			}
			if got["verifications_failed"] != 0.0 {
				t.Errorf("%v", got)
			}
			if !strings.Contains(c.args, "--reverse") {
				wantLatencies(t, got, 0)
			}
			wantTurns(t, got, c.args)
		})
	}
}

// wantTurns checks the comparison that --compare asks for.
func wantTurns(t *testing.T, got map[string]any, args string) {
	t.Helper()
	_, rest, _ := strings.Cut(args, "--compare ")
	names, _, _ := strings.Cut(rest, " ")
	all, _ := got["compare"].([]any)
	if names == "" {
		if all != nil {
			t.Errorf("compared: %v", all)
		}
		return
	}
	if ours, _ := got["ours"].(map[string]any); ours["protocol"] != "verbs" || ours["turns"] != 5.0 {
		t.Errorf("ours: %v", ours)
	}
	for i, name := range strings.Split(names, ",") {
		if len(all) <= i || all[i].(map[string]any)["protocol"] != name {
			t.Errorf("compared: %v", all)
		}
	}
	if !bothMoved(got) {
		t.Errorf("compared: %v", all)
	}
}

// TestBenchOpsForPeople: what is printed without --json.
func TestBenchOpsForPeople(t *testing.T) {
	noGoroutineLeft(t)
	for args, want := range map[string][]string{
		"--op write --no-crc":                      {" over RDMA on TCP: ", " operations/s\n", "\nload         write on 1 queue pair, 64 of 65536 bytes outstanding, without CRC\n", "\nbuffer free  min ", "\nverified     sample\n", "ns per operation (both ends)\n"},
		"--op write --verify full --strict":        {"with CRC, frames of one segment\n", "\ntaken        min "},
		"--op read --reverse":                      {"\ndirection    the server posted\n", "\nanswered     not measured\n"},
		"--op write --bidir -i 20ms":               {"\ndirections   ", " operations/s\n"},
		"--op write -i 20ms --reverse --rate 50MB": {" MB/s  ", "\ndirection    the server posted\n"},
	} {
		missing := func(out string) string {
			for _, w := range want {
				if !strings.Contains(out, w) {
					return w
				}
			}
			return ""
		}
		out := benchUntil(t, 0.1, "--size 64k "+args, func(out string) bool { return missing(out) == "" })
		if w := missing(out); w != "" {
			t.Errorf("%s: no %q in\n%s", args, w, out)
		}
		if strings.Contains(out, "sent again") {
			t.Errorf("%s: what TCP sends again nobody has counted\n%s", args, out)
		}
	}
	out := benchUntil(t, 0.05, "--op write --sweep 64..256", func(string) bool { return true })
	if lines := strings.Split(strings.TrimSpace(out), "\n"); len(lines) != 4 || !strings.Contains(lines[0], "operations/s") || !strings.HasSuffix(lines[3], " -") {
		t.Errorf("%s", out)
	}
}

// TestBenchOpsRefused: combinations that cannot be, with the words that say so.
func TestBenchOpsRefused(t *testing.T) {
	noGoroutineLeft(t)
	for args, says := range map[string]string{
		"--op nonsense":                           "need one of ",
		"--no-crc":                                "--no-crc is for RDMA over TCP",
		"--revision 2":                            "--revision is for RDMA over TCP",
		"--op write --to udp:127.0.0.1:7":         "--op is for RDMA over TCP: give an address such as tcp:",
		"--strict --to udp:127.0.0.1:7":           "--strict is for RDMA over TCP",
		"--op write --link":                       "--link is not for RDMA over TCP",
		"--op write --mtu 1500":                   "--mtu is not for RDMA over TCP",
		"--op write --loss 1":                     "--loss is not for RDMA over TCP",
		"--op write --busy-poll":                  "--busy-poll is not for RDMA over TCP",
		"--op write --profile fpga":               "--profile is not for RDMA over TCP",
		"--op fetchadd --size 16":                 "atomic operations have 8 bytes: leave out --size",
		"--op cmpswap --sweep 8..16":              "atomic operations have 8 bytes: leave out --sweep",
		"--op send --bidir":                       "leave out --bidir, or give --reverse",
		"--op write --revision 3":                 `--revision "3": need 1 or 2;`,
		"--op write --revision 1 --reverse":       "--revision 1 has the client send first",
		"--op write --compare raw":                "compare with tcp or tls",
		"--op write --compare tcp --rate 1MB":     "leave out --rate",
		"--op write --peers 4096 --depth 4096":    "peers 4096 and depth 4096: queue pairs of write with that would hold more than 262144 work requests and receives",
		"--op write --reverse --bidir":            "one way",
		"--op write --size 1G --peers 100":        "choose less of one of them",
		"--serve tcp:127.0.0.1 --op read":         "--op is for the client",
		"--serve tcp:127.0.0.1 --no-crc":          "--no-crc is for the client",
		"--serve tcp:127.0.0.1:nonsense":          `port "nonsense"`,
		"--serve tcp:[::1:7":                      "need tcp:HOST:PORT",
		"--to tcp:127.0.0.1":                      "--to tcp:127.0.0.1: need tcp:HOST:PORT",
		"--to tcp:7471":                           "--to tcp:7471: need tcp:HOST:PORT",
		"--to tcp:127.0.0.1:7 --local udp":        "--local udp: that is an endpoint string of DG/RDMA, and this is RDMA over TCP: need tcp:HOST:PORT",
		"--to tcp:127.0.0.1:7 --local tcp:h:7471": "need an address of this machine without a port",
		"--op write --local tcp:127.0.0.1":        "--local belongs to --to",
	} {
		if code, out, stderr := runFor(t, t.Context(), append([]string{"bench"}, strings.Fields(args)...)...); code != exitUsage || out != "" || !strings.Contains(stderr, says) {
			t.Errorf("%s: code %d, %q, %q", args, code, out, stderr)
		}
	}
}

// TestBenchOverTCPBetweenProcesses: a server has several clients, one after the other, and is asked for more
// memory than it has.
func TestBenchOverTCPBetweenProcesses(t *testing.T) {
	t.Parallel()
	server, url := startTCPServer(t, "bench", "--serve", "tcp:127.0.0.1")
	if !strings.HasPrefix(url, "tcp:127.0.0.1:") {
		t.Errorf("serves on %s", url)
	}
	again := 0
	for _, args := range []string{"--size 100000", "--op send --size 64", "--op read --reverse --local tcp:127.0.0.1", "--op fetchadd --peers 150", "--op flush --sweep 1k..2k"} {
		var client *process
		var code int
		for seconds := 0.3; ; seconds *= 4 { // a busy machine may do nothing in so short a time
			client = asProcess(t, append(strings.Fields(fmt.Sprintf("bench --json --seconds %g --to %s", seconds, url)), strings.Fields(args)...)...).start()
			if code = client.code(); !strings.Contains(client.err.String(), tooShort) || seconds > 10 {
				break
			}
			again++
		}
		if code != exitOK || client.err.String() != "" || !strings.Contains(client.out.String(), `"one_process":false`) ||
			strings.Contains(client.out.String(), `"server_bytes_per_peer":`) != strings.Contains(args, "150") {
			t.Errorf("%s: code %d: %s%s", args, code, &client.out.b, client.err.String())
		}
	}
	client := asProcess(t, "bench", "--size", "256M", "--to", url).start()
	if code := client.code(); code != exitUsage || !strings.Contains(client.err.String(), ": --memory 257M beside its --serve") {
		t.Errorf("code %d: %s", code, client.err.String())
	}
	server.Process.Signal(os.Interrupt)
	server.code()
	said := server.err.String()
	if n := strings.Count(said, " operations of "); n < 6 || n > 6+2*again || strings.Contains(said, "error") { // the last client has two sizes
		t.Errorf("the server says\n%s", said)
	}
}

// TestBenchOverTCPOnce: the server ends with its client.
func TestBenchOverTCPOnce(t *testing.T) {
	noGoroutineLeft(t)
	url, there, here := servesOnce(t, "bench --once --serve tcp:127.0.0.1:0 --memory 1M", func(url string) string {
		return "bench --json --seconds 0.1 --size 4k --to " + url
	})
	if got := here.object(t); got["op"] != "write" {
		t.Errorf("%v", got)
	}
	if there.code != exitOK || !strings.HasPrefix(there.err, "serving on "+url+"\n") {
		t.Errorf("server: %+v", there)
	}
	ctx, cancel := context.WithCancel(t.Context())
	url, end := serving(t, ctx, "bench --once --serve tcp")
	if !strings.HasPrefix(url, "tcp:") || strings.Contains(url, "0.0.0.0") || strings.Contains(url, "[::]") {
		t.Errorf("serves on %s", url)
	}
	cancel()
	if code, stderr := end(); code != exitInterrupted || !strings.Contains(stderr, "at every address of this machine") {
		t.Errorf("server: code %d, %s", code, stderr)
	}
}

// TestBenchOverTCPServerIsKilled: what was measured until then is printed, and why it is no more; and at the
// server, that its client is gone.
func TestBenchOverTCPServerIsKilled(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"--op write", "--op read --reverse", "--op send --peers 4", "--op write --verify full"} {
		server, url := startTCPServer(t, "bench", "--serve", "tcp:127.0.0.1")
		client := asProcess(t, append(strings.Fields("bench --seconds 3600 -i 50ms --size 4k --to "+url), strings.Fields(args)...)...).start()
		client.moves()
		server.Process.Kill()
		if code := client.code(); code != exitError || !strings.Contains(client.out.String(), " over RDMA on TCP: ") || strings.Contains(client.out.String(), "verified") ||
			strings.Count(client.err.String(), "does the other side say why") != 1 {
			t.Errorf("%s: code %d: %s%s", args, code, client.out.String(), client.err.String())
		}
	}
	server, url := startTCPServer(t, "bench", "--serve", "tcp:127.0.0.1")
	client := asProcess(t, strings.Fields("bench --seconds 3600 -i 50ms --size 4k --to "+url)...).start()
	client.moves()
	if code, _, stderr := runFor(t, t.Context(), "bench", "--seconds", "0.1", "--to", url); code != exitError || !strings.Contains(stderr, "the server is busy with another client, 127.0.0.1:") {
		t.Errorf("second client: code %d: %s", code, stderr)
	}
	client.Process.Kill()
	client.code()
	eventually(t, "the server says what became of its client", func() bool { return strings.Contains(server.err.String(), "\n127.0.0.1:") })
	if got := runJSON(t, "bench --json --seconds 0.1 --size 4k --to "+url); got["bytes"].(float64) <= 0 {
		t.Errorf("%v", got)
	}
	if said := server.err.String(); strings.Count(said, "\n127.0.0.1:") < 2 {
		t.Errorf("the server says\n%s", said)
	}
}

// TestBenchFailsInJSON: --json prints an object that says why there is nothing else, as ping's does.
func TestBenchFailsInJSON(t *testing.T) {
	_, small := startTCPServer(t, "bench", "--serve", "tcp:127.0.0.1", "--memory", "64k")
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"--to " + nobodyThere, exitError, "nothing listens at that port"},
		{"--to " + small + " --op read --size 1M", exitUsage, "--memory "},
		{"--to udp:127.0.0.1:9?giveup=50ms", exitError, "nobody there answers within 50ms"},
		{"--to udp:127.0.0.1:9?giveup=50ms --link", exitError, "nobody there answers within 50ms"},
		{"--seconds 0.000001 --op read --size 64M", exitError, "give it more"},
	} {
		code, out, stderr := runOnce(patient(t), append(strings.Fields("bench --json"), strings.Fields(c.args)...)...)
		for n := 0; n < 10 && code == exitOK; n++ { // a busy machine may stop so late that something was done
			code, out, stderr = runOnce(patient(t), append(strings.Fields("bench --json"), strings.Fields(c.args)...)...)
		}
		var got map[string]any
		err := json.Unmarshal([]byte(out), &got)
		if said, _ := got["error"].(string); err != nil || code != c.code || !strings.Contains(said, c.says) || !strings.HasSuffix(stderr, said+"\n") {
			t.Errorf("%s: code %d, %v, %s%s", c.args, code, err, out, stderr)
		}
	}
	if code, out, _ := runFor(t, patient(t), "bench", "--json", "--sweep", "1k..2k", "--to", "tcp:127.0.0.1:1"); code != exitError || !strings.HasPrefix(out, "[{") {
		t.Errorf("code %d, %s", code, out)
	}
	if code, out, _ := runFor(t, patient(t), "bench", "--json", "--peers", "0"); code != exitUsage || out != "" {
		t.Errorf("code %d, %s", code, out)
	}
}

// TestBenchNoServerOfQueuePairs: what else listens there is told from a server of bench.
func TestBenchNoServerOfQueuePairs(t *testing.T) {
	t.Parallel()
	noGoroutineOfItsOwnLeft(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for address, says := range map[string]string{
		"tcp:" + l.Addr().String(): "tcp:" + l.Addr().String() + ": something listens at that port, and no answer of iWARP came within 2s; does dgrdmacat bench --serve tcp:ADDRESS:PORT run there?\n",
		nobodyThere:                "connection refused; does dgrdmacat bench --serve tcp:ADDRESS:PORT run there",
	} {
		began := time.Now()
		if code, out, stderr := runFor(t, t.Context(), "bench", "--to", address); code != exitError || out != "" || !strings.Contains(stderr, says) || time.Since(began) > 10*time.Second {
			t.Errorf("after %v: code %d, %q, %q", time.Since(began), code, out, stderr)
		}
	}
}

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/metrics"
)

// TestMetricsOverTCP: servers over TCP, and their clients, show what they do, to Prometheus and to top.
func TestMetricsOverTCP(t *testing.T) {
	for _, c := range []struct {
		server, client string
		accepted       int               // connections, each time
		counts         map[string]string // patterns
	}{
		{"bench --serve tcp:127.0.0.1:0", "bench --op write --seconds 0.1 --size 64k --peers 2", 3,
			map[string]string{"written_bytes": "[1-9].*", "crc_errors": "0", "connections_rejected": "1"}},
		{"rping --serve tcp:127.0.0.1:0", "rping -C 3 -S 100", 1,
			map[string]string{"read_bytes": "300", "received_bytes": "96", "sent_bytes": "396", "connections_rejected": "1"}},
		{"ping --serve tcp:127.0.0.1:0", "ping --op read -n 5 --size 100", 1,
			map[string]string{"fetched_bytes": "[1-9].*", "connections_rejected": "1"}},
	} {
		p, at := startTCPServer(t, append(strings.Fields(c.server), "--metrics", "0")...)
		found := regexp.MustCompile(`metrics on http://(\S+)/metrics; dgrdmacat top `).FindStringSubmatch(p.err.String())
		if found == nil {
			t.Fatalf("%s: %s", c.server, &p.err)
		}
		args := append(strings.Fields(c.client), "--to", at, "--metrics", "0")
		times, code, out, stderr := runTimes(patient(t), args...)
		if code != exitOK || !strings.HasPrefix(stderr, "metrics on http://127.0.0.1:") {
			t.Errorf("%q: code %d, %s%s", args, code, out, stderr)
		}
		c.counts["connections_accepted"] = strconv.Itoa(times * c.accepted)
		stranger := "rping -C 1"
		if strings.HasPrefix(c.server, "rping") {
			stranger = "ping --op read"
		}
		runFor(t, patient(t), append(strings.Fields(stranger), "--to", at)...)
		for name, count := range c.counts {
			is := regexp.MustCompile(fmt.Sprintf(`(?m)^dgrdma_rdma_%s_total\{host="%s"\} %s$`, name, regexp.QuoteMeta(at), count))
			eventually(t, fmt.Sprintf("%s has %s of %s", c.server, count, name), func() bool {
				return is.MatchString(get(t, "http://"+found[1]+metrics.TextPath))
			})
		}
		if code, out, stderr := runFor(t, patient(t), "top", "--count", "1", "--interval", "100ms", found[1]); code != exitOK || !strings.Contains(out, "RDMA ") || !strings.Contains(out, "\n"+at+" ") || strings.Contains(out, "ENDPOINT") {
			t.Errorf("%s: top: code %d, %s%s", c.server, code, out, stderr)
		}
	}
}

// TestTopRDMA: a row says what a host moves and how often its bounds were reached, and marks faults that were just met.
func TestTopRDMA(t *testing.T) {
	view := func(elapsed float64, n uint64) *metrics.View {
		return &metrics.View{PID: 1, Elapsed: elapsed, RDMA: []metrics.RDMA{{Name: "tcp:10.0.0.1:7471", QueuePairs: 3, Counters: map[string]uint64{
			"sent": 10 * n, "asked": 5 * n, "sent_bytes": 1e6 * n, "fetched_bytes": 1e6 * n, "written": n, "received": n, "answered": n, "written_bytes": 4e6 * n,
			"connections_rejected": 7, "terminates_sent": n / 10,
			"crowded_out": 20, "requests_dropped": n, "rejections_cut_short": 300, "queue_full": 1,
		}}}}
	}
	for _, c := range []struct {
		before, now *metrics.View
		cells       string
		style       topStyle
	}{
		{nil, view(5, 5), "tcp:10.0.0.1:7471 3 - - - - 7 0 326", stylePlain},
		{view(1, 1), view(3, 5), "tcp:10.0.0.1:7471 3 4.0 8.0 30 6 7 0 326", stylePlain},
		{view(1, 9), view(2, 10), "tcp:10.0.0.1:7471 3 2.0 4.0 15 3 7 1 331", styleBad},
	} {
		if rows := rdmaTable(c.before, c.now, secondsBetween(c.before, c.now)).rows; len(rows) != 1 || strings.Join(rows[0].cells, " ") != c.cells || rows[0].style != c.style {
			t.Errorf("%+v, want %s", rows, c.cells)
		}
	}
}

// TestMetricsOfNFS: nfs serve shows calls by status, bytes and connections, over both transports, to Prometheus and to top.
func TestMetricsOfNFS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), make([]byte, 1000), 0o644); err != nil {
		t.Fatal(err)
	}
	p, rdma, tcp := startNFS(t, dir, "--metrics", "0")
	found := regexp.MustCompile(`metrics on http://(\S+)/metrics; dgrdmacat top `).FindStringSubmatch(p.err.String())
	if found == nil {
		t.Fatal(&p.err)
	}
	for _, at := range []string{rdma, tcp} {
		if code, _, stderr := runFor(t, patient(t), "nfs", "cat", at+"/export/file"); code != exitOK {
			t.Error(stderr)
		}
		runFor(t, patient(t), "nfs", "cat", at+"/export/none")
		runFor(t, patient(t), "rpcinfo", at, "nlockmgr")
	}
	for name, count := range map[string]string{
		`nfs_calls_total\{server="S",status="NFS3_OK"\}`: "[1-9].*", `nfs_calls_total\{server="S",status="NFS3ERR_NOENT"\}`: "[2-9]",
		`nfs_bytes_total\{of="read",server="S"\}`: "2000", `nfs_bytes_total\{of="write",server="S"\}`: "0",
		`rpc_calls_total\{server="S"\}`: "[1-9].*", `rpc_procedure_calls_total\{procedure="READ",program="NF[S]",server="S",transport="rdma",version="3"\}`: "[1-9].*", `rpc_calls_unavailable_total\{server="S"\}`: "2", `rpc_credits\{server="S"\}`: "64", `rpc_connections\{server="S"\}`: `\d+`,
	} {
		is := regexp.MustCompile(`(?m)^dgrdma_` + strings.ReplaceAll(name, "S\"", regexp.QuoteMeta("tcp"+strings.TrimPrefix(rdma, "rdma"))+`"`) + " " + count + "$")
		eventually(t, is.String(), func() bool { return is.MatchString(get(t, "http://"+found[1]+metrics.TextPath)) })
	}
	if code, out, stderr := runFor(t, patient(t), "top", "--count", "1", "--interval", "100ms", found[1]); code != exitOK || !strings.Contains(out, "RPC ") || !strings.Contains(out, " CALLS/s ") {
		t.Errorf("top: code %d, %s%s", code, out, stderr)
	}
}

// TestTopRPC: a row says how many calls came in a second, what was moved, and how many had no results, and marks failures that were just met.
func TestTopRPC(t *testing.T) {
	view := func(elapsed float64, n uint64) *metrics.View {
		return &metrics.View{PID: 1, Elapsed: elapsed, RPC: []metrics.RPC{{Name: "tcp:10.0.0.1:20049", Connections: 3, Credits: 64, ReadBytes: 4e6 * n, WriteBytes: 2e6 * n,
			Counters: map[string]uint64{"calls": 20 * n, "calls_denied": n, "calls_failed": n / 10, "calls_duplicate": n, "malformed": 5}, NFS: map[string]uint64{"NFS3_OK": 18 * n, "NFS3ERR_NOENT": n}}}}
	}
	for _, c := range []struct {
		before, now *metrics.View
		cells       string
		style       topStyle
	}{
		{nil, view(1, 1), "tcp:10.0.0.1:20049 3 - - - - - 5", stylePlain},
		{view(1, 1), view(2, 3), "tcp:10.0.0.1:20049 3 40 8.0 4.0 4 2 5", stylePlain},
		{view(1, 1), view(2, 11), "tcp:10.0.0.1:20049 3 200 40.0 20.0 21 10 5", styleBad},
	} {
		if rows := rpcTable(c.before, c.now, secondsBetween(c.before, c.now)).rows; len(rows) != 1 || strings.Join(rows[0].cells, " ") != c.cells || rows[0].style != c.style {
			t.Errorf("%v, want %s", rows, c.cells)
		}
	}
}

package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/verbs"
	"github.com/dgrdma/dgrdma/verbs/latency"
)

// TestTCPNobodyThere: who dials what is no server of iWARP, or none at all, hears of it soon.
func TestTCPNobodyThere(t *testing.T) {
	t.Parallel()
	noGoroutineOfItsOwnLeft(t)
	there := map[string]struct{ at, says string }{
		"nobody":          {nobodyThere, "nothing listens at that port: connection refused; does "},
		"HTTP":            {stranger(t, sayingHTTP), "does not speak iWARP"},
		"a silent server": {stranger(t, func(net.Conn) {}), ": something listens at that port, and no answer of iWARP came within 2s; does "},
		"nobody at all":   {overcrowded(t), ": nobody answers within 2s; is that machine up, do routes and firewalls let TCP through, and does "},
		"one that closes": {stranger(t, func(nc net.Conn) { nc.Close() }), "connection ended during set-up"},
		"nobody's name":   {"tcp:nobody.invalid:7", "is the name right? An IP address does in its place\n"},
		"nobody's way":    {"tcp:255.255.255.255:7", "no way there: dial tcp 255.255.255.255:7: connect: network is unreachable\n"},
	}
	for _, command := range []string{"rping --wait 2s --json --count 1", "ping --op send --json -n 1", "bench --op send --json"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			for name, c := range there {
				began := time.Now()
				code, out, stderr := runFor(t, patient(t), append(strings.Fields(command), "--to", c.at)...)
				if took := time.Since(began); code != exitError || !strings.Contains(stderr, c.says) || strings.Count(stderr, "listens") > 1 || strings.Count(stderr, "iWARP") > 1 || strings.Count(stderr, "?") > 1 || !strings.Contains(out, `"error":"`) || took > 6*time.Second {
					t.Errorf("%s to %s: code %d after %v, %s%s", command, name, code, took, out, stderr)
				}
			}
		})
	}
}

// TestTCPNoSocket: what the system refuses a server, or the client's side, is explained as over UDP.
func TestTCPNoSocket(t *testing.T) {
	busy := strings.TrimPrefix(stranger(t, func(net.Conn) {}), "tcp:127.0.0.1:")
	for address, says := range map[string]string{
		"tcp:127.0.0.1:" + busy: "another socket has the port; choose one, or 0 for any\n",
		"tcp:" + busy:           "another socket has the port, at all addresses or at one; choose a port, or 0 for any, or name an address\n",
		"tcp:192.0.2.1:7":       "no interface of this machine has the address; ip addr lists those there are\n",
		"tcp:nobody.invalid:7":  "is the name right? An IP address does in its place\n",
	} {
		for _, command := range []string{"rping", "ping", "bench"} {
			if code, out, stderr := runFor(t, patient(t), command, "--serve", address); code != exitError || out != "" || !strings.HasSuffix(stderr, says) {
				t.Errorf("%s --serve %s: code %d, %s%s", command, address, code, out, stderr)
			}
		}
	}
	for _, command := range []string{"rping", "ping --op read", "bench"} {
		args := append(strings.Fields(command), "--to", "tcp:127.0.0.1:"+busy, "--local", "tcp:192.0.2.1")
		if code, out, stderr := runFor(t, patient(t), args...); code != exitError || out != "" || !strings.HasSuffix(stderr, "ip addr lists those there are\n") {
			t.Errorf("%q: code %d, %s%s", args, code, out, stderr)
		}
	}
}

// TestTCPWrongKind: servers of one kind tell clients of the other so.
func TestTCPWrongKind(t *testing.T) {
	_, rpings := startTCPServer(t, "rping", "--serve", "tcp:127.0.0.1:0")
	_, pings := startTCPServer(t, "ping", "--serve", "tcp:127.0.0.1")
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"rping --count 1 --to " + pings, exitError, "dgrdmacat rping: " + pings[4:] + " rejected the connection: this is ping --serve of dgrdmacat, which takes its own clients only\n"},
		{"bench --to " + pings, exitError, "dgrdmacat bench: no server of bench over TCP listens there: " + pings[4:] + " rejected the connection: this is ping --serve of dgrdmacat, which takes its own clients only; does dgrdmacat bench --serve "},
		{"bench --to " + rpings, exitError, "dgrdmacat bench: no server of bench over TCP listens there: " + rpings[4:] + " rejected the connection: this is rping, whose clients have no private data; does dgrdmacat bench --serve "},
		{"ping --op read --to " + rpings, exitError, "dgrdmacat ping: " + rpings[4:] + " rejected the connection: this is rping, whose clients have no private data\n"},
		{"ping --op read --to " + accepting(t, nil, func(q *verbs.QueuePair) { <-q.Done() }), exitError, "did not say for what"},
		{"ping --op read --size 2M --to " + pings, exitUsage, "dgrdmacat ping: --size 2M: " + pings[4:] + " rejected the connection: "},
		{"ping --op read --size 2M --to " + pings, exitUsage, "the server takes 1048576 at most; give ping --serve as large a --size"},
	} {
		began := time.Now()
		if code, out, stderr := runFor(t, patient(t), strings.Fields(c.args)...); code != c.code || !strings.Contains(stderr, c.says) || out != "" || time.Since(began) > latency.Patience/2 {
			t.Errorf("%s: code %d after %v, %s%s", c.args, code, time.Since(began), out, stderr)
		}
	}
}

// TestTCPUsage: what does not fit is a mistake, and says why.
func TestTCPUsage(t *testing.T) {
	for args, says := range map[string]string{
		"rping":                                                "give --serve or --to, as in --to tcp:HOST",
		"rping --serve tcp --to tcp:h":                         "give one of them",
		"rping -c":                                             "-c needs the server's address, as in -a 10.0.0.2\n",
		"rping -a 10.0.0.2":                                    "-a is for -c and -s, the client and the server of rdma-core's rping: give one of them\n",
		"rping -P --serve tcp":                                 "-P is for -c and -s",
		"rping -c -s":                                          "-c and -s, --to and --serve are the two ends: give one of them\n",
		"rping -c -a h --to tcp:h":                             "give one of them\n",
		"rping -s --serve tcp":                                 "give one of them\n",
		"rping -c -a h -P":                                     "-P is for -s, the server\n",
		"rping -c -a h -p 70000":                               "-p 70000: need a number from 1 to 65535\n",
		"rping --to tcp:h --once":                              "belong to --serve",
		"rping --serve tcp -C 3":                               "-C is for the client",
		"rping --serve tcp --json":                             "--json is for the client",
		"rping --serve tcp --revision 1":                       "--revision is for the client",
		"rping --to udp:h:7":                                   "need tcp:HOST:PORT",
		"rping --to tcp:h -C -1":                               "--count -1",
		"rping --to tcp:h -S 25":                               "need 26 to 65535",
		"rping --to tcp:h -S 64k":                              "need 26 to 65535",
		"rping --to tcp:h -v --json":                           "leave out -v",
		"rping --to tcp:h --wait 0s":                           "--wait 0s",
		"rping --to tcp:h --revision 3":                        `--revision "3": need 1 or 2;`,
		"rping --to tcp:h --revision 1 --peer-to-peer":         "needs --revision 2",
		"rping --to tcp:h --ready read":                        "belongs to --peer-to-peer",
		"rping --to tcp:h --peer-to-peer --ready nod":          "need one of write, read, send",
		"rping --to tcp:h --local tcp:127.0.0.1:7":             "without a port",
		"rping --to tcp:h --local udp":                         "need tcp:HOST:PORT",
		"rping --serve udp":                                    "need tcp:HOST:PORT",
		"rping --serve tcp stray":                              "unexpected argument",
		"ping --to tcp:h:7":                                    "say which operation to measure with --op",
		"ping --to tcp:h --op read":                            "need tcp:HOST:PORT, as in tcp:10.0.0.2:7471\n",
		"bench --to tcp:h":                                     "need tcp:HOST:PORT, as in tcp:10.0.0.2:7471\n",
		"ping --serve tcp:a:b:c":                               "need tcp:HOST:PORT, as in tcp:10.0.0.2:7471 or tcp:[::1]:7471\n",
		"rping --serve tcp:a:b:c":                              "need tcp:HOST:PORT, as in tcp:10.0.0.2:7174 or tcp:[::1]:7174\n",
		"rping --to tcp:h:0":                                   "need tcp:HOST:PORT, as in tcp:10.0.0.2:7174\n",
		"ping --to tcp:h:7 --op reed":                          "need one of send, write, read, fetchadd, cmpswap, flush",
		"ping --to udp:h:7 --op read":                          "--to udp:h:7 is not tcp:HOST:PORT",
		"ping --to ocpi-udp-rdma:10.0.0.1;7;64.3.16 --op read": "is not tcp:HOST:PORT",
		"ping --serve udp --op read":                           "answers all operations",
		"ping --serve tcp --op read":                           "--op is for the client",
		"ping --serve tcp -c 3":                                "-c is for the client",
		"ping --to udp:h:7 --no-crc":                           "--no-crc is for RDMA over TCP",
		"ping --serve udp --file f":                            "--file is for RDMA over TCP",
		"ping --to tcp:h:7 --op read --file f":                 "--file belongs to --serve",
		"ping --to tcp:h:7 --op read --link":                   "--link is for DG/RDMA",
		"ping --to tcp:h:7 --op read --busy-poll":              "--busy-poll is for DG/RDMA",
		"ping --to tcp:h:7 --op fetchadd --size 4":             "--op fetchadd: atomic operations have 8 bytes: leave out --size",
		"ping --to tcp:h:7 --op read --local tcp:1":            "without a port",
		"ping --to tcp:[::]:7 --op read":                       "stands for all addresses",
	} {
		if code, out, stderr := runFor(t, patient(t), strings.Fields(args)...); code != exitUsage || out != "" || !strings.Contains(stderr, says) {
			t.Errorf("%s: code %d, %s%s", args, code, out, stderr)
		}
	}
}

// TestTCPAddressesElsewhere: an address of RDMA over TCP in the place of an endpoint string is explained, and the other way round.
func TestTCPAddressesElsewhere(t *testing.T) {
	const known = "RDMA over TCP, which rping, ping --op and bench --op take, and no endpoint string of DG/RDMA: give "
	for args, says := range map[string]string{
		"write --to tcp:10.0.0.1:7 --addr 0 --text x":             "--to tcp:10.0.0.1:7: that is an address of " + known + "udp:HOST:PORT, or the URL",
		"write --to udp:10.0.0.1:7 --local tcp --addr 0 --text x": "--local tcp: that is an address of " + known + "one such as udp:7100",
		"send tcp:10.0.0.1:7":                                     "URL tcp:10.0.0.1:7: that is an address of " + known + "udp:HOST:PORT",
		"listen tcp:7000":                                         "URL tcp:7000: that is an address of " + known + "one such as udp:7100",
		"serve --accept any tcp":                                  "URL tcp: that is an address of " + known + "one such as udp:7100",
		"serve --peer tcp:10.0.0.1:7 udp":                         "--peer tcp:10.0.0.1:7: that is an address of " + known + "the URL that the other side printed",
		"url tcp:10.0.0.1:7":                                      "tcp:10.0.0.1:7: that is an address of " + known + "one such as udp:10.0.0.2:7100",
		"ping --to udp:10.0.0.1:7 --local tcp":                    "--local tcp: that is an address of " + known,
		"rping tcp:10.0.0.1":                                      "did you mean --to tcp:10.0.0.1, or --serve?",
		"top tcp:10.0.0.1:7":                                      "tcp:10.0.0.1:7: that is where RDMA goes, and top asks over HTTP: give the address of --metrics",
		"top udp:7100":                                            "give the address of --metrics",
		"rping --to udp:h:7":                                      "--to udp:h:7: that is an endpoint string of DG/RDMA, and this is RDMA over TCP: need tcp:HOST:PORT",
		"rping --serve ether:eth0":                                "--serve ether:eth0: that is an endpoint string of DG/RDMA",
		"bench --to tcp:h:7 --local udp":                          "--local udp: that is an endpoint string of DG/RDMA",
		"ping --op read --to tcp:h:7 --local ocpi-udp-rdma:10.0.0.1;7100;64.2.16": "that is an endpoint string of DG/RDMA",
		"rping --to 10.0.0.1:7": "--to 10.0.0.1:7: need tcp:HOST:PORT",
	} {
		code, out, stderr := runFor(t, patient(t), strings.Fields(args)...)
		if code != exitUsage || out != "" || !strings.Contains(stderr, says) || strings.Contains(stderr, "expected ocpi-") {
			t.Errorf("%s: code %d, %s%s", args, code, out, stderr)
		}
	}
	for _, command := range []string{"rping", "ping", "bench"} {
		_, help, _ := runFor(t, t.Context(), command, "-h")
		if words := strings.Join(strings.Fields(help), " "); !strings.Contains(words, "hear those who reach any address of this machine, IPv4 or IPv6, tcp:10.0.0.2 and tcp:10.0.0.2:7") {
			t.Errorf("%s -h does not say where a server is heard:\n%s", command, help)
		}
	}
}

// TestTCPServersInterrupted: a server ends well at ^C, or, if it is for one client that has not come, by the signal; clients end by it, and
// say what they have done.
func TestTCPServersInterrupted(t *testing.T) {
	t.Parallel()
	_, rpings := startTCPServer(t, "rping", "--serve", "tcp:127.0.0.1:0")
	pinged, pings := startTCPServer(t, "ping", "--serve", "tcp:127.0.0.1")
	again := 0
	for _, c := range []struct {
		args string
		ends bool // well
		says string
	}{
		{"rping --serve tcp:127.0.0.1:0", true, ""},
		{"ping --serve tcp:127.0.0.1", true, ""},
		{"rping --once --serve tcp:127.0.0.1:0", false, "interrupted"},
		{"ping --once --serve tcp:127.0.0.1", false, "interrupted"},
		{"rping --to " + rpings, false, "interrupted after "},
		{"ping -n 100000000 --op write --to " + pings, false, "interrupted after "},
		{"ping -n 100000000 --op read -i 10s --to " + pings, false, "interrupted after "},
	} {
		for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
			// A busy machine may take long to begin: then it is tried again, with more time.
			for after := 300 * time.Millisecond; ; after *= 2 {
				p := asProcess(t, strings.Fields(c.args)...).start()
				serves := strings.Contains(c.args, "--serve")
				if serves {
					eventually(t, "it serves", func() bool { return strings.Contains(p.err.String(), " on tcp:") })
				} else {
					time.Sleep(after)
				}
				p.Process.Signal(s)
				want := exitOK
				if !c.ends {
					want = 128 + int(s)
				}
				code := p.code()
				done := strings.Contains(p.out.String(), " over tcp")
				if !serves && !done && after < patience/8 {
					again++ // with a ping under way, for whose answer it did not wait for long
					continue
				}
				if code != want || !strings.Contains(p.err.String(), c.says) {
					t.Errorf("%s: code %d after %v, %s%s", c.args, code, s, &p.out, &p.err)
				}
				if !serves && !done {
					t.Errorf("%s: nothing of what was done: %s", c.args, &p.out)
				}
				break
			}
		}
	}
	eventually(t, "the server has heard good-bye", func() bool { return strings.Count(pinged.err.String(), "write of 64 bytes") >= 2 })
	if said := pinged.err.String(); strings.Count(said, "killed") > again || strings.Count(said, "reset") > again {
		t.Errorf("no good-bye: %s", said)
	}
}

// TestTCPServerInterruptedAmid: a client whose server ends at ^C has a good-bye, and does not speak of killing, or of an answer that it did not
// wait for.
func TestTCPServerInterruptedAmid(t *testing.T) {
	for _, c := range []struct{ server, client string }{
		{"rping --serve tcp:127.0.0.1:0", "rping"},
		{"ping --serve tcp:127.0.0.1", "ping -n 100000000 --op send"},
		{"ping --serve tcp:127.0.0.1", "ping -n 100000000 --op write -i 2ms"},
		{"ping --serve tcp:127.0.0.1", "ping -n 100000000 --op read"},
	} {
		server, at := startTCPServer(t, strings.Fields(c.server)...)
		client := asProcess(t, append(strings.Fields(c.client+" --metrics 0"), "--to", at)...).start()
		client.moved()
		server.Process.Signal(os.Interrupt)
		if code, said := client.code(), client.err.String(); code != exitError || !strings.Contains(said, "the peer closed the connection, before this side was done; does the other side say why?\n") ||
			strings.Contains(said, "killed") || strings.Contains(said, "reset") || strings.Contains(said, "no answer within") {
			t.Errorf("%s: code %d, %s%s", c.client, code, &client.out, said)
		}
		if code := server.code(); code != exitOK {
			t.Errorf("%s: code %d, %s", c.server, code, &server.err)
		}
	}
}

// TestTCPURLFile: --url-file has what clients dial while the server is there, and what an earlier run left is replaced.
func TestTCPURLFile(t *testing.T) {
	for _, server := range []string{"rping --serve tcp:0", "ping --serve tcp"} {
		file := fileOf(t, []byte("tcp:192.0.2.1:7\n"))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			runFor(t, ctx, append(strings.Fields(server), "--url-file", file)...)
		}()
		var at string
		eventually(t, "the URL is there", func() bool {
			b, _ := os.ReadFile(file)
			at = strings.TrimSpace(string(b))
			return at != "" && !strings.Contains(at, "192.0.2.1:7")
		})
		client := "rping --count 2 --to "
		if strings.HasPrefix(server, "ping") {
			client = "ping --op read -n 2 --to "
		}
		runOK(t, client+at)
		stop()
		<-ended
		wantFiles(t, filepath.Dir(file), map[string][]byte{})
	}
}

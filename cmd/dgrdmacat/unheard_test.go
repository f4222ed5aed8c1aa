package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/tests/netns"
	"github.com/dgrdma/dgrdma/url"
)

// says waits until a process has said something on standard error.
func (p *process) says(what string) {
	p.t.Helper()
	eventually(p.t, "it says "+what, func() bool { return strings.Contains(p.err.String(), what) })
}

// TestNobodyListens: that is said while the command waits, and who starts meanwhile is found.
func TestNobodyListens(t *testing.T) {
	t.Parallel()
	at := free(t)
	peer := localString(at, 4096, 2)
	client := asProcess(t, "write", "--to", peer+"?giveup=2m", "--addr", "0", "--text", "x").start()
	client.says(at.String() + ": nothing listens at that port; it is asked again for 2m0s, as it may be about to start\n")
	serveProcess(t, "--accept", "any", peer)
	if code := client.code(); code != exitOK || strings.Count(client.err.String(), "\n") != 1 {
		t.Errorf("code %d: %s%s", code, &client.out, &client.err)
	}
	for _, args := range [][]string{
		{"send", "/dev/null"}, {"ping", "--to"}, {"ping", "--link", "--to"}, {"bench", "--to"}, {"bench", "--link", "--to"},
		{"write", "--addr", "0", "--text", "x", "--to"},
	} {
		at := free(t)
		for _, to := range []string{"udp:" + at.String() + "?giveup=2m", localString(at, 134217728, 2) + "?giveup=2m"} {
			p := asProcess(t, append(args, to)...).start()
			eventually(t, fmt.Sprintf("%v says that nothing listens", args), func() bool {
				if p.err.String() != "" && strings.Contains(p.err.String(), "nobody there answers") { // a busy machine took all of the few seconds
					p.code()
					p = asProcess(t, append(args, to)...).start()
				}
				return strings.Contains(p.err.String(), at.String()+": nothing listens at that port; ")
			})
			p.Process.Kill()
			p.code()
		}
	}
}

// TestNobodyListensInTheEnd: the error of each command that dials says that too then, and none of what else could be why, whether the
// peer was named by its address alone or by a complete string.
func TestNobodyListensInTheEnd(t *testing.T) {
	t.Parallel()
	at := free(t)
	lines := []string{"ping --to udp:" + at.String(), "send /dev/null udp:" + at.String()}
	for _, command := range []string{
		"send /dev/null", "ping --to", "ping --busy-poll --to", "ping --link --to", "bench --to", "bench --depth 64 --to", "bench --link --to", "write --addr 0 --text x --to",
		"write --addr 0 --text x --json --key-file " + keyFile(t) + " --to",
	} {
		lines = append(lines, command+" "+localString(at, 34635776, 2)+"?giveup=3s")
	}
	for _, args := range lines {
		want := "dgrdmacat " + strings.Fields(args)[0] + ": " + at.String() + ": nothing listens at that port, or a firewall says so; is the other side started, and is that its port?\n"
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			var code int
			var stderr string
			for range 3 { // a busy machine may take all of the time
				if code, _, stderr = runFor(t, t.Context(), strings.Fields(args)...); strings.Count(stderr, "listens") == 2 {
					break
				}
			}
			if code != exitError || !strings.HasSuffix(stderr, "\n"+want) {
				t.Errorf("code %d: %s", code, stderr)
			}
		})
	}
}

// TestToldWhy: what the system was told stands in place of a guess, unless the peer was heard after it.
func TestToldWhy(t *testing.T) {
	t.Parallel()
	at := free(t)
	peer, err := url.Parse(localString(at, 4096, 2))
	if err != nil {
		t.Fatal(err)
	}
	guess := &dgrdma.PeerError{ID: 2, Err: dgrdma.ErrPeerDown}
	for _, c := range []struct {
		err, told error
		says      string
	}{
		{guess, errNoListener, at.String() + ": nothing listens at that port, or a firewall says so; is the other side started, and is that its port?"},
		{guess, syscall.EHOSTUNREACH, at.String() + ": no route to host, or a firewall says so; is that its address, and is its machine up?"},
		{guess, nil, guess.Error()},
		{errInterrupted, errNoListener, errInterrupted.Error()},
	} {
		if err := orTold(c.err, c.told, peer); err.Error() != c.says || !errors.Is(err, c.err) {
			t.Errorf("%v told %v: %v", c.err, c.told, err)
		}
	}

	e, err := dgrdma.Open("udp:127.0.0.1?giveup=2m", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	conn, err := e.Dial(peer.String())
	if err != nil {
		t.Fatal(err)
	}
	var said lockedBuffer
	stop := sayUnheard(&said, e, peer, peer)
	wrote := make(chan error, 1)
	go func() { wrote <- conn.Write(t.Context(), &dgrdma.Transaction{}) }()
	eventually(t, "it says that nothing listens", func() bool { return strings.Contains(said.String(), errNoListener.Error()) })
	late, err := dgrdma.Open(peer.String(), &dgrdma.Config{AcceptAny: true})
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	if err := <-wrote; err != nil {
		t.Fatal(err)
	}
	if told := stop(); told != nil {
		t.Errorf("the peer was heard, and this is why it was not: %v", told)
	}
}

// TestNothingIsHeard: of one who has the port, and is silent, that is said.
func TestNothingIsHeard(t *testing.T) {
	t.Parallel()
	silent, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	at := silent.LocalAddr().(*net.UDPAddr).AddrPort()
	p := asProcess(t, "write", "--to", localString(at, 4096, 2)+"?giveup=2m", "--addr", "0", "--text", "x").start()
	p.says(at.String() + ": nothing was heard of it so far; it is asked again for 2m0s, as it may be about to start\n")
	p.Process.Kill()
	if p.code(); strings.Contains(p.err.String(), "listens") {
		t.Errorf("%s", &p.err)
	}
}

// TestOtherKeyIsSaidAmid: that who is there does not accept a key is said long before the peer is given up for it.
func TestOtherKeyIsSaidAmid(t *testing.T) {
	t.Parallel()
	at, _, _ := servingMemory(t, "--accept", "any", "--key-file", keyFile(t), "udp:127.0.0.1")
	for _, to := range []string{at + "?giveup=2m", addressOf(t, at)} {
		p := asProcess(t, "write", "--to", to, "--key-file", keyFile(t), "--addr", "0", "--text", "x").start()
		p.says(": who is there does not accept our key; it is asked again for ")
		p.Process.Kill()
		if p.code(); strings.Contains(p.err.String(), "about to start") {
			t.Errorf("%s: %s", to, &p.err)
		}
	}
}

// TestNobodyOnTheNetwork: that no machine has an address is said as soon as the system knows; and who has a wrong MAC address is not
// asked about routes.
func TestNobodyOnTheNetwork(t *testing.T) {
	t.Parallel()
	netns.Require(t)
	pair := netns.NewPair(t, 1500)
	nobody := netip.AddrPortFrom(netns.Nobody(netns.IPv4(1), 1), 9)
	client := asProcess(t, "write", "--to", localString(nobody, 4096, 2)+"?giveup=2m", "--addr", "0", "--text", "x")
	pair[0].In(func() { client.start() })
	client.says(nobody.String() + ": no route to host; it is asked again for 2m0s, ")
	client.Process.Kill()
	client.code()

	const wrong = "02:aa:bb:cc:dd:ee"
	send := func(giveUp string) *process {
		p := asProcess(t, "send", "--local", "ether:"+netns.Device, "/dev/null", "ocpi-ether-rdma:"+netns.Device+"/"+wrong+";34635776.7.65535?giveup="+giveUp)
		pair[0].In(func() { p.start() })
		return p
	}
	client = send("2m")
	client.says(wrong + ": nothing was heard of it so far; it is asked again for 2m0s, ")
	client.Process.Kill()
	client.code()
	client = send("300ms")
	if code, says := client.code(), client.err.String(); code != exitError || !strings.Contains(says, "is that its MAC address, on the network of the interface that --local names?\n") || strings.Contains(says, "routes") {
		t.Errorf("code %d: %s", code, says)
	}
}

// TestBenchOfTheRealSize: of a server's string that says more memory than there is, that is said as soon as it is known.
func TestBenchOfTheRealSize(t *testing.T) {
	t.Parallel()
	_, served := startServer(t, "bench", "--serve", "udp:127.0.0.1", "--memory", "16M")
	wrong := strings.Replace(served, ";16777216.", ";134217728.", 1) + "?giveup=" + patience.String()
	if wrong == served {
		t.Fatal(served)
	}
	for args, says := range map[string]string{
		"--depth 64": "need 67117056 bytes of memory at the server, which has 16777216: choose less of one of them, or give the server more: --memory 65M beside its --serve; --to says that it has 134217728 bytes: take the string that it prints now",
		"--depth 4":  "",
	} {
		code, out, stderr := runFor(t, t.Context(), strings.Fields("bench --seconds 0.5 "+args+" --to "+wrong)...)
		if (code == exitUsage) != (says != "") || (code == exitOK) != (says == "") || !strings.Contains(stderr, says) || strings.Contains(out, "moved") != (says == "") {
			t.Errorf("%s: code %d: %s%s", args, code, out, stderr)
		}
	}
}

// TestWriteBehindTheRealEnd: of a string that says more memory than there is that is said as soon as it is known, and what is not
// behind the end is written.
func TestWriteBehindTheRealEnd(t *testing.T) {
	t.Parallel()
	served, _, end := servingMemory(t, "--accept", "any", "--size", "4k", "udp:127.0.0.1")
	wrong := strings.Replace(served, ";4096.", ";65536.", 1) + "?giveup=" + patience.String()
	if wrong == served {
		t.Fatal(served)
	}
	mustWrite(t, wrong, "--addr", "0xfff", "--text", "x")
	code, out, stderr := runFor(t, t.Context(), "write", "--to", wrong, "--addr", "0x2000", "--text", "hello", "--flag-addr", "0")
	if code != exitUsage || !strings.Contains(out, "0 bytes in 0 transactions") ||
		!strings.Contains(stderr, "5 bytes from 0x2000 on would end at 0x2005, the peer's memory ends at 0x1000; --to says that it has 65536 bytes: take") {
		t.Errorf("code %d: %s%s", code, out, stderr)
	}
	end()
}

package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestKilled: who is left ends within the time to give up, and nothing is left of
// the file.
func TestKilled(t *testing.T) {
	t.Parallel()
	for _, killed := range []string{"sender", "receiver"} {
		t.Run(killed, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			l, url := listenCat(t, []string{"-o", filepath.Join(dir, "out"), anyPort + shortLife})
			s := startCat(t, []string{"send", url + shortLife}, stdinOpen)
			s.write(random(1, 3<<20)) // more than a pipe holds: it is under way
			l.saysSoon(&l.stderr, "receiving from")
			victim, left, says := s, l, saysAccepted+`received \d+ bytes`+saysTime+`, not whole\ndgrdmacat listen: the sender, `
			if killed == "receiver" {
				victim, left, says = l, s, `sent \d+ bytes`+saysTime+`, not whole\ndgrdmacat send: the receiver, `
			}
			began := time.Now()
			victim.signal(syscall.SIGKILL)
			left.end(exitError, says+saysPeer+`, does not answer any more(; this side gave up while waiting for [^:]*)?: was the `+killed+` killed, or is the network down\?\n`)
			if took := time.Since(began); took > 30*time.Second { // five seconds and what a busy machine takes
				t.Errorf("ended after %v", took)
			}
			victim.finish()
			wantFiles(t, dir, nil)
		})
	}
}

// TestInterrupted: the other side is told, and ends long before it would give up.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ who, replaced string }{{"sender", ""}, {"receiver", ""}, {"sender", "old"}, {"receiver", "old"}} {
		t.Run(c.who+c.replaced, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			name, want := filepath.Join(dir, "out"), map[string][]byte(nil)
			if c.replaced != "" {
				os.WriteFile(name, []byte(c.replaced), 0o644)
				want = map[string][]byte{"out": []byte(c.replaced)}
			}
			l, url := listenCat(t, []string{"--force", "-o", name, anyPort + "?giveup=60s"})
			s := startCat(t, []string{"send", url + "?giveup=60s"}, stdinOpen)
			s.write(random(1, 3<<20)) // more than a pipe holds: it is under way
			l.saysSoon(&l.stderr, "receiving from")
			saysL := saysAccepted + `received \d+ bytes` + saysTime + `, not whole\ndgrdmacat listen: `
			saysS := `sent \d+ bytes` + saysTime + `, not whole\ndgrdmacat send: `
			codeS, codeL := exitError, exitError
			if c.who == "sender" {
				codeS = exitInterrupted
				s.signal(syscall.SIGINT)
				saysS += `interrupted\n`
				saysL += `the sender, ` + saysPeer + `, gave up: interrupted\n`
			} else {
				codeL = 128 + int(syscall.SIGTERM)
				l.signal(syscall.SIGTERM)
				saysL += `interrupted\n`
				saysS += `the receiver, ` + saysPeer + `, gave up: interrupted\n`
			}
			s.end(codeS, saysS)
			l.end(codeL, saysL)
			wantFiles(t, dir, want)
		})
	}
	l, _ := listenCat(t, []string{anyPort})
	l.signal(syscall.SIGINT)
	l.end(exitInterrupted, saysListening+`dgrdmacat listen: interrupted before a sender came\n`)
	// In the middle of many.
	l, url := listenCat(t, []string{"--keep", anyPort}, stdoutOpen)
	s := startCat(t, []string{"send", url}, stdinOpen)
	s.write([]byte("x"))
	l.read(1)
	l.signal(syscall.SIGINT)
	s.end(exitError, `.*gave up: interrupted\n`)
	l.end(exitInterrupted, `.*streams received: 0, failed: 1\ndgrdmacat listen: interrupted in the middle of 1\n`)
}

// TestInterruptedTwice: two signals at once are one, as timeout sends them; with one
// that comes later the process does not wait any more. Where a busy machine sends the
// second at another time than it is meant for, the case runs again.
func TestInterruptedTwice(t *testing.T) {
	t.Parallel()
	const alone = 2 * time.Second // how long the process waits for one that is silent
	for _, c := range []struct {
		second []time.Duration // behind the first; one would do if all ran at once
		before time.Duration
		code   int
		says   string
	}{
		{[]time.Duration{10 * time.Millisecond}, oneInterrupt / 2, exitInterrupted, `sent.*not whole\ndgrdmacat send: interrupted\n`},
		{[]time.Duration{2 * oneInterrupt, 3 * oneInterrupt, 4 * oneInterrupt}, alone * 3 / 4, exitInterrupted, ""},
	} {
		for tries := 1; ; tries++ {
			l, url := listenCat(t, []string{anyPort + "?giveup=60s"}, stdoutOpen)
			s := startCat(t, []string{"send", url + "?giveup=60s"}, stdinOpen)
			s.write([]byte("x"))
			l.read(1)
			l.pause() // it takes no notice, for which the sender waits
			s.signal(syscall.SIGINT)
			first := time.Now()
			for _, at := range c.second {
				time.Sleep(time.Until(first.Add(at)))
				s.signal(syscall.SIGINT)
			}
			if time.Since(first) >= c.before && tries < 10 {
				s.finish()
				continue
			}
			s.end(c.code, c.says)
			break
		}
	}
}

// TestInterruptedWhileNobodyReads: neither full pipes nor full buffers hold up the
// end, on either side.
func TestInterruptedWhileNobodyReads(t *testing.T) {
	t.Parallel()
	l, url := listenCat(t, []string{anyPort + "?giveup=60s"}, stdoutOpen)
	s := startCat(t, []string{"send", fileWith(t, make([]byte, allBuffers+8*bufferSize)), url + "?giveup=60s"})
	l.read(1)
	time.Sleep(200 * time.Millisecond)
	s.signal(syscall.SIGINT)
	s.end(exitInterrupted, `sent \d+ bytes.*interrupted\n`)
	l.end(exitError, `.*the sender, .* gave up: interrupted\n`)
}

// TestReceiverStops: a receiver that stands still for less than the time to give
// up costs nothing but that time; one that stands still for longer is given up,
// and ends without a file when it goes on.
func TestReceiverStops(t *testing.T) {
	t.Parallel()
	b := random(1, 4*allBuffers)
	for _, c := range []struct {
		name   string
		giveUp string
		stand  time.Duration
	}{{"short", "?giveup=20s", 500 * time.Millisecond}, {"long", shortLife, 0}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			l, url := listenCat(t, []string{"-o", filepath.Join(dir, "out"), anyPort + c.giveUp})
			s := startCat(t, []string{"send", "-", url + c.giveUp}, stdinOpen)
			s.write(b[:3<<20])
			l.pause()
			written := make(chan struct{})
			go func() { s.stdin.Write(b[3<<20:]); s.stdin.Close(); close(written) }()
			if c.stand > 0 {
				time.Sleep(c.stand)
				l.signal(syscall.SIGCONT)
				s.end(exitOK, saysSent(len(b)))
				l.end(exitOK, saysAccepted+saysReceived(len(b)))
				wantFiles(t, dir, map[string][]byte{"out": b})
			} else {
				s.end(exitError, `sent \d+ bytes.*does not answer any more.*`)
				l.signal(syscall.SIGCONT)
				l.end(exitError, `.*received \d+ bytes.*not whole\ndgrdmacat listen: the sender, .*`)
				wantFiles(t, dir, nil)
			}
			<-written
		})
	}
}

// TestClosedPipe: who reads what listen writes wants no more, and the sender hears
// of it.
func TestClosedPipe(t *testing.T) {
	t.Parallel()
	l, url := listenCat(t, []string{anyPort}, stdoutOpen)
	s := startCat(t, []string{"send", url}, stdinOpen)
	s.write(make([]byte, 1<<20))
	l.read(10)
	l.stdout.Close()
	s.end(exitError, `sent \d+ bytes`+saysTime+`, not whole\ndgrdmacat send: the receiver, `+saysPeer+`, gave up: cannot write to standard output: broken pipe\n`)
	l.end(exitError, saysAccepted+`received \d+ bytes`+saysTime+`, not whole\ndgrdmacat listen: cannot write to standard output: write /dev/stdout: broken pipe\n`)
}

// TestNobodyThere: an error in time that says what to look at.
func TestNobodyThere(t *testing.T) {
	t.Parallel()
	s := startCat(t, []string{"send", "ocpi-udp-rdma:127.0.0.1;9;17891328.2.16?giveup=300ms"}, stdinFrom([]byte("x")))
	s.end(exitError, `dgrdmacat send: no answer from ocpi-udp-rdma:127\.0\.0\.1;9;17891328\.2\.16\?giveup=300ms: does dgrdmacat listen run there without --key-file, .*\n`)
	// Somebody else is.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	file := filepath.Join(t.TempDir(), "url")
	other := exec.CommandContext(ctx, program(t), "bench", "--link", "--serve", anyPort, "--url-file", file)
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer other.Wait()
	defer cancel()
	var url []byte
	eventually(t, "the bench has a URL", func() bool {
		url, _ = os.ReadFile(file)
		return len(url) > 0
	})
	s = startCat(t, []string{"send", strings.TrimSpace(string(url))}, stdinFrom([]byte("x")))
	s.end(exitError, `dgrdmacat send: .*refused by the peer: no port "stream" here: .*\n`)
}

func TestTwoListenersOnOnePort(t *testing.T) {
	t.Parallel()
	l, url := listenCat(t, []string{anyPort})
	port := strings.Split(url, ";")[1]
	startCat(t, []string{"listen", anyPort + ":" + port}).end(exitError, `dgrdmacat listen: .*address already in use.*\n`)
	l.signal(syscall.SIGINT)
	l.finish()
}

// TestListenTarget: what cannot be written is said before anybody sends.
func TestListenTarget(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	there := filepath.Join(dir, "there")
	os.WriteFile(there, []byte("old"), 0o644)
	os.Symlink(filepath.Join(dir, "nowhere"), filepath.Join(dir, "link"))
	for _, c := range []struct{ file, says string }{
		{there, "write " + there + ": exists already; --force replaces it"},
		{dir, dir + " is a directory: name a file in it, as in " + dir + "/FILE"},
		{filepath.Join(dir, "no", "file"), "write into " + dir + "/no: no such file or directory"},
		{filepath.Join(dir, "link"), dir + "/link is a symbolic link to nowhere"},
	} {
		startCat(t, []string{"listen", "-o", c.file, anyPort}).end(exitError, regexp.QuoteMeta("dgrdmacat listen: "+c.says)+`\n`)
	}
	// A file that appears while another is received stays.
	appears := filepath.Join(dir, "appears")
	l, url := listenCat(t, []string{"-o", appears, anyPort})
	s := startCat(t, []string{"send", url}, stdinOpen)
	s.write([]byte("new"))
	os.WriteFile(appears, []byte("somebody else's"), 0o644)
	s.stdin.Close()
	s.end(exitError, `.*gave up: cannot (keep|write) the file: file already exists\n`)
	l.end(exitError, `.*exists already; --force replaces it\n`)
	if b, _ := os.ReadFile(appears); string(b) != "somebody else's" {
		t.Errorf("%q", b)
	}
	// Through a link to what it points to.
	os.Symlink("there", filepath.Join(dir, "to-there"))
	l, url = listenCat(t, []string{"--force", "-o", filepath.Join(dir, "to-there"), anyPort})
	startCat(t, []string{"send", url}, stdinFrom([]byte("new"))).end(exitOK, saysSent(3))
	l.end(exitOK, saysAccepted+saysReceived(3))
	if b, _ := os.ReadFile(there); string(b) != "new" {
		t.Errorf("%q", b)
	}
	if to, err := os.Readlink(filepath.Join(dir, "to-there")); to != "there" {
		t.Errorf("the link was replaced: %v", err)
	}
}

func TestSendSource(t *testing.T) {
	t.Parallel()
	const url = "ocpi-udp-rdma:127.0.0.1;9;17891328.2.16"
	dir := t.TempDir()
	for _, c := range []struct{ file, says string }{
		{filepath.Join(dir, "no"), "open " + dir + "/no: no such file or directory"},
		{dir, dir + " is a directory: pack it, as in tar c " + dir + " | dgrdmacat send URL"},
	} {
		// Nobody is asked for before it is open.
		for _, to := range []string{url, "udp:127.0.0.1:9"} {
			startCat(t, []string{"send", c.file, to}).end(exitError, regexp.QuoteMeta("dgrdmacat send: "+c.says)+`\n`)
		}
	}
	for args, says := range map[string]string{"--file " + filepath.Join(dir, "no"): "no such file or directory", "--data xyz": "need pairs of hexadecimal digits"} {
		if code, _, stderr := runFor(t, t.Context(), append(strings.Fields("write --addr 0 --to udp:127.0.0.1:9"), strings.Fields(args)...)...); code == exitOK || !strings.Contains(stderr, says) {
			t.Errorf("write %s: code %d, %s", args, code, stderr)
		}
	}
	// A file of which the shell has read some.
	f, err := os.Open(fileWith(t, []byte("head\nbody")))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.Seek(5, io.SeekStart)
	l, listens := listenCat(t, []string{anyPort})
	startCat(t, []string{"send", listens}, func(p *catProcess) { p.cmd.Stdin = f }).end(exitOK, saysSent(4))
	if l.end(exitOK, saysAccepted+saysReceived(4)); l.out.String() != "body" {
		t.Errorf("%q", l.out.String())
	}
}

// TestDiskFull: the sender is told, and nothing is left.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	const reason = "no space left on device"
	l, url := listenCat(t, []string{"-o", "/dev/full", anyPort})
	s := startCat(t, []string{"send", url}, stdinFrom(make([]byte, 10)))
	s.end(exitError, `sent 10 bytes`+saysTime+`, not whole\ndgrdmacat send: the receiver, `+saysPeer+`, gave up: cannot write the file: `+reason+`\n`)
	l.end(exitError, `.*dgrdmacat listen: cannot write the file: write /dev/full: `+reason+`\n`)
}

// TestDiskFillsUp is the same with a file that can be removed.
func TestDiskFillsUp(t *testing.T) {
	t.Parallel()
	const reason = "no space left on device"
	dir := smallDisk(t)
	l, url := listenCat(t, []string{"-o", filepath.Join(dir, "out"), anyPort})
	s := startCat(t, []string{"send", url}, stdinOpen) // which does not end by itself
	go s.stdin.Write(make([]byte, 20<<20))
	s.end(exitError, `sent \d+ bytes.*gave up: cannot write the file: `+reason+`\n`)
	l.end(exitError, `.*dgrdmacat listen: cannot write the file: write .*/out: `+reason+`\n`)
	wantFiles(t, dir, nil)
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil || fs.Bfree != fs.Blocks {
		t.Errorf("%d of %d blocks are free: %v", fs.Bfree, fs.Blocks, err)
	}
}

// TestNoPrivileges: who may not use raw Ethernet is told what is missing; UDP needs
// nothing.
func TestNoPrivileges(t *testing.T) {
	t.Parallel()
	asNobody := func(p *catProcess) {
		if os.Geteuid() == 0 {
			p.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
	}
	startCat(t, []string{"listen", "ether:lo"}, asNobody).end(exitError, `dgrdmacat listen: .*CAP_NET_RAW.*setcap.*\n`)
	peer := "ocpi-ether-rdma:eth0/02:00:00:00:00:01;17891328.2.16"
	startCat(t, []string{"send", "--local", "ether:lo", peer}, asNobody).end(exitError, `dgrdmacat send: .*CAP_NET_RAW.*setcap.*\n`)
	dir := t.TempDir() // which is the tester's
	startCat(t, []string{"listen", "-o", filepath.Join(dir, "out"), anyPort}, func(p *catProcess) {
		os.Chmod(dir, 0o555)
		asNobody(p)
	}).end(exitError, `dgrdmacat listen: (write into )?.*: permission denied\n`)
}

// spoiler is what carries datagrams between a sender and a receiver, and changes
// a word in them without damaging them, or loses those that are long.
type spoiler struct {
	conn     *net.UDPConn
	longest  int // of what is carried to the receiver; 0: all is
	receiver *net.UDPAddr
	spoiled  chan struct{}
}

func newSpoiler(t *testing.T, receiver string, longest int, word, by []byte) (address *net.UDPAddr, spoiled chan struct{}) {
	t.Helper()
	to, err := net.ResolveUDPAddr("udp", receiver)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	p := &spoiler{conn: c, longest: longest, receiver: to, spoiled: make(chan struct{}, 1)}
	ended := make(chan struct{})
	go func() { p.carry(word, by); close(ended) }()
	t.Cleanup(func() { c.Close(); <-ended })
	return c.LocalAddr().(*net.UDPAddr), p.spoiled
}

func (p *spoiler) carry(word, by []byte) {
	var sender *net.UDPAddr
	b := make([]byte, 1<<16)
	for {
		n, from, err := p.conn.ReadFromUDP(b)
		if err != nil {
			return
		}
		to := sender
		if from.Port != p.receiver.Port {
			sender, to = from, p.receiver
			if p.longest > 0 && n > p.longest {
				continue
			}
			if at := bytes.Index(b[:n], word); at >= 0 {
				copy(b[at:], by)
				select {
				case p.spoiled <- struct{}{}:
				default:
				}
			}
		}
		p.conn.WriteToUDP(b[:n], to)
	}
}

// TestChecksum: what was changed on the way, so that no checksum of the network
// shows it, is noticed if either side wishes it, and not kept.
func TestChecksum(t *testing.T) {
	t.Parallel()
	content := append(random(1, 1000), "the true word"...)
	for _, c := range []struct{ name, listen, send string }{{"sender", "", "--checksum"}, {"receiver", "--checksum", ""}, {"neither", "", ""}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			l, url := listenCat(t, strings.Fields("-o "+filepath.Join(dir, "out")+" "+c.listen+" "+anyPort))
			parts := strings.SplitN(url, ";", 3)
			via, spoiled := newSpoiler(t, "127.0.0.1:"+parts[1], 0, []byte("true"), []byte("fals"))
			url = strings.Join([]string{parts[0], strings.TrimPrefix(via.AddrPort().String(), "127.0.0.1:"), parts[2]}, ";")
			s := startCat(t, strings.Fields("send "+c.send+" "+url), stdinFrom(content))
			if c.name == "neither" {
				s.end(exitOK, saysSent(len(content)))
				l.end(exitOK, saysAccepted+saysReceived(len(content)))
				wantFiles(t, dir, map[string][]byte{"out": bytes.Replace(content, []byte("true"), []byte("fals"), 1)})
			} else {
				reason := `what arrived is not what was sent: 1013 bytes with SHA-256 [0-9a-f]{64} here, 1013 bytes with SHA-256 [0-9a-f]{64} there\n`
				s.end(exitError, `sent 1013 bytes`+saysTime+`, not whole\ndgrdmacat send: the receiver, .*, gave up: `+reason)
				l.end(exitError, saysAccepted+`received 1013 bytes`+saysTime+`, not whole\ndgrdmacat listen: `+reason)
				wantFiles(t, dir, nil)
			}
			if len(spoiled) == 0 {
				t.Error("nothing was changed on the way")
			}
		})
	}
}

// TestWayThatCarriesLess: where large frames vanish, send names the option against it.
func TestWayThatCarriesLess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, url := listenCat(t, []string{"-o", filepath.Join(dir, "out"), anyPort + shortLife})
	parts := strings.SplitN(url, ";", 3)
	via, _ := newSpoiler(t, "127.0.0.1:"+parts[1], 1400, []byte("no such word"), nil)
	url = strings.Join([]string{parts[0], strings.TrimPrefix(via.AddrPort().String(), "127.0.0.1:"), parts[2]}, ";")
	startCat(t, []string{"send", url + shortLife}, stdinFrom(random(1, 1<<16))).end(exitError, `sent .*not whole\ndgrdmacat send: the receiver, `+saysPeer+
		`, does not answer any more; this side gave up while .*frames of \d+ bytes(?: for the first time|, while those of up to \d+ are answered) \(a way that carries less needs the option mtu\)[^:]*: was the receiver killed, or is the network down\?\n`)
	wantFiles(t, dir, nil)
}

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// serveProcess starts serve as a process and returns its URL.
func serveProcess(t *testing.T, args ...string) (*process, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "url")
	p := asProcess(t, append([]string{"serve", "--url-file", file}, args...)...).start()
	return p, p.url(file)
}

func (p *process) url(file string) (url string) {
	p.t.Helper()
	eventually(p.t, "the URL is there", func() bool {
		b, _ := os.ReadFile(file)
		url = strings.TrimSpace(string(b))
		return url != ""
	})
	return url
}

// asNobody starts a process without privileges.
func asNobody(p *process) *process {
	if os.Geteuid() == 0 {
		p.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	return p
}

func TestServeKeepsFiles(t *testing.T) {
	name := filepath.Join(t.TempDir(), "memory")
	const size = 10_001 // neither pages nor words
	var want [size]byte
	for run, end := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		args := []string{"--accept", "any", "--file", name, "--watch", "9996", "udp:127.0.0.1"}
		if run == 0 {
			args = append(args, "--size", fmt.Sprint(size), "--create")
		}
		p, url := serveProcess(t, args...)
		if !strings.Contains(url, fmt.Sprintf(";%d.", size)) {
			t.Fatalf("serves on %s", url)
		}
		text := strings.Repeat(string(rune('a'+run)), 3000)
		mustWrite(t, url, "--addr", fmt.Sprint(100+3200*run), "--text", text, "--flag-addr", "9996", "--flag-value", fmt.Sprint(run+1))
		copy(want[100+3200*run:], text)
		want[9996] = byte(run + 1)
		if b, err := os.ReadFile(name); err != nil || !bytes.Equal(b, want[:]) {
			t.Errorf("run %d: others do not see what was written; %v", run, err)
		}
		eventually(t, "the writer said goodbye", func() bool { return strings.Contains(p.out.String(), "closed") })
		p.Process.Signal(end)
		code := p.code()
		if b, err := os.ReadFile(name); err != nil || !bytes.Equal(b, want[:]) {
			t.Errorf("run %d: the file is not as it was written; %v", run, err)
		}
		if end == syscall.SIGKILL {
			continue
		}
		shown := fmt.Sprintf("TIME PEER up\nTIME 0x0000270c = 0x%08x (%d) by PEER\nTIME PEER closed\n", run+1, run+1)
		// On a slow machine who writes asks twice before it is answered, and once in vain.
		out := strings.ReplaceAll(golden(p.out.String()), "TIME PEER refused: no_session"+refusedBecause["no_session"]+"\n", "")
		if code != exitOK || out != shown || !strings.Contains(p.err.String(), "1 transaction, 3000 bytes in ") {
			t.Errorf("run %d: code %d\n%s%s", run, code, &p.out, &p.err)
		}
	}
}

func TestServeTwiceOnAPort(t *testing.T) {
	first, url := serveProcess(t, "--accept", "any", "udp:127.0.0.1")
	port := strings.Split(url, ";")[1]
	second := asProcess(t, "serve", "--accept", "any", "udp:127.0.0.1:"+port).start()
	if code := second.code(); code != exitError || second.out.String() != "" || !strings.Contains(second.err.String(), "another socket has the port") {
		t.Errorf("second: code %d: %s%s", code, &second.out, &second.err)
	}
	mustWrite(t, url, "--flag-addr", "0")
	first.Process.Signal(syscall.SIGTERM)
	if code := first.code(); code != exitOK || !strings.Contains(first.err.String(), "1 transaction, 0 bytes in ") {
		t.Errorf("first: code %d: %s%s", code, &first.out, &first.err)
	}
}

func TestServeWithoutPrivileges(t *testing.T) {
	p := asNobody(asProcess(t, "serve", "--accept", "any", "ether:lo")).start()
	if code := p.code(); code != exitError || p.out.String() != "" || !strings.Contains(p.err.String(), "sudo setcap cap_net_raw+ep") {
		t.Errorf("ether: code %d: %s%s", code, &p.out, &p.err)
	}
	readOnly := fileOf(t, make([]byte, 4096))
	hidden := filepath.Dir(readOnly)
	t.Cleanup(func() { os.Chmod(hidden, 0o755) }) // to be removed
	for _, err := range []error{os.Chmod(readOnly, 0o444), os.Chmod(hidden, 0o555), os.Chmod(filepath.Dir(hidden), 0o755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ flags, want string }{
		{"--file", "open " + readOnly + ": permission denied"},
		{"--force --dump", "permission denied"},
		{"--url-file", "is no endpoint string"},
	} {
		p := asNobody(asProcess(t, strings.Fields("serve --accept any udp:127.0.0.1 "+c.flags+" "+readOnly)...)).start()
		if code := p.code(); code != exitError || p.out.String() != "" || !strings.Contains(p.err.String(), c.want) {
			t.Errorf("%s: code %d: %s%s", c.flags, code, &p.out, &p.err)
		}
	}
}

// cannotMount is the exit code of a script that could not mount. Arbitrary: no
// other one of its commands ends with it.
const cannotMount = 99

// TestServeOnAFullDisk: with room for less than the memory, nothing is left
// behind, neither of the dump nor of the file to be mapped.
func TestServeOnAFullDisk(t *testing.T) {
	for _, args := range []string{"--dump DIR/file --for 10ms", "--create --file DIR/file"} {
		dir := t.TempDir()
		script := fmt.Sprintf(`mount -t tmpfs -o size=64k none "$0" || exit %d
"$@"
code=$?
ls -A "$0"
exit $code`, cannotMount)
		command := append([]string{"-c", script, dir, program(t), "serve", "--accept", "any", "--size", "1M", "udp:127.0.0.1"},
			strings.Fields(strings.ReplaceAll(args, "DIR", dir))...)
		p := &process{Cmd: exec.Command("sh", command...), t: t}
		p.Stdout, p.Stderr = &p.out, &p.err
		// A namespace of users lets anybody mount, and keeps the mount inside.
		p.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
		code := startedIn(t, p)
		if code != exitError || p.out.String() != "" || !strings.Contains(p.err.String(), "no space left on device") {
			t.Errorf("%s: code %d: left %q: %s", args, code, &p.out, &p.err)
		}
		if dumps := strings.HasPrefix(args, "--dump"); strings.Contains(p.err.String(), "0 transactions, 0 bytes") != dumps {
			t.Errorf("%s: %s", args, &p.err)
		}
	}
}

// startedIn runs a process in namespaces of its own. Some systems let only root make
// them, or mount there.
func startedIn(t *testing.T, p *process) (code int) {
	t.Helper()
	err := p.Start()
	if err == nil {
		t.Cleanup(func() { p.Process.Kill() })
		if code = p.code(); code != cannotMount {
			return code
		}
		err = errors.New(p.err.String())
	}
	if os.Geteuid() != 0 {
		t.Skipf("this system lets only root mount in a namespace of users: %v", err)
	}
	t.Fatal(err)
	panic("unreachable")
}

// TestServeDumpsWhenNobodyReads: who reads the events goes away.
func TestServeDumpsWhenNobodyReads(t *testing.T) {
	dump := filepath.Join(t.TempDir(), "dump")
	file := filepath.Join(t.TempDir(), "url")
	p := asProcess(t, "serve", "--url-file", file, "--accept", "any", "--size", "8", "--dump", dump, "udp:127.0.0.1")
	p.Stdout = nil
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.start()
	url := p.url(file)
	mustWrite(t, url, "--addr", "0", "--text", "12345678")
	if _, err := io.ReadFull(out, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	out.Close()
	// It ends when it cannot say that another one is there, which may be too early
	// for that one.
	eventually(t, "it notices", func() bool {
		runFor(t, t.Context(), "write", "--to", url+"?giveup=200ms", "--addr", "0", "--data", "00")
		return strings.Contains(p.err.String(), "broken pipe")
	})
	if code := p.code(); code != exitError || !strings.Contains(p.err.String(), "broken pipe") || !strings.Contains(p.err.String(), " transaction") {
		t.Errorf("code %d: %s", code, &p.err)
	}
	if b, err := os.ReadFile(dump); err != nil || len(b) != 8 || string(b[1:]) != "2345678" {
		t.Errorf("dumped %q, %v", b, err)
	}
	onlyFile(t, dump)
}

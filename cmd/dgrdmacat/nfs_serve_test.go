package main

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/rpc"
)

// startNFS starts a server of a directory as a process, and returns where it serves over RDMA and over TCP.
func startNFS(t *testing.T, dir string, flags ...string) (p *process, rdma, tcp string) {
	t.Helper()
	p = asProcess(t, append([]string{"nfs", "serve", "--listen", "127.0.0.1", "--port", "0", "--tcp-port", "0", dir}, flags...)...)
	rdma, tcp = startsNFS(t, p)
	return p, rdma, tcp
}

func startsNFS(t *testing.T, p *process) (rdma, tcp string) {
	t.Helper()
	p.start()
	serves := regexp.MustCompile(`on (rdma:\S+) and (tcp:\S+)\n(?s:.*)over TCP:  mount .*\n`)
	eventually(t, "it serves", func() bool {
		at := serves.FindStringSubmatch(p.err.String())
		if at != nil {
			rdma, tcp = at[1], at[2]
		}
		return at != nil
	})
	return rdma, tcp
}

// TestNFSServe checks that a directory is served over RDMA and TCP, that the lines that mount it name both ports, that calls are printed
// with -v, and that a server ends well at SIGINT while clients are connected.
func TestNFSServe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, rdma, tcp := startNFS(t, dir, "-v")
	for name, address := range map[string]string{"rdma": rdma, "tcp": tcp} {
		c, err := nfs3.Dial(t.Context(), address, "/export", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		v, err := nfs3.NewVolume(t.Context(), c, nil)
		if err != nil {
			t.Fatal(err)
		}
		os.Chmod(dir, 0o777) // root's calls are those of another user
		if err := v.WriteFile(name, []byte("by "+name), 0o644); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(filepath.Join(dir, name)); string(b) != "by "+name {
			t.Errorf("%q, %v", b, err)
		}
		if err := v.Rename(name, name+"2"); err != nil {
			t.Fatal(err)
		}
		if _, err := v.Stat("none"); err == nil {
			t.Fatal("none is there")
		}
		for _, call := range []string{
			"MOUNT MNT /export: ok", "NFS LOOKUP /export/none: no such file or directory", "NFS CREATE /export/" + name + ": ok",
			"NFS WRITE /export/" + name + ", " + strconv.Itoa(len("by "+name)) + " bytes at 0: ok", "NFS RENAME /export/" + name + " to /export/" + name + "2: ok",
		} {
			line := regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d\.\d{6} 127\.0\.0\.1:\d+ over ` + name + `( v2)?, XID 0x[0-9a-f]+, user \d+( as 65534)?: ` + call + `, [\d.]+(µs|ms|s)$`)
			eventually(t, "with -v: "+line.String(), func() bool { return line.MatchString(p.out.String()) })
		}
	}
	_, rdmaPort, _ := net.SplitHostPort(strings.TrimPrefix(rdma, "rdma:"))
	_, tcpPort, _ := net.SplitHostPort(strings.TrimPrefix(tcp, "tcp:"))
	for _, want := range []string{
		"over RDMA: mount -t nfs -o vers=3,rdma,port=" + rdmaPort + ",nolock,mountproto=tcp,mountport=" + tcpPort + " 127.0.0.1:/export /mnt\n",
		"over TCP:  mount -t nfs -o vers=3,proto=tcp,port=" + tcpPort + ",nolock,mountproto=tcp,mountport=" + tcpPort + " 127.0.0.1:/export /mnt\n",
	} {
		if !strings.Contains(p.err.String(), want) {
			t.Errorf("no line %s in %s", want, &p.err)
		}
	}
	p.Process.Signal(os.Interrupt)
	if code := p.code(); code != exitOK || strings.Contains(p.err.String(), "dgrdmacat nfs serve: ") {
		t.Errorf("code %d: %s", code, &p.err)
	}
}

// TestNFSServeReadOnly checks that --read-only lets no client change anything, and --export has its path.
func TestNFSServeReadOnly(t *testing.T) {
	t.Parallel()
	p, rdma, _ := startNFS(t, t.TempDir(), "--read-only", "--squash", "all", "--export", "/data")
	c, err := nfs3.Dial(t.Context(), rdma, "/data", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	v, err := nfs3.NewVolume(t.Context(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Mkdir("x", 0o755); nfs3.StatusOf(err) != nfs3.ErrROFS {
		t.Error(err)
	}
	if !strings.Contains(p.err.String(), " as /data for reading on ") {
		t.Error(&p.err)
	}
}

// TestNFSServeUntold checks that a server that cannot print what -v has it print ends, and says so.
func TestNFSServeUntold(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	p := asProcess(t, "nfs", "serve", "-v", "--listen", "127.0.0.1", "--port", "0", "--tcp-port", "0", t.TempDir())
	p.Stdout = full
	_, at := startsNFS(t, p)
	if c, err := nfs3.Dial(t.Context(), at, "/export", &nfs3.ClientOptions{RPC: &rpc.ClientOptions{NoReconnect: true}}); err == nil {
		c.Close()
	}
	if code := p.code(); code != exitError || !strings.Contains(p.err.String(), "dgrdmacat nfs serve: ended since nobody is told what happens: ") {
		t.Errorf("code %d: %s", code, &p.err)
	}
}

// TestNFSMistakes checks what commands of NFS say of mistakes, in one line.
func TestNFSMistakes(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	dir := t.TempDir()
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"nfs", exitUsage, "nfs what? There are demo, serve, "},
		{"nfs srve", exitUsage, `no command "nfs srve": did you mean serve? "dgrdmacat nfs -h" lists its commands`},
		{"help nfs srve", exitUsage, `no command "nfs srve"`},
		{"man nfs", exitUsage, "nfs what?"},
		{"man bench ping", exitUsage, "one COMMAND"},
		{"nfs serve", exitUsage, "which directory? Give one DIR"},
		{"nfs serve --squash some x", exitUsage, "--squash some: need one of root, none, all"},
		{"nfs serve --listen eth0 x", exitUsage, "--listen eth0: need an IP address of this machine"},
		{"nfs serve --listen 10.0.0.1:2049 x", exitUsage, "ports are --port and --tcp-port"},
		{"nfs serve --port 65536 x", exitUsage, "--port 65536: need 0 to 65535"},
		{"nfs serve --tcp-port -1 x", exitUsage, "--tcp-port -1: need 0 to 65535"},
		{"nfs serve --port 2049 x", exitUsage, "--port and --tcp-port are both 2049"},
		{"nfs serve --export data x", exitUsage, "--export data: need a path such as /export"},
		{"nfs serve " + dir + "/nothing", exitError, "nothing: no such file or directory"},
		{"nfs serve /proc/self/status", exitError, "/proc/self/status: not a directory"},
		{"nfs serve --listen 192.0.2.77 --port 0 " + dir, exitError, "no interface of this machine has the address"},
		{"nfs serve --listen 127.0.0.1 --port " + port + " " + dir, exitError, "another socket has the port; choose one, or 0 for any, with --port"},
		{"nfs serve --listen 127.0.0.1 --port 0 --tcp-port " + port + " " + dir, exitError, "another socket has the port; choose one, or 0 for any, with --tcp-port"},
	} {
		code, out, stderr := runFor(t, patient(t), strings.Fields(c.args)...)
		if code != c.code || out != "" || !strings.Contains(stderr, c.says) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: code %d, %s%s", c.args, code, out, stderr)
		}
	}
	for args, says := range map[string]string{"nfs -h": "usage: dgrdmacat nfs COMMAND", "help nfs": "  serve  ", "help nfs serve": "usage: dgrdmacat nfs serve [flags] DIR", "man nfs serve": ".TH DGRDMACAT-NFS-SERVE 1"} {
		if code, out, stderr := runFor(t, t.Context(), strings.Fields(args)...); code != exitOK || !strings.Contains(out, says) {
			t.Errorf("%s: code %d, %s%s", args, code, out, stderr)
		}
	}
}

// TestNFSServeUnreadable checks that a directory that the server may enter and not list is refused at the start: each client would fail.
func TestNFSServeUnreadable(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "nfs") // t.TempDir is within a directory that others may not enter
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	p := asProcess(t, "nfs", "serve", "--listen", "127.0.0.1", "--port", "0", "--tcp-port", "0", dir)
	if os.Chmod(dir, 0o311); os.Geteuid() == 0 {
		p.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	p.start()
	if code := p.code(); code != exitError || p.err.String() != "dgrdmacat nfs serve: open "+dir+": permission denied\n" {
		t.Errorf("code %d: %s", code, &p.err)
	}
}

// TestNFSServeLines checks the lines that mount what is served: at addresses of both versions, with a zone, at other ports, and with a path
// that a shell would take apart; and that an address of several is named, with the others.
func TestNFSServeLines(t *testing.T) {
	for _, c := range []struct {
		host, export, want string
	}{
		{"10.0.0.1", "/export", "over RDMA: mount -t nfs -o vers=3,rdma,port=7,nolock,mountproto=tcp,mountport=8 10.0.0.1:/export /mnt\n" +
			"over TCP:  mount -t nfs -o vers=3,proto=tcp,port=8,nolock,mountproto=tcp,mountport=8 10.0.0.1:/export /mnt\n"},
		{"2001:db8::1", "/", "over RDMA: mount -t nfs -o vers=3,proto=rdma6,port=7,nolock,mountproto=tcp6,mountport=8 [2001:db8::1]:/ /mnt\n" +
			"over TCP:  mount -t nfs -o vers=3,proto=tcp6,port=8,nolock,mountproto=tcp6,mountport=8 [2001:db8::1]:/ /mnt\n"},
		{"fe80::1%eth0", "/my data/it's", `mountport=8 '[fe80::1%eth0]:/my data/it'\''s' /mnt` + "\n"},
	} {
		s := &nfsServer{nfsServeOptions: &nfsServeOptions{export: c.export, squash: "root"}, dir: "a\x1bb"}
		var b strings.Builder
		s.introduce(&b, tcpAddress{c.host, "7"}, "8", "that is elsewhere\n")
		at := net.JoinHostPort(c.host, "")
		first := `serving a\x1bb as ` + c.export + " for reading and writing on rdma:" + at + "7 and tcp:" + at + "8\nthat is elsewhere\n"
		if got := b.String(); !strings.HasPrefix(got, first) || !strings.Contains(got, c.want) {
			t.Errorf("%s", got)
		}
	}
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip(err)
	}
	l.Close()
	p := asProcess(t, "nfs", "serve", "--listen", "[::1]", "--port", "0", "--tcp-port", "0", t.TempDir())
	rdma, tcp := startsNFS(t, p)
	for _, at := range []string{rdma, tcp} {
		if code, out, stderr := runFor(t, patient(t), "nfs", "ls", at+"/export"); code != exitOK || out != "" {
			t.Errorf("%s: code %d, %s%s", at, code, out, stderr)
		}
	}
	everywhere := asProcess(t, "nfs", "serve", "--port", "0", "--tcp-port", "0", t.TempDir())
	startsNFS(t, everywhere)
	if !strings.Contains(everywhere.err.String(), "that is at every address of this machine") {
		t.Error(&everywhere.err)
	}
}

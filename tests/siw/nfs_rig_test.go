package siw

import (
	"flag"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/nfs3/localfs"
	"github.com/dgrdma/dgrdma/rpc"
	"github.com/dgrdma/dgrdma/verbs"
)

// How much is done. The usual numbers are for a first look: longer runs are in docs/testing.md.
var (
	manyFiles  = flag.Int("files", 700, "small files that are made, read, renamed and removed")
	operations = flag.Int("operations", 500, "what is done to one file as chance says")
	idle       = flag.Bool("idle", false, "wait until Linux's client closes an idle connection")
	most       = flag.Int("kills", 4, "connections of Linux's client that are killed, and servers that restart, in one test")
	seed       = flag.Uint64("seed", 1, "of what chance says")
)

// export is a server of ours that a guest can mount, over RDMA and TCP.
type export struct {
	server *rpc.Server
	rdma   string // address
	tcp    int    // port
	close  func()
}

// serveNFS serves a file system until the test ends.
func serveNFS(t *testing.T, fs nfs3.FS, o *rpc.ServerOptions, no *nfs3.ServerOptions) *export {
	t.Helper()
	return serveNFSAt(t, "0", fs, o, no)
}

// serveNFSAt does so at a port for RDMA.
func serveNFSAt(t *testing.T, port string, fs nfs3.FS, o *rpc.ServerOptions, no *nfs3.ServerOptions) *export {
	t.Helper()
	if no == nil {
		no = &nfs3.ServerOptions{Squash: nfs3.SquashNone}
	}
	s := rpc.NewServer(o)
	nfs3.NewServer(fs, no).Register(s)
	host, err := verbs.Open("tcp:" + hostAddr)
	if err != nil {
		t.Fatal(err)
	}
	rdma, err := host.Listen(port)
	if err != nil {
		t.Fatal(err)
	}
	tcp, err := net.Listen("tcp", hostAddr+":0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 2)
	go func() { ended <- s.ServeRDMA(rdma) }()
	go func() { ended <- s.ServeTCP(tcp) }()
	e := &export{server: s, rdma: rdma.Addr().String(), tcp: tcp.Addr().(*net.TCPAddr).Port}
	e.close = sync.OnceFunc(func() {
		s.Close()
		<-ended
		<-ended
		host.Close()
	})
	t.Cleanup(e.close)
	return e
}

func (e *export) port() int {
	a, _ := net.ResolveTCPAddr("tcp", e.rdma)
	return a.Port
}

// mount returns the command with which Linux mounts what is served at a port, over the current directory.
func (e *export) mount(port int, options string) string {
	if options != "" {
		options = "," + options
	}
	return fmt.Sprintf("mount.nfs %s:/ . -o vers=3,rdma,port=%d,nolock,mountproto=tcp,mountport=%d%s", hostAddr, port, e.tcp, options)
}

// mounted mounts an export in the guest, does some lines of shell in its root, and unmounts. The first line that fails ends it, and the test. The
// directory is a new one: a mount that an earlier test has left may hang for ever.
func mounted(t *testing.T, mount string, seconds int, lines ...string) string {
	t.Helper()
	return long(t, seconds, fmt.Sprintf(`exec 2>&1
set -e
modprobe -a rpcrdma nfs nfsv3
cd $(mktemp -d /mnt/XXXXXX)
at=$PWD
%s
cd $at
trap 'cd /; umount $at || umount -f -l $at' EXIT
%s`, mount, strings.Join(lines, "\n")))
}

// long runs lines of shell in the guest that take longer than those of guest may.
func long(t *testing.T, seconds int, script string) string {
	t.Helper()
	out, err := kit("exec", "-t", fmt.Sprint(seconds), script).CombinedOutput()
	if err != nil {
		oops, _ := kit("exec", "-t", "10", "dmesg | grep -A 12 'BUG: kernel'").CombinedOutput()
		if len(oops) > 0 {
			t.Fatalf("the guest's kernel has crashed (docs/quirks.md, S15), so run tests/siw/kit/down, and the test again:\n%s", oops)
		}
		t.Fatalf("in the guest: %s: %v\n%s", script, err, out)
	}
	return string(out)
}

var installed sync.Once

// installExercise has command exercise in the guest.
func installExercise(t *testing.T) {
	t.Helper()
	installed.Do(func() {
		program := filepath.Join(t.TempDir(), "exercise")
		build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", program, "./exercise/guest")
		build.Env = append(build.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if out, err := kit("exec", "-i", program, "cat > /bin/exercise.new && chmod 755 /bin/exercise.new && mv /bin/exercise.new /bin/exercise").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	})
}

// eachFS runs a test over the file systems that there are to serve.
func eachFS(t *testing.T, f func(t *testing.T, fs nfs3.FS)) {
	t.Run("memory", func(t *testing.T) { f(t, localfs.NewMemory(nil)) })
	t.Run("directory", func(t *testing.T) {
		d, err := localfs.OpenDirectory(t.TempDir(), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close() })
		f(t, d)
	})
}

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for begun := time.Now(); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatalf("it does not come to pass that %s", what)
		}
	}
}

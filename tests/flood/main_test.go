// Package flood measures what a healthy flow keeps beside strangers who send as much
// as they can: the table of SECURITY.md names its tests.
package flood

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// serverVariable in the environment makes the test binary the process that is
// attacked: an endpoint that takes anyone.
const serverVariable = "DGRDMA_FLOOD_SERVER"

const (
	serverID     = 2
	serverMemory = 8 << 20
)

func TestMain(m *testing.M) {
	if os.Getenv(serverVariable) != "" {
		os.Exit(serve())
	}
	os.Exit(m.Run())
}

// state is what the server tells for every line that it reads.
type state struct {
	URL   string
	Stats dgrdma.Stats
	CPU   time.Duration // of the process so far
}

func spent() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u) // never fails
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func serve() int {
	memory, err := dgrdma.NewRegion(serverMemory)
	if err == nil {
		var e *dgrdma.Endpoint
		if e, err = dgrdma.Open("udp:127.0.0.1", &dgrdma.Config{ID: serverID, Memory: memory, AcceptAny: true}); err == nil {
			defer e.Close()
			in := bufio.NewScanner(os.Stdin)
			out := json.NewEncoder(os.Stdout)
			for in.Scan() {
				if err = out.Encode(state{e.URL(), e.Stats(), spent()}); err != nil {
					break
				}
			}
			return 0
		}
	}
	fmt.Fprintln(os.Stderr, "server:", err)
	return 1
}

// server is that process, as the test sees it.
type server struct {
	t    testing.TB
	cmd  *exec.Cmd
	ask  *json.Encoder
	tell *json.Decoder
}

func startServer(t testing.TB) *server {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serverVariable+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		over := time.AfterFunc(10*time.Second, func() { cmd.Process.Kill() })
		defer over.Stop()
		if err := cmd.Wait(); err != nil {
			t.Errorf("server: %v", err)
		}
	})
	return &server{t: t, cmd: cmd, ask: json.NewEncoder(in), tell: json.NewDecoder(out)}
}

func (s *server) state() (st state) {
	s.t.Helper()
	if err := s.ask.Encode("state"); err != nil {
		s.t.Fatal(err)
	}
	if err := s.tell.Decode(&st); err != nil {
		s.t.Fatal(err)
	}
	return st
}

// rss returns the bytes of memory that the server has at this moment.
func (s *server) rss() int64 {
	s.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				s.t.Fatal(err)
			}
			return kb << 10
		}
	}
	s.t.Fatal("no VmRSS")
	return 0
}

// Package flood measures what a healthy flow keeps beside strangers who send as much
// as they can: the table of SECURITY.md names its tests.
package flood

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/tests/fixture"
)

// serverVariable in the environment makes the test binary the process that is
// attacked: an endpoint that takes anyone. Its value is JSON of options.
const serverVariable = "DGRDMA_FLOOD_SERVER"

const (
	serverID     = 2
	serverMemory = 8 << 20
)

// options are what is particular about a server.
type options struct {
	Peers   int  // that it has at most, all of them of one host if they like; 0: the default
	Sealed  bool // it has a key, which no stranger has
	Foreign bool // its peers are of a kind that introduces itself to nobody
}

func (o *options) config() *dgrdma.Config {
	cfg := &dgrdma.Config{ID: serverID, AcceptAny: true, MaxPeers: o.Peers, PeersPerHost: o.Peers}
	if o.Sealed {
		cfg.Keys = &dgrdma.Keys{All: &dgrdma.Key{1}}
	}
	if o.Foreign {
		cfg.Profile = new(dgrdma.OpenCPI(true))
	}
	return cfg
}

func TestMain(m *testing.M) {
	if text := os.Getenv(serverVariable); text != "" {
		var o options
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			panic(err)
		}
		os.Exit(serve(&o))
	}
	fixture.EndHangs()
	os.Exit(m.Run())
}

// state is what the server tells for every line that it reads.
type state struct {
	URL   string
	Stats dgrdma.Stats
	CPU   time.Duration // of the process so far
	// Memory is what the process has in use when all that is garbage is collected, if it was weighed.
	Memory int64
	Peer   dgrdma.ConnStats // of the peer that a stranger plays, if it does
	Other  dgrdma.ConnStats // of the healthy one
}

const (
	plainly = "state"
	weighed = "weigh"
)

func inUse() int64 {
	runtime.GC()
	runtime.GC() // what pools hold back
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

func spent() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u) // never fails
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func serve(o *options) int {
	memory, err := dgrdma.NewRegion(serverMemory)
	if err == nil {
		var e *dgrdma.Endpoint
		cfg := o.config()
		cfg.Memory = memory
		if e, err = dgrdma.Open("udp:127.0.0.1", cfg); err == nil {
			defer e.Close()
			in := bufio.NewScanner(os.Stdin)
			out := json.NewEncoder(os.Stdout)
			for in.Scan() {
				st := state{URL: e.URL(), Stats: e.Stats(), CPU: spent()}
				if in.Text() == strconv.Quote(weighed) {
					st.Memory = inUse()
				}
				for _, c := range e.Conns() {
					switch c.Name().ID {
					case strangerID:
						st.Peer = c.Stats()
					case healthyID:
						st.Other = c.Stats()
					}
				}
				if err = out.Encode(st); err != nil {
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

func startServer(t testing.TB, o options) *server {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serverVariable+"="+string(text))
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

func (s *server) state() state { s.t.Helper(); return s.look(plainly) }

// weigh is state with what the server has in use.
func (s *server) weigh() state { s.t.Helper(); return s.look(weighed) }

func (s *server) look(how string) (st state) {
	s.t.Helper()
	if err := s.ask.Encode(how); err != nil {
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

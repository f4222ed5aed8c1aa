package dgrdma

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
	"github.com/dgrdma/dgrdma/transport/tap"
)

// recordEnv in the environment makes all pairs of this package's tests run over
// recorded wires.
const recordEnv = "DGRDMA_TEST_RECORDED"

// ofPairs are the names of the tests that asked for the wire of a pair.
var ofPairs sync.Map

func maybeRecorded(t testing.TB, wire transport.Conn) transport.Conn {
	name, _, _ := strings.Cut(t.Name(), "/")
	ofPairs.Store(name, true)
	if os.Getenv(recordEnv) == "" {
		return wire
	}
	return recorded(t, wire)
}

func recorded(t testing.TB, wire transport.Conn) transport.Conn {
	t.Helper()
	c, err := tap.New(wire, io.Discard, tap.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// fewer is fixture.Fewer, also over recorded wires: of a kind of worlds that all passed over bare ones,
// a few show what a record breaks.
func fewer[T any](usual, few T) T {
	if os.Getenv(recordEnv) != "" {
		return few
	}
	return fixture.Fewer(usual, few)
}

// TestSuiteOverRecordedWires checks that the tests of pairs pass with every wire of a pair
// recorded: those that ran before, or where there were none all tests of this package.
func TestSuiteOverRecordedWires(t *testing.T) {
	if os.Getenv(recordEnv) != "" {
		return // this is that run
	}
	if testing.Short() {
		t.Skip("what it runs again takes as long as the first time")
	}
	t.Parallel() // those that are not have ended when this one goes on
	var names []string
	ofPairs.Range(func(name, _ any) bool {
		names = append(names, name.(string))
		return true
	})
	again := ""
	if len(names) > 0 {
		again = "^(" + strings.Join(names, "|") + ")$"
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.short", "-test.v", "-test.run="+again)
	cmd.Env = append(os.Environ(), recordEnv+"=yes")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, name := range names {
		if !bytes.Contains(out, []byte("=== RUN   "+name+"\n")) {
			t.Errorf("%s did not run again", name)
		}
	}
	t.Logf("%d tests again", bytes.Count(out, []byte("\n--- ")))
}

// narrow is a wire on which the path to some peers is narrower than to others, and which notes what
// it is told.
type narrow struct {
	transport.Conn
	told []string
}

func (n *narrow) MTU(to transport.Addr) int {
	if to == addrA {
		return 600
	}
	return n.Conn.MTU(to)
}

func (n *narrow) Focus(peer transport.Addr) { n.told = append(n.told, "focus "+peer.String()) }

func (n *narrow) Select(id uint16) error {
	n.told = append(n.told, fmt.Sprint("select ", id))
	return nil
}

func (n *narrow) Stats() transport.Stats { return transport.Stats{Foreign: 7} }

// TestRecordedWireIsLikeTheBareOne checks that a recorded wire is like the bare one: frames are as
// long, the wire is told the same, and each way to drive an endpoint works.
func TestRecordedWireIsLikeTheBareOne(t *testing.T) {
	for _, mode := range []struct {
		name string
		cfg  Config
	}{{"own goroutines", Config{NoHelp: true}}, {"help", Config{}}, {"manual", Config{Manual: true}}} {
		t.Run(mode.name, func(t *testing.T) {
			type seen struct {
				Frames []string
				Told   []string
				Stats  transport.Stats
			}
			see := func(wrap func(transport.Conn) transport.Conn) (s seen) {
				synctest.Test(t, func(t *testing.T) {
					net := simnet.New(1)
					defer net.Close()
					p := &pair{t: t, net: net}
					p.a = p.open(addrA, &Config{ID: 1, Memory: p.region(1 << 16)})
					defer p.a.Close()
					wire := &narrow{Conn: net.Attach(addrB, simnet.Config{})}
					cfg := mode.cfg
					cfg.ID = 2
					cfg.Trace = &Trace{FrameSent: func(to PeerName, b []byte, again bool) {
						if len(messagesIn(t, b)) > 0 {
							s.Frames = append(s.Frames, fmt.Sprint(to, " ", len(b)))
						}
					}}
					e, err := New(wrap(wire), &cfg)
					if err != nil {
						t.Fatal(err)
					}
					defer e.Close()
					p.connect(p.a, Peer{ID: 2, Addr: addrB})
					p.connect(p.a, Peer{ID: 3, Addr: addrB})
					for _, as := range []frame.EndpointID{2, 3} {
						c := p.connect(e, Peer{ID: 1, Addr: addrA, Size: 1 << 16, As: as})
						ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
						for i, size := range []int{64, 5000, 20000} {
							if err := c.Write(ctx, write(0, pattern(i, size), 1<<15, uint32(i+1))); err != nil {
								t.Fatal(err)
							}
						}
						cancel()
					}
					s.Told, s.Stats = wire.told, e.Stats().Transport
				})
				return s
			}
			bare := see(func(c transport.Conn) transport.Conn { return c })
			taped := see(func(c transport.Conn) transport.Conn { return recorded(t, c) })
			if len(bare.Frames) < 10 || len(bare.Told) < 2 || bare.Stats.Foreign != 7 {
				t.Fatalf("the bare wire saw %+v", bare)
			}
			if !reflect.DeepEqual(bare, taped) {
				t.Errorf("bare:     %+v\nrecorded: %+v", bare, taped)
			}
		})
	}
}

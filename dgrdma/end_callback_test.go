package dgrdma_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	. "github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// open attaches an endpoint to a network.
func open(t *testing.T, n *simnet.Network, cfg *Config) *Endpoint {
	t.Helper()
	addr := endA
	if cfg.ID == 2 {
		addr = endB
	}
	e, err := New(n.Attach(addr, simnet.Config{Poison: true}), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// meeting is a memory of which Complete does something.
type meeting struct {
	*Region
	does func()
}

func (m *meeting) Complete(frame.EndpointID, *frame.Message) { m.does() }

// TestStopEachOther checks that callbacks of two endpoints, each of which stops the other one, do
// not wait for each other (attack A17, SECURITY.md).
func TestStopEachOther(t *testing.T) {
	for _, manual := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			n := simnet.New(1)
			defer n.Close()
			n.Link(endA, endB, simnet.Link{Latency: endBeat})
			n.Link(endB, endA, simnet.Link{Latency: endBeat})
			region, _ := NewRegion(64)
			var ends [2]*Endpoint
			var conns [2]*Conn
			var pollers sync.WaitGroup
			both := make(chan struct{}, 2)
			closed := func() bool { return len(both) == 2 }
			for i := range ends {
				ends[i] = open(t, n, &Config{ID: frame.EndpointID(i + 1), Manual: manual, Memory: &meeting{region, func() {
					both <- struct{}{}
					for !closed() {
						time.Sleep(endBeat)
					}
					ends[1-i].Stop()
				}}})
			}
			for i, e := range ends {
				var err error
				if conns[i], err = e.Connect(Peer{ID: ends[1-i].ID(), Addr: ends[1-i].LocalAddr()}); err != nil {
					t.Fatal(err)
				}
				pollers.Go(func() {
					for manual {
						if _, err := e.Progress(0); err != nil {
							return
						}
						time.Sleep(endBeat)
					}
				})
			}
			for _, c := range conns {
				for s := c.Stats(); !s.Ready(); s = c.Stats() {
					time.Sleep(endBeat)
				}
			}
			for _, c := range conns {
				if err := c.Post(&Transaction{Completion: Word(0, 0)}); err != nil {
					t.Error(err)
				}
			}
			for !closed() {
				time.Sleep(endBeat)
			}
			for _, e := range ends {
				e.Close()
			}
			pollers.Wait()
		})
	}
}

// perConn is a memory whose For does something.
type perConn struct {
	*Region
	does func()
}

func (p perConn) For(*Conn) Memory {
	p.does()
	return p.Region
}

// TestStopWithinConnect checks that what Connect and Reset call can stop the endpoint, from
// however deep.
func TestStopWithinConnect(t *testing.T) {
	for _, which := range []string{"For", "NewController", "Entropy"} {
		t.Run(which, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := simnet.New(1)
				defer n.Close()
				region, _ := NewRegion(64)
				var e *Endpoint
				var deep func(depth int)
				deep = func(depth int) {
					if depth > 0 {
						deep(depth - 1)
					} else {
						e.Stop()
					}
				}
				does := func(at string) {
					if at == which {
						deep(200)
					}
				}
				e = open(t, n, &Config{
					ID: 1, Memory: perConn{region, func() { does("For") }},
					NewController: func(int) ack.Controller { does("NewController"); return &ack.FixedWindow{} },
					Entropy:       func() uint32 { does("Entropy"); return 7 },
				})
				if c, err := e.Connect(Peer{ID: 2, Addr: endB}); err == nil {
					if err := c.Post(&Transaction{Completion: Word(0, 0)}); !isClosed(err) {
						t.Errorf("posted after Close: %v", err)
					}
				} else if !isClosed(err) {
					t.Error(err)
				}
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

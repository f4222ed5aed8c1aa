package endpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// trap is a set of callbacks of which one does not return, once.
type trap struct {
	which  string
	goexit bool // else it panics
	armed  atomic.Bool
	closed atomic.Bool // Close returned
	late   atomic.Bool // a callback ran afterwards
	sprung chan struct{}
}

// spring is called by every callback. A panic on a goroutine of the endpoint's own
// would end the test, so it does not happen there.
func (x *trap) spring(which string) {
	if x.closed.Load() {
		x.late.Store(true)
	}
	if which != x.which || !x.armed.Load() || !x.goexit && onOwnGoroutine() || !x.armed.CompareAndSwap(true, false) {
		return
	}
	close(x.sprung)
	if x.goexit {
		runtime.Goexit()
	}
	panic("sprung")
}

// onOwnGoroutine reports whether the caller runs on a goroutine of an endpoint's.
func onOwnGoroutine() bool {
	stack := make([]byte, 1<<14)
	stack = stack[:runtime.Stack(stack, false)]
	return bytes.Contains(stack, []byte("receiveLoop")) || bytes.Contains(stack, []byte("sendLoop"))
}

// config installs the trap.
func (x *trap) config(cfg Config, mem Memory) Config {
	cfg.Memory = &trapped{Memory: mem, trap: x}
	cfg.OnEvent = func(Event) { x.spring("OnEvent") }
	cfg.Trace = &Trace{
		FrameSent:     func(PeerName, []byte, bool) { x.spring("FrameSent") },
		FrameReceived: func(PeerName, *frame.Frame, Reason) { x.spring("FrameReceived") },
		FrameLost:     func(PeerName, frame.Seq, bool) { x.spring("FrameLost") },
	}
	return cfg
}

type trapped struct {
	Memory
	trap *trap
}

func (m *trapped) Admit(src frame.EndpointID, msg *frame.Message) ([]byte, error) {
	m.trap.spring("Admit")
	return m.Memory.Admit(src, msg)
}

func (m *trapped) Complete(src frame.EndpointID, msg *frame.Message) {
	m.trap.spring("Complete")
	m.Memory.Complete(src, msg)
}

// survive runs f on a goroutine of its own, which recovers, and waits for its end.
func survive(f func()) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer func() { recover() }()
		f()
	}()
	<-over
}

// answering are posts that count how often each was answered, and how.
type answering struct {
	times [8]atomic.Int32
	errs  [8]atomic.Value
}

func (a *answering) posts(x *trap) (all []*Transaction) {
	for i := range a.times {
		tx := write(64, pattern(i, 3000), 0, uint32(i+1))
		tx.Copied = func(*Transaction) { x.spring("Copied") }
		tx.Packed = func(*Transaction) { x.spring("Packed") }
		tx.Done = func(_ *Transaction, err error) {
			a.times[i].Add(1)
			if err != nil {
				a.errs[i].Store(err)
			}
			x.spring("Done")
		}
		all = append(all, tx)
	}
	return all
}

func (a *answering) check(t *testing.T, want ...error) {
	t.Helper()
	for i := range a.times {
		if n := a.times[i].Load(); n != 1 {
			t.Errorf("post %d was answered %d times", i, n)
		}
		err, _ := a.errs[i].Load().(error)
		if err != nil && !slices.ContainsFunc(want, func(w error) bool { return errors.Is(err, w) }) {
			t.Errorf("post %d was answered with %v, want one of %v", i, err, want)
		}
	}
}

// TestCallbackThatDoesNotReturn: a panic that the application recovers, or the end
// of the goroutine, in any callback on any goroutine fails the endpoint: everything
// pending is answered, and Close returns (attack A8, SECURITY.md).
func TestCallbackThatDoesNotReturn(t *testing.T) {
	all := []string{"Done", "Copied", "Packed", "Admit", "Complete", "OnEvent", "FrameSent", "FrameReceived", "FrameLost"}
	modes := []struct {
		name   string
		cfg    Config
		goexit []string
		panics []string
		drive  func(p *pair)
	}{
		{"own", Config{NoHelp: true}, all, nil, func(*pair) { time.Sleep(time.Millisecond) }},
		{
			"help", Config{}, all, []string{"Done", "Copied", "Packed", "Admit", "Complete", "OnEvent", "FrameSent", "FrameReceived"},
			func(p *pair) {
				// One after the other: the first brings the turn, others come while it is lent.
				for i := range time.Duration(10) {
					time.AfterFunc(i*250*time.Microsecond, func() { p.toB.Post(write(64, pattern(1, 100), 0, 1)) })
				}
				ctx, cancel := context.WithTimeout(context.Background(), 3*time.Millisecond)
				defer cancel()
				p.await(ctx, never)
			},
		},
		{"poll", Config{Manual: true}, all, all, func(p *pair) { p.b.Progress(0); time.Sleep(10 * time.Microsecond) }},
		{"write", Config{Manual: true}, all, all, func(p *pair) {
			p.toA.Write(context.Background(), write(64, nil, 0, 1))
		}},
		{"post", Config{NoHelp: true}, nil, []string{"Copied", "Packed", "FrameSent"}, func(p *pair) { time.Sleep(time.Millisecond) }},
	}
	for _, mode := range modes {
		test := func(which string, goexit bool) {
			t.Run(fmt.Sprintf("%s/%s/goexit=%v", mode.name, which, goexit), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					x := &trap{which: which, goexit: goexit, sprung: make(chan struct{})}
					region, _ := NewRegion(1 << 16)
					p := newPair(t, pairConfig{
						size: 1 << 16, b: x.config(mode.cfg, region), link: simnet.Link{Latency: 100 * time.Microsecond},
					})
					defer p.close()
					introduced := make(chan error)
					go func() { introduced <- p.toB.Write(context.Background(), write(64, nil, 0, 1)) }()
					for over := false; !over; {
						select {
						case err := <-introduced:
							over = err == nil
						default:
							mode.drive(p)
						}
					}
					p.net.Link(addrB, addrA, simnet.Link{Latency: 100 * time.Microsecond, Script: func(i int, _ []byte) simnet.Verdict {
						return simnet.Verdict{Drop: i%3 == 0}
					}})
					x.armed.Store(true)
					p.toB.size.Store(0) // let it write beyond the memory
					for _, tx := range []*Transaction{write(64, pattern(1, 5000), 0, 1), write(1<<20, nil, 1<<20, 1)} {
						if err := p.toB.Post(tx); err != nil {
							t.Fatal(err)
						}
					}
					var posted answering
					for i, tx := range posted.posts(x) {
						survive(func() {
							if p.toA.Post(tx) != nil {
								posted.times[i].Add(1) // it happened already: answered at once
							}
						})
					}
					for began := time.Now(); x.armed.Load() && time.Since(began) < time.Second; {
						survive(func() { mode.drive(p) })
					}
					synctest.Wait() // what disarmed the trap may not have sprung yet
					select {
					case <-x.sprung:
					default:
						t.Fatal("the callback was not called where it was to be")
					}
					if mode.cfg.Manual {
						if _, err := p.b.Progress(0); !errors.Is(err, ErrCallback) {
							t.Errorf("Poll: %v, want ErrCallback", err)
						}
					}
					time.Sleep(10 * time.Millisecond)
					posted.check(t, ErrCallback)
					if err := p.toA.Post(write(64, nil, 0, 1)); !errors.Is(err, ErrCallback) {
						t.Errorf("Post afterwards: %v, want ErrCallback", err)
					}
					if err := p.b.Close(); err != nil {
						t.Error(err)
					}
					x.closed.Store(true)
					p.await(context.Background(), never)
					time.Sleep(time.Second)
					if x.late.Load() {
						t.Error("a callback ran after Close")
					}
				})
			})
		}
		for _, which := range mode.goexit {
			test(which, true)
		}
		for _, which := range mode.panics {
			test(which, false)
		}
	}
}

// TestCallbackThatDoesNotReturnInClose: nor do those that Close calls keep it from
// ending everything, or another Close from returning (attack A8, SECURITY.md).
func TestCallbackThatDoesNotReturnInClose(t *testing.T) {
	for _, which := range []string{"Done", "FrameSent"} {
		for _, cfg := range []Config{{}, {Manual: true}} {
			for _, goexit := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/manual=%v/goexit=%v", which, cfg.Manual, goexit), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						x := &trap{which: which, goexit: goexit, sprung: make(chan struct{})}
						region, _ := NewRegion(1 << 16)
						p := newPair(t, pairConfig{size: 1 << 16, b: x.config(cfg, region)})
						defer p.close()
						if cfg.Manual {
							for range 20 { // to introduce each other
								p.b.Progress(0)
								time.Sleep(time.Millisecond)
							}
						} else {
							for _, c := range []*Conn{p.toA, p.toB} {
								if err := c.Write(context.Background(), write(64, nil, 0, 1)); err != nil {
									t.Fatal(err)
								}
							}
						}
						p.net.Link(addrB, addrA, simnet.Link{Down: true}) // nothing is acknowledged
						var posted answering
						for _, tx := range posted.posts(x) {
							if err := p.toA.Post(tx); err != nil {
								t.Fatal(err)
							}
						}
						progress := func() {
							synctest.Wait()
							if cfg.Manual {
								p.b.Progress(0)
							}
						}
						progress()
						// An acknowledgement is owed, and leaves with Close. If the last one
						// had no company, the next one does not wait for any.
						owed := func() (owed bool) {
							p.toA.mu.Lock()
							defer p.toA.mu.Unlock()
							_, owed = p.toA.tx.due.Deadline()
							return owed
						}
						for tries := 0; !owed() && tries < 10; tries++ {
							if err := p.toB.Post(write(64, nil, 0, 7)); err != nil {
								t.Fatal(err)
							}
							progress()
						}
						x.armed.Store(true)
						survive(func() { p.b.Close() })
						select {
						case <-x.sprung:
						default:
							t.Error("Close did not call it")
						}
						x.closed.Store(true)
						posted.check(t, ErrClosed, ErrCallback)
						if err := p.b.Close(); err != nil {
							t.Error(err)
						}
						time.Sleep(time.Second)
						if x.late.Load() {
							t.Error("a callback ran after Close")
						}
						p.net.Attach(addrB, simnet.Config{}) // panics if it is taken
					})
				})
			}
		}
	}
}

// TestAnswersBesideCallback: what is taken from connections at the moment when a
// callback does not return is answered all the same: when peers are given up, when
// connections are reset, and when a peer restarts (attack A8, SECURITY.md).
func TestAnswersBesideCallback(t *testing.T) {
	cases := []struct {
		name, which string
		cause       func(p *pair)
		want        error
	}{
		{"down", "OnEvent", func(p *pair) {
			p.net.Link(addrB, addrA, simnet.Link{Down: true})
			for _, c := range p.b.Conns() {
				c.Post(write(64, nil, 0, 1))
			}
		}, ErrPeerDown},
		{"reset", "Done", func(p *pair) {
			for _, c := range p.b.Conns() {
				c.Reset(0)
			}
		}, ErrReset},
		{"restart", "Done", func(p *pair) {
			p.net.Link(addrA, addrB, simnet.Link{})
			kill(p.a)
			p.a = p.open(addrA, &Config{ID: 1, Memory: p.memA})
			p.connect(p.a, Peer{ID: 2, Addr: addrB})
		}, ErrPeerRestarted},
	}
	for _, c := range cases {
		for _, manual := range []bool{false, true} {
			for _, goexit := range []bool{true, false} {
				if !manual && !goexit {
					continue // on the endpoint's own goroutines, and so the end of the process
				}
				t.Run(fmt.Sprintf("%s/manual=%v/goexit=%v", c.name, manual, goexit), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						x := &trap{which: c.which, goexit: goexit, sprung: make(chan struct{})}
						region, _ := NewRegion(1 << 16)
						p := newPair(t, pairConfig{size: 1 << 16, b: x.config(Config{Manual: manual, GiveUp: time.Second}, region)})
						defer p.close()
						other := p.connect(p.b, Peer{ID: 1, Addr: addrA, As: 9})
						p.connect(p.a, Peer{ID: 9, Addr: addrB})
						for _, toA := range []*Conn{p.toA, other} {
							if err := toA.Write(context.Background(), write(64, nil, 0, 1)); err != nil {
								t.Fatal(err)
							}
						}
						p.net.Link(addrA, addrB, simnet.Link{Down: true})
						var posted [2]answering
						for i, toA := range []*Conn{p.toA, other} {
							for _, tx := range posted[i].posts(x) {
								if err := toA.Post(tx); err != nil {
									t.Fatal(err)
								}
							}
						}
						x.armed.Store(true)
						c.cause(p)
						for began := time.Now(); time.Since(began) < 2*time.Second; time.Sleep(time.Millisecond) {
							if manual {
								survive(func() { p.b.Progress(0) })
							}
						}
						if x.armed.Load() {
							t.Fatal("the callback was not called")
						}
						for i := range posted {
							posted[i].check(t, c.want, ErrCallback)
						}
						p.b.Close()
					})
				})
			}
		}
	}
}

// TestCloseBesideCallback: Close waits for the end of the batch in which a callback
// does not return.
func TestCloseBesideCallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		region, _ := NewRegion(4096)
		mem := &hookedMemory{Region: region}
		p := newPair(t, pairConfig{size: 4096, b: Config{Memory: mem}})
		defer p.close()
		if err := p.toB.Write(context.Background(), write(64, nil, 0, 1)); err != nil {
			t.Fatal(err)
		}
		release := make(chan struct{})
		mem.complete = func() {
			<-release
			runtime.Goexit()
		}
		if err := p.toB.Post(write(64, nil, 0, 2)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		time.AfterFunc(time.Second, func() { close(release) })
		began := time.Now()
		if err := p.b.Close(); err != nil || time.Since(began) != time.Second {
			t.Errorf("Close returned after %v: %v", time.Since(began), err)
		}
	})
}

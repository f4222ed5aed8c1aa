package dgrdma_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// caught returns what a function panics with.
func caught(f func()) (p any) {
	defer func() { p = recover() }()
	f()
	return nil
}

// onEndpointGoroutine reports whether the caller runs on a goroutine of an endpoint's: a
// panic there ends the process.
func onEndpointGoroutine() bool {
	buf := make([]byte, 1<<16)
	return strings.Contains(string(buf[:runtime.Stack(buf, false)]), "created by github.com/dgrdma/dgrdma/endpoint/run.")
}

// TestEndAfterPanic checks that an endpoint ends of which a callback, or a method of its
// controller or logger, panics on a goroutine of the program that recovers it. The rest is as in
// TestEnd (attack A8, SECURITY.md).
func TestEndAfterPanic(t *testing.T) {
	all := append(slices.Clone(inAll), "OnSent", "OnLost", "EndBatch", "NextSend")
	hooks := map[string][]string{"poll": all, "write": all, "help": {
		// Those that a goroutine that waits does not always call are left out.
		"Done", "Copied", "Packed", "Admit", "Complete", "OnEvent", "FrameSent", "FrameReceived", "Log", "Window", "OnAcked", "OnSent",
		"EndBatch", "NextSend", "ready",
	}}
	for _, d := range drivings() {
		for _, which := range hooks[d.name] {
			if which == "ready" && d.name != "help" {
				continue
			}
			t.Run(fmt.Sprintf("%s/%s", d.name, which), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newEndWorld(t, d, which, true)
					time.Sleep(20 * endBeat)
					act := func() {
						if !onEndpointGoroutine() {
							w.hooks.did()
							panic("sprung")
						}
					}
					w.hooks.act.Store(&act)
					select {
					case <-w.hooks.acted:
					case <-time.After(5 * time.Second):
						t.Error("it was not called")
					}
					time.Sleep(20 * endBeat)
					w.hooks.act.Store(nil)
					if err := w.end(w.b.Close); err != nil {
						t.Error(err)
					}
					w.check()
				})
			})
		}
	}
}

// panicking is a memory that panics where it is told to.
type panicking struct {
	*Region
	at string
}

func (m *panicking) panics(at string) {
	if m.at == at {
		panic("sprung")
	}
}

func (m *panicking) For(*Conn) Memory { m.panics("For"); return m }

func (m *panicking) Admit(src frame.EndpointID, x *frame.Message) ([]byte, error) {
	m.panics("Admit")
	return m.Region.Admit(src, x)
}

func (m *panicking) Placed(src frame.EndpointID, x *frame.Message) {
	m.Region.Placed(src, x)
	if x.Addr == 8 {
		m.panics("Placed")
	}
}

func (m *panicking) Complete(src frame.EndpointID, x *frame.Message) {
	m.Region.Complete(src, x)
	m.panics("Complete")
}

// TestPanicPassesDeferredClose checks that the panic of a callback reaches the program though that
// deferred Close, and that the peer is not told that a transaction is done which was half applied
// (attack A8, SECURITY.md).
func TestPanicPassesDeferredClose(t *testing.T) {
	for _, at := range []string{"For", "Admit", "Placed", "Complete"} {
		t.Run(at, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := simnet.New(1)
				defer n.Close()
				region, _ := NewRegion(64)
				memory := &panicking{Region: region}
				a, b := open(t, n, &Config{ID: 1, GiveUp: time.Second}), open(t, n, &Config{ID: 2, Memory: memory, Manual: true})
				defer a.Close()
				toB, err := a.Connect(Peer{ID: 2, Addr: endB})
				if err != nil {
					t.Fatal(err)
				}
				done := make(chan error, 1)
				post := func() {
					t.Helper()
					if err := toB.PostWith(&Transaction{
						Segments: []Segment{{0, make([]byte, 4)}, {8, make([]byte, 4)}}, Completion: Word(16, 1),
					}, func(_ *Transaction, err error) { done <- err }); err != nil {
						t.Error(err)
					}
				}
				if at != "For" {
					if _, err := b.Connect(Peer{ID: 1, Addr: endA}); err != nil {
						t.Fatal(err)
					}
					for post(); len(done) == 0; time.Sleep(endBeat) {
						b.Progress(0)
					}
					if err := <-done; err != nil {
						t.Fatal(err)
					}
					post()
				}
				memory.at = at
				if p := caught(func() {
					defer b.Close()
					if at == "For" {
						b.Connect(Peer{ID: 1, Addr: endA})
					}
					b.Progress(time.Second)
				}); p != "sprung" {
					t.Errorf("it panics with %v", p)
				}
				if at != "For" {
					if err := <-done; err == nil {
						t.Error("the peer was told that it is done")
					}
				}
			})
		})
	}
}

// TestHalfAppliedStays checks that a program that recovers the panic of a callback cannot go on
// with an endpoint that has applied a part of a frame: the next copy of the frame would count its
// messages twice (attack A8, SECURITY.md).
func TestHalfAppliedStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		region, _ := NewRegion(64)
		memory := &panicking{Region: region}
		a, b := open(t, n, &Config{ID: 1, GiveUp: time.Second}), open(t, n, &Config{ID: 2, Memory: memory, Manual: true})
		defer a.Close()
		defer b.Close()
		toB, err := a.Connect(Peer{ID: 2, Addr: endB})
		if err != nil {
			t.Fatal(err)
		}
		toA, err := b.Connect(Peer{ID: 1, Addr: endA})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		memory.at = "Placed"
		if err := toB.PostWith(&Transaction{
			Segments: []Segment{{0, make([]byte, 4)}, {8, make([]byte, 4)}}, Completion: Word(16, 1),
		}, func(_ *Transaction, err error) { done <- err }); err != nil {
			t.Fatal(err)
		}
		panics := 0
		for ; len(done) == 0; time.Sleep(endBeat) {
			if caught(func() { b.Progress(0) }) != nil {
				panics++
			}
		}
		if err := <-done; err == nil || panics != 1 || region.Load32(16) != 0 {
			t.Errorf("done with %v after %d panics, the completion word is %d", err, panics, region.Load32(16))
		}
		if err := toA.Post(&Transaction{Completion: Word(0, 0)}); err == nil || err != b.Err() {
			t.Errorf("Post: %v, want %v", err, b.Err())
		}
	})
}

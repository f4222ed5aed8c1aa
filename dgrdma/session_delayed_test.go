package dgrdma

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/endpoint/session"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// heldWorld is a pair of which all frames are recorded.
type heldWorld struct {
	*pair
	mu     sync.Mutex
	held   []heldFrame
	passes func(from transport.Addr, b []byte) bool // nil: all do
}

type heldFrame struct {
	from, to transport.Addr
	b        []byte
}

// record is the script of a link.
func (w *heldWorld) record(from, to transport.Addr) func(int, []byte) simnet.Verdict {
	return func(_ int, b []byte) simnet.Verdict {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.held = append(w.held, heldFrame{from, to, slices.Clone(b)})
		if w.passes != nil && !w.passes(from, b) {
			return simnet.Drop()
		}
		return simnet.Deliver()
	}
}

func (w *heldWorld) only(passes func(from transport.Addr, b []byte) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.passes = passes
}

func nothingPasses(transport.Addr, []byte) bool { return false }

// kindOfHeld names the kind of a frame.
func kindOfHeld(t testing.TB, b []byte) string {
	if frame.IsSession(b) {
		f, err := frame.ParseSession(b)
		if err != nil {
			t.Fatal(err)
		}
		return [...]string{"data", "ACK", "BYE", "PROBE", "PROBED", "RESET", "bell"}[f.Control]
	}
	f, err := frame.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	if h, ok := handshakeIn(&f); ok {
		return [...]string{
			frame.HandshakeHello: "HELLO", frame.HandshakeWelcome: "WELCOME", frame.HandshakeConfirm: "CONFIRM",
			frame.HandshakeReject: "REJECT", frame.HandshakeRefused: "REFUSED",
		}[h.Kind]
	}
	return "discovery"
}

// made returns frames of all kinds that endpoints may have sent in the sessions that the recorded ones confirm, but for the last confirmed.
func (w *heldWorld) made() (all []heldFrame) {
	type pairing struct{ initiator, responder uint32 }
	var known []pairing
	for _, x := range w.held {
		if frame.IsSession(x.b) {
			continue
		}
		f, _ := frame.Parse(x.b)
		h, ok := handshakeIn(&f)
		if !ok || h.Kind != frame.HandshakeConfirm {
			continue
		}
		if p := (pairing{h.Sender, h.Receiver}); !slices.Contains(known, p) {
			known = append(known, p)
		}
		for _, kind := range []frame.HandshakeKind{frame.HandshakeReject, frame.HandshakeRefused} {
			answer := frame.Handshake{Kind: kind, Sender: h.Receiver, Receiver: h.Sender, Check: h.Check}
			if kind == frame.HandshakeRefused {
				answer.Sender, answer.Check = h.Sender, 0
			}
			b := make([]byte, frame.RefusedSize)
			answer.Put(b, f.Src, f.Dst)
			frame.Refusal{ID: f.Dst, Why: uint8(session.NoRoom)}.Put(b[frame.HandshakeSize:])
			all = append(all, heldFrame{x.to, x.from, b})
		}
	}
	for _, p := range known[:len(known)-1] {
		for _, x := range []struct {
			from, to         transport.Addr
			src, dst         frame.EndpointID
			sender, receiver uint32
		}{
			{addrA, addrB, 1, 2, p.initiator, p.responder}, {addrA, addrB, 1, 2, p.responder, p.initiator},
			{addrB, addrA, 2, 1, p.initiator, p.responder}, {addrB, addrA, 2, 1, p.responder, p.initiator},
		} {
			for id := range uint32(3) {
				head := frame.SessionHeader{
					Dst: x.dst, Src: x.src, ID: x.sender + 1 + id, Ack: x.receiver + id, Tag: session.Tag(session.Epoch(x.receiver), session.Epoch(x.sender)),
				}
				add := func(f func(b []byte, h frame.SessionHeader) int) {
					b := make([]byte, 1490)
					all = append(all, heldFrame{x.from, x.to, b[:f(b, head)]})
				}
				add(func(b []byte, h frame.SessionHeader) int { return frame.PutSessionAckFrame(b, &h, false, 0, 1, nil) })
				add(func(b []byte, h frame.SessionHeader) int {
					return frame.PutBye(b, &h, frame.Bye{Sender: x.sender, Receiver: x.receiver})
				})
				add(func(b []byte, h frame.SessionHeader) int { return frame.PutProbe(b, &h, 1400) })
				add(func(b []byte, h frame.SessionHeader) int { return frame.PutProbed(b, &h, 1400) })
				add(func(b []byte, h frame.SessionHeader) int { return frame.PutReset(b, h) })
				add(func(b []byte, h frame.SessionHeader) int {
					h.Control = frame.ControlBell
					h.Put(b)
					return 28
				})
			}
		}
	}
	return all
}

// writes has both sides write, and fails if one cannot. A write may learn that there is a session no more.
func (w *heldWorld) writes(n int, mayLearn bool) {
	w.t.Helper()
	for _, c := range []*Conn{w.toB, w.toA} {
		err := c.Write(context.Background(), write(4096, pattern(n, 20_000), 0, uint32(n)))
		if mayLearn && errors.Is(err, ErrPeerRestarted) {
			err = c.Write(context.Background(), write(4096, pattern(n, 20_000), 0, uint32(n)))
		}
		if err != nil {
			w.t.Fatalf("write %d: %v", n, err)
		}
	}
	for _, m := range []*Region{w.memA, w.memB} {
		if m.Load32(0) != uint32(n) {
			w.t.Fatalf("write %d is done and was not applied", n)
		}
	}
}

// state returns that of a's session.
func (w *heldWorld) state() session.State {
	w.toB.mu.Lock()
	defer w.toB.mu.Unlock()
	return w.toB.session.tx.m.State
}

// TestHeldBackInEachState checks that frames of all kinds that the network held back for minutes, of sessions that ended by a restart, by
// Reset, by Close and because the peer timed out, and what is doubled of the present one, change nothing, in whichever state they arrive:
// no memory, no transaction in flight, no session, no attempt.
func TestHeldBackInEachState(t *testing.T) {
	for _, held := range []time.Duration{0, time.Second, 3 * time.Minute} {
		for state := session.None; state <= session.Up; state++ {
			t.Run(fmt.Sprintf("%v for %v", state, held), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { heldBackIn(t, state, held) })
			})
		}
	}
}

func heldBackIn(t *testing.T, state session.State, held time.Duration) {
	const giveUp = 10 * time.Minute
	cfg := Config{GiveUp: giveUp}
	w := &heldWorld{pair: newPair(t, pairConfig{a: cfg, b: cfg, size: 1 << 16})}
	defer w.close()
	for _, x := range [][2]transport.Addr{{addrA, addrB}, {addrB, addrA}} {
		w.net.Link(x[0], x[1], simnet.Link{Latency: time.Millisecond, Script: w.record(x[0], x[1])})
	}
	w.writes(1, false)
	w.restartB(cfg)
	w.writes(2, true)
	w.toB.Reset(0)
	w.writes(3, true)
	w.toA.Close()
	<-w.toB.Done()
	w.toA = w.connect(w.b, Peer{ID: 1, Addr: addrA, Size: w.memA.Size()})
	w.toB.Reset(0)
	w.writes(4, true)
	w.only(nothingPasses)
	for _, c := range []*Conn{w.toB, w.toA} {
		if err := c.Post(write(4096, pattern(5, 20_000), 0, 5)); err != nil {
			t.Fatal(err)
		}
	}
	<-w.toB.Done()
	<-w.toA.Done()
	w.only(nil)
	w.toB.Reset(0)
	w.toA.Reset(0)
	w.writes(6, true)
	w.toB.Reset(0)
	w.writes(7, true)
	time.Sleep(time.Second)

	w.mu.Lock()
	all := append(slices.Clone(w.held), w.made()...)
	w.mu.Unlock()
	kinds := map[string]int{}
	for _, x := range all {
		kinds[kindOfHeld(t, x.b)]++
	}
	if got, want := slices.Sorted(maps.Keys(kinds)), []string{
		"ACK", "BYE", "CONFIRM", "HELLO", "PROBE", "PROBED", "REFUSED", "REJECT", "RESET", "WELCOME", "bell", "data",
	}; !slices.Equal(got, want) {
		t.Fatalf("frames of the kinds %v, want %v", got, want)
	}

	done := make(chan error, 1)
	post := func() {
		x := write(4096, pattern(8, 20_000), 0, 8)
		x.Done = func(_ *Transaction, err error) { done <- err }
		if err := w.toB.Post(x); err != nil {
			t.Fatal(err)
		}
	}
	switch state {
	case session.None:
		w.toB.Close()
	case session.Down:
		w.only(nothingPasses)
		if err := w.toB.Write(context.Background(), write(64, nil, 0, 8)); !errors.Is(err, ErrPeerDown) {
			t.Fatal(err)
		}
	case session.Asking:
		w.only(nothingPasses)
		w.toB.Reset(0)
		post()
	case session.Confirming:
		w.only(func(from transport.Addr, b []byte) bool { return from == addrB || kindOfHeld(t, b) == "HELLO" })
		w.toB.Reset(0)
		post()
	case session.Up:
		w.only(nothingPasses)
		post()
	}
	time.Sleep(100*time.Millisecond + held)
	if got := w.state(); got != state {
		t.Fatalf("the state is %v", got)
	}
	before, beforeB := slices.Clone(w.memA.Bytes()), slices.Clone(w.memB.Bytes())
	completions := w.a.Stats().Completions
	w.pair.mu.Lock()
	w.events = nil
	w.pair.mu.Unlock()
	for _, x := range all {
		w.net.Inject(x.from, x.to, x.b)
		time.Sleep(10 * time.Microsecond)
	}
	time.Sleep(10 * time.Millisecond)
	synctest.Wait()
	if got := w.state(); got != state {
		t.Errorf("the state is %v", got)
	}
	if !slices.Equal(before, w.memA.Bytes()) || !slices.Equal(beforeB, w.memB.Bytes()) || w.a.Stats().Completions != completions {
		t.Error("something was written")
	}
	select {
	case err := <-done:
		t.Errorf("what was posted is done: %v", err)
	default:
	}
	for _, kind := range []EventKind{PeerUp, PeerDown, PeerRestarted} {
		if n := w.count(kind, RefusedNone); n > 0 {
			t.Errorf("%d events of the kind %v", n, kind)
		}
	}
	if state == session.None && len(w.a.Conns()) > 0 {
		t.Error("there is a connection")
	}

	// All goes on as if nothing had come.
	w.only(nil)
	switch state {
	case session.None:
		w.toB = w.connect(w.a, Peer{ID: 2, Addr: addrB, Size: w.memB.Size()})
		w.toA.Reset(0)
	case session.Down:
		w.toB.Reset(0)
	default:
		// A peer may answer a WELCOME for a minute: whether what left with a later CONFIRM was applied is unknown.
		late := state == session.Confirming && held > time.Minute
		if err := <-done; late != errors.Is(err, ErrPeerRestarted) || !late && err != nil {
			t.Errorf("what was posted: %v", err)
		}
	}
	w.writes(9, true)
	w.writes(10, false)
}

package dgrdma

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/endpoint/session"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// sharesBucket returns an address whose epochs change when a session with the other one ends.
func sharesBucket(e *Endpoint, other transport.Addr) transport.Addr {
	told := func(at transport.Addr, ends bool) (epoch session.Epoch) {
		e.epochs.with(peerKey{ids{2, 1}, at}, e.now(), func(all session.Epochs) {
			if ends {
				all.End()
			}
			epoch = all.Told()
		})
		return epoch
	}
	const many = 1 << 15
	before := make([]session.Epoch, many)
	for i := range before {
		before[i] = told(simnet.Addr(uint32(1000+i)), false)
	}
	told(other, true)
	for i := range before {
		if at := simnet.Addr(uint32(1000 + i)); told(at, false) != before[i] {
			return at
		}
	}
	return transport.Addr{}
}

// TestTakesThePlaceInItsBucket checks that a peer which takes the place of another one has a session with its first CONFIRM, although the
// end of the other one's session makes what both were told worthless: a connection without a session keeps what is posted to it for ever.
func TestTakesThePlaceInItsBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, w := openForgery(t, Config{MaxPeers: 1})
		defer e.Close()
		first := simnet.Addr(10)
		second := sharesBucket(e, first)
		w.introduce(t, first, 1, 5)
		time.Sleep(10 * time.Minute)
		w.shake(second, 1, frame.Handshake{Kind: frame.HandshakeHello, Sender: 7})
		for _, s := range w.frames(time.Millisecond) {
			if h, ok := handshakeIn(&s.f); ok && h.Kind == frame.HandshakeWelcome {
				w.shake(second, 1, frame.Handshake{Kind: frame.HandshakeConfirm, Sender: 7, Receiver: h.Sender, Check: h.Check})
			}
		}
		w.frames(time.Millisecond)
		c := e.peers.find(peerKey{ids{2, 1}, second})
		if c == nil || e.Stats().Dismissed != 1 {
			t.Fatalf("no connection; %d dismissed", e.Stats().Dismissed)
		}
		if st := c.Stats(); st.Theirs != 7 {
			t.Errorf("no session: %+v", st)
		}
		done := make(chan error, 1)
		x := write(64, nil, 0, 1)
		x.Done = func(_ *Transaction, err error) { done <- err }
		if err := c.Post(x); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		select {
		case <-done:
		default:
			t.Error("what is posted waits for ever")
		}
	})
}

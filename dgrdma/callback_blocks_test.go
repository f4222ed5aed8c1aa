package dgrdma

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// replying is a memory that replies to each completion from the callback.
type replying struct {
	*Region
	reply func()
}

func (m *replying) Complete(src frame.EndpointID, msg *frame.Message) {
	m.Region.Complete(src, msg)
	m.reply()
}

// TestCallbackThatWaits checks that a Write in a callback ends when the peer timed out. It holds up
// the goroutine that would receive its acknowledgement, so the error does not say that the peer is
// silent: the receive goroutine was blocked. A peer that is silent by itself is said to be.
func TestCallbackThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const giveUp = 2 * time.Second
		region, err := NewRegion(1 << 20)
		if err != nil {
			t.Fatal(err)
		}
		mem := &replying{region, func() {}}
		p := newPair(t, pairConfig{b: Config{Memory: mem, GiveUp: giveUp}})
		defer p.close()
		told := make(chan error, 1)
		mem.reply = func() { told <- p.toA.Write(t.Context(), write(0, pattern(1, 8), 64, 1)) }
		if err := p.toB.Post(write(0, pattern(2, 8), 64, 1)); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		err = <-told
		took := time.Since(begin)
		if !errors.Is(err, ErrPeerDown) || !strings.Contains(err.Error(), "a callback has not returned for ") || took > 2*giveUp {
			t.Errorf("after %v: %v", took, err)
		}

		mem.reply = func() {}
		if err := p.toA.Reset(0); err != nil {
			t.Fatal(err)
		}
		p.net.Link(addrA, addrB, simnet.Link{Loss: 1})
		err = p.toA.Write(t.Context(), write(0, pattern(3, 8), 64, 2))
		if !errors.Is(err, ErrPeerDown) || strings.Contains(err.Error(), "callback") {
			t.Errorf("a peer that is silent: %v", err)
		}
	})
}

// TestBlockedFor checks that the error names the callback, with its time, if it took at least half of
// the time after which a peer times out, and nothing else.
func TestBlockedFor(t *testing.T) {
	const giveUp = 1200 * time.Millisecond
	f := newFeed(t, Config{GiveUp: giveUp})
	const now = ack.Instant(time.Hour)
	for _, c := range []struct {
		began ack.Instant
		says  string
	}{
		{0, ""}, {now, ""}, {now.Add(1 - giveUp/2), ""},
		{now.Add(-giveUp / 2), "has not returned for 600ms and"},
		{now.Add(-giveUp/2 - 1300*time.Microsecond), "has not returned for 601ms and"},
		{1, "has not returned for 1h0m0s and"},
	} {
		f.e.applying.Store(int64(c.began))
		why := f.e.addReceiverBlocked(now, &PeerError{Op: "post", Err: ErrPeerDown})
		if !errors.Is(why, ErrPeerDown) || !strings.Contains(why.Error(), c.says) || c.says == "" && strings.Contains(why.Error(), "callback") {
			t.Errorf("in a callback since %v before: %v, want that it %s", now.Sub(c.began), why, c.says)
		}
	}
	f.e.applying.Store(0)
}

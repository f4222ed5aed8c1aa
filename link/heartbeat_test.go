package link

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestHeartbeat checks that a host posts something to each peer with links twice in the time after
// which a silent peer is dead, and nothing to other peers.
func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		cfg := &Config{Endpoint: dgrdma.Config{GiveUp: 2 * time.Second}}
		n.host(3, nil).ep.AcceptAny(true)
		a, b := n.host(1, cfg), n.host(2, cfg)
		opened := time.Now()
		kind := dgrdma.OpenCPI(false) // which understands what is posted
		other, err := a.ep.Connect(dgrdma.Peer{ID: 4, Addr: simnet.Addr(4), Profile: &kind})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := a.Offer(other, 0, &Options{Buffers: 1, Size: 8}); err != nil {
			t.Fatal(err)
		}
		alone, err := a.ep.Connect(dgrdma.Peer{ID: 3, Addr: simnet.Addr(3)})
		if err != nil {
			t.Fatal(err)
		}
		join(t, a, b, "port", nil, nil)
		time.Sleep(100 * time.Millisecond)
		done := func(h *Host) uint64 { return h.ep.Stats().TransactionsDone }
		beforeA, beforeB := done(a), done(b)
		for beats := range uint64(6) {
			for _, at := range []time.Duration{200, 900} {
				time.Sleep(time.Until(opened.Add(time.Duration(beats)*time.Second + at*time.Millisecond)))
				if x, y := done(a)-beforeA, done(b)-beforeB; x != beats || y != beats {
					t.Errorf("after %v: %d and %d heartbeats, want %d", time.Since(opened), x, y, beats)
				}
			}
		}
		if s := alone.Stats(); s.TransactionsDone != 0 {
			t.Errorf("%d heartbeats for a peer without links", s.TransactionsDone)
		}
		if s := other.Stats(); s.FramesSent != 0 {
			t.Errorf("%d frames to a peer of another kind", s.FramesSent)
		}
	})
}

// TestOneHeartbeatAtATime checks that no heartbeat is posted while one is in flight.
func TestOneHeartbeatAtATime(t *testing.T) {
	withFakePeer(t, &Options{Buffers: 2, Size: 8}, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		s.dial(1, "port", toListener, half{Credit: 1 << 15}, half{})
		p := (<-made).peer
		s.setMute(true)
		before := h.ep.Stats().TransactionsDone
		for range 3 {
			p.sendHeartbeat()
		}
		s.setMute(false)
		for beats := range uint64(2) {
			s.wait(time.Second)
			if done := h.ep.Stats().TransactionsDone - before; done != beats+1 {
				t.Errorf("%d heartbeats arrived, want %d", done, beats+1)
			}
			p.sendHeartbeat()
		}
	})
}

// TestHeartbeatOfALifeBefore checks that a heartbeat that fails ends the links of its life, and no
// link that was made since.
func TestHeartbeatOfALifeBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		_, _, out, in := pair(t, n, nil, nil)
		out.peer.heartbeatDone(nil, dgrdma.ErrPeerRestarted)
		if err := echo(soon(t), out, in, 1); err != nil {
			t.Error(err)
		}
	})
}

// TestEndWithoutAnEvent checks that a link that waits for nothing hears of the end of its connection,
// though no event says so: the heartbeat finds out.
func TestEndWithoutAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		a, _, out, _ := pair(t, n, nil, nil)
		n.sim.Close()
		select {
		case <-out.Done():
			if err := out.Err(); !errors.Is(err, out.Peer().Err()) || errors.Is(err, dgrdma.ErrPeerDown) {
				t.Error(err)
			}
		case <-time.After(a.ep.GiveUp()):
			t.Errorf("the link is as before; its connection: %v", out.Peer().Err())
		}
	})
}

package dgrdma

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestInspect checks that Inspect returns the statistics of the endpoint and of each connection,
// and that they agree.
func TestInspect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const latency = 3 * time.Millisecond
		p := newPair(t, pairConfig{link: simnet.Link{Latency: latency}, a: Config{GiveUp: time.Second}})
		defer p.close()
		if s := p.toB.Stats(); s.Silent >= 0 || s.Theirs != 0 || s.Ready() {
			t.Errorf("before anything came: silent for %v, life of the peer %d, ready %v", s.Silent, s.Theirs, s.Ready())
		}
		for i := range 10 {
			if err := p.toB.Write(context.Background(), write(4096, pattern(i, 5000), 0, 1)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()

		total, each := p.a.Inspect()
		if total.Peers != 1 || len(each) != 1 || total.Closed || total.Err != nil || total.Age < 2*time.Second {
			t.Fatalf("%d peers, %d listed, closed %v, error %v, age %v", total.Peers, len(each), total.Closed, total.Err, total.Age)
		}
		s, there := each[0], p.toA.Stats()
		if s.Counters != total.Counters || s.TransactionsDone != 10 {
			t.Errorf("one connection: %+v\nall: %+v", s.Counters, total.Counters)
		}
		if s.Peer != (PeerName{2, addrB}) || s.Profile != "native" || s.Learned || s.Memory != 1<<20 || s.FrameWindow != 1024 ||
			s.FrameSize != int(p.toB.frameSize.Load()) || s.Window <= 0 || s.InFlight != 0 || s.Lost != 0 || s.Queued != 0 || s.Life != 1 {
			t.Errorf("%+v", s)
		}
		// HELLOs that crossed each other look like half a round trip.
		if s.RTT < latency || s.RTT > time.Second || s.MinRTT < latency || s.MinRTT > s.RTT {
			t.Errorf("round trips of %v, at least %v, over a network that takes %v one way", s.RTT, s.MinRTT, latency)
		}
		if s.LatestRTT < s.MinRTT || s.OnWire != 0 {
			t.Errorf("the latest round trip took %v, the least %v; %d bytes on the wire", s.LatestRTT, s.MinRTT, s.OnWire)
		}
		if c := s.Congestion; c.Controller != "bbr" || c.State != "Startup" || c.Why != "no round trip of late took less than 1ms" || c.Bandwidth <= 0 || c.PacingRate <= 0 || c.MinRTT < latency {
			t.Errorf("%+v", c)
		}
		if s.Silent < 1900*time.Millisecond || s.Silent > 2*time.Second {
			t.Errorf("silent for %v, nothing was said for 2 s", s.Silent)
		}
		if s.Mine == 0 || s.Mine != there.Theirs || s.Theirs != there.Mine || !s.Ready() {
			t.Errorf("lives %d and %d; the other side says %d and %d", s.Mine, s.Theirs, there.Theirs, there.Mine)
		}

		if there.BytesReceived != s.BytesSent || s.BytesReceived != there.BytesSent {
			t.Errorf("%d bytes sent, %d of them received; back %d and %d", s.BytesSent, there.BytesReceived, there.BytesSent, s.BytesReceived)
		}

		// A peer that is gone.
		p.b.Close()
		err := p.toB.Write(context.Background(), write(4096, pattern(1, 8), 0, 1))
		if s := p.toB.Stats(); !errors.Is(err, ErrPeerDown) || !s.Down || s.Err != err || s.InFlight != 0 || s.Lost != 0 || s.Ready() || s.TransactionsLost != 1 {
			t.Errorf("after %v: down %v, because of %v; %d lost", err, s.Down, s.Err, s.TransactionsLost)
		}

		// What was counted for a connection that is closed stays in the sum.
		before, _ := p.a.Inspect()
		p.toB.Close()
		after, each := p.a.Inspect()
		if len(each) != 0 || after.Peers != 0 || after.Counters != before.Counters {
			t.Errorf("%d connections are left; %+v, before %+v", len(each), after.Counters, before.Counters)
		}
		p.a.Close()
		if s := p.a.Stats(); !s.Closed || s.Counters != after.Counters {
			t.Errorf("closed %v, %+v", s.Closed, s.Counters)
		}
	})
}

// TestInspectForeign checks that a controller of the program's own says nothing if it cannot, and those of other peers their names.
func TestInspectForeign(t *testing.T) {
	for _, c := range []struct {
		p    Profile
		own  func(int) Controller
		says string
	}{
		{Native(), func(int) Controller { return struct{ Controller }{&ack.FixedWindow{}} }, ""},
		{Native(), func(int) Controller { return &ack.FixedWindow{} }, "fixed"},
		{FPGA(), nil, "fixed"},
		{OpenCPI2(), nil, "paced"},
	} {
		r := newHalfRig(t, 1, c.p, Config{NewController: c.own})
		if got := r.c.Stats().Congestion; got.Controller != c.says || got.Why != "" {
			t.Errorf("%s: %+v, want %q", c.p.Name, got, c.says)
		}
	}
}

// TestSilent checks that a peer is silent since its last frame came, from the first one on.
func TestSilent(t *testing.T) {
	withFakePeer(t, Config{}, OpenCPI(false), func(t *testing.T, _ *Endpoint, c *Conn, s *fakePeer) {
		if d := c.Stats().Silent; d >= 0 {
			t.Errorf("silent for %v, though nothing came", d)
		}
		for i := range frame.Seq(2) {
			s.send(1+i, data(uint32(1+i), 1, 1, 64, pattern(1, 16)))
			if s.recv(0); c.Stats().Silent != 0 || c.Stats().FramesReceived != uint64(1+i) {
				t.Errorf("silent for %v when frame %d of %d came", c.Stats().Silent, c.Stats().FramesReceived, 1+i)
			}
			if s.recv(time.Second); c.Stats().Silent != time.Second {
				t.Errorf("silent for %v a second later", c.Stats().Silent)
			}
		}
	})
}

// TestReady checks that data can flow to a peer that is not down, and that has begun a session if
// it is one that does.
func TestReady(t *testing.T) {
	for _, c := range []struct {
		s    ConnStats
		want bool
	}{
		{ConnStats{}, true},
		{ConnStats{Mine: 1}, false},
		{ConnStats{Mine: 1, Theirs: 1}, true},
		{ConnStats{Down: true}, false},
		{ConnStats{Down: true, Mine: 1, Theirs: 1}, false},
	} {
		if got := c.s.Ready(); got != c.want {
			t.Errorf("down %v, lives %d and %d: ready is %v", c.s.Down, c.s.Mine, c.s.Theirs, got)
		}
	}
}

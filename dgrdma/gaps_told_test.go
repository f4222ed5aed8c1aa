package dgrdma

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// TestWhenGapsAreTold: a frame that did not come is told once, be it while others come or
// when none does any more, and not as long as it may only be late (observation V9,
// docs/peers.md).
func TestWhenGapsAreTold(t *testing.T) {
	type step struct {
		after time.Duration
		ids   []frame.Seq
	}
	const second, whole = time.Second, 16 * time.Second
	for _, x := range []struct {
		name  string
		steps []step
		want  int
	}{
		{"late by less than a second", []step{{0, []frame.Seq{1}}, {1900 * time.Millisecond, []frame.Seq{3}}, {700 * time.Millisecond, []frame.Seq{2}}}, 0},
		{"late by nothing", []step{{0, []frame.Seq{1}}, {second, []frame.Seq{4, 2, 3}}}, 0},
		{"nothing comes behind", []step{{0, []frame.Seq{1, 3}}}, 1},
		{"others come behind", []step{{0, []frame.Seq{1, 3}}, {second, []frame.Seq{4}}, {second, []frame.Seq{5}}, {second, []frame.Seq{6}}, {second, []frame.Seq{7}}}, 1},
		{"told, and nothing more is missing", []step{{0, []frame.Seq{1, 3}}, {whole, []frame.Seq{4}}, {whole, []frame.Seq{5}}}, 1},
		{"told, and the next is missing, too", []step{{0, []frame.Seq{1, 3}}, {whole, []frame.Seq{5}}}, 2},
		{"told, and it comes after all", []step{{0, []frame.Seq{1, 3}}, {whole, []frame.Seq{5}}, {0, []frame.Seq{2}}}, 2},
		{"told, and it comes with the next", []step{{0, []frame.Seq{1, 3}}, {whole, []frame.Seq{2, 5}}}, 2},
		{"others come twice", []step{{0, []frame.Seq{1, 3, 3, 1}}}, 1},
		{"the first ones", []step{{0, []frame.Seq{5, 3}}}, 3},
	} {
		t.Run(x.name, func(t *testing.T) {
			told := 0
			cfg := Config{OnEvent: func(e Event) {
				if e.Kind == FramesMissed {
					told += e.Frames
				}
			}}
			withFakePeer(t, cfg, FPGA(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
				for _, step := range x.steps {
					s.recv(step.after)
					for _, id := range step.ids {
						s.send(id, data(uint32(id), 1, 1, 64, pattern(1, 16)))
					}
					s.recv(0)
				}
				s.recv(whole)
				if n := c.Stats().FramesMissed; n != uint64(x.want) || told != x.want {
					t.Errorf("%d frames are missing, told of %d, want %d", n, told, x.want)
				}
			})
		})
	}
}

// TestGapsBesideFramesWithoutMessages: those fill the gap of their id, a copy of one fills
// no other, and one that is too far ahead to be believed makes none.
func TestGapsBesideFramesWithoutMessages(t *testing.T) {
	for _, x := range []struct {
		name        string
		ids, alones []frame.Seq // the second without messages
		want        uint64
	}{
		{"fill a gap", []frame.Seq{1, 3}, []frame.Seq{2}, 0},
		{"come twice", []frame.Seq{1, 3}, []frame.Seq{4, 4}, 1},
		{"come under an id that came", []frame.Seq{1, 3}, []frame.Seq{3, 1}, 1},
		{"leave gaps", []frame.Seq{1}, []frame.Seq{3, 5}, 2},
		{"come from far ahead", []frame.Seq{1, 3}, []frame.Seq{20000}, 1},
	} {
		t.Run(x.name, func(t *testing.T) {
			withFakePeer(t, Config{}, FPGA(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
				for _, id := range x.ids {
					s.send(id, data(uint32(id), 1, 1, 64, pattern(1, 16)))
				}
				for _, id := range x.alones {
					s.send(id)
				}
				if s.recv(16 * time.Second); c.Stats().FramesMissed != x.want {
					t.Errorf("%d frames are missing, want %d", c.Stats().FramesMissed, x.want)
				}
			})
		})
	}
}

// TestOnlyWhatNeverComesIsMissed: what a peer sends again that gets no acknowledgements may
// only be late.
func TestOnlyWhatNeverComesIsMissed(t *testing.T) {
	prof := OpenCPI(false)
	prof.Acks = AckNever
	withFakePeer(t, Config{}, prof, func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
		s.send(1, data(1, 1, 1, 64, pattern(1, 16)))
		s.send(3, data(3, 1, 1, 64, pattern(3, 16)))
		s.send(5)
		if s.recv(16 * time.Second); c.Stats().FramesMissed != 0 {
			t.Errorf("%d frames are missing", c.Stats().FramesMissed)
		}
	})
}

// TestGapsAfterReset: ids that begin anew are missed as those before were.
func TestGapsAfterReset(t *testing.T) {
	withFakePeer(t, Config{}, FPGA(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
		give := func(ids ...frame.Seq) {
			for _, id := range ids {
				s.send(id, data(uint32(id), 1, 1, 64, pattern(1, 16)))
			}
			s.recv(10 * time.Second)
		}
		give(1, 2, 3, 4, 5, 6)
		c.Reset(0)
		give(1, 3)
		if n := c.Stats().FramesMissed; n != 1 {
			t.Errorf("%d frames are missing, want 1", n)
		}
	})
}

// TestPeerThatSendsAgainMissesNothing: a peer of a kind that never sends again, but does,
// is not told to have lost what came when it was asked for.
func TestPeerThatSendsAgainMissesNothing(t *testing.T) {
	withFakePeer(t, Config{}, OpenCPI2(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
		first := data(1, 1, 1, 64, pattern(1, 16))
		s.send(1, first)
		s.send(3, data(3, 1, 1, 64, pattern(3, 16)))
		s.recv(200 * time.Millisecond)
		s.send(1, first) // again
		if s.recv(10 * time.Second); c.Stats().FramesMissed != 0 {
			t.Errorf("%d frames are missing of a peer that sends again", c.Stats().FramesMissed)
		}
	})
}

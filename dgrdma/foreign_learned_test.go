package dgrdma

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestLearnedDriverStays: a learned peer that has no introduction to finish makes room for
// another one only when it is as long silent as any other.
func TestLearnedDriverStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		prof := OpenCPI(false)
		const giveUp = time.Second
		e, err := New(n.Attach(addrB, simnet.Config{}), &Config{ID: 2, Profile: &prof, AcceptAny: true, MaxPeers: 1, GiveUp: giveUp, Memory: new(Region)})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		knock := func(id frame.EndpointID) bool {
			s := newStranger(t, n, simnet.Addr(uint32(id)), id, 2, addrB)
			s.send(1, msg{Message: bare(1, 0, 0)})
			s.recv(time.Millisecond)
			conns := e.Conns()
			if len(conns) != 1 {
				t.Fatalf("%d peers, where there is room for one", len(conns))
			}
			return conns[0].Peer().ID == id
		}
		if !knock(11) {
			t.Error("the first is not learned")
		}
		time.Sleep(5 * giveUp)
		if came, st := knock(12), e.Stats(); came || st.RefusedBy(RefusedNoRoom) != 1 || st.RefusedBy(RefusedSource) != 0 {
			t.Errorf("the first has to leave too soon, or refused %v", st.Refused)
		}
		if time.Sleep(2 * giveUp); !knock(13) {
			t.Error("the first does not leave")
		}
	})
}

// TestLearnedDriverThatSpeaks: one of which something came, be it refused, stays as long as if
// that were the first. It has nothing else to prove that it is there.
func TestLearnedDriverThatSpeaks(t *testing.T) {
	const giveUp = time.Second
	for name, says := range map[string]func(s *fakePeer){
		"data":            func(s *fakePeer) { s.send(2, data(2, 1, 1, 64, pattern(1, 16))) },
		"refused":         func(s *fakePeer) { s.send(2, data(2, 1, 1, 1<<20, pattern(1, 16))) },
		"acknowledgement": func(s *fakePeer) { s.send(2) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := simnet.New(1)
				defer n.Close()
				p := &pair{t: t, net: n}
				e := p.open(addrB, &Config{ID: 2, Profile: new(OpenCPI(false)), AcceptAny: true, MaxPeers: 1, GiveUp: giveUp, Memory: p.region(4096)})
				defer e.Close()
				s := newStranger(t, n, addrA, 11, 2, addrB)
				s.send(1, data(1, 1, 1, 64, pattern(1, 16)))
				time.Sleep(5 * giveUp)
				says(s)
				time.Sleep(5 * giveUp)
				newStranger(t, n, simnet.Addr(12), 12, 2, addrB).send(1, data(1, 1, 1, 64, pattern(1, 16)))
				time.Sleep(time.Millisecond)
				if st := e.Stats(); st.Peers != 1 || st.RefusedBy(RefusedNoRoom) != 1 {
					t.Errorf("%d peers, refused %v", st.Peers, st.RefusedReasons())
				}
			})
		})
	}
}

// TestDriverThatIsDown: what comes from a peer that was given up is counted, and nothing
// else.
func TestDriverThatIsDown(t *testing.T) {
	var told []Event
	cfg := Config{GiveUp: time.Second, OnEvent: func(e Event) { told = append(told, e) }}
	withFakePeer(t, cfg, OpenCPI(false), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
		s.send(1, data(1, 1, 1, 64, pattern(1, 16)))
		if err := c.Post(write(64, pattern(1, 16), 0, 1)); err != nil {
			t.Fatal(err)
		}
		if s.recv(10 * time.Second); c.Err() == nil {
			t.Fatal("is not given up")
		}
		before := c.Stats()
		told = nil
		s.send(2, data(2, 1, 1, 128, pattern(2, 16)))
		s.send(1, data(1, 1, 1, 64, pattern(1, 16)))
		s.send(3)
		got := s.recv(time.Second)
		after := c.Stats()
		if after.RefusedBy(RefusedDown) != before.RefusedBy(RefusedDown)+3 || after.Completions != 1 || after.Duplicates != before.Duplicates || len(got) != 0 || len(told) != 0 {
			t.Errorf("refused %v, %d completions, answers %v, told of %v", after.Refused, after.Completions, got, told)
		}
		if e.memory.(*Region).Bytes()[128] != 0 {
			t.Error("it writes")
		}
	})
}

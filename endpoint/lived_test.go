package endpoint

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// afterDeath has endpoint 1 meet endpoint 2, which dies without a word, and fails unless 1 notices
// that, whatever comes of it since then: then runs behind the death.
func afterDeath(t *testing.T, cfg Config, then func(w *findWorld)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		memory, _ := NewRegion(4096)
		cfg.Memory, cfg.KeepAlive, cfg.GiveUp = memory, 3*time.Second, 2*time.Second
		w := newFindWorld(t, &cfg, &Config{AcceptAny: true})
		defer w.end()
		c := w.connect(w.a, Peer{ID: 2, Addr: asked})
		time.Sleep(time.Second)
		if st := c.Stats(); st.Theirs == 0 {
			t.Fatalf("they do not know each other: %+v", st)
		}
		kill(w.b)
		then(w)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := c.WaitFor(ctx, 64, 1)
		if took := time.Since(began); !errors.Is(err, ErrPeerDown) || errors.Is(err, ErrPeerClosed) || took > cfg.KeepAlive+cfg.GiveUp+helloMost {
			st := c.Stats()
			t.Errorf("after %v: %v; it is down %v, refused %v", took, err, st.Down, st.RefusedReasons())
		}
	})
}

// every has a frame come from a dead peer's address each second for a minute.
func (w *findWorld) every(b []byte) {
	for i := range 60 {
		time.AfterFunc(time.Duration(i)*time.Second, func() { w.net.Inject(asked, asking, b) })
	}
}

// TestWhatIsRefusedIsNoSignOfLife: a peer that died is given up, though frames come under its ids
// and from its address that name none of our lives (attack A26, SECURITY.md).
func TestWhatIsRefusedIsNoSignOfLife(t *testing.T) {
	between := frame.Header{Dst: 1, Src: 2}
	alone := make([]byte, frame.HeaderSize+frame.StampSize)
	between.Put(alone)
	stamped := append([]byte(nil), alone...)
	(&frame.Stamp{Life: 7}).Put(stamped[frame.HeaderSize:])
	data := make([]byte, helloSize)
	header := between
	header.Flags, header.Seq = frame.FlagMessages, 7
	header.Put(data)
	(&frame.Message{Txn: 7, CompletionAddr: 0, CompletionValue: 1}).Put(data[frame.HeaderSize:])
	for name, b := range map[string][]byte{
		"without messages":       alone[:frame.HeaderSize],
		"a stamp of another":     stamped,
		"data":                   data,
		"who asks":               referring(between, frame.Hello{Life: 7}, frame.Identity{})[:helloSize],
		"who asks for another":   referring(between, frame.Hello{Life: 7, Peer: 8}, frame.Identity{})[:helloSize],
		"goodbye of another":     referring(between, frame.Hello{Life: 7, Peer: 8, Leaves: true}, frame.Identity{})[:helloSize],
		"who refers for another": referring(between, frame.Hello{Life: 7, Peer: 7, Refers: true}, frame.Identity{ID: 5, Size: 64}),
	} {
		t.Run(name, func(t *testing.T) {
			afterDeath(t, Config{}, func(w *findWorld) { w.every(b) })
		})
	}
}

// TestAddressOfAnotherSince: a peer that died is given up, though who has its address since
// answers each question: an endpoint with another id, or one that restarted and is refused.
func TestAddressOfAnotherSince(t *testing.T) {
	t.Run("another id", func(t *testing.T) {
		afterDeath(t, Config{}, func(w *findWorld) { w.b = w.open(asked, &Config{ID: 3, AcceptAny: true}) })
	})
	t.Run("old life kept", func(t *testing.T) {
		afterDeath(t, Config{KeepOldLife: true}, func(w *findWorld) { w.b = w.open(asked, &Config{ID: 2, AcceptAny: true}) })
	})
}

// TestPlacesOfTheDead: learned peers that died make room for others of their host, though frames
// come in their names (attack A26, SECURITY.md).
func TestPlacesOfTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFindWorld(t, &Config{AcceptAny: true, PeersPerHost: 2, GiveUp: time.Second}, nil)
		defer w.end()
		host := [...]string{"10.0.0.2:1001", "10.0.0.2:1002", "10.0.0.2:1003"}
		for _, at := range host[:2] {
			e := w.open(udpAddr(at), &Config{ID: 5})
			w.connect(e, Peer{ID: 1, Addr: asking})
			time.Sleep(time.Second)
			kill(e)
		}
		alone := make([]byte, frame.HeaderSize)
		(&frame.Header{Dst: 1, Src: 5}).Put(alone)
		for range 60 {
			for _, at := range host[:2] {
				w.net.Inject(udpAddr(at), asking, alone)
			}
			time.Sleep(time.Second)
		}
		e := w.open(udpAddr(host[2]), &Config{ID: 5, GiveUp: 5 * time.Second})
		defer e.Close()
		if err := w.connect(e, Peer{ID: 1, Addr: asking, Size: 64}).Post(write(0, nil, 0, 1)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if st := w.a.Stats(); st.Restarts != 0 || st.Peers != 2 || w.a.peers.find(peerKey{ids{1, 5}, udpAddr(host[2])}) == nil {
			t.Errorf("no room for it among %d; refused %v", st.Peers, st.RefusedReasons())
		}
	})
}

// TestSignsOfLife: a peer is not asked whether it is there that names our life, acknowledges in
// it, or sends data that is new or that came before.
func TestSignsOfLife(t *testing.T) {
	const after = time.Second
	for name, says := range map[string]func(s *stranger, i int){
		"introduction":     func(s *stranger, _ int) { s.hello(frame.Hello{Life: life, Peer: s.theirs, Tells: true}) },
		"acknowledgement":  func(s *stranger, i int) { s.alone(stamp(s.theirs, 2, 0), 0) },
		"data":             func(s *stranger, i int) { s.send(frame.Seq(2+i), data(life+uint32(i), 1, 1, 64, pattern(1, 8))) },
		"data that it has": func(s *stranger, _ int) { s.send(2, data(life, 1, 1, 64, pattern(1, 8))) },
	} {
		t.Run(name, func(t *testing.T) {
			withStranger(t, Config{KeepAlive: after}, Native(), func(t *testing.T, _ *Endpoint, _ *Conn, s *stranger) {
				asked := func(h frame.Hello) bool { return !h.Tells }
				for i := range 5 {
					says(s, i)
					if got := s.hellos(after - time.Millisecond); slices.ContainsFunc(got, asked) {
						t.Fatalf("asked by %+v behind frame %d", got, i)
					}
				}
				if got := s.hellos(2 * time.Millisecond); !slices.ContainsFunc(got, asked) {
					t.Errorf("not asked when it is silent: %+v", got)
				}
			})
		})
	}
}

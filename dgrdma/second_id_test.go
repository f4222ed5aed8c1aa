package dgrdma

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestSecondID checks that what is posted waits until the second id is taken, where two endpoints
// connect to each other under second ids, one a moment before the other, though the other endpoint
// says in that time which id it has.
func TestSecondID(t *testing.T) {
	for name, x := range map[string]struct {
		met    bool // they know each other under their own ids
		second Peer
		back   Peer
	}{
		"both have another one":        {true, Peer{ID: 12, As: 11}, Peer{ID: 11, As: 12}},
		"the later one has":            {true, Peer{ID: 12}, Peer{ID: 1, As: 12}},
		"both, who never met":          {false, Peer{ID: 12, As: 11}, Peer{ID: 11, As: 12}},
		"the earlier one has, its own": {true, Peer{ID: 2, As: 11}, Peer{ID: 11}},
	} {
		for _, accept := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, accept any %v", name, accept), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newFindWorld(t, &Config{AcceptAny: accept}, &Config{AcceptAny: accept})
					defer w.end()
					if x.met {
						w.connect(w.a, Peer{ID: 2, Addr: asked})
						w.connect(w.b, Peer{ID: 1, Addr: asking})
						time.Sleep(time.Second)
					}
					x.second.Addr, x.back.Addr = asked, asking
					c := w.connect(w.a, x.second)
					wrote := make(chan error, 1)
					go func() { wrote <- c.Write(t.Context(), write(64, nil, 0, 1)) }()
					time.Sleep(10 * time.Millisecond)
					w.connect(w.b, x.back)
					if err := <-wrote; err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// TestFindOfAPeer checks that a peer is found once more at its address.
func TestFindOfAPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFindWorld(t, &Config{}, &Config{AcceptAny: true})
		defer w.end()
		if err := w.connect(w.a, Peer{ID: 2, Addr: asked}).Write(t.Context(), write(0, nil, 0, 1)); err != nil {
			t.Fatal(err)
		}
		if p, err := w.a.Find(t.Context(), Peer{Addr: asked}); err != nil || p.ID != 2 {
			t.Errorf("%+v, %v", p, err)
		}
	})
}

// TestWrongIDNextToAPeer checks that an id that a peer does not have is wrong only when GiveUp has
// passed, as the peer may come under it yet; but at once if the connection to it is down.
func TestWrongIDNextToAPeer(t *testing.T) {
	const giveUp = 2 * time.Second
	for _, down := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newFindWorld(t, &Config{GiveUp: giveUp}, &Config{AcceptAny: true})
			defer w.end()
			c := w.connect(w.a, Peer{ID: 2, Addr: asked})
			if err := c.Write(t.Context(), write(0, nil, 0, 1)); err != nil {
				t.Fatal(err)
			}
			if down {
				w.net.Link(asking, asked, simnet.Link{Down: true})
				if err := c.Write(t.Context(), write(0, nil, 0, 1)); !errors.Is(err, ErrPeerDown) {
					t.Fatal(err)
				}
				w.links(nil, nil)
			}
			began := time.Now()
			err := w.connect(w.a, Peer{ID: 7, Addr: asked}).Write(t.Context(), write(0, nil, 0, 1))
			if took := time.Since(began); !errors.Is(err, ErrWrongID) || down != (took < giveUp) || took > giveUp {
				t.Errorf("it is down %v: after %v: %v", down, took, err)
			}
		})
	}
}

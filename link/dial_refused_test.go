package link

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestRefusedDialEnds checks that a Dial to a host that takes no session, as nothing is listened on
// there, ends with the host's reason within a few round trips, however many Dials wait. On an endpoint
// that is shared the connection stays. A later Dial makes a link once something is listened on.
func TestRefusedDialEnds(t *testing.T) {
	for _, own := range []bool{true, false} {
		for _, dials := range []int{1, 16} {
			synctest.Test(t, func(t *testing.T) {
				n := newNet(t, 1)
				h, there := n.host(1, nil), n.host(2, nil)
				h.ownsEndpoint = own
				defer func() { h.ownsEndpoint = true }()
				for again := range 3 {
					began := time.Now()
					var all sync.WaitGroup
					for range dials {
						all.Go(func() {
							_, err := h.Dial(t.Context(), at(2), "port", nil)
							if !errors.Is(err, dgrdma.ErrRefused) || errors.Is(err, ErrNoAnswer) || !strings.Contains(err.Error(), "it takes no unknown peers: ") {
								t.Errorf("own %v: %v", own, err)
							}
						})
					}
					all.Wait()
					if took := time.Since(began); took > 100*time.Millisecond {
						t.Errorf("own %v, %d Dials, time %d: took %v", own, dials, again+1, took)
					}
				}
				l, err := there.Listen("port", nil)
				if err != nil {
					t.Fatal(err)
				}
				go l.Accept(t.Context())
				if x, err := h.Dial(soon(t), at(2), "port", nil); err != nil {
					t.Errorf("own %v, to a port that is listened on now: %v", own, err)
				} else {
					x.Close()
				}
			})
		}
	}
}

// TestDialWaitsForRoom checks that a Dial to a host that has as many peers as it may have waits: one of them may leave.
func TestDialWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		h, there := n.host(1, nil), n.host(2, &Config{Endpoint: dgrdma.Config{MaxPeers: 1}})
		l, err := there.Listen("port", nil)
		if err != nil {
			t.Fatal(err)
		}
		go l.Accept(t.Context())
		first, err := there.Endpoint().Connect(dgrdma.Peer{ID: 3, Addr: simnet.Addr(3)})
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(2*time.Second, func() { first.Close() })
		began := time.Now()
		x, err := h.Dial(t.Context(), at(2), "port", nil)
		if took := time.Since(began); err != nil || took < 2*time.Second {
			t.Fatalf("after %v: %v", took, err)
		}
		x.Close()
	})
}

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/link/stream"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestPlaces checks with and without --keep that a silent sender gives its place to another one, that a
// busy one does not, and that a peer gets no more places than it leaves for others (F3).
func TestPlaces(t *testing.T) {
	for _, most := range []int{1, 4} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sim := simnet.New(1)
				t.Cleanup(func() { sim.Close() })
				server := simulatedHost(t, sim, 1, (most+1)*stream.Memory)
				p := &senderPlaces{most: most, taken: make(map[*stream.Stream]*place)}
				port, err := stream.Listen(server, &stream.Options{Filter: func(peer dgrdma.PeerName, _ bool) error { return p.room(peer) }})
				if err != nil {
					t.Fatal(err)
				}
				ends := make(chan error, 100)
				go func() {
					for {
						s, err := port.Accept(t.Context())
						if err != nil {
							return
						}
						p.take(s)
						p.start(s)
						go func() {
							s.Receive(t.Context(), stream.Writer(new(strings.Builder)))
							if !p.leave(s) {
								ends <- errGaveWay
							}
						}()
					}
				}()
				dial := func(id uint32) (*link.Link, error) {
					h := simulatedHost(t, sim, id, pingLinkMemory)
					return dialStream(t, h)
				}
				var held []*link.Link
				for k := range most {
					l, err := dial(uint32(10 + k))
					if err != nil {
						t.Fatal(err)
					}
					held = append(held, l)
				}
				if _, err := dial(30); !errors.Is(err, link.ErrRefused) || !strings.Contains(err.Error(), "busy with") || !strings.HasSuffix(err.Error(), ": try again later") {
					t.Errorf("at once: %v", err)
				}
				time.Sleep(silentFor + time.Second)
				held[0].Out.Send(t.Context(), opData, []byte("x")) // this one is not silent
				time.Sleep(time.Millisecond)
				l, err := dial(31)
				if most == 1 {
					if !errors.Is(err, link.ErrRefused) {
						t.Errorf("the sender there had sent something: %v", err)
					}
					return
				}
				if err != nil {
					t.Fatalf("though others are silent: %v", err)
				}
				if err := <-ends; err != errGaveWay || held[0].Err() != nil {
					t.Errorf("%v, %v", err, held[0].Err())
				}

				// One peer alone.
				for _, x := range held {
					x.Abort(t.Context(), "")
				}
				l.Abort(t.Context(), "")
				time.Sleep(time.Second)
				one := simulatedHost(t, sim, 40, pingLinkMemory)
				n := 0
				for ; n < most; n++ {
					if _, err := dialStream(t, one); err != nil {
						break
					}
				}
				if n != most/2 {
					t.Errorf("one peer got %d places of %d", n, most)
				}
			})
		})
	}
}

// dialStream dials the server of TestPlaces as a sender that has said nothing yet.
func dialStream(t *testing.T, h *link.Host) (*link.Link, error) {
	t.Helper()
	return h.Dial(t.Context(), fmt.Sprintf("ocpi-ether-rdma:%v;4096.1.1", simnet.Addr(1)), stream.DefaultPort,
		&link.Options{Directions: link.Both, Buffers: 4, Size: 256, Private: hello(sized, 5)})
}

// TestSilentSenderGivesWay checks that the only place of listen goes to another sender when the one
// that has it sends nothing (F3).
func TestSilentSenderGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &senderPlaces{most: 1, taken: make(map[*stream.Stream]*place)}
		peer := dgrdma.PeerName{ID: 7}
		if err := p.room(peer); err != nil {
			t.Fatal(err)
		}
		sim := simnet.New(1)
		t.Cleanup(func() { sim.Close() })
		server, client := simulatedHost(t, sim, 1, 2*stream.Memory), simulatedHost(t, sim, 2, pingLinkMemory)
		port, err := stream.Listen(server, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer port.Close()
		go dialStream(t, client)
		s, err := port.Accept(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p.take(s)
		time.Sleep(time.Minute) // standard output is another's
		if err := p.room(peer); !errors.Is(err, errBusy) {
			t.Errorf("before it could send: %v", err)
		}
		p.start(s)
		time.Sleep(silentFor - time.Second)
		if err := p.room(peer); !errors.Is(err, errBusy) {
			t.Errorf("early: %v", err)
		}
		time.Sleep(2 * time.Second)
		if err := p.room(peer); err != nil {
			t.Errorf("late: %v", err)
		}
		if p.leave(s) {
			t.Error("it has its place")
		}
	})
}

// TestListenSaysWhoGaveWay checks with and without --keep that the operator reads why a silent sender was sent away, as the sender
// does (F3).
func TestListenSaysWhoGaveWay(t *testing.T) {
	for _, keep := range []bool{false, true} {
		t.Run(fmt.Sprint(keep), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sim := simnet.New(1)
				t.Cleanup(func() { sim.Close() })
				port, err := stream.Listen(simulatedHost(t, sim, 1, 2*stream.Memory), nil)
				if err != nil {
					t.Fatal(err)
				}
				var said lockedBuffer
				l := &listener{listenOptions: &listenOptions{keep: keep}, std: &stdio{out: new(lockedBuffer), err: &said}, port: port,
					stdout: make(chan struct{}, 1), log: newPeerLog(&said), places: senderPlaces{most: 1, taken: make(map[*stream.Stream]*place)}}
				defer l.log.close()
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() {
					if keep {
						ended <- l.serveMany(ctx)
					} else {
						ended <- l.serveOne(ctx)
					}
				}()
				silent, err := dialStream(t, simulatedHost(t, sim, 10, pingLinkMemory))
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(silentFor + time.Second)
				if err := l.places.room(dgrdma.PeerName{ID: 11}); err != nil {
					t.Fatal(err)
				}
				<-silent.Done()
				time.Sleep(time.Second)
				if name := "peer 10 at "; !strings.Contains(said.String(), name) || !strings.Contains(said.String(), " was sent away: another sender came, and this one was silent\n") {
					t.Errorf("%s", said.String())
				}
				stop()
				<-ended
			})
		})
	}
}

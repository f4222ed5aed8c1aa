package link

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/endpoint/space"
)

// TestEndedLinksLeaveRoom checks that links that this side closed leave their memory to links of
// other peers at once, also if their own peer does not say the same: be they dialed by that
// peer, or to one that answers no letters (F15).
func TestEndedLinksLeaveRoom(t *testing.T) {
	shape := Options{Buffers: 16, Size: 64 << 10}
	for name, end := range map[string]func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer, k uint32) error{
		"accepted and closed": func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer, k uint32) error {
			if no := s.dial(k, "port", toListener, half{Credit: 1 << 15}, half{}); no.kind == letterRefuse {
				return errors.New(no.text)
			}
			return (<-made).Close()
		},
		"dialed and not answered": func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer, k uint32) error {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			o := shape
			o.Directions = Receive
			_, err := h.Dial(ctx, at(uint16(s.id)), "there", &o)
			if errors.Is(err, ErrNoAnswer) {
				return nil
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNet(t, 1)
				h := n.host(2, nil)
				h.serve(t, "other", &shape)
				made := h.serve(t, "port", &shape)
				s := n.fakePeer(9, h)
				var err error
				links := 0
				for err == nil && links < 100 {
					links++
					err = end(t, h, made, s, uint32(links))
				}
				if err == nil || !strings.Contains(err.Error(), "ended links whose end this peer has not answered") {
					t.Fatalf("after %d links: %v", links, err)
				}
				if st := h.Stats(); st.Free != st.Memory || st.Ended != links-1 {
					t.Errorf("%d bytes of %d are free with %d ended links of %d", st.Free, st.Memory, st.Ended, links-1)
				}
				honest := n.host(1, nil)
				for range 3 { // leave some places to other hosts than the first
					out, err := dial(soon(t), honest, 2, "other", nil)
					if err != nil {
						t.Fatal(err)
					}
					defer out.Close()
				}
				// Once the peer has ended it too, it may have links again.
				h.mu.Lock()
				p := h.peerOf(h.ep.Conns()[0])
				h.mu.Unlock()
				for _, e := range p.allEnded() {
					s.letter(letter{kind: letterClose, from: 7, to: e.number, attempt: e.attempt})
				}
				s.wait(time.Second)
				if st := h.Stats(); st.Ended != 0 || len(p.quarantine) != 0 {
					t.Errorf("%d ended links are left when the peer has answered", st.Ended)
				}
				if err := end(t, h, made, s, 1000); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestLateFrames checks that what a peer still writes for a link that is over here, lost and late
// frames included, lands nowhere: not in a link of another peer that has the memory since, and not
// in a link of its own, which never has it before the peer has said that it posts nothing more (F15).
func TestLateFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		h := n.host(2, nil)
		made := h.serve(t, "port", &Options{Buffers: 2, Size: 64})
		s, other := n.fakePeer(9, h), n.fakePeer(8, h)
		late := func(to letter, what string) {
			for i := range uint32(2) {
				s.frame(s.write(to.out.Data+i*to.out.Pitch, []byte(what), to.out.Flags+4*i, uint32(PackFlag(len(what), 0, false))))
				s.frame(s.word(to.out.Flags+4*i, uint32(PackFlag(0, 7, false))))
			}
			s.wait(time.Millisecond)
		}
		before := s.dial(1, "port", toListener, half{Credit: 1 << 15}, half{})
		(<-made).Close()
		own := s.dial(2, "port", toListener, half{Credit: 1 << 15}, half{})
		ownLink := <-made
		others := other.dial(1, "port", toListener, half{Credit: 1 << 15}, half{})
		othersLink := <-made
		if own.out.Data == before.out.Data || others.out.Data != before.out.Data {
			t.Errorf("the memory at %#x is for %#x of the same peer, and %#x of another", before.out.Data, own.out.Data, others.out.Data)
		}
		late(before, "late")
		for _, l := range []*Link{ownLink, othersLink} {
			if st := l.Stats(); st.In.Waiting != 0 || l.Err() != nil {
				t.Errorf("%+v, %v", st.In, l.Err())
			}
		}
		other.frame(other.write(others.out.Data, []byte("mine"), others.out.Flags, uint32(PackFlag(4, 0, false))))
		late(before, "late")
		if m, err := othersLink.In.Recv(soon(t)); err != nil || string(m.Bytes) != "mine" {
			t.Errorf("%q, %v", m.Bytes, err)
		}

		// Another life of the peer may have the memory. What the one before still has in flight is refused
		// there.
		old, oldTheirs, oldSeq := s.localEpoch, s.remoteEpoch, s.seq
		othersLink.Abort(soon(t), "")
		s.restart()
		s.wait(time.Second)
		if st := h.Stats(); st.Ended != 1 { // of the other peer
			t.Errorf("%d ended links are left when their peer has restarted", st.Ended)
		}
		again := s.dial(3, "port", toListener, half{Credit: 1 << 15}, half{})
		l := <-made
		if again.out.Data != before.out.Data {
			t.Errorf("the next life has %#x, and not %#x", again.out.Data, before.out.Data)
		}
		now, theirs, seq := s.localEpoch, s.remoteEpoch, s.seq
		s.localEpoch, s.remoteEpoch, s.seq = old, oldTheirs, oldSeq
		late(before, "late")
		s.localEpoch, s.remoteEpoch, s.seq = now, theirs, seq
		if st := l.Stats(); st.In.Waiting != 0 {
			t.Errorf("a frame of a life before was taken: %+v", st.In)
		}
		s.frame(s.write(again.out.Data, []byte("mine"), again.out.Flags, uint32(PackFlag(4, 0, false))))
		if m, err := l.In.Recv(soon(t)); err != nil || string(m.Bytes) != "mine" {
			t.Errorf("%q, %v", m.Bytes, err)
		}
	})
}

// TestPeerAnswersForItsProgram checks that a host answers the end of a link though its program
// does not close it, and that the program receives what came before (F15).
func TestPeerAnswersForItsProgram(t *testing.T) {
	for name, both := range map[string]Direction{"one way": Send, "both ways": Both} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNet(t, 1)
				a, b, out, in := pair(t, n, &Options{Directions: both}, &Options{Directions: Both, Buffers: 8, Size: 64})
				for range 5 {
					if err := out.Out.Send(t.Context(), 0, []byte("hello")); err != nil {
						t.Fatal(err)
					}
				}
				if err := out.Close(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				nothingLeft(t, a)
				for k := range 5 {
					m, err := in.In.Recv(t.Context())
					if err != nil || string(m.Bytes) != "hello" {
						t.Fatalf("message %d: %q, %v", k, m.Bytes, err)
					}
					if err := in.In.Release(m); err != nil {
						t.Error(err)
					}
				}
				if _, err := in.In.Recv(t.Context()); err != io.EOF {
					t.Error(err)
				}
				if both == Send && in.Err() != nil {
					t.Errorf("all came, and the link failed: %v", in.Err())
				}
				in.Close()
				time.Sleep(time.Second)
				nothingLeft(t, a, b)
			})
		})
	}
}

// TestBothEndAtOnce checks that nothing is left of links that both sides end at the same time, by any
// call, with data unread and in flight, and frames lost (F15).
func TestBothEndAtOnce(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 30 {
		synctest.Test(t, func(t *testing.T) {
			n := newNet(t, rnd.Uint64())
			a, b := n.host(1, nil), n.host(2, nil)
			var ended []chan struct{}
			for range 5 {
				out, in := join(t, a, b, "port", &Options{Directions: Both, Buffers: 4, Size: 64}, &Options{Directions: Both, Buffers: 4, Size: 64})
				for _, l := range []*Link{out, in} {
					for range rnd.IntN(6) {
						if buf, ok := l.Out.TryAcquire(); ok {
							l.Out.Commit(buf, 0, rnd.IntN(64))
						}
					}
					how, wait, done := rnd.IntN(4), time.Duration(rnd.IntN(3))*50*time.Microsecond, make(chan struct{})
					ended = append(ended, done)
					go func() {
						defer close(done)
						time.Sleep(wait)
						ctx, cancel := context.WithTimeout(context.Background(), time.Second)
						defer cancel()
						switch how {
						case 0:
							l.CloseContext(ctx)
						case 1:
							l.Finish()
							l.CloseContext(ctx)
						case 2:
							l.Abort(ctx, "enough")
						case 3:
							done, cancel := context.WithCancel(ctx)
							cancel()
							l.CloseContext(done)
						}
					}()
				}
			}
			for _, c := range ended {
				<-c
			}
			time.Sleep(time.Minute)
			nothingLeft(t, a, b)
		})
	}
}

// TestMemoryIsNeverGivenTwice checks against a model, over random dials, ends, answers and
// restarts of three peers, that memory is of one link at a time, and that no peer gets memory
// of a link of its own whose end it has not answered (F15).
func TestMemoryIsNeverGivenTwice(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		h := n.host(2, &Config{Memory: 64 << 10})
		made := h.serve(t, "port", &Options{Directions: Both})
		type open struct {
			l      *Link
			by     int
			number uint32 // of this side
		}
		var links, over []open
		peers := []*fakePeer{n.fakePeer(7, h), n.fakePeer(8, h), n.fakePeer(9, h)}
		overlap := func(a, b space.Span) bool { return a.At < b.At+b.N && b.At < a.At+a.N }
		attempt := uint32(0)
		for range 1500 {
			by := rnd.IntN(len(peers))
			switch rnd.IntN(4) {
			case 0, 1:
				attempt++
				yes := peers[by].dial(attempt, "port", toListener, half{Buffers: uint32(1 + rnd.IntN(4)), Size: uint32(1 + rnd.IntN(4000)), Credit: 1 << 15}, half{})
				if yes.kind == letterRefuse {
					continue
				}
				x := open{<-made, by, yes.from}
				for _, o := range links {
					if overlap(o.l.memory, x.l.memory) {
						t.Fatalf("two links have %v and %v", o.l.memory, x.l.memory)
					}
				}
				for _, o := range over {
					if o.by == by && overlap(o.l.memory, x.l.memory) {
						t.Fatalf("the peer may still write to %v, and got %v", o.l.memory, x.l.memory)
					}
				}
				links = append(links, x)
			case 2:
				if len(links) > 0 {
					k := rnd.IntN(len(links))
					links[k].l.Abort(soon(t), "")
					over = append(over, links[k])
					links = append(links[:k], links[k+1:]...)
				}
			case 3:
				if len(over) > 0 {
					k := rnd.IntN(len(over))
					o := over[k]
					peers[o.by].letter(letter{kind: letterClose, from: 1, to: o.number, attempt: o.l.attempt})
					over = append(over[:k], over[k+1:]...)
				}
			}
			if got := h.Stats().Ended; got != len(over) {
				t.Fatalf("%d ended links are counted, %d there are", got, len(over))
			}
		}
		t.Logf("%d links, %d are open and %d ended at the end", attempt, len(links), len(over))
	})
}

// TestManyEndedLinks checks that a host whose peers leave the ends of as many links unanswered as
// are left for others is refused, that others are not, and that it is counted (F15).
func TestManyEndedLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		h := n.host(2, nil)
		made := h.serve(t, "port", &Options{Buffers: 1, Size: 1})
		s, other := n.fakePeer(9, h), n.fakePeer(8, h)
		h.endedLinks.n = mostEnded - 3 // of other hosts
		defer func() { h.endedLinks.n = 0 }()
		k := uint32(0)
		for {
			k++
			if no := s.dial(k, "port", toListener, half{Credit: 1 << 15}, half{}); no.kind == letterRefuse {
				break
			}
			(<-made).Close()
		}
		if k != 3 || h.Stats().Full.Ended != 1 {
			t.Errorf("refused after %d links, counted %d times", k-1, h.Stats().Full.Ended)
		}
		if yes := other.dial(1, "port", toListener, half{Credit: 1 << 15}, half{}); yes.kind != letterAccept {
			t.Errorf("%+v", yes)
		}
	})
}

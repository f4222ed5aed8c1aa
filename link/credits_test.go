package link

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestThreeQuartersAhead checks that three quarters of the buffers can be acquired before the first is
// committed. That holds however many messages went before, and whichever quarter of the buffers the
// consumer keeps to itself, received or not (attack A13, SECURITY.md).
func TestThreeQuartersAhead(t *testing.T) {
	const buffers, quarter = 64, 16
	for _, kept := range []struct{ held, unread int }{{0, 0}, {1, 0}, {2, 0}, {8, 0}, {quarter, 0}, {0, 2}, {2, 3}, {0, quarter}} {
		t.Run(fmt.Sprintf("held %d, unread %d", kept.held, kept.unread), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNet(t, 1)
				_, _, out, in := pair(t, n, nil, &Options{Buffers: buffers, Size: 8})
				var held []Message
				for k := range 3 * buffers {
					if err := out.Out.Send(soon(t), 0, nil); err != nil {
						t.Fatal(err)
					}
					if k < kept.unread {
						continue
					}
					m, err := in.In.Recv(soon(t))
					if err != nil {
						t.Fatal(err)
					}
					if held = append(held, m); len(held) > kept.held {
						if err := in.In.Release(held[0]); err != nil {
							t.Fatal(err)
						}
						held = held[1:]
					}
					if k < kept.held+kept.unread {
						continue
					}
					synctest.Wait()
					time.Sleep(10 * time.Millisecond) // credits are acknowledged
					var got []Buffer
					for range buffers - quarter {
						b, ok := out.Out.TryAcquire()
						if !ok {
							t.Fatalf("after %d messages, %d of %d buffers can be acquired", k+1, len(got), buffers-quarter)
						}
						got = append(got, b)
					}
					for i := len(got) - 1; i >= 0; i-- {
						out.Out.cancelLast(got[i])
					}
				}
			})
		})
	}
}

// TestWordsForCredits checks that a consumer tells of free buffers by the quarter, if the producer
// does not run short.
func TestWordsForCredits(t *testing.T) {
	const buffers, messages = 64, 6400
	for _, c := range []struct {
		name   string
		held   int
		window int // messages that the producer sends before it waits for their arrival; 0: as many as it can
		most   int // words for a hundred messages
	}{
		{"question and answer", 0, 1, 7}, {"stream", 0, 0, 7}, {"bursts of 8", 0, 8, 7}, {"bursts of 30", 0, 30, 7},
		{"stream, two held", 2, 0, 8}, {"one at a time, two held", 2, 1, 8}, {"one at a time, 8 held", 8, 1, 13}, {"stream, 8 held", 8, 0, 13},
		{"stream, 30 held", 30, 0, 13},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNet(t, 0)
				wire := simnet.Link{Latency: 50 * time.Microsecond, Rate: 1e9}
				n.sim.Link(simnet.Addr(1), simnet.Addr(2), wire)
				n.sim.Link(simnet.Addr(2), simnet.Addr(1), wire)
				_, b, out, in := pair(t, n, nil, &Options{Buffers: buffers, Size: 1000})
				before := b.ep.Stats().TransactionsDone
				arrived := make(chan struct{}, messages)
				go func() {
					body := make([]byte, 1000)
					for k := range messages {
						if err := out.Out.Send(t.Context(), 0, body); err != nil {
							t.Error(err)
						}
						if c.window > 0 && (k+1)%c.window == 0 {
							for range c.window {
								<-arrived
							}
						}
					}
				}()
				var held []Message
				for range messages {
					m, err := in.In.Recv(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					arrived <- struct{}{}
					if held = append(held, m); len(held) > c.held {
						in.In.Release(held[0])
						held = held[1:]
					}
				}
				time.Sleep(time.Second)
				words := int(b.ep.Stats().TransactionsDone - before)
				t.Logf("%.1f words for a hundred messages", float64(words)*100/messages)
				if words*100 > c.most*messages {
					t.Errorf("%d words for %d messages", words, messages)
				}
			})
		})
	}
}

// TestWhenCreditsAreTold checks that a quarter of the buffers is told at a time, or each one when the
// producer may have as few left, by what was received.
func TestWhenCreditsAreTold(t *testing.T) {
	const n, credit = 12, 1 << 15
	for _, c := range []struct {
		name     string
		received int
		want     []uint32 // what the word says after each release
	}{
		{"by the quarter", 8, []uint32{0, 0, 3, 3, 3, 6, 6, 6}},
		{"three quarters received", 9, []uint32{1, 1, 1, 4}},
		{"all received", 12, []uint32{1, 2, 3, 4, 4, 4, 7}},
	} {
		t.Run(c.name, func(t *testing.T) {
			withFakePeer(t, &Options{Buffers: n, Size: 8}, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
				yes := s.dial(1, "port", toListener, half{Credit: credit}, half{})
				in := (<-made).In
				for i := range uint32(n) {
					s.fill(&yes.out, i, PackFlag(1, 0, false))
				}
				var held []Message
				for range c.received {
					m, err := in.Recv(soon(t))
					if err != nil {
						t.Fatal(err)
					}
					held = append(held, m)
				}
				for k, want := range c.want {
					if err := in.Release(held[k]); err != nil {
						t.Fatal(err)
					}
					s.wait(20 * time.Millisecond)
					s.mu.Lock()
					got := s.words[credit]
					s.mu.Unlock()
					if got != want {
						t.Errorf("%d released: the word says %d, want %d", k+1, got, want)
					}
				}
			})
		})
	}
}

// TestCreditsOfBeforeTheAnswer checks that what a handler gave back, before the listener said where it
// wants to hear of that, is told with the answer.
func TestCreditsOfBeforeTheAnswer(t *testing.T) {
	withFakePeer(t, nil, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		got := 0
		go dial(t.Context(), h, uint16(s.id), "there", &Options{Directions: Receive, Buffers: 4, Size: 8, Handle: func(*Link, Message) { got++ }})
		open := s.mail()[0]
		for i := range uint32(4) {
			s.fill(&open.back, i, PackFlag(1, 0, false))
		}
		s.wait(20 * time.Millisecond)
		if got != 4 || s.count != 0 {
			t.Errorf("%d messages handled, %d words before the answer: %v", got, s.count, s.words)
		}
		s.letter(letter{kind: letterAccept, from: 2, to: open.from, attempt: open.attempt, back: half{Credit: 1 << 14}})
		s.wait(20 * time.Millisecond)
		if s.words[1<<14] != 4 {
			t.Errorf("%d words with the answer: %v", s.count, s.words)
		}
	})
}

// TestLostCredits checks that a link fails whose words for free buffers a reset of the connection gave
// up, for which there is no event, of either kind.
func TestLostCredits(t *testing.T) {
	for _, plain := range []bool{false, true} {
		withFakePeer(t, &Options{Buffers: 1, Size: 8}, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
			var l *Link
			var flags uint32
			if plain {
				offer, d, err := h.Offer(h.ep.Conns()[0], 4, &Options{Buffers: 1, Size: 8})
				if err != nil {
					t.Fatal(err)
				}
				if err := offer.Connect(EmptyFlags{Addr: 1 << 14, Pitch: 4}); err != nil {
					t.Fatal(err)
				}
				l, flags = offer, d.Flags
			} else {
				yes := s.dial(1, "port", toListener, half{Credit: 1 << 14}, half{})
				l, flags = <-made, yes.out.Flags
			}
			s.mu.Lock()
			s.mute = true
			s.mu.Unlock()
			for range 2 { // the second is given back while the word for the first is in flight
				s.frame(s.word(flags, uint32(PackFlag(0, 1, false))))
				m, err := l.In.Recv(soon(t))
				if err != nil {
					t.Fatal(err)
				}
				if err := l.In.Release(m); err != nil {
					t.Fatal(err)
				}
			}
			l.Peer().Reset(1)
			s.wait(time.Millisecond)
			if err := l.Err(); !errors.Is(err, dgrdma.ErrReset) {
				t.Errorf("other kind %v: %v", plain, err)
			}
			l.Close()
			s.wait(time.Millisecond)
			if n := l.pending.Load(); n != 0 {
				t.Errorf("other kind %v: %d words are under way", plain, n)
			}
		})
	}
}

// TestEachCreditOnce checks that a plain buffer that is given back again, before the peer has
// acknowledged the word for the time before, is told of twice.
func TestEachCreditOnce(t *testing.T) {
	withFakePeer(t, nil, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		in, d, err := h.Offer(h.ep.Conns()[0], 80, &Options{Buffers: 1, Size: 8})
		if err != nil {
			t.Fatal(err)
		}
		if err := in.Connect(EmptyFlags{Addr: 1 << 14, Pitch: 4}); err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		s.mute = true
		s.mu.Unlock()
		for k := range uint8(2) {
			s.frame(s.word(d.Flags, uint32(PackFlag(0, k, false))))
			m, err := in.In.Recv(soon(t))
			if err != nil || m.Opcode != k {
				t.Fatal(m, err)
			}
			in.In.Release(m)
		}
		s.mu.Lock()
		s.mute, s.count = false, 0
		s.mu.Unlock()
		s.wait(time.Second)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.count != 2 || s.words[1<<14] != 1 { // the first one again, and the second
			t.Errorf("%d words came, want two", s.count)
		}
	})
}

// TestCreditsOfAFakePeer checks that credits are believed for messages that were sent, at the word
// that is for them, and not otherwise.
func TestCreditsOfAFakePeer(t *testing.T) {
	for _, c := range []struct {
		name string
		send func(s *fakePeer, at uint32)
		free int // of 4 buffers, 2 of them sent
		want error
	}{
		{"for both", func(s *fakePeer, at uint32) { s.frame(s.word(at, 2)) }, 4, nil},
		{"again", func(s *fakePeer, at uint32) { s.frame(s.word(at, 1), s.word(at, 1)) }, 3, nil},
		{"for one more than was sent", func(s *fakePeer, at uint32) { s.frame(s.word(at, 3)) }, 2, ErrProtocol},
		{"for billions", func(s *fakePeer, at uint32) { s.frame(s.word(at, 1<<31-1)) }, 2, ErrProtocol},
		{"overtaken", func(s *fakePeer, at uint32) { s.frame(s.word(at, 2)); s.frame(s.word(at, 1)) }, 4, nil},
		{"overtaken by many", func(s *fakePeer, at uint32) { s.frame(s.word(at, 2)); s.frame(s.word(at, 1<<31+2)) }, 4, nil},
		{"with data", func(s *fakePeer, at uint32) { s.frame(s.write(at, put32(2), at, 2)) }, 2, nil},
		{"as data", func(s *fakePeer, at uint32) { s.frame(s.write(at, put32(2), ^uint32(0), ^uint32(0))) }, 2, nil},
		{"at the end of the word", func(s *fakePeer, at uint32) { s.frame(s.word(at+4, 2)) }, 2, nil},
		{"before the word", func(s *fakePeer, at uint32) { s.frame(s.word(at-4, 2)) }, 2, nil},
		{"within the word", func(s *fakePeer, at uint32) { s.frame(s.word(at+1, 2)) }, 2, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			withFakePeer(t, &Options{Directions: Send}, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
				credit := s.dial(1, "port", toDialer, half{}, buffers(4, 8)).back.Credit
				both := map[*Link]uint32{<-made: credit}
				dialed, err := s.dialed(soon(t), nil, func(open letter) letter {
					credit = open.out.Credit
					return letter{kind: letterAccept, from: 2, to: open.from, attempt: open.attempt, out: buffers(4, 8)}
				})
				if err != nil {
					t.Fatal(err)
				}
				both[dialed] = credit
				for out, credit := range both {
					for range 2 {
						if err := out.Out.Send(soon(t), 0, []byte("x")); err != nil {
							t.Fatal(err)
						}
					}
					s.wait(20 * time.Millisecond)
					c.send(s, credit)
					s.wait(20 * time.Millisecond)
					if got := out.Stats().Out.Free; got != c.free || !errors.Is(out.Err(), c.want) {
						t.Errorf("%d buffers are free, want %d; %v, want %v", got, c.free, out.Err(), c.want)
					}
				}
			})
		})
	}
}

package link

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestThreeQuartersAhead: however many messages went before, and whichever quarter of
// the buffers the consumer keeps to itself, received or not, three quarters can be
// acquired before the first is committed (attack A13, SECURITY.md).
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
						out.Out.abandon(got[i])
					}
				}
			})
		})
	}
}

// TestWordsForCredits: a consumer tells of free buffers by the quarter, if nobody
// runs short.
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

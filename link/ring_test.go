package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/link/budget"
	"github.com/dgrdma/dgrdma/tests/fixture"
)

// slowReader reads a few bytes at a time.
type slowReader struct{ left int }

func (r *slowReader) Read(b []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	r.left--
	return copy(b, "sixteen bytes..."), nil
}

// TestShortMessagesTakeLittle checks that what a side sends decides what it keeps, and not the
// buffers that its peer offers: by Send, Write, Acquire and ReadFrom, while the peer acknowledges
// nothing (F9).
func TestShortMessagesTakeLittle(t *testing.T) {
	const messages = 300
	for name, send := range map[string]func(p *Producer) error{
		"Send":  func(p *Producer) error { return p.Send(context.Background(), 0, make([]byte, 16)) },
		"Write": func(p *Producer) error { _, err := p.Write(make([]byte, 16)); return err },
		"Acquire": func(p *Producer) error {
			b, err := p.Acquire(context.Background())
			if err == nil {
				copy(b.Bytes, "sixteen bytes...")
				err = p.Commit(b, 0, 16)
			}
			return err
		},
		"ReadFrom": func(p *Producer) error { _, err := p.ReadFrom(&slowReader{1}); return err },
	} {
		for _, size := range []uint32{4 << 10, 200_000, MaxMessage} {
			t.Run(fmt.Sprintf("%s/%d", name, size), func(t *testing.T) {
				withFakePeer(t, &Options{Directions: Send}, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
					s.dial(1, "port", toDialer, half{}, buffers(400, size))
					l := <-made
					s.setMute(true)
					got := allocated(func() {
						for range messages {
							if err := send(l.Out); err != nil {
								t.Fatal(err)
							}
						}
					})
					synctest.Wait()
					if most := 2*MaxMessage + messages*2<<10; got > uint64(most) { // one at a time is filled; and more for each message
						if fixture.Race {
							t.Skip("with the race detector a sync.Pool forgets at random")
						}
						t.Errorf("%d bytes were allocated for %d messages of 16 bytes, want %d at most", got, messages, most)
					}
					if n, most := h.Stats().Sending, uint64(messages*(budget.LeastChunk+2*slotBytes)); n > most {
						t.Errorf("%d messages of 16 bytes take %d bytes, want %d at most", messages, n, most)
					}
					s.setMute(false)
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					if err := l.Out.Flush(ctx); err != nil {
						t.Error(err)
					}
					l.Abort(ctx, "")
					time.Sleep(time.Second)
					if n := h.Stats().Sending; n != 0 {
						t.Errorf("%d bytes are left when the link is over", n)
					}
				})
			})
		}
	}
}

// TestSendingIsShared checks that links keep no more than the host's budget for what they send,
// however long their peers' buffers are. Peers that take nothing leave room for others, and a producer
// goes on when there is memory (F9).
func TestSendingIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		h := n.host(2, &Config{Memory: 1 << 20})
		made := h.serve(t, "port", &Options{Directions: Send})
		const each = 40 // links of a peer
		var out []*Producer
		for id := range uint16(3) {
			s := n.fakePeer(20+id, h)
			for i := range uint32(each) {
				s.dial(i+1, "port", toDialer, half{}, buffers(100, MaxMessage))
				out = append(out, (<-made).Out)
			}
			for _, p := range out[int(id)*each:] {
				for { // and commits none
					if _, ok := p.TryAcquire(); !ok {
						break
					}
				}
			}
			if got, most := h.Stats().Sending, uint64(leastBudget); got > most || got < most/4 {
				t.Errorf("with %d peers that take nothing %d bytes are kept, of %d", id+1, got, most)
			}
		}
		honest := n.host(1, nil)
		in, err := dial(t.Context(), honest, 2, "port", &Options{Directions: Receive, Buffers: 8, Size: 64 << 10})
		if err != nil {
			t.Fatal(err)
		}
		honestOut := (<-made).Out
		go func() {
			for range 100 {
				if err := honestOut.Send(context.Background(), 0, make([]byte, 64<<10)); err != nil {
					t.Error(err)
				}
			}
			honestOut.Close()
		}()
		k := 0
		for _, err := range in.In.Messages(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			k++
		}
		if k != 100 {
			t.Errorf("%d messages came", k)
		}

		// More than is left waits, until another link of the peer gives back what it had.
		last := out[len(out)-1]
		waited := make(chan error, 1)
		go func() {
			_, err := last.Acquire(t.Context())
			waited <- err
		}()
		synctest.Wait()
		select {
		case err := <-waited:
			t.Fatal("it had memory at once", err)
		default:
		}
		if h.Stats().Full.Sending == 0 {
			t.Error("that the bound was reached is not counted")
		}
		for _, p := range out[:len(out)-1] {
			p.link.Abort(t.Context(), "")
		}
		select {
		case err := <-waited:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Error("Acquire waits on, though the memory is free")
		}
		for _, p := range append(out, honestOut) {
			p.link.Abort(t.Context(), "")
		}
		time.Sleep(time.Second)
		if got := h.Stats().Sending; got != 0 {
			t.Errorf("%d bytes are left", got)
		}
		if n := h.budget.Waiting(); n != 0 {
			t.Errorf("%d producers wait", n)
		}
	})
}

// TestAcquiredAndForgotten checks that buffers that were acquired and never committed count no
// more once their link is closed, aborted, or its peer is gone (F9).
func TestAcquiredAndForgotten(t *testing.T) {
	for name, end := range map[string]func(n *net, l *Link) error{
		"Close":  func(_ *net, l *Link) error { return l.Close() },
		"Finish": func(_ *net, l *Link) error { return l.Finish() },
		"Abort":  func(_ *net, l *Link) error { return l.Abort(context.Background(), "") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNet(t, 1)
				a, b, out, in := pair(t, n, nil, &Options{Buffers: 8, Size: 100_000})
				for range 3 {
					if _, err := out.Out.Acquire(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if got := a.Stats().Sending; got != 3<<17 {
					t.Errorf("%d bytes are kept for 3 buffers of 100000", got)
				}
				if err := end(n, out); err != nil {
					t.Error(err)
				}
				if _, err := in.In.Recv(t.Context()); !errors.Is(err, io.EOF) && !errors.Is(err, ErrPeerClosed) {
					t.Error(err)
				}
				in.Close()
				time.Sleep(time.Second)
				nothingLeft(t, a, b)
			})
		})
	}
}

// TestSteadySenderAllocatesNothing checks that a link that sends steadily goes through the same
// memory, by Send and by Acquire, for short messages in long buffers and for long ones (F9).
func TestSteadySenderAllocatesNothing(t *testing.T) {
	for _, size := range []int{16, 4 << 10, 200_000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNet(t, 0)
				n.clean = true
				_, _, out, _ := pair(t, n, nil, &Options{Buffers: 16, Size: 200_000, Handle: func(*Link, Message) {}})
				data := make([]byte, size)
				once := func() {
					if err := out.Out.Send(t.Context(), 0, data); err != nil {
						t.Fatal(err)
					}
					b, err := out.Out.Acquire(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					if err := out.Out.Commit(b, 0, size); err != nil {
						t.Fatal(err)
					}
					if err := out.Out.Flush(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				for range 100 {
					once()
				}
				got := allocated(func() {
					for range 1000 {
						once()
					}
				})
				if got > 2000*1000 && !fixture.Race {
					t.Errorf("2000 messages of %d bytes made the hosts allocate %d bytes", size, got)
				}
			})
		})
	}
}

// TestSlotBytes checks that a slot takes as much as is counted for it.
func TestSlotBytes(t *testing.T) {
	const slots = 1000
	var kept []*outSlot
	got := allocated(func() {
		kept = append(make([]*outSlot, 0, slots), new(outSlot))
		more := make([]outSlot, slots-1)
		for i := range more {
			kept = append(kept, &more[i])
		}
	}) / slots
	if got > uint64(slotBytes) || got < uint64(slotBytes)/2 {
		t.Errorf("a slot takes %d bytes, and %d are counted", got, slotBytes)
	}
	_ = kept
}

// TestIdleSlots checks that the slots of links that have nothing in flight keep no memory from a link
// that sends, however many such links there were (F9).
func TestIdleSlots(t *testing.T) {
	for _, size := range []int{0, 16} {
		synctest.Test(t, func(t *testing.T) {
			n := newNet(t, 3)
			h := n.host(2, &Config{Memory: 1 << 20})
			made := h.serve(t, "port", &Options{Directions: Send})
			s := n.fakePeer(9, h)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			k := uint32(0)
			for ; k < 40; k++ {
				s.dial(k+1, "port", toDialer, half{}, buffers(mostUnderWay, 64))
				p := (<-made).Out
				var got []Buffer
				for range mostUnderWay/2 + 1 {
					b, ok := p.TryAcquire()
					if !ok {
						break
					}
					got = append(got, b)
				}
				for _, b := range got {
					p.Commit(b, 0, size)
				}
				if err := p.Flush(ctx); err != nil {
					t.Fatal(err)
				}
			}
			t.Logf("%d links keep %d bytes", k, h.Stats().Sending)
			s.dial(k+1, "port", toDialer, half{}, buffers(100, MaxMessage))
			p := (<-made).Out
			for range 4 {
				if err := p.Send(ctx, 0, make([]byte, MaxMessage)); err != nil {
					t.Fatalf("though nothing is under way, with %d bytes kept: %v", h.Stats().Sending, err)
				}
			}
			if err := p.Flush(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSlotsWait checks that a producer that needs more slots than there is memory for waits, does not
// spin, and goes on when another link gives memory back, also if it has committed nothing (F9).
func TestSlotsWait(t *testing.T) {
	for name, size := range map[string]uint32{"slots": 1, "both": 64 << 10} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNet(t, 3)
				h := n.host(2, &Config{Memory: 1 << 20})
				made := h.serve(t, "port", &Options{Directions: Send})
				s := n.fakePeer(9, h)
				s.dial(1, "port", toDialer, half{}, buffers(100, size))
				p := (<-made).Out
				for range firstSlots {
					if _, err := p.Acquire(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				// Another link leaves room for the message or for the slots, and not for both.
				var other budget.Share
				other.Init(&h.budget, &h.peerOf(h.ep.Conns()[0]).budget, nil, nil)
				left := budget.SizeOf(int(size)) + p.ring.growth(firstSlots) - 1
				if name == "slots" {
					left = p.ring.growth(firstSlots) - 1
				}
				taken := other.Left() - left
				if !other.Charge(taken) {
					t.Fatal("no room for the other link")
				}
				got := make(chan error, 1)
				go func() {
					_, err := p.Acquire(t.Context())
					got <- err
				}()
				synctest.Wait()
				if len(got) > 0 {
					t.Fatal("there was memory at once")
				}
				other.Uncharge(taken)
				synctest.Wait()
				if len(got) == 0 {
					t.Error("it waits on, with memory there")
				}
			})
		})
	}
}

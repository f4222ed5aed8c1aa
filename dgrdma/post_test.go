package dgrdma

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestWriteOfPastContext checks that a write whose context is done already sends nothing, is told
// the cause, and leaves the transaction free.
func TestWriteOfPastContext(t *testing.T) {
	for _, manual := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, pairConfig{a: Config{Manual: manual}, link: simnet.Link{Latency: time.Millisecond}})
			defer p.close()
			x := write(64, pattern(1, 100), 0, 1)
			if err := p.toB.Write(context.Background(), x); err != nil {
				t.Fatal(err)
			}
			why := errors.New("why")
			ctx, cancel := context.WithCancelCause(context.Background())
			cancel(why)
			before := p.toB.Stats().FramesSent
			x.Completion = Word(x.Completion.Addr(), 2)
			if err := p.toB.Write(ctx, x); err != why {
				t.Errorf("manual %v: write with a context that is done: %v, want its cause", manual, err)
			}
			time.Sleep(time.Second)
			if st := p.toB.Stats(); st.FramesSent != before || st.Queued != 0 || p.memB.Load32(0) != 1 {
				t.Errorf("manual %v: %d frames left, %d transactions wait", manual, st.FramesSent-before, st.Queued)
			}
			x.Completion = Word(x.Completion.Addr(), 3)
			if err := p.toB.Write(context.Background(), x); err != nil {
				t.Errorf("manual %v: written again: %v", manual, err)
			}
		})
	}
}

// TestCancelMakesRoom checks that what is cancelled makes room for a goroutine that waits in
// the queue, and is not waited for by Shutdown.
func TestCancelMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{a: Config{Queue: 1}, link: simnet.Link{Down: true}})
		defer p.close()
		within := func(d time.Duration) chan error {
			answer := make(chan error, 1)
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), d)
				defer cancel()
				answer <- p.toB.Write(ctx, write(64, nil, 0, uint32(d/time.Second)))
			}()
			synctest.Wait()
			return answer
		}
		first := within(time.Second)
		second := within(5 * time.Second)
		if err := <-first; !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := p.toB.Stats().Queued; got != 1 {
			t.Errorf("%d transactions queued where one waited for room that was made", got)
		}
		began := time.Now()
		if err := p.a.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-second; !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 5*time.Second {
			t.Errorf("%v; Shutdown returned after %v", err, time.Since(began))
		}
	})
}

// TestPostAfterCancel checks that what is posted after a transaction was cancelled that waited
// for another one to be done is sent, though nothing in flight will bring it to mind.
func TestPostAfterCancel(t *testing.T) {
	withFakePeer(t, Config{}, Legacy(false), func(t *testing.T, _ *Endpoint, c *Conn, s *fakePeer) {
		post := func() frame.Seq {
			t.Helper()
			if err := c.Post(write(64, pattern(1, 8), 0, 1)); err != nil {
				t.Fatal(err)
			}
			sent := s.recv(time.Millisecond)
			if len(sent) != 1 {
				t.Fatalf("%d frames left, want 1", len(sent))
			}
			return sent[0].Seq
		}
		id := post() // one at a time
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		if err := c.Write(ctx, write(64, pattern(2, 8), 0, 2)); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		b := s.encode(1)
		frame.PutAck(b, id, 1)
		s.raw(b)
		s.recv(10 * time.Millisecond)
		post()
	})
}

// shut is a controller that can be shut, and counts how often it is asked.
type shut struct {
	ack.FixedWindow
	window atomic.Int64
	asked  atomic.Int64
}

func (c *shut) Window() int {
	if c.asked.Add(1) > 1000 {
		return 1 << 20 // or time would stand still
	}
	return int(c.window.Load())
}

// TestCoalescingSenderThatIsBlocked checks that a sender with frames to repeat, stopped by the
// controller, and with a transaction that waited for company, sleeps.
func TestCoalescingSenderThatIsBlocked(t *testing.T) {
	ctl := &shut{}
	ctl.window.Store(1 << 20)
	cfg := Config{Coalesce: 5 * time.Millisecond, NewController: func(int) ack.Controller { return ctl }}
	withFakePeer(t, cfg, Native(), func(t *testing.T, _ *Endpoint, c *Conn, s *fakePeer) {
		c.size.Store(1 << 16)
		if err := c.Post(write(64, pattern(1, 8000), 0, 1)); err != nil {
			t.Fatal(err)
		}
		sent := s.recv(time.Millisecond)
		if len(sent) != 6 {
			t.Fatalf("%d frames, want 6", len(sent))
		}
		ctl.window.Store(1)
		for i := range frame.Seq(4) {
			s.acksOnly(sent[0].Seq+1+i, 1) // the first is lost, the last on its way
		}
		s.recv(0)
		if err := c.Post(write(64, pattern(1, 8), 0, 2)); err != nil {
			t.Fatal(err)
		}
		if st := c.Stats(); st.Lost == 0 || st.InFlight < 2 {
			t.Fatalf("%d frames lost, %d in flight", st.Lost, st.InFlight)
		}
		synctest.Wait()
		ctl.asked.Store(0)
		time.Sleep(2 * cfg.Coalesce)
		synctest.Wait()
		if n := ctl.asked.Load(); n > 20 {
			t.Errorf("looked whether something can be sent %d times in 10 ms", n)
		}
	})
}

// TestRoomWakesAllWriters checks that all goroutines that wait for the queue get in when it empties
// at once.
func TestRoomWakesAllWriters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		_, e, c := openHooked(t, n, OpenCPI(false), Config{Queue: 4, FirstFrame: 1})
		defer e.Close()
		s := newStranger(t, n, addrA, 1, 2, addrB)
		for range 8 {
			go c.Write(context.Background(), write(0, pattern(1, 8), 0, 1))
		}
		sent := s.recv(10 * time.Millisecond)
		b := s.encode(1)
		frame.PutAck(b, 1, uint8(len(sent)))
		s.raw(b)
		s.recv(10 * time.Millisecond)
		if got := c.Stats().Queued; got != 4 {
			t.Errorf("%d queued, room for 4", got)
		}
	})
}

// TestWriteWithDone checks that a Write with Done is told what to do instead, and that nothing is
// posted.
func TestWriteWithDone(t *testing.T) {
	c := newFeed(t, Config{}).native()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	x := &Transaction{Done: func(*Transaction, error) { t.Error("called") }}
	if err := c.Write(ctx, x); err == nil || !strings.Contains(err.Error(), "leave it nil") || c.Stats().Queued != 0 || x.Done == nil {
		t.Errorf("%v; %d transactions queued", err, c.Stats().Queued)
	}
}

// TestFlowsWithAFullQueue checks that what is posted to a peer's services is taken where no more
// can be posted to its memory.
func TestFlowsWithAFullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, here, there := posts(t, pairConfig{a: Config{Queue: 2}})
		defer p.close()
		p.net.Link(addrA, addrB, simnet.Link{Down: true})
		for i := range 3 {
			if err := p.toB.Post(write(64, nil, 0, 1)); (i < 2) != (err == nil) {
				t.Errorf("transaction %d: %v", i, err)
			}
		}
		flow, base := here.channel(0).Flow(), there.channel(0).Base()
		for range 3 {
			if err := flow.Post(&Transaction{Completion: Word(base+MailSize, 1)}); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestCancelFreesOthers checks that what waited after a transaction that is cancelled leaves
// then.
func TestCancelFreesOthers(t *testing.T) {
	withFakePeer(t, Config{}, Native(), func(t *testing.T, _ *Endpoint, c *Conn, s *fakePeer) {
		if err := c.Post(write(64, nil, 0, 1)); err != nil {
			t.Fatal(err)
		}
		s.recv(time.Millisecond)
		ctx, cancel := context.WithCancel(t.Context())
		answer := make(chan error, 1)
		go func() { answer <- c.Write(ctx, &Transaction{Completion: Word(0, 2), Fence: true}) }()
		synctest.Wait()
		if err := c.Post(write(64, nil, 0, 3)); err != nil {
			t.Fatal(err)
		}
		if sent := s.recv(0); len(sent) != 0 {
			t.Fatalf("%d frames passed the fence", len(sent))
		}
		cancel()
		sent := s.recv(0)
		if err := <-answer; !errors.Is(err, context.Canceled) || len(sent) != 1 {
			t.Errorf("%v; %d frames left, want 1", err, len(sent))
		}
	})
}

// TestSegmentWithoutBytes checks that a segment may be empty.
func TestSegmentWithoutBytes(t *testing.T) {
	f := newFeed(t, Config{})
	if err := f.native().Post(&Transaction{Segments: []Segment{{Addr: 8}}}); err != nil {
		t.Error(err)
	}
}

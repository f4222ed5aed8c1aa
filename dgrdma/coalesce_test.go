package dgrdma

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestCompanyIsWaitedForEachTime checks that what does not fill a frame waits for company after
// each frame that left, while something is on its way.
func TestCompanyIsWaitedForEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{a: Config{Coalesce: time.Millisecond}, link: simnet.Link{Latency: 50 * time.Millisecond}})
		defer p.close()
		if err := p.toB.Write(t.Context(), write(64, nil, 0, 1)); err != nil {
			t.Fatal(err)
		}
		fresh := func() uint64 {
			s := p.toB.Stats()
			return s.FramesSent - s.RetransmitsTimed - s.RetransmitsFast
		}
		before := fresh()
		for i := range 200 {
			if err := p.toB.Post(&Transaction{Completion: Word(4, uint32(i))}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Microsecond)
		}
		time.Sleep(time.Second)
		if n := p.toB.Stats().TransactionsDone; n != 201 {
			t.Fatalf("%d of 201 are done", n)
		}
		if n := fresh() - before; n < 20 || n > 22 {
			t.Errorf("%d frames in 20 ms, want one for each", n)
		}
	})
}

// TestCompanyIsWaitedForAtFirst checks that what comes after a pause waits for company like
// anything else.
func TestCompanyIsWaitedForAtFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := framesSent{t: t}
		p := newPair(t, pairConfig{a: Config{Coalesce: time.Millisecond, Trace: &Trace{FrameSent: sent.note}}})
		defer p.close()
		for range 3 {
			time.Sleep(time.Second)
			for range 2 {
				if err := p.toB.Post(&Transaction{Completion: Word(4, 1)}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(500 * time.Microsecond)
			}
		}
		time.Sleep(time.Second)
		all := sent.all()
		for i, frame := range all {
			if len(frame) != 2 {
				t.Errorf("%d transactions in frame %d, want 2", len(frame), i)
			}
		}
		if len(all) != 3 {
			t.Errorf("%d frames, want 3", len(all))
		}
	})
}

// framesSent is a trace that keeps the messages of the frames that are sent.
type framesSent struct {
	t    testing.TB
	mu   sync.Mutex
	list [][]frame.Message
}

func (s *framesSent) note(_ PeerName, b []byte, _ bool) {
	all := messagesIn(s.t, b)
	if len(all) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, all)
}

// all returns them.
func (s *framesSent) all() [][]frame.Message {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list
}

// TestFullFramesAreNotCut checks that what fills a frame to the last byte is not cut for the room
// that another one leaves, and takes no more than its turn.
func TestFullFramesAreNotCut(t *testing.T) {
	r := newHalfRig(t, 1, Native(), Config{MTU: 1024})
	r.come(1 << 20)
	full := r.c.tx.layout().Full
	for _, n := range []int{full, full + 1} {
		small, large := write(64, make([]byte, 16), 0, 1), write(64, make([]byte, n), 0, 1)
		for _, x := range []*Transaction{small, large} {
			if _, _, err := r.c.enqueue(x, r.answered, nil, posting{to: anyEpoch, flow: &r.c.plain}); err != nil {
				t.Fatal(err)
			}
		}
		before := r.c.tx.counters.FramesSent
		r.serve()
		if cut := large.count > 1; cut != (n > full) || r.c.tx.counters.FramesSent != before+2 {
			t.Errorf("%d bytes, of which a frame has %d, are %d messages; with a few others %d frames", n, full, large.count, r.c.tx.counters.FramesSent-before)
		}
	}
}

// TestFramesOfCompletions checks that as many transactions without data share a frame as there is
// room for, and that none is begun that has to wait for the next.
func TestFramesOfCompletions(t *testing.T) {
	one := Native()
	one.Window = 1
	for mtu := 80; mtu < 80+3*frame.MessageHeaderSize; mtu += 8 {
		r := newHalfRig(t, 1, one, Config{MTU: mtu})
		r.come(1 << 20)
		fit := (mtu - frame.SessionHeaderSize) / frame.MessageHeaderSize
		for range fit + 1 {
			x := write(0, nil, 0, 1)
			r.posted = append(r.posted, x)
			if _, _, err := r.c.enqueue(x, r.answered, nil, posting{to: anyEpoch, flow: &r.c.plain}); err != nil {
				t.Fatal(err)
			}
		}
		r.serve()
		if last, next := r.posted[fit-1], r.posted[fit]; !last.complete || next.entry.HasBegun() {
			t.Errorf("frames of %d bytes: the last of %d transactions is in the first: %v; the next has begun: %v", mtu, fit, last.complete, next.entry.HasBegun())
		}
	}
}

// TestSmallTransactionsAreNotCut checks that a transaction that fits a frame, but not the rest of
// this one, has the next to itself.
func TestSmallTransactionsAreNotCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := framesSent{t: t}
		p := newPair(t, pairConfig{a: Config{MTU: 1024, Coalesce: time.Millisecond, Trace: &Trace{FrameSent: sent.note}}})
		defer p.close()
		for i := range 6 {
			if err := p.toB.Post(write(uint32(1024*i), pattern(i, 600), 0, 1)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		all := sent.all()
		if len(all) != 6 {
			t.Errorf("%d frames of 1024 bytes for 6 transactions of 600", len(all))
		}
		for i, frame := range all {
			if len(frame) != 1 || frame[0].Count != 1 || frame[0].Len != 600 {
				t.Errorf("frame %d: %+v", i, frame)
			}
		}
	})
}

// TestCompanyThatPasses checks that what waits for company does not wait less because others fill
// frames in that time, and leave before it.
func TestCompanyThatPasses(t *testing.T) {
	const hold = time.Millisecond
	r := newHalfRig(t, 1, Native(), Config{Coalesce: hold})
	r.come(1 << 20)
	post := func(x *Transaction) { r.c.tx.post(r.now, &r.c.plain, x) }
	small, began := write(64, make([]byte, 8), 0, 1), r.now
	post(small)
	for i := 0; !small.entry.HasBegun(); i++ {
		if i%6 == 0 {
			post(&Transaction{Segments: []Segment{{0, make([]byte, r.c.tx.layout().Full)}}, Urgent: true})
		}
		r.now = began.Add(time.Duration(i) * hold / 10)
		r.expire()
		r.serve()
		if d := r.now.Sub(began); small.entry.HasBegun() != (d >= hold) {
			t.Fatalf("after %v it has left: %v, want that after %v", d, small.entry.HasBegun(), hold)
		}
	}
}

// TestCompanyAfterALongOne checks that what stands after a transaction of several frames waits for
// company when that one has left.
func TestCompanyAfterALongOne(t *testing.T) {
	const hold = time.Millisecond
	r := newHalfRig(t, 1, Native(), Config{Coalesce: hold})
	r.come(1 << 20)
	post := func(n int) *Transaction {
		x := write(64, make([]byte, n), 0, 1)
		r.c.tx.post(r.now, &r.c.plain, x)
		return x
	}
	long, small := post(3*r.c.tx.layout().Full), post(8)
	r.now = r.now.Add(hold / 2)
	r.serve()
	if !long.complete || small.entry.HasBegun() {
		t.Fatalf("the long one has left: %v, the small one: %v", long.complete, small.entry.HasBegun())
	}
	left := r.now
	for !small.entry.HasBegun() {
		r.waits()
	}
	if d := r.now.Sub(left); d != hold {
		t.Errorf("the small one leaves %v after the long one, want %v", d, hold)
	}
}

// TestFullFrameWaitsForNone checks that what leaves room for a message more is held back, and what
// does not is not, be it one transaction or several.
func TestFullFrameWaitsForNone(t *testing.T) {
	for parts := 1; parts < 4; parts++ {
		for _, room := range []int{frame.MessageHeaderSize, frame.MessageHeaderSize - 1} {
			r := newHalfRig(t, 1, Native(), Config{Coalesce: time.Hour})
			r.come(1 << 20)
			data := r.c.tx.path.Size() - frame.SessionHeaderSize - parts*frame.MessageHeaderSize - room
			sizes := make([]int, parts)
			for i := range sizes {
				sizes[i] = data / parts &^ 7 // none is padded
			}
			sizes[parts-1] += data - parts*sizes[0]
			for _, n := range sizes {
				r.posts(n)
			}
			if left := len(r.flying) > 0; left != (room < frame.MessageHeaderSize) {
				t.Errorf("%d transactions that leave room for %d bytes of a frame have left: %v", parts, room, left)
			}
		}
	}
}

package endpoint

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// TestBatchIsBounded: however much there is to send, and of which kind, a batch has no more
// frames than it may, and what is left comes with the next.
func TestBatchIsBounded(t *testing.T) {
	p := Native()
	p.FreshAcks = true // none rides on what is sent again
	for _, x := range []struct {
		name              string
		fresh, lost, runs int
	}{
		{"new", 2*maxBatch + 3, 0, 0},
		{"lost", 0, 2*maxBatch + 3, 0},
		{"acknowledgements behind lost ones", 0, 2*maxBatch - 10, 20},
	} {
		t.Run(x.name, func(t *testing.T) {
			r := newHalfRig(t, 1, p, Config{MTU: 80, NewController: func(int) ack.Controller { return &ack.FixedWindow{} }})
			r.come(1 << 20)
			if x.lost > 0 {
				r.posts(slices.Repeat([]int{40}, x.lost+3)...)
				r.batch(ack.Range{Start: r.flying[x.lost], Count: 3})
			}
			for range x.runs {
				r.heard += 20
				r.c.rx.recv.Again(r.heard)
			}
			r.batch()
			r.enqueues(slices.Repeat([]int{40}, x.fresh)...)
			for left, more := x.fresh+x.lost+x.runs, true; more; left -= maxBatch {
				more = r.c.pack(&r.e.batch, r.now)
				if n := len(r.e.batch.frames); n != min(left, maxBatch) || more != (left > maxBatch) {
					t.Fatalf("%d frames of %d in a batch, of at most %d; more: %v", n, left, maxBatch, more)
				}
				engine{r.e}.Flush()
			}
		})
	}
}

// TestIntroductionOfTheNextBatch: an introduction for which a batch has no room is due in the
// next one, also to a peer that was given up.
func TestIntroductionOfTheNextBatch(t *testing.T) {
	r := newHalfRig(t, 1, Native(), Config{})
	r.come(1 << 20)
	var fin finished
	r.c.tx.fail(r.now, &fin, ErrPeerDown)
	r.introduces(frame.Hello{Life: 1 << 21})
	b := &r.e.batch
	for !b.full() {
		b.add(r.c.to, b.small(), nil, nil)
	}
	if more := r.c.pack(b, r.now); !more || len(b.frames) != maxBatch {
		t.Errorf("more: %v, with %d frames", more, len(b.frames))
	}
	engine{r.e}.Flush()
	if more := r.c.pack(b, r.now); more || len(b.frames) != 1 {
		t.Errorf("more: %v, with %d frames", more, len(b.frames))
	}
}

// TestSmallFramesOfEachBatch: each batch has room for as many small frames as a batch has.
func TestSmallFramesOfEachBatch(t *testing.T) {
	r := newHalfRig(t, 1, Native(), Config{})
	for range 3 {
		for b := &r.e.batch; !b.full(); {
			b.add(r.c.to, append(b.small()[:0], encode(1, 1)...), nil, nil)
		}
		engine{r.e}.Flush()
	}
}

// TestLargestBehindASmallOne: a transaction that needs all the messages that one may have
// begins with a frame of its own, where those are enough.
func TestLargestBehindASmallOne(t *testing.T) {
	r := newHalfRig(t, 1, Native(), Config{MTU: 160})
	r.come(1 << 20)
	l := r.c.tx.layout()
	small, large := write(64, make([]byte, 16), 0, 1), write(64, make([]byte, frame.MaxMessages*l.full), 0, 1)
	for _, x := range []*Transaction{small, large} {
		if err := r.c.validate(x, true); err != nil {
			t.Fatal(err)
		}
		if _, _, err := r.c.enqueue(x, r.answered, nil, posting{to: whoever, flow: &r.c.plain}); err != nil {
			t.Fatal(err)
		}
	}
	r.serve()
	if small.count != 1 || large.count != frame.MaxMessages {
		t.Errorf("%d and %d messages", small.count, large.count)
	}
}

// TestProbeIsEmpty: a card takes what stands behind the header of a probe for another
// header (quirk F3), so nothing may stand there but our own id, whatever was sent before.
func TestProbeIsEmpty(t *testing.T) {
	p := FPGA()
	p.FirstFrame = 0xa5c3
	r := newHalfRig(t, 1, p, Config{})
	var probe []byte
	r.e.cfg.Trace = &Trace{FrameSent: func(_ PeerName, b []byte, _ bool) {
		if len(b) == probeLength {
			probe = bytes.Clone(b)
		}
	}}
	r.come(0)
	r.posts(1024)
	b := r.c.tx.buffer()
	for i := range b {
		b[i] = 0xee // as other frames left it
	}
	r.waits()
	if probe == nil {
		t.Fatal("no probe was sent")
	}
	var h frame.Header
	q := r.c.tx.sender.Next() - 1
	want := make([]byte, probeLength)
	r.c.label(&h)
	h.Seq = q
	h.Put(want)
	want[probeOwnID], want[probeOwnID+1] = byte(q), byte(q>>8)
	if !bytes.Equal(probe, want) {
		t.Errorf("sent\n%x, want\n%x", probe, want)
	}
	r.acknowledge(true)
	if n := r.c.tx.counters.TransactionsDone; n != 1 {
		t.Errorf("%d transactions are done", n)
	}
}

// counting is a controller that counts the bytes it is told of.
type counting struct {
	ack.FixedWindow
	sent int
}

func (c *counting) OnSent(_ ack.Instant, bytes int) { c.sent += bytes }

// TestControllerIsToldOfEachByte: what is sent counts for the wire, be it new, sent again or a
// probe.
func TestControllerIsToldOfEachByte(t *testing.T) {
	var ctl counting
	r := newHalfRig(t, 1, FPGA(), Config{NewController: func(int) ack.Controller { return &ctl }})
	r.come(0)
	r.posts(1024)
	r.waits()
	if n := r.c.tx.counters; n.Probes != 1 || n.RetransmitsTimed != 1 || ctl.sent != int(n.BytesSent) {
		t.Errorf("told of %d bytes of %+v", ctl.sent, n)
	}
}

// TestForgottenFramesKeepNothing: what was in flight when a connection was reset holds no
// memory that frames were in.
func TestForgottenFramesKeepNothing(t *testing.T) {
	r := newHalfRig(t, 1, Native(), Config{})
	r.come(1 << 20)
	r.posts(1024, 1024, 1024)
	if err := r.c.reset(0); err != nil {
		t.Fatal(err)
	}
	for i := range r.c.tx.out {
		if r.c.tx.out[i].slab != nil {
			t.Errorf("place %d of the frames in flight is not free", i)
		}
	}
}

// TestSentFramesAreGivenBack: what was acknowledged while it was being sent gives its memory
// back when it was.
func TestSentFramesAreGivenBack(t *testing.T) {
	r := newHalfRig(t, 1, Native(), Config{})
	r.come(1 << 20)
	r.enqueues(1024)
	q := r.c.tx.sender.Next()
	r.c.pack(&r.e.batch, r.now)
	r.batch(ack.Range{Start: q, Count: 1})
	if len(r.c.tx.leaving) != 1 {
		t.Fatalf("%d slabs wait until the batch is sent", len(r.c.tx.leaving))
	}
	engine{r.e}.Flush()
	r.c.pack(&r.e.batch, r.now)
	if len(r.c.tx.leaving) != 0 {
		t.Error("its memory is kept")
	}
}

// TestUnheardIsForgotten: ids that count as delivered when they are sent are not remembered.
func TestUnheardIsForgotten(t *testing.T) {
	r := newHalfRig(t, 1, OpenCPI2(), Config{})
	for range 10 {
		r.now = r.now.Add(time.Second)
		r.posts(1024)
	}
	if n := len(r.c.tx.unheard); n > 0 || r.c.tx.counters.TransactionsDone != 10 {
		t.Errorf("%d ids are kept of %d transactions", n, r.c.tx.counters.TransactionsDone)
	}
}

// TestMemoryIsKeptForAWhile: the memory for frames in flight stays for restAfter when the
// last of them was acknowledged, for what comes next.
func TestMemoryIsKeptForAWhile(t *testing.T) {
	r := newHalfRig(t, 1, Native(), Config{})
	r.come(1 << 20)
	r.now = r.now.Add(10 * restAfter)
	r.posts(1024)
	r.acknowledge(true)
	since := r.now
	r.now = since.Add(restAfter * 3 / 4)
	if r.c.tx.overdue(r.now, r.now); !r.c.tx.resting() {
		t.Error("the memory is given back when something else is looked after")
	}
	for r.c.tx.resting() {
		r.waits()
	}
	if d := r.now.Sub(since); d != restAfter || len(r.c.tx.out) != 0 {
		t.Errorf("memory for %d frames after %v, want none after %v", len(r.c.tx.out), d, restAfter)
	}
}

// TestFrameThatHoldsNothingOfIt: a transaction is done when the frames are acknowledged that
// hold something of it, and does not wait for one in which there was too little room.
func TestFrameThatHoldsNothingOfIt(t *testing.T) {
	r := newHalfRig(t, 1, Native(), Config{MTU: 1490})
	r.come(1 << 20)
	full := r.c.tx.layout().full
	r.posts(full-frame.MessageHeaderSize-minFragment/2, 2*full)
	if len(r.flying) != 3 {
		t.Fatalf("%d frames", len(r.flying))
	}
	r.acknowledges(1)
	r.acknowledges(1)
	if r.done != 1 {
		t.Errorf("%d transactions are done, want the one whose frames arrived", r.done)
	}
}

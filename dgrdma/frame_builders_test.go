package dgrdma

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/foreign"
	"github.com/dgrdma/dgrdma/endpoint/outgoing"
	"github.com/dgrdma/dgrdma/endpoint/segmentation"
	"github.com/dgrdma/dgrdma/frame"
)

// TestBatchIsBounded checks that a batch has no more frames than it may, however much there is to
// send, and of which kind, and that what is left comes with the next.
func TestBatchIsBounded(t *testing.T) {
	driver, native := OpenCPI(false), Native()
	driver.FreshAcks, driver.OneRun, driver.SlotTable = true, false, 0 // none rides on what is sent again
	driver.Window, driver.Span, driver.OpenTransactions, driver.Chunk = native.Window, native.Span, native.OpenTransactions, native.Chunk
	for _, x := range []struct {
		name              string
		p                 Profile
		fresh, lost, runs int
	}{
		{"new", native, 2*outgoing.MaxBatch + 3, 0, 0},
		{"lost", native, 0, 2*outgoing.MaxBatch + 3, 0},
		{"lost and acknowledgements", driver, 0, 2*outgoing.MaxBatch - 10, 20},
	} {
		t.Run(x.name, func(t *testing.T) {
			r := newHalfRig(t, 1, x.p, Config{MTU: map[bool]int{true: 82, false: 80}[x.p.Session], NewController: func(int) ack.Controller { return &ack.FixedWindow{} }})
			r.come(1 << 20)
			if x.lost > 0 {
				r.posts(slices.Repeat([]int{40}, x.lost+3)...)
				r.batch(ack.Range{Start: r.flying[x.lost], Count: 3})
			}
			for range x.runs {
				r.heard += 20
				r.comesAgain(r.heard)
			}
			r.batch()
			r.enqueues(slices.Repeat([]int{40}, x.fresh)...)
			for left, more := x.fresh+x.lost+x.runs, true; more; left -= outgoing.MaxBatch {
				more = r.c.build(&r.e.batch, r.now)
				if n := len(r.e.batch.Frames()); n != min(left, outgoing.MaxBatch) || more != (left > outgoing.MaxBatch) {
					t.Fatalf("%d frames of %d in a batch, of at most %d; more: %v", n, left, outgoing.MaxBatch, more)
				}
				engine{r.e}.Flush()
			}
		})
	}
}

// TestHelloOfTheNextBatch checks that a HELLO for which a batch has no room is due in the
// next one, also to a peer that timed out.
func TestHelloOfTheNextBatch(t *testing.T) {
	r := newHalfRig(t, 1, Native(), Config{})
	r.come(1 << 20)
	var fin finished
	r.c.tx.fail(r.now, &fin, ErrPeerDown)
	r.hellos(1 << 21)
	b := &r.e.batch
	for !b.IsFull() {
		b.Add(r.c.to, b.Small(), nil, nil)
	}
	if more := r.c.build(b, r.now); !more || len(b.Frames()) != outgoing.MaxBatch {
		t.Errorf("more: %v, with %d frames", more, len(b.Frames()))
	}
	engine{r.e}.Flush()
	if more := r.c.build(b, r.now); more || len(b.Frames()) != 1 {
		t.Errorf("more: %v, with %d frames", more, len(b.Frames()))
	}
}

// TestSmallFramesOfEachBatch checks that each batch has room for as many small frames as a batch
// has.
func TestSmallFramesOfEachBatch(t *testing.T) {
	r := newHalfRig(t, 1, Native(), Config{})
	for range 3 {
		for b := &r.e.batch; !b.IsFull(); {
			b.Add(r.c.to, append(b.Small()[:0], encode(1, 1)...), nil, nil)
		}
		engine{r.e}.Flush()
	}
}

// TestLargestAfterASmallOne checks that a transaction that needs all the messages that one may
// have begins with a frame of its own, where those are enough.
func TestLargestAfterASmallOne(t *testing.T) {
	r := newHalfRig(t, 1, Native(), Config{MTU: 160})
	r.come(1 << 20)
	l := r.c.tx.layout()
	small, large := write(64, make([]byte, 16), 0, 1), write(64, make([]byte, frame.MaxMessages*l.Full), 0, 1)
	for _, x := range []*Transaction{small, large} {
		if err := r.c.validate(x, true); err != nil {
			t.Fatal(err)
		}
		if _, _, err := r.c.enqueue(x, r.answered, nil, posting{to: anyEpoch, flow: &r.c.plain}); err != nil {
			t.Fatal(err)
		}
	}
	r.serve()
	if small.count != 1 || large.count != frame.MaxMessages {
		t.Errorf("%d and %d messages", small.count, large.count)
	}
}

// TestProbeIsEmpty checks that nothing stands after the header of a probe but our own id, whatever
// was sent before: a card takes what stands there for another header (quirk F3).
func TestProbeIsEmpty(t *testing.T) {
	p := FPGA()
	p.FirstFrame = 0xa5c3
	r := newHalfRig(t, 1, p, Config{})
	var probe []byte
	r.e.cfg.Trace = &Trace{FrameSent: func(_ PeerName, b []byte, _ bool) {
		if len(b) == foreign.ProbeSize {
			probe = bytes.Clone(b)
		}
	}}
	r.come(0)
	r.posts(1024)
	b := r.c.tx.inFlight.Buffer()
	for i := range b {
		b[i] = 0xee // as other frames left it
	}
	r.waits()
	if probe == nil {
		t.Fatal("no probe was sent")
	}
	var h frame.Header
	q := frame.Seq(r.c.tx.unacked.Next() - 1 - r.epoch)
	want := make([]byte, foreign.ProbeSize)
	r.c.label(&h)
	h.Seq = q
	h.Put(want)
	want[20], want[21] = byte(q), byte(q>>8) // where a header that follows has its id
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

func (c *counting) OnSent(_ ack.Instant, _ uint32, bytes int) { c.sent += bytes }

// TestControllerIsToldOfEachByte checks that what is sent counts for the wire, be it new, sent
// again or a probe.
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

// TestForgottenFramesKeepNothing checks that what was in flight when a connection was reset holds
// no memory that frames were in.
func TestForgottenFramesKeepNothing(t *testing.T) {
	r := newHalfRig(t, 1, Native(), Config{})
	r.come(1 << 20)
	r.posts(1024, 1024, 1024)
	if err := r.c.reset(0); err != nil {
		t.Fatal(err)
	}
	if n := r.c.tx.inFlight.Memory(); n > 0 {
		t.Errorf("%d bytes of memory are kept", n)
	}
}

// TestSentFramesAreGivenBack checks that what was acknowledged while it was being sent gives its
// memory back when it was.
func TestSentFramesAreGivenBack(t *testing.T) {
	r := newHalfRig(t, 1, Native(), Config{})
	r.come(1 << 20)
	r.enqueues(1024)
	q := frame.Seq(r.c.tx.unacked.Next() - r.epoch)
	r.c.build(&r.e.batch, r.now)
	r.batch(ack.Range{Start: q, Count: 1})
	if r.c.tx.inFlight.Memory() == 0 {
		t.Fatal("its memory does not wait until the batch is sent")
	}
	engine{r.e}.Flush()
	r.c.build(&r.e.batch, r.now)
	if n := r.c.tx.inFlight.Memory(); n > 0 {
		t.Errorf("%d bytes of memory are kept", n)
	}
}

// TestUnacknowledgedIsForgotten checks that ids that count as delivered when they are sent are not
// remembered.
func TestUnacknowledgedIsForgotten(t *testing.T) {
	r := newHalfRig(t, 1, OpenCPI2(), Config{})
	for range 10 {
		r.now = r.now.Add(time.Second)
		r.posts(1024)
	}
	if n := len(r.c.tx.unheard); n > 0 || r.c.tx.counters.TransactionsDone != 10 {
		t.Errorf("%d ids are kept of %d transactions", n, r.c.tx.counters.TransactionsDone)
	}
}

// TestMemoryIsKeptForAWhile checks that the memory for frames in flight stays for restAfter when
// the last of them was acknowledged, for what comes next.
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
	if d := r.now.Sub(since); d != restAfter || r.c.tx.inFlight.Places() != 0 {
		t.Errorf("memory for %d frames after %v, want none after %v", r.c.tx.inFlight.Places(), d, restAfter)
	}
}

// TestFrameThatHoldsNothingOfIt checks that a transaction is done when the frames are acknowledged
// that hold something of it, and does not wait for one in which there was too little room.
func TestFrameThatHoldsNothingOfIt(t *testing.T) {
	r := newHalfRig(t, 1, Native(), Config{MTU: 1490})
	r.come(1 << 20)
	full := r.c.tx.layout().Full
	r.posts(full-frame.MessageHeaderSize-segmentation.LeastRoom/2, 2*full)
	if len(r.flying) != 3 {
		t.Fatalf("%d frames", len(r.flying))
	}
	r.acknowledges(1)
	r.acknowledges(1)
	if r.done != 1 {
		t.Errorf("%d transactions are done, want the one whose frames arrived", r.done)
	}
}

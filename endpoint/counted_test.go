package endpoint

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// come has a peer of our own kind come up that believes our life, and forgets what was
// counted so far.
func (r *halfRig) come(life uint32) {
	r.t.Helper()
	if r.c.profile.Session {
		r.introduces(r.named(life))
	}
	r.serve()
	r.c.tx.counters, r.c.rx.counters, r.c.tx.heard.counters = Counters{}, Counters{}, Counters{}
	r.flying = nil
}

// named returns the introduction of a life that believes ours, the next one if that is
// asked.
func (r *halfRig) named(life uint32) frame.Hello {
	n := r.c.tx.kind.(*nativeSending)
	mine := n.mine
	if n.later != unknown {
		mine = n.later
	}
	return frame.Hello{Life: life, Peer: uint32(mine), Tells: true}
}

// introduces has the peer send an introduction.
func (r *halfRig) introduces(h frame.Hello) {
	r.t.Helper()
	var f frame.Frame
	if err := f.Decode(encode(1, r.heard, h.Message())); err != nil {
		r.t.Fatal(err)
	}
	r.c.rx.receive(r.now, &f)
	r.batch()
}

// enqueues has transactions of that many bytes posted.
func (r *halfRig) enqueues(sizes ...int) {
	r.t.Helper()
	for _, n := range sizes {
		x := write(64, make([]byte, n), 0, 1)
		if _, _, err := r.c.enqueue(x, r.answered, nil, posting{to: whoever, flow: &r.c.plain}); err != nil {
			r.t.Fatal(err)
		}
	}
}

// posts has them sent, too.
func (r *halfRig) posts(sizes ...int) {
	r.t.Helper()
	r.enqueues(sizes...)
	r.serve()
}

// comes has frames of the peer come that are to be acknowledged, and sends what is due.
func (r *halfRig) comes(n int) {
	r.t.Helper()
	for range n {
		r.heard++
		r.c.rx.recv.Accept(r.heard, 0)
	}
	r.batch()
	r.serve()
}

// acknowledges has the peer acknowledge a frame of those in flight.
func (r *halfRig) acknowledges(i int) {
	r.t.Helper()
	q := r.flying[i]
	r.flying = append(r.flying[:i], r.flying[i+1:]...)
	r.batch(ack.Range{Start: q, Count: 1})
	r.serve()
}

// waits has time pass until the next deadline, and sends what is due.
func (r *halfRig) waits() {
	r.t.Helper()
	r.now = max(r.now, r.diary.at)
	r.expire()
	r.serve()
}

// TestSendingIsCounted: each counter of what is sent counts what its row says, and
// nothing else; and a trace is told the same.
func TestSendingIsCounted(t *testing.T) {
	const (
		data  = 40 // bytes of a transaction that fills a frame
		full  = frame.HeaderSize + frame.MessageHeaderSize + data
		alone = frame.HeaderSize + frame.StampSize
	)
	one := Native()
	one.Window, one.Span, one.FreshAlone = 1, 1, true
	mute := one
	mute.FreshAcks, mute.AckDelay = true, 100*time.Millisecond
	patient := Native()
	patient.AckDelay = time.Hour
	card := FPGA()
	card.Window, card.Span = 2, 2
	narrow := func(int) ack.Controller {
		c := &shut{}
		c.window.Store(1)
		return c
	}
	slow := func(int) ack.Controller { return &slow{} }
	for _, x := range []struct {
		name string
		p    Profile
		cfg  Config
		does func(r *halfRig)
		want Counters
	}{
		{"a transaction is done", Native(), Config{}, func(r *halfRig) {
			r.posts(data)
			r.acknowledges(0)
		}, Counters{FramesSent: 1, BytesSent: full, AcksReceived: 1, TransactionsDone: 1}},
		{"one is given up", Native(), Config{}, func(r *halfRig) {
			r.posts(data)
			r.c.reset(0)
		}, Counters{FramesSent: 1, BytesSent: full, TransactionsLost: 1}},
		{"a frame is lost among others", Native(), Config{}, func(r *halfRig) {
			r.posts(data, data, data, data)
			r.acknowledges(1)
			r.acknowledges(1)
			r.acknowledges(1)
		}, Counters{FramesSent: 5, BytesSent: 5 * full, AcksReceived: 3, TransactionsDone: 3, RetransmitsFast: 1}},
		{"the last frame is lost", Native(), Config{}, func(r *halfRig) {
			r.posts(data)
			r.waits()
		}, Counters{FramesSent: 2, BytesSent: 2 * full, RetransmitsTimed: 1}},
		{"the window is full", one, Config{}, func(r *halfRig) {
			r.posts(data, data)
		}, Counters{FramesSent: 1, BytesSent: full, WindowFull: 1}},
		{"the wire is full", Native(), Config{NewController: narrow}, func(r *halfRig) {
			r.posts(data, data)
		}, Counters{FramesSent: 1, BytesSent: full, Congested: 1}},
		{"the wire is slow", Native(), Config{NewController: slow}, func(r *halfRig) {
			r.slow(time.Second)
			r.posts(data)
		}, Counters{}},
		{"the wire is slow when a frame is lost", Native(), Config{NewController: slow}, func(r *halfRig) {
			r.posts(data, data, data, data)
			r.slow(time.Second)
			r.acknowledges(1)
			r.acknowledges(1)
			r.acknowledges(1)
		}, Counters{FramesSent: 4, BytesSent: 4 * full, AcksReceived: 3, TransactionsDone: 3}},
		{"company is waited for", Native(), Config{Coalesce: time.Hour}, func(r *halfRig) {
			r.posts(8)
		}, Counters{}},
		{"a card is not known", FPGA(), Config{}, func(r *halfRig) {
			r.posts(data, data)
		}, Counters{FramesSent: 1, BytesSent: full}},
		{"an acknowledgement rides", Native(), Config{}, func(r *halfRig) {
			r.comes(1)
			r.posts(data)
		}, Counters{FramesSent: 1, BytesSent: full, AcksCarried: 1}},
		{"one rides on what is sent again", patient, Config{}, func(r *halfRig) {
			r.posts(data)
			r.comes(1)
			r.waits()
		}, Counters{FramesSent: 2, BytesSent: 2 * full, RetransmitsTimed: 1, AcksCarried: 1}},
		{"one leaves by itself", Native(), Config{}, func(r *halfRig) {
			r.comes(2)
		}, Counters{FramesSent: 1, BytesSent: alone, AcksAlone: 1}},
		{"one finds no id", one, Config{}, func(r *halfRig) {
			r.posts(data)
			r.comes(2)
		}, Counters{FramesSent: 1, BytesSent: full, AcksHeld: 1}},
		{"a card is silent", FPGA(), Config{}, func(r *halfRig) {
			r.posts(data)
			r.waits()
		}, Counters{FramesSent: 3, BytesSent: 2*full + probeLength, RetransmitsTimed: 1, Probes: 1}},
		{"a card is silent, and the wire is slow", FPGA(), Config{NewController: slow}, func(r *halfRig) {
			r.posts(data)
			r.slow(time.Hour)
			r.waits()
		}, Counters{FramesSent: 2, BytesSent: full + probeLength, Probes: 1}},
		{"a card is silent, and no id is left", card, Config{}, func(r *halfRig) {
			r.c.tx.proven = true
			r.posts(data, data)
			r.waits()
		}, Counters{FramesSent: 4, BytesSent: 4 * full, RetransmitsTimed: 2}},
		{"a card is given up before its probe", FPGA(), Config{}, func(r *halfRig) {
			r.posts(data)
			r.now = max(r.now, r.diary.at)
			r.expire()
			r.c.reset(0)
			r.serve()
		}, Counters{FramesSent: 1, BytesSent: full, TransactionsLost: 1}},
		{"one rides again when none leaves", mute, Config{}, func(r *halfRig) {
			r.posts(data)
			r.comes(2)
			r.waits()
		}, Counters{FramesSent: 2, BytesSent: 2 * full, AcksHeld: 1, AcksCarried: 1, RetransmitsTimed: 1}},
		{"none rides again when one could leave", mute, Config{}, func(r *halfRig) {
			r.posts(data)
			r.comes(2)
			r.acknowledges(0)
			r.waits()
			r.posts(data)
			r.comes(1)
			r.waits()
		}, Counters{FramesSent: 4, BytesSent: 3*full + alone, AcksHeld: 1, AcksAlone: 1, AcksReceived: 1, TransactionsDone: 1, RetransmitsTimed: 1}},
		{"the peer restarts", Native(), Config{}, func(r *halfRig) {
			r.introduces(frame.Hello{Life: 1 << 21})
			r.serve()
			r.introduces(r.named(1 << 21))
		}, Counters{FramesSent: 1, BytesSent: helloSize, FramesReceived: 2, Restarts: 1}},
		{"the peer restarts before it was acknowledged", Native(), Config{}, func(r *halfRig) {
			r.comes(1)
			r.introduces(frame.Hello{Life: 1 << 21})
			r.serve()
			r.introduces(r.named(1 << 21))
			r.posts(data)
		}, Counters{FramesSent: 3, BytesSent: 2*helloSize + full, FramesReceived: 2, Restarts: 1}},
		{"what was never sent is acknowledged", OpenCPI(true), Config{}, func(r *halfRig) {
			r.batch(ack.Range{Start: r.c.tx.sender.Next(), Count: 1}, ack.Range{Start: r.c.tx.sender.Next(), Count: 3})
		}, Counters{Refused: [numReasons]uint64{RefusedAckOfUnsent: 2}}},
	} {
		t.Run(x.name, func(t *testing.T) {
			x.cfg.MTU = 80
			var told Counters
			again := uint64(0)
			x.cfg.Trace = &Trace{
				FrameSent: func(_ PeerName, b []byte, isAgain bool) {
					told.FramesSent++
					told.BytesSent += uint64(len(b))
					if isAgain {
						again++
					}
				},
				FrameLost: func(_ PeerName, _ frame.Seq, timed bool) {
					if timed {
						told.RetransmitsTimed++
					} else {
						told.RetransmitsFast++
					}
				},
			}
			r := newHalfRig(t, 1, x.p, x.cfg)
			r.come(1 << 20)
			told, again = Counters{}, 0
			x.does(r)
			if got := r.c.Stats().Counters; got != x.want {
				t.Errorf("counted\n%+v, want\n%+v", got, x.want)
			}
			want := Counters{FramesSent: x.want.FramesSent, BytesSent: x.want.BytesSent, RetransmitsFast: x.want.RetransmitsFast, RetransmitsTimed: x.want.RetransmitsTimed}
			if told != want || again != want.RetransmitsFast+want.RetransmitsTimed {
				t.Errorf("told of\n%+v, %d sent again, want\n%+v", told, again, want)
			}
		})
	}
}

// TestReceivingIsCounted: each counter of what comes counts what its row says.
func TestReceivingIsCounted(t *testing.T) {
	f := newFeed(t, Config{})
	c := f.native()
	before := c.Stats().Counters
	b := encode(1, 2, frame.Message{Txn: life, CompletionValue: 1, Count: 2, Index: 1, Addr: 64, Len: 24}, frame.Message{Txn: life, CompletionValue: 1, Count: 2, Index: 2, Addr: 128, Len: 8})
	f.give(b)
	f.give(b)
	got := c.Stats().Counters
	want := before
	want.FramesReceived += 2
	want.BytesReceived += 2 * uint64(len(b))
	want.MessagesPlaced += 2
	want.DataPlaced += 32
	want.Completions++
	want.Duplicates++
	want.FramesSent, want.BytesSent, want.AcksAlone = got.FramesSent, got.BytesSent, got.AcksAlone
	if got != want {
		t.Errorf("counted\n%+v, want\n%+v", got, want)
	}
}

package dgrdma

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/foreign"
	"github.com/dgrdma/dgrdma/frame"
)

// TestSendingIsCounted checks that each counter of what is sent counts what its row says, and
// nothing else; and that a trace is told the same.
func TestSendingIsCounted(t *testing.T) {
	const (
		data  = 40 // bytes of a transaction that fills a frame
		full  = frame.SessionHeaderSize + frame.MessageHeaderSize + data
		alone = frame.LeastSessionAck
		// begun is a HELLO, a CONFIRM, and a list of one service, for which those have no room.
		begun = frame.RefusedSize + frame.HandshakeSize + frame.SessionHeaderSize + frame.MessageHeaderSize + 4 + 12
		// Of peers without sessions.
		plain      = frame.HeaderSize + frame.MessageHeaderSize + data
		plainAlone = frame.HeaderSize
	)
	one := Native()
	one.Window = 1
	single := OpenCPI(true) // its acknowledgements have ids of their own
	single.Window, single.Span, single.FreshAlone, single.FreshAcks, single.AckEvery = 1, 1, true, false, 2
	mute := single
	mute.FreshAcks, mute.AckDelay, mute.MinTimeout = true, 100*time.Millisecond, 5*time.Millisecond
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
		}, Counters{FramesSent: 1, BytesSent: plain}},
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
		{"one finds no id", single, Config{}, func(r *halfRig) {
			r.posts(data)
			r.comes(2)
		}, Counters{FramesSent: 1, BytesSent: plain, AcksHeld: 1}},
		{"a card is silent", FPGA(), Config{}, func(r *halfRig) {
			r.posts(data)
			r.waits()
		}, Counters{FramesSent: 3, BytesSent: 2*plain + foreign.ProbeSize, RetransmitsTimed: 1, Probes: 1}},
		{"a card is silent, and the wire is slow", FPGA(), Config{NewController: slow}, func(r *halfRig) {
			r.posts(data)
			r.slow(time.Hour)
			r.waits()
		}, Counters{FramesSent: 2, BytesSent: plain + foreign.ProbeSize, Probes: 1}},
		{"a card is silent, and no id is left", card, Config{}, func(r *halfRig) {
			r.c.tx.proven = true
			r.posts(data, data)
			r.waits()
		}, Counters{FramesSent: 4, BytesSent: 4 * plain, RetransmitsTimed: 2}},
		{"a card is given up before its probe", FPGA(), Config{}, func(r *halfRig) {
			r.posts(data)
			r.now = max(r.now, r.diary.at)
			r.expire()
			r.c.reset(0)
			r.serve()
		}, Counters{FramesSent: 1, BytesSent: plain, TransactionsLost: 1}},
		{"one rides again when none leaves", mute, Config{}, func(r *halfRig) {
			r.posts(data)
			r.comes(2)
			r.waits()
		}, Counters{FramesSent: 2, BytesSent: 2 * plain, AcksHeld: 1, AcksCarried: 1, RetransmitsTimed: 1}},
		{"none rides again when one could leave", mute, Config{}, func(r *halfRig) {
			r.posts(data)
			r.comes(2)
			r.acknowledges(0)
			r.waits()
			r.posts(data)
			r.comes(1)
			r.waits()
		}, Counters{FramesSent: 4, BytesSent: 3*plain + plainAlone, AcksHeld: 1, AcksAlone: 1, AcksReceived: 1, TransactionsDone: 1, RetransmitsTimed: 1}},
		{"the peer restarts", Native(), Config{}, func(r *halfRig) {
			r.posts(data)
			r.restarts(1 << 21)
			r.serve()
		}, Counters{FramesSent: 4, BytesSent: full + begun, TransactionsLost: 1, Restarts: 1}},
		{"the peer restarts before it was acknowledged", Native(), Config{}, func(r *halfRig) {
			r.posts(data)
			r.comes(1)
			r.restarts(1 << 21)
			r.posts(data)
		}, Counters{FramesSent: 5, BytesSent: 2*full + begun, TransactionsLost: 1, Restarts: 1}},
		{"what was never sent is acknowledged", OpenCPI(true), Config{}, func(r *halfRig) {
			r.batch(ack.Range{Start: frame.Seq(r.c.tx.unacked.Next()), Count: 1}, ack.Range{Start: frame.Seq(r.c.tx.unacked.Next()), Count: 3})
		}, Counters{Refused: [numReasons]uint64{RefusedAckOfUnsent: 2}}},
	} {
		t.Run(x.name, func(t *testing.T) {
			x.cfg.MTU = plain + 2
			if x.p.Session {
				x.cfg.MTU = full
			}
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

// TestReceivingIsCounted checks that each counter of what comes counts what its row says.
func TestReceivingIsCounted(t *testing.T) {
	f := newFeed(t, Config{})
	c := f.native()
	before := c.Stats().Counters
	b := f.encode(1, 1, frame.Message{Txn: life, CompletionValue: 1, Count: 2, Index: 1, Addr: 64, Len: 24}, frame.Message{Txn: life, CompletionValue: 1, Count: 2, Index: 2, Addr: 128, Len: 8})
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

package ack

import (
	"testing"

	"github.com/dgrdma/dgrdma/frame"
)

// benchReceiver measures a frame's way through the duplicate window: Check,
// Accept, and its share of a batch of 64 becoming due. order gives the id of
// each frame.
func benchReceiver(b *testing.B, order func(i int) frame.Seq) {
	var r Receiver
	r.Init(ReceiverConfig{History: MaxHistory, Repeat: true})
	var due PendingAcks
	due.Init(64, 0)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		q := order(i)
		if i++; r.Check(q) == New {
			r.Accept(q, uint16(i))
		} else {
			r.Again(q)
		}
		if i%64 == 0 {
			takeAll(&due, &r)
		}
	}
}

func takeAll(d *PendingAcks, r *Receiver) {
	d.Take(0, r)
	for _, ok := d.Next(); ok; _, ok = d.Next() {
	}
}

func BenchmarkReceiverInOrder(b *testing.B) {
	benchReceiver(b, func(i int) frame.Seq { return frame.Seq(i) })
}

// Near the wrap only: 64 ids on both sides, again and again.
func BenchmarkReceiverWrap(b *testing.B) {
	var r Receiver
	r.Init(ReceiverConfig{History: MaxHistory, Repeat: true})
	var due PendingAcks
	due.Init(64, 0)
	b.ReportAllocs()
	q := frame.Seq(65536 - 64)
	for b.Loop() {
		if r.Check(q) == New {
			r.Accept(q, 7)
		}
		if q++; q == 64 {
			takeAll(&due, &r)
			r.active, q = false, 65536-64
		}
	}
}

// Every eighth id is missing.
func BenchmarkReceiverGaps(b *testing.B) {
	benchReceiver(b, func(i int) frame.Seq { return frame.Seq(i + i/7) })
}

// Groups of 32 arrive in reverse.
func BenchmarkReceiverReversed(b *testing.B) {
	benchReceiver(b, func(i int) frame.Seq { return frame.Seq(i ^ 31) })
}

// Two links, one of them 16 frames behind (quirk F19).
func BenchmarkReceiverInterleaved(b *testing.B) {
	benchReceiver(b, func(i int) frame.Seq { return frame.Seq(i - 16*(i&1)) })
}

// Every frame comes twice.
func BenchmarkReceiverDuplicates(b *testing.B) {
	benchReceiver(b, func(i int) frame.Seq { return frame.Seq(i / 2) })
}

// benchSender measures a frame's way through the sender, from Limit and Track to
// its acknowledgement, in batches of that many with a window of 1024.
func benchSender(b *testing.B, first frame.Seq, batch int) {
	cfg := testConfig()
	cfg.First = Wide(first)
	var s Sender
	s.Init(0, cfg, new(FixedWindow))
	now := Instant(sec)
	for range 2 * cfg.Window { // let the slots grow
		if s.Limit(now, 1500) != Open {
			s.AppendAcked(nil, now, Range{s.Oldest(), 1})
		}
		s.Track(now, 1500)
	}
	acked := make([]frame.Seq, 0, MaxRun)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if n == 0 {
			now = now.Add(10000)
			acked, _ = s.AppendAcked(acked[:0], now, Range{s.Oldest(), uint8(batch)})
			if len(acked) != batch {
				b.Fatalf("%d acknowledged, want %d", len(acked), batch)
			}
			s.EndBatch(now)
			s.Deadline()
			n = batch
		}
		if s.Limit(now, 1500) != Open {
			b.Fatal("the window is full")
		}
		s.Track(now, 1500)
		n--
	}
}

func BenchmarkSenderEach(b *testing.B)    { benchSender(b, 1, 1) }
func BenchmarkSenderBatch2(b *testing.B)  { benchSender(b, 1, 2) }
func BenchmarkSenderBatch64(b *testing.B) { benchSender(b, 1, 64) }

// One frame in a hundred is lost and sent again.
func BenchmarkSenderLoss(b *testing.B) {
	cfg := testConfig()
	cfg.First = 1
	var s Sender
	s.Init(0, cfg, new(FixedWindow))
	now := Instant(sec)
	acked := make([]frame.Seq, 0, MaxRun)
	for range 2 * cfg.Window {
		if s.Limit(now, 1500) != Open {
			s.AppendAcked(nil, now, Range{s.Oldest(), 1})
		}
		s.Track(now, 1500)
	}
	b.ReportAllocs()
	next, n := s.Oldest(), 0
	for b.Loop() {
		if n == 0 {
			now = now.Add(10000)
			// The first of a hundred waits until it was sent again.
			acked, _ = s.AppendAcked(acked[:0], now, Range{next.Add(1), 99})
			s.EndBatch(now)
			for q, ok := s.NextLost(now); ok; q, ok = s.NextLost(now) {
				s.Resend(now, q)
				acked, _ = s.AppendAcked(acked, now, Range{q, 1})
			}
			if len(acked) != 100 {
				b.Fatalf("%d acknowledged, want 100", len(acked))
			}
			next, n = next.Add(100), 100
		}
		if s.Limit(now, 1500) != Open {
			b.Fatal("the window is full")
		}
		s.Track(now, 1500)
		n--
	}
}

func BenchmarkDueTake(b *testing.B) {
	var r Receiver
	r.Init(ReceiverConfig{History: MaxHistory, Repeat: true})
	var d PendingAcks
	d.Init(2, 2*ms)
	b.ReportAllocs()
	q, now := frame.Seq(0), Instant(0)
	for b.Loop() {
		r.Accept(q, 7)
		if q++; q%2 == 0 {
			now = now.Add(1000)
			d.Take(now, &r)
			d.Next()
		}
	}
}

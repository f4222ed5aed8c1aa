package ack

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// sentFrame is a frame in flight.
type sentFrame struct {
	bytes int
	sent  Instant
	tries int
	lost  bool
}

// senderModel is what a Sender should know, in a map.
type senderModel struct {
	t        testing.TB
	s        Sender
	cfg      SenderConfig
	ctl      *recorder
	now      Instant
	flight   map[frame.Seq]*sentFrame
	order    []frame.Seq       // in flight and acknowledged, in the order of their ids
	table    map[int]frame.Seq // last id with messages, as the peer has it
	copies   map[int]Instant   // until when copies of that may arrive
	alone    frame.Seq
	isAlone  bool
	aloneAt  Wide
	next     frame.Seq
	progress Instant
	sent     int // frames so far: the length of a frame, which names it
	dead     bool
	scratch  []frame.Seq
	budget   int // of acknowledgement-only frames, for time
	named    map[int]*sentFrame
}

// oldest returns the oldest frame in flight.
func (m *senderModel) oldest() (frame.Seq, bool) {
	for len(m.order) > 0 && m.flight[m.order[0]] == nil {
		m.order = m.order[1:]
	}
	if len(m.order) == 0 {
		return m.next, false
	}
	return m.order[0], true
}

// take verifies an id that was never used.
func (m *senderModel) take(q frame.Seq) {
	if m.cfg.SlotTable == 0 {
		if q != m.next {
			m.t.Fatalf("id %d, want %d", q, m.next)
		}
	} else {
		if m.full() {
			m.t.Fatalf("id %d, when copies of all ids of the table may arrive", q)
		}
		for m.table[int(m.next)%m.cfg.SlotTable] == m.next || m.waits(m.next) {
			m.next++
		}
		if q != m.next {
			m.t.Fatalf("id %d, want %d", q, m.next)
		}
	}
	m.next = q + 1
	if oldest, ok := m.oldest(); ok && q.Diff(oldest) >= m.cfg.Span {
		m.t.Fatalf("id %d is %d after the oldest, the span is %d", q, q.Diff(oldest), m.cfg.Span)
	}
}

// waits reports whether a copy of the id in the place of q may arrive.
func (m *senderModel) waits(q frame.Seq) bool { return m.copies[int(q)%m.cfg.SlotTable] > m.now }

// full reports whether all places of the table wait for copies.
func (m *senderModel) full() bool {
	for i := range m.cfg.SlotTable {
		if !m.waits(frame.Seq(i)) {
			return false
		}
	}
	return m.cfg.SlotTable > 0
}

func (m *senderModel) send() bool {
	if l := m.s.Limit(m.now, m.sent+1); l != Open {
		if until := m.s.PacedUntil(m.now, m.sent+1); (l == Paced || m.full()) != (until > m.now) {
			m.t.Fatalf("limit %v, paced for %v", l, until.Sub(m.now))
		}
		return false
	}
	m.sent++
	if len(m.flight) == 0 {
		m.progress = m.now
	}
	q := m.s.Track(m.now, m.sent)
	m.take(q)
	if m.flight[q] != nil {
		m.t.Fatalf("id %d is in flight and was used again", q)
	}
	m.flight[q] = &sentFrame{bytes: m.sent, sent: m.now, tries: 1}
	m.named[m.sent] = m.flight[q]
	m.order = append(m.order, q)
	m.table[int(q)%max(1, m.cfg.SlotTable)] = q
	if len(m.flight) > m.cfg.Window {
		m.t.Fatalf("%d frames in flight, the window is %d", len(m.flight), m.cfg.Window)
	}
	return true
}

func (m *senderModel) sendAlone() {
	if m.budget--; m.budget < 0 {
		return
	}
	q, ok := m.s.Alone(m.now)
	switch {
	case !ok:
		if _, flying := m.oldest(); !flying && !m.full() {
			m.t.Fatal("no id for an acknowledgement while nothing is in flight")
		}
		if !m.cfg.FreshAlone && m.isAlone && m.s.NextWide().Diff(m.aloneAt) < servesAgain {
			m.t.Fatal("no id for an acknowledgement, though one may serve again")
		}
	case q == m.s.Next().Add(-1) && q != m.next.Add(-1):
		m.take(q)
		m.alone, m.aloneAt, m.isAlone = q, m.s.NextWide()-1, true
	case m.cfg.FreshAlone || !m.isAlone || q != m.alone:
		m.t.Fatalf("id %d serves again; the last one was %d, %v", q, m.alone, m.isAlone)
	}
}

// ack applies a range, and verifies what it does.
func (m *senderModel) ack(r Range) {
	var refuse, sure, far bool
	want := make(map[frame.Seq]bool)
	start, count := r.Start, int(r.Count)
	if m.cfg.Cumulative {
		end := r.Start.Add(count)
		if oldest, ok := m.oldest(); ok && end.Diff(oldest) > 0 && end.Diff(m.next) <= 0 {
			start, count = oldest, end.Diff(oldest)
		}
	}
	for i := range count {
		q := start.Add(i)
		switch d := q.Diff(m.next); {
		case d >= 0 && d < MaxHistory:
			refuse = true
		case d < 0 && d > -MaxHistory:
			sure = true
			if m.flight[q] != nil {
				want[q] = true
			}
		default:
			far = true
		}
	}
	minimum, before := m.s.rtt.Min(m.now), m.s.InFlight()
	oldest, _ := m.oldest()
	acked, ok := m.s.AppendAcked(m.scratch[:0], m.now, r)
	m.scratch = acked
	if refuse && ok && !m.cfg.Cumulative {
		m.t.Fatalf("range %v was believed; ids from %d on were never used", r, m.next)
	}
	if d := r.Start.Add(int(r.Count)).Diff(m.next); m.cfg.Cumulative && ok && d > 0 && d < MaxHistory {
		m.t.Fatalf("range %v was believed; ids from %d on were never used", r, m.next)
	}
	if sure && !refuse && !far && !ok {
		m.t.Fatalf("range %v was refused; next id is %d", r, m.next)
	}
	if !ok && len(acked) > 0 {
		m.t.Fatalf("range %v was refused and acknowledged %v", r, acked)
	}
	for _, q := range acked {
		if !want[q] {
			m.t.Fatalf("range %v acknowledged %d, which is not in flight or not in it", r, q)
		}
		delete(want, q)
		m.leave(q)
	}
	if ok {
		for q := range want {
			f := m.flight[q]
			if f.lost || f.tries != 1 || 2*m.now.Sub(f.sent) > minimum || m.s.quartered >= wrapsFast {
				m.t.Fatalf("range %v did not acknowledge %d, sent %d times, %v ago; least round trip %v",
					r, q, f.tries, m.now.Sub(f.sent), minimum)
			}
		}
	}
	if m.s.InFlight() != before-len(acked) {
		m.t.Fatalf("%d in flight after %d of %d were acknowledged", m.s.InFlight(), len(acked), before)
	}
	m.moved(oldest)
}

func (m *senderModel) leave(q frame.Seq) {
	delete(m.named, m.flight[q].bytes)
	delete(m.flight, q)
}

func (m *senderModel) moved(before frame.Seq) {
	if oldest, _ := m.oldest(); oldest != before {
		m.progress = m.now
	}
}

// noteLost takes over which frames the Sender gave up for lost.
func (m *senderModel) noteLost() {
	for _, list := range [][]int{m.ctl.lost, m.ctl.probed} {
		for _, bytes := range list {
			f := m.named[bytes]
			if f == nil || f.lost {
				m.t.Fatalf("frame %d is lost, and was not in flight", bytes)
			}
			f.lost = true
		}
	}
	m.ctl.lost, m.ctl.probed = m.ctl.lost[:0], m.ctl.probed[:0]
}

func (m *senderModel) resend(n int) {
	for ; n > 0; n-- {
		q, ok := m.s.NextLost(m.now)
		if !ok {
			return
		}
		f := m.flight[q]
		if f == nil || !f.lost {
			m.t.Fatalf("id %d is to be sent again and is not lost", q)
		}
		m.s.Resend(m.now, q)
		if m.cfg.SlotTable > 0 {
			m.copies[int(q)%m.cfg.SlotTable] = m.now.Add(lateCopy)
		}
		f.lost, f.sent = false, m.now
		f.tries++
	}
}

func (m *senderModel) expire() {
	lost := m.s.Lost()
	e := m.s.Expire(m.now, m.now)
	switch {
	case e == Dead:
		if idle := m.now.Sub(m.progress); idle < m.cfg.GiveUp {
			m.t.Fatalf("dead after %v without progress, want %v", idle, m.cfg.GiveUp)
		}
		m.dead = true
		return
	case e == Probe && m.s.Lost() == lost:
		m.t.Fatal("a timeout that lost nothing")
	}
	if at, armed := m.s.Deadline(); armed && at <= m.now {
		m.t.Fatalf("deadline %v ago, after Expire", m.now.Sub(at))
	}
}

// advance lets time pass with Expire called in time.
func (m *senderModel) advance(d time.Duration) {
	end := m.now.Add(d)
	for !m.dead {
		at, armed := m.s.Deadline()
		if !armed || at > end {
			break
		}
		m.now = max(m.now, at)
		m.expire()
		m.noteLost()
		m.resend(2)
	}
	m.now = max(m.now, end)
}

func (m *senderModel) verify() {
	m.noteLost()
	checkSender(m.t, &m.s)
	lost, sent := 0, 0
	for q, f := range m.flight {
		sl := m.s.slot(q)
		if want := map[bool]slotState{false: slotSent, true: slotLost}[f.lost]; sl.state != want || int(sl.bytes) != f.bytes {
			m.t.Fatalf("id %d: state %d with %d bytes, want %d with %d", q, sl.state, sl.bytes, want, f.bytes)
		}
		n := 1
		if f.lost {
			lost++
			n = 0
		} else {
			sent++
		}
		if m.ctl.onWire[f.bytes] != n {
			m.t.Fatalf("the controller counts frame %d on the wire %d times, want %d", f.bytes, m.ctl.onWire[f.bytes], n)
		}
	}
	if m.s.Lost() != lost || m.s.InFlight() != lost+sent {
		m.t.Fatalf("%d in flight, %d lost; want %d and %d", m.s.InFlight(), m.s.Lost(), lost+sent, lost)
	}
	if oldest, ok := m.oldest(); ok && m.s.Oldest() != oldest {
		m.t.Fatalf("oldest id %d, want %d", m.s.Oldest(), oldest)
	}
}

// runSender runs a script of frames, acknowledgements and time.
func runSender(t testing.TB, b []byte) {
	s := &script{b}
	kind, more := s.byte(), s.byte()
	m := &senderModel{
		t: t, ctl: &recorder{t: t, onWire: make(map[int]int)}, flight: make(map[frame.Seq]*sentFrame),
		table: make(map[int]frame.Seq), copies: make(map[int]Instant), now: Instant(time.Hour), named: make(map[int]*sentFrame), budget: 200000,
	}
	m.cfg = testConfig()
	m.cfg.Window = []int{1, 2, 3, 8, 32, 64, 255, 1024}[kind&7]
	m.cfg.Span = min(m.cfg.Window*[]int{1, 2, 4, 100}[kind>>3&3], MaxHistory-1)
	m.cfg.Cumulative = kind&32 != 0
	m.cfg.FreshAlone = kind&64 != 0
	if kind&128 != 0 {
		m.cfg.SlotTable = []int{8, 256}[more&1]
		m.cfg.Window, m.cfg.Span = min(m.cfg.Window, m.cfg.SlotTable-1), min(m.cfg.Span, m.cfg.SlotTable-1)
	}
	if more&2 != 0 {
		m.ctl.window = 20
	}
	if more&16 != 0 {
		m.cfg.MinRTO, m.cfg.AckDelay = ms/10, 0
	}
	m.cfg.OneRun = more&32 != 0
	if more&64 != 0 {
		m.cfg.MaxBetween = m.cfg.MaxRTO / 8
	}
	m.cfg.First = Wide(s.uint16())
	m.next, m.progress = m.cfg.First.Seq(), m.now
	m.s.Init(m.now, m.cfg, m.ctl)
	for steps := 0; s.more() && !m.dead && steps < 600; steps++ {
		op := s.byte()
		arg := op >> 4
		oldest, _ := m.oldest()
		switch op & 15 {
		case 0, 1:
			for i := 0; i <= arg && m.send(); i++ {
			}
		case 2: // a full window
			for i := 0; i < 70 && m.send(); i++ {
			}
		case 3:
			for range arg + 1 {
				m.sendAlone()
			}
		case 4: // in order
			m.ack(Range{oldest, uint8(arg)})
		case 5: // with a gap
			m.ack(Range{oldest.Add(1 + arg&3), uint8(arg >> 2)})
		case 6: // the newest
			m.ack(Range{m.next.Add(-1 - arg), uint8(arg + 1)})
		case 7: // around
			m.ack(Range{oldest.Add(s.byte() - 128), uint8(s.byte())})
		case 8: // anything
			m.ack(Range{frame.Seq(s.uint16()), uint8(s.byte())})
		case 9: // all, one by one
			for q := oldest; q != m.next && arg != 0; q++ {
				m.ack(Range{q, 1})
			}
		case 10:
			m.s.EndBatch(m.now)
		case 11:
			m.advance(time.Duration(1) << (2 * arg)) // to a second
		case 12: // late, as after a stop of the process
			if arg > 12 {
				m.now = m.now.Add(time.Duration(arg) * sec)
			}
			if _, armed := m.s.Deadline(); armed || arg < 3 {
				m.expire()
			}
		case 13:
			m.resend(arg + 1)
		case 14:
			if f := m.flight[oldest.Add(arg)]; f != nil {
				m.s.Settle(m.now, oldest.Add(arg))
				m.leave(oldest.Add(arg))
				m.moved(oldest)
			}
		case 15: // ids pass
			if len(m.flight) == 0 {
				for range 1 << arg {
					m.sendAlone()
				}
			} else {
				m.advance(time.Duration(arg) * 10 * ms)
			}
		}
		m.verify()
	}
	// Every frame that is left is sent again and acknowledged once.
	for round := 0; len(m.flight) > 0 && !m.dead; round++ {
		if round > 40 {
			t.Fatalf("%d frames are never acknowledged", len(m.flight))
		}
		m.advance(30 * ms)
		m.resend(len(m.flight))
		m.now = m.now.Add(30 * ms)
		oldest, _ := m.oldest()
		for q := oldest; q != m.next; q++ {
			if m.flight[q] != nil {
				m.ack(Range{q, 1})
			}
		}
		m.s.EndBatch(m.now)
		m.verify()
	}
}

func FuzzSender(f *testing.F) {
	for _, b := range [][]byte{
		{},
		{7 | 1<<3, 0, 1, 0, 0xf0, 0xab, 0x65, 0x0a, 0x0d, 0x94, 0x0a},
		{4, 0, 0xfa, 0xff, 2, 0x33, 0x96, 0x0a, 0xfd, 0xbb, 0xfd, 0xf9, 0x10, 0xf9},
		{4 | 32 | 64 | 3<<3, 0, 0xf0, 0xff, 2, 0xbb, 0x34, 0xcb, 0xfd, 0x03, 0x15, 0x36, 0x0a},
		{3 | 64 | 128 | 3<<3, 0, 1, 0, 0x40, 0xf9, 0xff, 0xff, 0x70, 0xf3, 0x46, 0x0c, 0xfd, 0xf9, 0xff, 0xf0},
		{6 | 64 | 128 | 3<<3, 1, 1, 0, 2, 0xf9, 0xff, 0xff, 2, 0x14, 2, 0xf3, 0xf3},
		{5, 2, 0xff, 0x7f, 2, 0x07, 0x80, 0xff, 0x08, 0xf8, 0xff, 0xff, 0xbb, 0x1d, 0x9b, 0xbb, 0xfd},
		{7 | 2<<3, 0, 0, 0xff, 2, 2, 2, 0xbb, 0xf9, 2, 2, 2, 0xbb, 0xf9, 2, 0x8b, 0xf9, 0x2b, 0xf9},
		{2, 0, 5, 0, 0xf0, 0xbc, 0xec, 0xfc, 0x1e, 0xfb, 0xfb, 0xfb, 0xfb, 0xfb, 0xfb},
	} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) { runSender(t, b) })
}

func TestSenderRandomScripts(t *testing.T) {
	randomScripts(t, 4000, 300, runSender)
}

package ack

import (
	"math"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// Limit says why a new frame may not be sent, or that it may.
type Limit uint8

const (
	Open       Limit = iota
	WindowFull       // too many ids since the oldest unacknowledged frame
	Congested        // the controller's window is used up
	Paced            // the controller wants to wait
)

func (l Limit) String() string {
	return [...]string{"open", "window full", "congested", "paced"}[l]
}

const (
	// reorderThreshold is how many later frames must be acknowledged before a
	// frame counts as lost (RFC 9002 section 6.1.1); it grows where the network
	// proves to reorder more, up to maxReorder, half of the default window.
	reorderThreshold = 3
	maxReorder       = 512
	// probes is how many frames a timeout sends again: two, as a probe may be
	// lost too (RFC 9002 section 6.2.4). Their acknowledgement tells the rest.
	probes = 2
	// wrapsFast is below which time for a quarter of the ids an acknowledgement
	// can be confused with one for the same id a wrap before.
	wrapsFast = time.Second / 4
	// unmeasured is how long without a sure sample makes an unsure one welcome.
	// Arbitrary.
	unmeasured = time.Second
)

// SenderConfig says what the peer's receiver can take.
type SenderConfig struct {
	First      Wide          // first id to be used
	Window     int           // frames that may wait for acknowledgement
	Span       int           // ids from the oldest unacknowledged frame on, of any kind; less than the peer's history
	MinRTO     time.Duration // least time before an unacknowledged frame is sent again
	MaxRTO     time.Duration // most time between tries
	AckDelay   time.Duration // how long the peer may hold back an acknowledgement
	GiveUp     time.Duration // no progress for this long: the peer is dead
	Cumulative bool          // AckStart acknowledges everything before it (quirk F2)
	FreshAlone bool          // acknowledgement-only ids are never used again (quirks D2-3, L4)
	// SlotTable is the size of the peer's duplicate table where it looks ids up
	// by remainder and frames without messages leave no trace: an id that was
	// the last one with messages in its place is skipped.
	SlotTable int
}

type slotState uint8

const (
	slotFree slotState = iota
	slotSent
	slotLost
)

// slot is what is known of one id in flight. Slots form two lists, of the
// frames on the wire in the order they were last sent, and of the lost ones.
type slot struct {
	sentAt     Instant
	order      uint32 // counts every sending of a tracked frame
	bytes      uint32
	prev, next frame.Seq
	tries      uint16
	state      slotState
}

type slotList struct {
	head, tail frame.Seq
	n          int
}

// Sender keeps the ids of one peer's frames: which are in flight, acknowledged
// or lost, and when something must happen. It lives under the connection's lock.
type Sender struct {
	cfg     SenderConfig
	ctl     Controller
	rtt     RTT
	slots   []slot // by id modulo a power of two; grows up to Span
	next    frame.Seq
	wide    Wide      // next, in 32 bits
	una     frame.Seq // oldest unacknowledged id, or next
	sent    slotList
	lost    slotList
	flight  int // bytes in sent
	order   uint32
	reached uint32 // highest order known to have arrived
	resent  uint32 // order of the last frame that was sent again
	reorder uint32

	measured Instant       // when the round trip was last sampled
	fresh    time.Duration // the sample of the range being applied

	progress Instant // when una last moved, or the first frame went out
	probed   Instant // when the last timeout was acted on
	backoff  uint
	probing  int // lost frames that leave after a timeout, however full the wire seems (RFC 9002 section 7.5)

	alone     frame.Seq // last acknowledgement-only id
	aloneUsed bool
	tracked   []frame.Seq // last id with messages, by id modulo SlotTable
	quarter   Instant     // when the ids last passed a quarter of their space
	quartered time.Duration
	looked    Instant // when Expire was last called
}

// Init starts the ids of a peer to whom nothing was sent.
func (s *Sender) Init(now Instant, cfg SenderConfig, ctl Controller) {
	clear(s.slots)
	*s = Sender{
		cfg: cfg, ctl: ctl, slots: s.slots, wide: cfg.First, next: cfg.First.Seq(), una: cfg.First.Seq(),
		order: 1, reorder: reorderThreshold, progress: now, quarter: math.MinInt64 / 2, measured: now,
		quartered: math.MaxInt64, looked: now,
	}
	if cfg.SlotTable > 0 {
		s.tracked = make([]frame.Seq, cfg.SlotTable)
		for i := range s.tracked {
			s.tracked[i] = frame.Seq(i + 1) // belongs to another place: matches nothing
		}
		s.tracked[0] = 0 // there such a table looks as if id 0 had been used (quirk D1-3)
	}
}

func (s *Sender) slot(q frame.Seq) *slot { return &s.slots[int(q)&(len(s.slots)-1)] }

// Capacity returns the number of slots: an owner may keep things by id modulo
// it, as long as it follows its growth.
func (s *Sender) Capacity() int { return len(s.slots) }

// Next returns the id that the next new frame will get.
func (s *Sender) Next() frame.Seq { return s.next }

// NextWide returns Next in 32 bits.
func (s *Sender) NextWide() Wide { return s.wide }

// Wide returns an id that was used lately in 32 bits.
func (s *Sender) Wide(q frame.Seq) Wide { return s.wide.Near(q) }

// Oldest returns the oldest unacknowledged id, or Next if there is none.
func (s *Sender) Oldest() frame.Seq { return s.una }

// InFlight returns how many frames wait for acknowledgement, lost ones included.
func (s *Sender) InFlight() int { return s.sent.n + s.lost.n }

// RTT returns the round-trip estimate.
func (s *Sender) RTT() *RTT { return &s.rtt }

// Limit reports whether a new frame of that many bytes may leave now.
func (s *Sender) Limit(now Instant, bytes int) Limit {
	if s.InFlight() >= s.cfg.Window || s.spent() {
		return WindowFull
	}
	return s.wire(now, bytes)
}

// spent reports whether the next id, behind those that are left out, would be
// beyond the span.
func (s *Sender) spent() bool {
	if s.InFlight() == 0 {
		return false
	}
	q := s.next
	for s.leftOut(q) {
		q++
	}
	return q.Diff(s.una) >= s.cfg.Span
}

// leftOut reports whether q would look known to the peer.
func (s *Sender) leftOut(q frame.Seq) bool {
	return s.tracked != nil && s.tracked[int(q)%len(s.tracked)] == q
}

func (s *Sender) wire(now Instant, bytes int) Limit {
	switch {
	case s.flight > 0 && s.flight >= s.ctl.Window():
		return Congested
	case s.ctl.NextSend(now, bytes) > now:
		return Paced
	}
	return Open
}

// PacedUntil returns when the controller lets a frame of that size go.
func (s *Sender) PacedUntil(now Instant, bytes int) Instant { return s.ctl.NextSend(now, bytes) }

// Track takes the next id for a frame that must be acknowledged.
func (s *Sender) Track(now Instant, bytes int) frame.Seq {
	q := s.take(now)
	if s.InFlight() == 0 {
		s.una = q
		s.progress, s.looked = now, now
	}
	if s.next.Diff(s.una) > len(s.slots) {
		s.grow()
	}
	*s.slot(q) = slot{bytes: uint32(bytes)}
	if s.tracked != nil {
		s.tracked[int(q)%len(s.tracked)] = q
	}
	s.transmit(now, q)
	return q
}

// Alone takes an id for a frame that nobody acknowledges. When the span is used
// up, the last such id serves again: a receiver has nothing to remember of these
// frames. Not ok: this peer takes no second use, and the acknowledgement must
// wait for a frame to ride on.
func (s *Sender) Alone(now Instant) (q frame.Seq, ok bool) {
	if s.spent() {
		return s.alone, !s.cfg.FreshAlone && s.aloneUsed
	}
	q = s.take(now)
	s.alone, s.aloneUsed = q, true
	if s.InFlight() == 0 {
		s.una = s.next
		return q, true
	}
	if s.next.Diff(s.una) > len(s.slots) {
		s.grow()
	}
	*s.slot(q) = slot{}
	return q, true
}

func (s *Sender) take(now Instant) frame.Seq {
	for s.leftOut(s.next) {
		s.skip()
	}
	q := s.next
	s.next++
	s.wide++
	if q&(1<<14-1) == 0 {
		s.quartered = now.Sub(s.quarter)
		s.quarter = now
	}
	return q
}

// skip leaves out the next id.
func (s *Sender) skip() {
	q := s.next
	s.next++
	s.wide++
	switch {
	case s.InFlight() == 0:
		s.una = s.next
	case s.next.Diff(s.una) > len(s.slots):
		s.grow()
		fallthrough
	default:
		*s.slot(q) = slot{}
	}
}

func (s *Sender) grow() {
	n := max(16, 2*len(s.slots))
	for n < s.next.Diff(s.una) {
		n *= 2
	}
	old := s.slots
	s.slots = make([]slot, n)
	for q := s.una; q != s.next.Add(-1) && len(old) > 0; q++ {
		*s.slot(q) = old[int(q)&(len(old)-1)]
	}
}

func (s *Sender) transmit(now Instant, q frame.Seq) {
	sl := s.slot(q)
	sl.sentAt, sl.order, sl.state = now, s.order, slotSent
	s.order++
	sl.tries++
	s.push(&s.sent, q)
	s.flight += int(sl.bytes)
	s.ctl.OnSent(now, int(sl.bytes))
}

// NextLost returns the lost frame to be sent again first, if there is one and
// it may leave.
func (s *Sender) NextLost(now Instant) (q frame.Seq, ok bool) {
	if s.lost.n == 0 {
		return 0, false
	}
	q = s.lost.head
	limit := s.wire(now, int(s.slot(q).bytes))
	return q, limit == Open || limit == Congested && s.probing > 0
}

// Lost returns how many frames wait to be sent again.
func (s *Sender) Lost() int { return s.lost.n }

// Resend notes that a lost frame is sent again, under its old id (DGRDMA-026).
func (s *Sender) Resend(now Instant, q frame.Seq) {
	s.remove(&s.lost, q)
	s.probing = max(s.probing-1, 0)
	s.resent = s.order
	s.transmit(now, q)
}

// AppendAcked applies what a frame's header acknowledges and appends the ids
// that are acknowledged by it for the first time. Not ok: the range names ids
// that were never used; none of it is believed.
func (s *Sender) AppendAcked(dst []frame.Seq, now Instant, r Range) (acked []frame.Seq, ok bool) {
	if r.Count == 0 && !s.cfg.Cumulative {
		return dst, true
	}
	// Places from the oldest id on: ids can be compared only over half their space.
	from := r.Start.Diff(s.una)
	to := from + int(r.Count)
	if to > s.next.Diff(s.una) {
		return dst, false
	}
	if from < 0 || s.cfg.Cumulative {
		from = 0
	}
	first := s.una
	minimum := s.rtt.Min(now)
	s.fresh = 0
	for i := from; i < to && s.InFlight() > 0; i++ {
		if q := first.Add(i); s.settle(now, q, minimum) {
			dst = append(dst, q)
		}
	}
	if s.fresh > 0 {
		// Only the latest frame is a measure: older ones may be acknowledged
		// late because an acknowledgement was lost.
		s.rtt.Sample(now, s.fresh)
		s.measured = now
	}
	s.advance(now)
	return dst, true
}

func (s *Sender) settle(now Instant, q frame.Seq, minimum time.Duration) bool {
	sl := s.slot(q)
	age := now.Sub(sl.sentAt)
	rtt := time.Duration(-1)
	switch {
	case sl.state == slotFree:
		return false
	case sl.state == slotSent && sl.tries == 1:
		if age < minimum/2 && s.quartered < wrapsFast {
			// Faster than the path ever was: this acknowledges an earlier use
			// of the id. If it is true after all, it will come again, and the
			// path has become faster.
			s.rtt.Faster(age)
			return false
		}
		latest := s.arrived(sl.order)
		if s.cfg.Cumulative && int32(sl.order-s.resent) < 0 {
			break // it may have waited there for a frame that was sent again
		}
		rtt = age
		if latest {
			s.fresh = max(age, 1)
		}
	case sl.state == slotLost || age < minimum/2:
		// The first copy had only been slow: give reordering more room.
		s.reorder = min(2*s.reorder, maxReorder)
	case age >= minimum-minimum/8:
		s.arrived(sl.order)
		// Which copy this acknowledges is unknown (Karn). But a path that
		// became slower than the timeout would never be measured again.
		if age > s.rtt.smoothed && now.Sub(s.measured) > unmeasured {
			s.fresh = max(age, 1)
		}
	}
	if sl.state == slotSent {
		if sl.tries == 1 || now.Sub(s.measured) <= unmeasured {
			s.backoff = 0 // else the timeout is perhaps too short, and stays long (Karn)
		}
		s.remove(&s.sent, q)
		s.flight -= int(sl.bytes)
		s.ctl.OnAcked(now, int(sl.bytes), rtt)
	} else { // the controller knows it as lost
		s.remove(&s.lost, q)
	}
	sl.state = slotFree
	s.probing = 0 // the peer was heard
	return true
}

// arrived notes that a sending reached the peer, and reports whether it is the
// latest one that did.
func (s *Sender) arrived(order uint32) bool {
	if int32(order-s.reached) <= 0 {
		return false
	}
	s.reached = order
	return true
}

func (s *Sender) advance(now Instant) {
	before := s.una
	if s.InFlight() == 0 {
		s.una = s.next
	}
	for s.una != s.next && s.slot(s.una).state == slotFree {
		s.una++
	}
	if s.una != before {
		s.progress = now
	}
}

// Settle takes a frame for delivered without acknowledgement, for peers that
// never send any (quirk D2-2). It reports whether the frame still waited for one.
func (s *Sender) Settle(now Instant, q frame.Seq) bool {
	sl := s.slot(q)
	switch sl.state {
	case slotFree:
		return false
	case slotSent:
		s.remove(&s.sent, q)
		s.flight -= int(sl.bytes)
		s.ctl.OnAcked(now, int(sl.bytes), -1)
	default: // the controller knows it as lost
		s.remove(&s.lost, q)
	}
	sl.state = slotFree
	s.advance(now)
	return true
}

// EndBatch is called when all acknowledgements of a batch were applied: it
// looks for frames that were overtaken, and lets the controller act.
func (s *Sender) EndBatch(now Instant) {
	s.findLost(now)
	s.ctl.EndBatch(now)
}

func (s *Sender) findLost(now Instant) {
	for s.sent.n > 0 {
		sl := s.slot(s.sent.head)
		behind := int32(s.reached - sl.order)
		if behind <= 0 || (uint32(behind) < s.reorder && now.Sub(sl.sentAt) < s.rtt.overdue()) {
			return
		}
		s.lose(now, s.sent.head, false)
	}
}

func (s *Sender) lose(now Instant, q frame.Seq, timeout bool) {
	sl := s.slot(q)
	s.remove(&s.sent, q)
	s.flight -= int(sl.bytes)
	sl.state = slotLost
	s.push(&s.lost, q)
	s.ctl.OnLost(now, int(sl.bytes), timeout)
}

// Expiry says what the passing of time asks for.
type Expiry uint8

const (
	Nothing Expiry = iota
	Probe          // a timeout: the oldest frames are lost, and NextLost offers them
	Dead           // no progress for GiveUp: the peer is gone
)

// Expire acts on what is overdue.
func (s *Sender) Expire(now Instant) Expiry {
	if s.InFlight() == 0 {
		return Nothing
	}
	if gap := now.Sub(s.looked); gap > s.cfg.GiveUp/2 {
		// This process stood still, not the peer: what it sent meanwhile is
		// still to be read.
		s.progress = max(s.progress, now.Add(-s.cfg.GiveUp/2))
	}
	s.looked = now
	if now.Sub(s.progress) >= s.cfg.GiveUp {
		return Dead
	}
	s.findLost(now)
	if s.sent.n == 0 || now < s.timeoutAt() {
		return Nothing
	}
	before := s.lost.n
	s.timedOut(now)
	s.probing = s.lost.n - before
	s.backoff++
	s.probed = now
	s.ctl.EndBatch(now)
	return Probe
}

// timedOut declares frames lost after a timeout.
func (s *Sender) timedOut(now Instant) {
	if !s.cfg.Cumulative {
		// The oldest is always among them: by it the peer is given up.
		n := probes
		if s.slot(s.una).state == slotSent {
			s.lose(now, s.una, true)
			n--
		}
		for ; n > 0 && s.sent.n > 0; n-- {
			s.lose(now, s.sent.head, true)
		}
		return
	}
	// Only the frame such a peer waits for moves it. That is the oldest, or a
	// later one if an acknowledgement was lost, and nothing tells which: from
	// the oldest on, more with every timeout.
	n := probes << min(s.backoff, 8)
	for q := s.una; q != s.next && n > 0; q++ {
		if s.slot(q).state == slotSent {
			s.lose(now, q, true)
			n--
		}
	}
}

// Timeouts returns how many timeouts passed in a row.
func (s *Sender) Timeouts() int { return int(s.backoff) }

func (s *Sender) timeoutAt() Instant {
	rto := s.rtt.timeout(s.cfg.MinRTO, s.cfg.AckDelay)
	for i := uint(0); i < s.backoff && rto < s.cfg.MaxRTO; i++ {
		rto *= 2
	}
	from := s.slot(s.sent.head).sentAt
	if s.backoff > 0 {
		from = max(from, s.probed)
	}
	return from.Add(min(rto, s.cfg.MaxRTO))
}

// Deadline returns when Expire wants to be called.
func (s *Sender) Deadline() (t Instant, armed bool) {
	if s.InFlight() == 0 {
		return 0, false
	}
	// It is called now and then in any case, so that the time between two calls
	// tells whether this process stood still.
	t = min(s.progress.Add(s.cfg.GiveUp), s.looked.Add(s.cfg.GiveUp/4))
	if s.sent.n > 0 {
		t = min(t, s.timeoutAt())
		if head := s.slot(s.sent.head); int32(s.reached-head.order) > 0 {
			t = min(t, head.sentAt.Add(s.rtt.overdue()))
		}
	}
	return t, true
}

func (s *Sender) push(l *slotList, q frame.Seq) {
	if l.n == 0 {
		l.head = q
	} else {
		s.slot(l.tail).next = q
		s.slot(q).prev = l.tail
	}
	l.tail = q
	l.n++
}

func (s *Sender) remove(l *slotList, q frame.Seq) {
	sl := s.slot(q)
	if q == l.head {
		l.head = sl.next
	} else {
		s.slot(sl.prev).next = sl.next
	}
	if q == l.tail {
		l.tail = sl.prev
	} else {
		s.slot(sl.next).prev = sl.prev
	}
	l.n--
}

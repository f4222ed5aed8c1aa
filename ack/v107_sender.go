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
	// reorderKeeps is how many times in a row frames have to be lost, and none of them
	// late, for that to be halved again (RFC 8985 section 6.2).
	reorderKeeps = 16
	// probes is how many frames a timeout sends again to a peer with cumulative
	// acknowledgements: two, as a probe may be lost too (RFC 9002 section 6.2.4).
	probes = 2
	// probesMore is after how many timeouts in a row more than one empty frame is beyond the
	// window. Arbitrary; without that, a window whose acknowledgements were all lost waits for
	// ever.
	probesMore = 3
	// servesAgain is how many ids later one serves again: later than half of them it
	// seems to be ahead, and a C++ driver ends at one that a message had meanwhile (quirk
	// D1-4).
	servesAgain = 1 << 15
	// wrapsFast is below which time for a quarter of the ids an acknowledgement
	// can be confused with one for the same id a wrap before.
	wrapsFast = time.Second / 4
	// mostUnmeasured is how many ranges in a row a peer with cumulative acknowledgements may leave
	// without a measure before it is waited for as long as they took. That doubles as long as it
	// is in vain, mostVain times at most. Chosen: with more, more copies leave for nothing when a
	// path has become longer; with less, a card that has room for few frames waits more.
	mostUnmeasured = 12
	mostVain       = 3
)

// SenderConfig says what the peer's receiver can take.
type SenderConfig struct {
	First      Wide          // first id to be used
	Window     int           // frames that may wait for acknowledgement
	Span       int           // ids from the oldest unacknowledged frame on, of any kind; less than the peer's history
	MinRTO     time.Duration // least time before an unacknowledged frame is sent again
	MaxRTO     time.Duration // most time between tries
	MaxBetween time.Duration // most time between tries, or with OneRun while round trips are shorter; 0: MaxRTO
	AckDelay   time.Duration // how long the peer may hold back an acknowledgement
	GiveUp     time.Duration // nothing acknowledged for this long, or the oldest frame not for twice as long: the peer is dead
	Cumulative bool          // AckStart acknowledges everything before it (quirk F2)
	OneRun     bool          // it queues what it acknowledges, copies too, and one frame takes one run of that along (quirk D1-19)
	FreshAlone bool          // acknowledgement-only ids are never used again (quirks D2-3, L4)
	// SlotTable is the size of the peer's duplicate table where it looks ids up
	// by remainder and frames without messages leave no trace: ids that this
	// would confuse are left out.
	SlotTable int
}

// Sender keeps the ids of one peer's frames: which are in flight, acknowledged
// or lost, and when something must happen. It lives under the connection's lock.
//
// Such a peer does not tell which copy of a frame it acknowledges. So what was sent again is no measure (Karn's rule),
// and the timeout that was doubled for it stays until there is one.
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
	copied  uint32 // highest order of copies that were acknowledged since the last timeout and since a frame that was sent once was; 0: none
	sure    bool   // of a peer with cumulative acknowledgements: one of those seems to have arrived
	reorder uint32
	losses  int // how often frames were lost since one of them was late, or reorder changed

	fresh time.Duration // the sample of the range being applied
	// Of the frames in it that were sent again, the least time since they were, and since they
	// were sent first.
	copyAge, firstAge time.Duration
	allLate           bool // it acknowledges nothing but what was sent again, and late

	progress Instant // when una last moved, or the first frame went out
	heard    Instant // when a frame was last acknowledged
	lived    Instant // when a frame of the peer last came, whatever it said
	probed   Instant // when the last timeout was acted on
	timeouts uint    // in a row, since something was acknowledged
	doubled  uint    // how often the timeout stays doubled until there is a measure
	probing  int     // lost frames that leave after a timeout, however full the wire seems (RFC 9002 section 7.5)

	// Of a peer with cumulative acknowledgements.
	atMost     time.Duration // how long a round trip may take, by frames that were sent again since one was measured; 0: by none
	unmeasured uint16        // ranges without a measure since the last one, or since atMost was set
	least      time.Duration // how long ago the first copies in those were sent, at least
	waits      uint32        // order from which on frames left when atMost was set
	vain       uint8         // how often in a row that was in vain: the path had not become longer

	alone     Wide // last acknowledgement-only id
	aloneUsed bool
	tracked   []place // the peer's table, by id modulo SlotTable
	quarter   Instant // when the ids last passed a quarter of their space
	quartered time.Duration
	looked    Instant // when Expire was last called
}

// Init starts the ids of a peer to whom nothing was sent.
func (s *Sender) Init(now Instant, cfg SenderConfig, ctl Controller) {
	*s = Sender{
		cfg: cfg, ctl: ctl, slots: s.slots, wide: cfg.First, next: cfg.First.Seq(), una: cfg.First.Seq(),
		order: 1, reorder: reorderThreshold, progress: now, quarter: math.MinInt64 / 2,
		quartered: math.MaxInt64, looked: now,
	}
	s.initTable()
}

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

// Bytes returns how many bytes are on the wire.
func (s *Sender) Bytes() int { return s.flight }

// Marking reports whether frames are to leave so that they can carry a mark: such a peer would tell of none.
func (s *Sender) Marking() bool { return false }

// Marks returns the state of marks: there are none.
func (s *Sender) Marks() MarkState { return MarksUnused }

// RTT returns the round-trip estimate.
func (s *Sender) RTT() *RTT { return &s.rtt }

// Limit reports whether a new frame of that many bytes may leave now.
func (s *Sender) Limit(now Instant, bytes int) Limit {
	switch q, ok := s.free(now); {
	case s.InFlight() >= s.cfg.Window || s.InFlight() > 0 && q.Diff(s.una) >= s.cfg.Span:
		return WindowFull
	case !ok:
		return Paced
	}
	return s.wire(now, bytes)
}

// AppLimited notes that nothing waits to be sent.
func (s *Sender) AppLimited(now Instant) {
	if s.lost.n == 0 && s.flight < s.ctl.Window() {
		s.ctl.OnAppLimited(now)
	}
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

// PacedUntil returns when the controller lets a frame of that size go, and the
// peer's table has a place for it.
func (s *Sender) PacedUntil(now Instant, bytes int) Instant {
	return max(s.ctl.NextSend(now, bytes), s.freeAt(now))
}

// Track takes the next id for a frame that must be acknowledged.
func (s *Sender) Track(now Instant, bytes int) frame.Seq {
	q := s.take(now)
	if s.InFlight() == 0 {
		s.progress, s.looked = now, now
	}
	if s.next.Diff(s.una) > len(s.slots) {
		s.grow()
	}
	*s.slot(q) = slot{bytes: uint16(bytes)}
	s.occupy(q)
	s.transmit(now, q)
	return q
}

// Alone takes an id for a frame that nobody acknowledges. When the span is used
// up, the last such id serves again: a receiver has nothing to remember of these
// frames. Not ok: this peer takes no second use, or the last one is so old that the id
// may mean a later frame, and the acknowledgement must wait for a frame to ride on.
func (s *Sender) Alone(now Instant) (q frame.Seq, ok bool) {
	if q, ok := s.free(now); !ok || s.InFlight() > 0 && q.Diff(s.una) >= s.cfg.Span {
		return s.alone.Seq(), !s.cfg.FreshAlone && s.aloneUsed && s.wide.Diff(s.alone) < servesAgain
	}
	q = s.take(now)
	s.alone, s.aloneUsed = s.wide-1, true
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
	for q, ok := s.free(now); ok && s.next != q; {
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

func (s *Sender) transmit(now Instant, q frame.Seq) {
	sl := s.slot(q)
	sl.sentAt, sl.order, sl.state = now, s.order, slotSent
	if s.order++; s.order == 0 {
		s.order++ // stands for none
	}
	s.push(&s.sent, q)
	s.flight += int(sl.bytes)
	s.ctl.OnSent(now, sl.order, int(sl.bytes))
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
	s.slot(q).again(now)
	s.probing = max(s.probing-1, 0)
	s.resent = s.order
	s.hold(now, q)
	s.transmit(now, q)
}

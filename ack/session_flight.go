package ack

import (
	"math"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

const (
	// answersKept is of how many frames that were sent again the times are kept when they have been acknowledged: a copy that
	// arrives then tells how late it was. Arbitrary.
	answersKept = 64
	// mostCopies is how many times the oldest frame is sent again to a peer that is heard. With three of four copies lost, or what answers them,
	// one frame of a hundred thousand is. Arbitrary.
	mostCopies = 40
	// heldKeeps is how many times frames have to be lost until one is forgotten that came later than a timeout. Arbitrary.
	heldKeeps = 64
	// noDelay is the least delay of an echo by which nothing can be measured: the frame format tells no longer ones.
	noDelay = frame.LongestDelay * time.Microsecond
)

// FlightConfig says what the peer of a session can take.
type FlightConfig struct {
	Epoch    uint32        // ids begin after it
	Window   int           // frames that may wait for acknowledgement, at most MostAhead
	Far      int           // so many, where the controller says that the path is far; at least Window
	MinRTO   time.Duration // least time before an unacknowledged frame is sent again
	FirstRTO time.Duration // before a round trip is known; 0: the path is a short one
	MaxRTO   time.Duration // most time between tries
	AckDelay time.Duration // how long the peer may hold back an acknowledgement
	AckEvery int           // of how many frames it holds none back
	Random   func() uint32 // chooses which ids are withheld, where the peer cannot know it; nil: none is
	Marks    bool          // the transport sends marks of congestion (ECN), and tells them
	GiveUp   time.Duration // nothing is heard for this long, or the oldest frame was sent mostCopies times and is not acknowledged for twice as long: the peer is dead
}

// Flight has the frames of one session that wait for acknowledgement: which are on the wire and which are lost, and when
// something must happen. It lives under the connection's lock.
//
// Loss is found as by RACK (RFC 8985): a frame is lost when one that left later has arrived, by more than the network
// reorders. An acknowledgement of a session says which copy of a frame arrived last, so that each such
// frame is a measure, and a frame that was sent again for nothing is noticed. A cumulative acknowledgement and ranges never become false: those that come late, or
// twice, change nothing.
type Flight struct {
	cfg    FlightConfig
	window int  // frames that may wait: of cfg
	far    bool // says the controller
	ctl    Controller
	rtt    RTT
	frames []flightFrame // by id modulo a power of two; grows up to Window
	next   uint32
	oldest uint32 // the oldest unacknowledged id, or next
	all    bool   // so many ids were used that all before next count as used
	wire   frameList
	lost   frameList
	bytes  int // on the wire

	order   uint32 // of the next transmission
	reached uint32 // the highest order that is known to have arrived
	// late is how much longer than others a frame may take that arrives after all; 0: the network does not reorder.
	late   time.Duration
	losses int // how often frames were lost since late changed
	held   int // how often frames have to be lost until one is forgotten that came later than a timeout

	withheld withheld
	marks    flightMarks

	answered []flightFrame // frames that were sent again, and acknowledged; nil: there are none
	answers  uint8         // the place of the next one

	sample   time.Duration // of the acknowledgement being applied; 0: none
	least    time.Duration // that a frame and what acknowledged it took; 0: none has come
	heldBack time.Duration // how long the peer held that acknowledgement back, as far as it says
	progress Instant       // when the oldest frame was acknowledged, or the first one left
	heard    Instant       // when something was acknowledged
	lived    Instant       // when a frame of the session last came, whatever it said
	probed   Instant       // when the last timeout was acted on
	looked   Instant       // when Expire was last called
	timeouts uint          // in a row, since something was acknowledged
	probing  int           // lost frames that leave after a timeout, however full the wire seems (RFC 9002 section 7.5)
}

// flightFrame is what is known of one id.
type flightFrame struct {
	id          uint32
	first, last Instant // transmissions
	order       uint32  // of the last one
	bytes       uint16
	copies      uint8 // transmissions after the first one
	state       slotState
	probe       bool // it was sent again after a timeout, or as it is untaken: not because others overtook it
	untaken     bool // see Untaken
	capable     bool // it can carry a mark, and so could each copy of it
	tardy       bool // how late the first transmission was is known
	judged      bool // so it is, or the last transmission arrived before it: when that arrives again it tells nothing
	prev, next  uint32
}

// told returns the copy number of the last transmission.
func (s *flightFrame) told() uint8 { return min(s.copies, frame.MostCopies) }

// Init begins a session. Memory of the one before is kept.
func (f *Flight) Init(now Instant, cfg FlightConfig, ctl Controller) {
	frames := f.frames
	clear(frames)
	*f = Flight{cfg: cfg, window: cfg.Window, ctl: ctl, frames: frames, next: cfg.Epoch + 1, oldest: cfg.Epoch + 1, order: 1, progress: now, looked: now}
	f.withheld.after = f.chance(withholdFirst)
	f.marks.upTo = cfg.Epoch
	f.heedMarks()
}

// Next returns the id that the next new frame gets.
func (f *Flight) Next() uint32 { return f.next }

// Oldest returns the oldest unacknowledged id, or Next if there is none.
func (f *Flight) Oldest() uint32 { return f.oldest }

// Waits reports whether a frame waits for its acknowledgement.
func (f *Flight) Waits(id uint32) bool {
	s := f.frame(id)
	return s.state != slotFree && s.id == id
}

// InFlight returns how many frames wait for acknowledgement, lost ones included, and one that is withheld.
func (f *Flight) InFlight() int { return f.wire.n + f.lost.n + f.withheld.count() }

// Lost returns how many frames wait to be sent again.
func (f *Flight) Lost() int { return f.lost.n }

// Bytes returns how many bytes are on the wire.
func (f *Flight) Bytes() int { return f.bytes }

// RTT returns the round-trip estimate.
func (f *Flight) RTT() *RTT { return &f.rtt }

// Limit reports whether a new frame of that many bytes may leave now. The id is part of it: an id beyond the peer's window is refused there.
func (f *Flight) Limit(now Instant, bytes int) Limit {
	if f.InFlight() > 0 && int(f.next-f.oldest) >= f.window {
		return WindowFull
	}
	return f.room(now, bytes)
}

// AppLimited notes that nothing waits to be sent.
func (f *Flight) AppLimited(now Instant) {
	if f.lost.n == 0 && f.bytes < f.ctl.Window() {
		f.ctl.OnAppLimited(now)
	}
}

func (f *Flight) room(now Instant, bytes int) Limit {
	switch {
	case f.bytes > 0 && f.bytes >= f.ctl.Window():
		return Congested
	case f.ctl.NextSend(now, bytes) > now:
		return Paced
	}
	return Open
}

// PacedUntil returns when the controller lets a frame of that size go.
func (f *Flight) PacedUntil(now Instant, bytes int) Instant { return f.ctl.NextSend(now, bytes) }

// Track takes the next id for a frame.
func (f *Flight) Track(now Instant, bytes int) (id uint32) {
	if f.withholds() {
		f.withhold()
	}
	return f.track(now, bytes)
}

// track takes the next id for a frame, which is not withheld.
func (f *Flight) track(now Instant, bytes int) (id uint32) {
	if f.InFlight() == 0 {
		f.oldest, f.progress, f.looked = f.next, now, now
	}
	id = f.take()
	f.begin(now, id, bytes)
	return id
}

// take takes the next id.
func (f *Flight) take() (id uint32) {
	id = f.next
	f.next++
	if int(f.next-f.oldest) > len(f.frames) {
		f.grow()
	}
	return id
}

// begin puts a frame with that id on the wire for the first time.
func (f *Flight) begin(now Instant, id uint32, bytes int) {
	*f.frame(id) = flightFrame{id: id, first: now, bytes: uint16(bytes)}
	f.transmit(now, id)
}

// TrackRun takes the next ids for frames of that many bytes, no more than most, as long as one of limit bytes may leave. It returns how many.
func (f *Flight) TrackRun(now Instant, limit, bytes, most int) (n int) {
	for ; n < most && f.Limit(now, limit) == Open && !f.withholds(); n++ {
		f.track(now, bytes)
	}
	return n
}

func (f *Flight) transmit(now Instant, id uint32) {
	s := f.frame(id)
	s.last, s.order, s.state = now, f.order, slotSent
	f.order++
	f.push(&f.wire, id)
	f.marks.sent(s)
	if s.untaken {
		s.untaken = false
		return // it was sent already, says the controller
	}
	f.bytes += int(s.bytes)
	f.ctl.OnSent(now, s.order, int(s.bytes))
}

// NextLost returns the lost frame that is to be sent again first, if there is one and it may leave.
func (f *Flight) NextLost(now Instant) (id uint32, ok bool) {
	if f.lost.n == 0 {
		return 0, false
	}
	id = f.lost.head
	s := f.frame(id)
	limit := f.room(now, int(s.bytes))
	return id, limit == Open || limit == Congested && (f.probing > 0 || s.untaken)
}

// Resend notes that a lost frame is sent again under its id, and returns its copy number.
func (f *Flight) Resend(now Instant, id uint32) (copied uint8) {
	f.remove(&f.lost, id)
	s := f.frame(id)
	s.copies, s.judged = min(s.copies, math.MaxUint8-1)+1, false
	f.probing = max(f.probing-1, 0)
	f.transmit(now, id)
	return s.told()
}

// Acknowledgement is what a frame of the peer acknowledges.
type Acknowledgement struct {
	UpTo   uint32
	Ranges []frame.Range // after UpTo, ascending, none touching another
	// Echo is of an acknowledgement frame. HasEcho is false of one that rides on data.
	Echo    Echo
	HasEcho bool
	Marks   frame.Marks // with HasEcho
}

// AppendAcked applies an acknowledgement, and appends the ids that it acknowledges for the first time. Not ok: it names
// ids that were never used, and nothing of it is believed.
func (f *Flight) AppendAcked(dst []uint32, now Instant, a *Acknowledgement) (acked []uint32, ok bool) {
	f.sample, f.heldBack = 0, 0
	f.all = f.all || f.next-f.cfg.Epoch > math.MaxInt32
	if !f.used(a.UpTo) {
		return dst, false
	}
	for _, s := range a.Ranges {
		if s.Count <= 0 || s.Count > MostAhead || !f.used(s.First) || !f.used(s.First+uint32(s.Count-1)) {
			return dst, false
		}
	}
	if a.HasEcho && !f.used(a.Echo.ID) {
		return dst, false
	}
	if f.withheld.named(a) {
		return dst, false
	}
	begin := len(dst)
	if a.HasEcho {
		f.echo(now, &a.Echo)
	}
	var newest *flightFrame // the newest transmission of those acknowledged
	once := true            // none of them was sent twice
	settle := func(id uint32) {
		s := f.frame(id)
		if s.state == slotFree || s.id != id {
			return
		}
		dst = append(dst, id)
		if s.copies == 0 {
			if newest == nil || int32(s.order-newest.order) > 0 {
				newest = s
			}
		} else {
			once = false
		}
		f.settle(now, s)
	}
	for id := f.oldest; id != f.next && int32(id-a.UpTo) <= 0; id++ {
		settle(id)
	}
	for _, s := range a.Ranges {
		id, end := s.First, s.First+uint32(s.Count)
		if int32(f.oldest-id) > 0 {
			id = f.oldest
		}
		for ; int32(end-id) > 0; id++ {
			settle(id)
		}
	}
	if a.HasEcho && len(f.frames) > 0 {
		settle(a.Echo.ID) // it arrived, also where a frame had no room for all ranges
	}
	fresh := len(dst) > begin
	if int32(a.UpTo-f.marks.upTo) >= 0 {
		if f.marks.upTo = a.UpTo; a.HasEcho {
			f.believe(now, a.Marks, fresh)
		}
	}
	if !fresh {
		f.sample = 0 // of a frame that is not acknowledged
		return dst, true
	}
	f.heardAgain()
	if !a.HasEcho && once && f.lost.n == 0 && newest != nil {
		f.sample = max(now.Sub(newest.first), 1)
	}
	if f.sample > 0 {
		f.rtt.Sample(now, f.sample)
	}
	f.withheld.release(dst[begin:])
	f.probing, f.timeouts, f.heard = 0, 0, now
	f.advance(now)
	return dst, true
}

// Measured returns the round trip that the latest AppendAcked took a sample of, if any.
func (f *Flight) Measured() (d time.Duration, ok bool) { return f.sample, f.sample > 0 }

// used reports whether an id was used in this session, or is the epoch before the first one.
func (f *Flight) used(id uint32) bool {
	return int32(f.next-id) > 0 && (f.all || int32(id-f.cfg.Epoch) >= 0)
}

// echo learns from the frame that arrived last at the peer: which copy it was, and when.
func (f *Flight) echo(now Instant, e *Echo) {
	if e.Delay < 0 {
		return
	}
	s, waits := f.frame(e.ID), true
	if len(f.frames) == 0 || s.state == slotFree || s.id != e.ID {
		waits = false
		if s = f.answer(e.ID); s == nil {
			return
		}
	}
	measured := e.Delay < noDelay
	if measured {
		f.heldBack = e.Delay
	}
	arrived := now.Add(-e.Delay)
	exact := s.copies < frame.MostCopies // MostCopies stands for all later ones as well
	switch {
	case e.Copy > s.told():
		return // it never left
	case e.Copy == s.told() && exact:
		if waits && int32(s.order-f.reached) > 0 {
			f.reached = s.order
		}
		if measured && waits { // else the network may have held it back for long
			f.sample = max(arrived.Sub(s.last), 1)
		}
		if !e.Again {
			s.judged = true // the network doubles what arrives again
		} else if s.copies > 0 && !s.probe && !s.judged {
			s.judged = true
			// An earlier copy had arrived as well, or the acknowledgement of it is lost: RFC 8985 section 6.2 has a quarter of a round trip for
			// that.
			f.reorders(min(f.late+f.rtt.Min(now)/4, f.rtt.smoothed))
		}
	case e.Copy == 0 && s.copies > 0 && measured:
		// The first transmission arrives, and had been taken for lost.
		age := arrived.Sub(s.first)
		if waits {
			f.sample = max(age, 1)
		}
		if !s.probe && !s.tardy {
			f.cameLate(now, age)
		}
		s.tardy, s.judged = true, true
	}
}

// cameLate notes that a frame took that long which had been taken for lost. That one is later than a timeout may come from a network that holds back
// now and then, so that frames would wait that long for nothing: it counts if another one came so soon before.
func (f *Flight) cameLate(now Instant, age time.Duration) {
	f.ctl.OnSpurious(now)
	late := age - f.rtt.recent()
	if late > f.timeout() {
		alone := f.held == 0
		if f.held = heldKeeps; alone {
			return
		}
	}
	f.reorders(late + late/4)
}

// reorders notes that a frame was sent again, and took only so much longer than others.
func (f *Flight) reorders(late time.Duration) {
	f.late, f.losses = min(max(f.late, late, 1), f.cfg.MaxRTO), 0
}

// answer returns a frame that was sent again and acknowledged; nil: nothing is known of it any more.
func (f *Flight) answer(id uint32) *flightFrame {
	for i := range f.answered {
		if s := &f.answered[i]; s.id == id && s.copies > 0 {
			return s
		}
	}
	return nil
}

// settle takes a frame out that is acknowledged.
func (f *Flight) settle(now Instant, s *flightFrame) {
	rtt := time.Duration(-1)
	if s.copies == 0 {
		// No round trip is shorter than the shortest time that an acknowledgement took: what the peer says of itself cannot make a path near, nor hide
		// a queue (RFC 9002 section 5.3).
		took := max(now.Sub(s.first), 1)
		if f.least == 0 || took < f.least {
			f.least = took
		}
		if rtt = took - f.heldBack; rtt < f.least {
			rtt = took
		}
		if int32(s.order-f.reached) > 0 {
			f.reached = s.order
		}
	}
	if s.state == slotSent {
		f.remove(&f.wire, s.id)
		f.left(now, s, rtt)
	} else { // the controller knows it as lost, unless it is untaken
		f.remove(&f.lost, s.id)
		switch {
		case s.untaken:
			f.left(now, s, rtt)
		case s.copies == 0:
			// It was taken for lost and has not been sent again: it only came late.
			f.cameLate(now, now.Sub(s.first))
		}
	}
	s.state = slotFree
	if s.capable {
		f.marks.acked++
	}
	if s.copies > 0 {
		if f.answered == nil {
			f.answered = make([]flightFrame, answersKept)
		}
		f.answered[f.answers%answersKept] = *s
		f.answers++
	}
}

// left notes that a frame arrived that was on the wire.
func (f *Flight) left(now Instant, s *flightFrame, rtt time.Duration) {
	f.bytes -= int(s.bytes)
	f.ctl.OnAcked(now, s.order, int(s.bytes), rtt)
}

func (f *Flight) advance(now Instant) {
	before := f.oldest
	if f.InFlight() == 0 {
		f.oldest = f.next
	}
	for f.oldest != f.next && f.frame(f.oldest).state == slotFree && !f.withheld.is(f.oldest) {
		f.oldest++
	}
	if f.oldest != before {
		f.progress = now
	}
}

// EndBatch is called when all acknowledgements of a batch were applied: it looks for frames that are lost, and lets
// the controller act.
func (f *Flight) EndBatch(now Instant) {
	f.findLost(now, now)
	f.ctl.EndBatch(now)
	f.heedMarks()
	if path, ok := f.ctl.(Distant); ok {
		f.far, f.window = path.IsFar(), f.cfg.Window
		if f.far {
			f.window = max(f.cfg.Far, f.cfg.Window)
		}
	}
}

package ack

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

const (
	ms  = time.Millisecond
	sec = time.Second
)

// testFirsts are the first ids that every test of behaviour runs with: the
// usual one, and one shortly before the wrap (DGRDMA-013).
var testFirsts = []frame.Seq{1, 65530}

func testConfig() SenderConfig {
	return SenderConfig{
		Window: 1024, Span: MaxHistory - 1, MinRTO: 10 * ms, MaxRTO: sec, AckDelay: 2 * ms, GiveUp: 10 * sec,
	}
}

// firstTimeout is the first timeout of testConfig, before any round trip.
const firstTimeout = 40 * ms

// recorder is a Controller that never limits, unless told to, and writes down
// what it hears. Its tests give every frame a length of its own, by which the
// frame is known.
type recorder struct {
	t      testing.TB
	window int
	paced  Instant
	onWire map[int]int
	lost   []int
	probed []int // lost by a timeout
	rtts   []time.Duration
	ends   int

	limited, spurious int // calls
}

func (r *recorder) OnAppLimited(Instant) { r.limited++ }
func (r *recorder) OnSpurious(Instant)   { r.spurious++ }

func (r *recorder) Window() int {
	if r.window == 0 {
		return math.MaxInt
	}
	return r.window
}

func (r *recorder) OnSent(_ Instant, _ uint32, bytes int) { r.onWire[bytes]++ }

func (r *recorder) left(bytes int) {
	if r.onWire[bytes]--; r.onWire[bytes] < 0 {
		r.t.Helper()
		r.t.Fatalf("frame %d was reported acknowledged or lost more often than sent", bytes)
	}
}

func (r *recorder) OnAcked(_ Instant, _ uint32, bytes int, rtt time.Duration) {
	r.left(bytes)
	r.rtts = append(r.rtts, rtt)
}

func (r *recorder) OnLost(_ Instant, _ uint32, bytes int, timeout bool) {
	r.left(bytes)
	if timeout {
		r.probed = append(r.probed, bytes)
	} else {
		r.lost = append(r.lost, bytes)
	}
}

func (r *recorder) EndBatch(Instant)                    { r.ends++ }
func (r *recorder) NextSend(now Instant, _ int) Instant { return max(now, r.paced) }

// senderTest drives a Sender. Frames are named by the place of their id: 1 is
// the first one, whatever the id. What happens must be asked for with a want
// method before the next action, else the test fails.
type senderTest struct {
	t     *testing.T
	s     Sender
	ctl   *recorder
	now   Instant
	first frame.Seq
	last  int // place of the last id used

	acked []int
	dead  bool
}

func newSenderTest(t *testing.T, cfg SenderConfig) *senderTest {
	s := &senderTest{
		t: t, now: Instant(time.Hour), first: cfg.First.Seq(), ctl: &recorder{t: t, onWire: make(map[int]int)},
	}
	s.s.Init(s.now, cfg, s.ctl)
	return s
}

// senderTests runs a test with all first ids.
func senderTests(t *testing.T, f func(t *testing.T, cfg SenderConfig)) {
	for _, first := range testFirsts {
		t.Run(fmt.Sprintf("first=%d", first), func(t *testing.T) {
			cfg := testConfig()
			cfg.First = Wide(first)
			f(t, cfg)
		})
	}
}

// lossTests runs a test of retransmission for both causes and all first ids.
func lossTests(t *testing.T, f func(t *testing.T, cfg SenderConfig, timeout bool)) {
	for _, timeout := range []bool{false, true} {
		t.Run(map[bool]string{false: "fast", true: "timeout"}[timeout], func(t *testing.T) {
			senderTests(t, func(t *testing.T, cfg SenderConfig) { f(t, cfg, timeout) })
		})
	}
}

func (s *senderTest) id(place int) frame.Seq { return s.first.Add(place - 1) }

func (s *senderTest) logf(format string, args ...any) {
	s.t.Helper()
	s.t.Logf("%v # "+format, append([]any{time.Duration(s.now) - time.Hour}, args...)...)
}

// expectedAll fails on events that nobody asked for.
func (s *senderTest) expectedAll() {
	s.t.Helper()
	switch c := s.ctl; {
	case len(s.acked) > 0:
		s.t.Fatalf("unexpected acknowledged: %v", runsOf(s.acked))
	case len(c.lost) > 0:
		s.t.Fatalf("unexpected lost: %v", runsOf(c.lost))
	case len(c.probed) > 0:
		s.t.Fatalf("unexpected timeout: %v", runsOf(c.probed))
	case s.dead:
		s.t.Fatal("unexpected: peer taken for dead")
	}
	checkSender(s.t, &s.s)
}

// send sends n new frames.
func (s *senderTest) send(n int) {
	s.t.Helper()
	s.expectedAll()
	s.logf("send %d", n)
	for range n {
		s.last++
		if l := s.s.Limit(s.now, s.last); l != Open {
			s.t.Fatalf("frame %d: %v, want open", s.last, l)
		}
		if q := s.s.Track(s.now, s.last); q != s.id(s.last) {
			s.t.Fatalf("frame %d got id %d, want %d", s.last, q, s.id(s.last))
		}
	}
}

// alone uses n ids for frames that hold nothing but acknowledgements.
func (s *senderTest) alone(n int) {
	s.t.Helper()
	s.expectedAll()
	s.logf("alone %d", n)
	for range n {
		s.last++
		if q, ok := s.s.Alone(s.now); !ok || q != s.id(s.last) {
			s.t.Fatalf("alone got id %d, %v, want %d", q, ok, s.id(s.last))
		}
	}
}

// advance lets time pass; the Sender is called whenever it asks for it.
func (s *senderTest) advance(d time.Duration) {
	s.t.Helper()
	s.expectedAll()
	s.logf("advance %v", d)
	end := s.now.Add(d)
	for {
		at, armed := s.s.Deadline()
		if !armed || at > end || s.dead {
			break
		}
		s.now = max(s.now, at)
		s.expire()
		if again, armed := s.s.Deadline(); !s.dead && armed && again <= s.now {
			s.t.Fatalf("the deadline %v is not later than the moment of Expire", again)
		}
	}
	s.now = max(s.now, end)
}

// advanceToTimer lets time pass until the Sender asks to be called.
func (s *senderTest) advanceToTimer() {
	s.t.Helper()
	at, armed := s.s.Deadline()
	if !armed {
		s.t.Fatal("no deadline, want one")
	}
	s.advance(at.Sub(s.now))
}

// stall lets time pass without calling the Sender.
func (s *senderTest) stall(d time.Duration) {
	s.logf("stall %v", d)
	s.now = s.now.Add(d)
}

func (s *senderTest) expire() {
	s.t.Helper()
	before, lost := len(s.ctl.probed), len(s.ctl.lost)
	switch e := s.s.Expire(s.now, s.now); e {
	case Dead:
		s.dead = true
	case Probe:
		if len(s.ctl.probed) == before && len(s.ctl.lost) == lost {
			s.t.Fatal("a timeout lost nothing")
		}
	case Nothing:
		if len(s.ctl.probed) != before {
			s.t.Fatal("frames lost by a timeout that Expire does not tell of")
		}
	}
}

// ack acknowledges the ids between two places, in as many ranges as it takes.
func (s *senderTest) ack(from, to int) {
	s.t.Helper()
	s.expectedAll()
	s.logf("ack %d to %d", from, to)
	for ; from <= to; from += MaxRun {
		s.apply(Range{s.id(from), uint8(min(to-from+1, MaxRun))}, true)
	}
	s.s.EndBatch(s.now)
}

// batch acknowledges ids one by one in one batch.
func (s *senderTest) batch(places ...int) {
	s.t.Helper()
	s.expectedAll()
	s.logf("ack %v", places)
	for _, p := range places {
		s.apply(Range{s.id(p), 1}, true)
	}
	s.s.EndBatch(s.now)
}

// refuse applies a range that must not be believed.
func (s *senderTest) refuse(r Range) {
	s.t.Helper()
	s.expectedAll()
	s.apply(r, false)
	s.s.EndBatch(s.now)
	s.expectedAll()
}

func (s *senderTest) apply(r Range, want bool) {
	s.t.Helper()
	ids, ok := s.s.AppendAcked(nil, s.now, r)
	if ok != want {
		s.t.Fatalf("range %d+%d: ok is %v, want %v", r.Start, r.Count, ok, want)
	}
	for _, q := range ids {
		s.acked = append(s.acked, int(q-s.first)+1)
	}
}

// resend sends all lost frames again, which must be these.
func (s *senderTest) resend(want ...int) {
	s.t.Helper()
	s.expectedAll()
	s.logf("resend %v", want)
	s.want("resent", s.resendAll(), want)
	if n := s.s.Lost(); n != 0 {
		s.t.Fatalf("%d frames are still lost", n)
	}
}

func (s *senderTest) want(what string, got, want []int) {
	s.t.Helper()
	if !slices.Equal(got, want) {
		s.t.Fatalf("%s %v, want %v", what, runsOf(got), runsOf(want))
	}
}

// runsOf makes long lists readable.
func runsOf(places []int) []string {
	var runs []string
	for i := 0; i < len(places); {
		n := 1
		for i+n < len(places) && places[i+n] == places[i]+n {
			n++
		}
		if n == 1 {
			runs = append(runs, fmt.Sprint(places[i]))
		} else {
			runs = append(runs, fmt.Sprintf("%d-%d", places[i], places[i]+n-1))
		}
		i += n
	}
	return runs
}

func (s *senderTest) wantAcked(want ...int) {
	s.t.Helper()
	s.want("acknowledged", s.acked, want)
	s.acked = nil
}

// wantAckedRun is wantAcked for many.
func (s *senderTest) wantAckedRun(from, to int) {
	s.t.Helper()
	var want []int
	for ; from <= to; from++ {
		want = append(want, from)
	}
	s.wantAcked(want...)
}

// wantLost wants frames to be lost because later ones were acknowledged.
func (s *senderTest) wantLost(want ...int) {
	s.t.Helper()
	s.want("lost", s.ctl.lost, want)
	s.ctl.lost = nil
}

// wantProbed wants frames to be lost by timeout.
func (s *senderTest) wantProbed(want ...int) {
	s.t.Helper()
	s.want("timed out", s.ctl.probed, want)
	s.ctl.probed = nil
}

func (s *senderTest) wantDead() {
	s.t.Helper()
	if !s.dead {
		s.t.Fatal("the peer lives, want it dead")
	}
	s.dead = false
}

// wantDeadline wants Expire to be asked for that long from now.
func (s *senderTest) wantDeadline(d time.Duration) {
	s.t.Helper()
	at, armed := s.s.Deadline()
	if !armed || at.Sub(s.now) != d {
		s.t.Fatalf("deadline in %v (%v), want in %v", at.Sub(s.now), armed, d)
	}
}

// wantIdle wants nothing to be in flight, and no timer.
func (s *senderTest) wantIdle() {
	s.t.Helper()
	s.expectedAll()
	if at, armed := s.s.Deadline(); armed || s.s.InFlight() != 0 || s.s.Lost() != 0 {
		s.t.Fatalf("%d frames in flight, %d lost, deadline %v (%v); want none", s.s.InFlight(), s.s.Lost(), at, armed)
	}
	if s.s.Oldest() != s.s.Next() {
		s.t.Fatalf("oldest id %d, want the next one, %d", s.s.Oldest(), s.s.Next())
	}
	for n, sendings := range s.ctl.onWire {
		if sendings != 0 {
			s.t.Fatalf("the controller counts frame %d on the wire %d times, want 0", n, sendings)
		}
	}
}

func (s *senderTest) wantLimit(want Limit) {
	s.t.Helper()
	if got := s.s.Limit(s.now, 1); got != want {
		s.t.Fatalf("limit %v, want %v", got, want)
	}
}

func (s *senderTest) wantRTT(smoothed time.Duration) {
	s.t.Helper()
	if got := s.s.RTT().Smoothed(); got != smoothed {
		s.t.Fatalf("smoothed round trip %v, want %v", got, smoothed)
	}
}

// measure makes one round trip of that length known.
func (s *senderTest) measure(d time.Duration) {
	s.t.Helper()
	s.send(1)
	s.advance(d)
	s.ack(s.last, s.last)
	s.wantAcked(s.last)
}

// loseOne sends a frame and takes three further ids; afterwards the frame is
// lost and nothing else is in flight.
func (s *senderTest) loseOne(timeout bool) (place int) {
	s.t.Helper()
	s.send(1)
	place = s.last
	if timeout {
		s.alone(3)
		s.advanceToTimer()
		s.wantProbed(place)
		return place
	}
	s.send(3)
	s.advance(10 * ms)
	s.ack(place+1, place+3)
	s.wantAcked(place+1, place+2, place+3)
	s.wantLost(place)
	return place
}

// blackout lets time pass in which whatever is lost is sent again, in vain. It
// returns when frames were sent again.
func (s *senderTest) blackout(d time.Duration) (tries []time.Duration) {
	s.t.Helper()
	s.expectedAll()
	s.logf("blackout %v", d)
	start := s.now
	for end := s.now.Add(d); !s.dead; {
		at, _ := s.s.Deadline()
		if at > end {
			s.now = end
			break
		}
		s.now = max(s.now, at)
		s.expire()
		if len(s.ctl.probed) > 0 {
			tries = append(tries, s.now.Sub(start))
		}
		s.ctl.probed, s.ctl.lost = nil, nil
		s.resendAll()
	}
	return tries
}

func (s *senderTest) resendAll() (places []int) {
	for {
		q, ok := s.s.NextLost(s.now)
		if !ok {
			return places
		}
		s.s.Resend(s.now, q)
		places = append(places, int(q-s.first)+1)
	}
}

// checkSender checks what must hold between any two calls.
func checkSender(t testing.TB, s *Sender) {
	t.Helper()
	if s.NextWide().Seq() != s.Next() {
		t.Fatalf("the next id is %d, in 32 bits %d", s.Next(), s.NextWide())
	}
	span := s.next.Diff(s.una)
	if span < 0 || span > len(s.slots) && s.InFlight() > 0 {
		t.Fatalf("ids %d to %d do not fit %d slots", s.una, s.next, len(s.slots))
	}
	if s.InFlight() == 0 && span != 0 {
		t.Fatalf("nothing is in flight, but the oldest id is %d and the next %d", s.una, s.next)
	}
	var sent, lost, flight int
	if s.InFlight() > 0 {
		if s.slot(s.una).state == slotFree {
			t.Fatalf("the oldest id %d is not in flight", s.una)
		}
		for q := s.una; q != s.next; q++ {
			switch sl := s.slot(q); sl.state {
			case slotSent:
				sent++
				flight += int(sl.bytes)
			case slotLost:
				lost++
			}
		}
	}
	if sent != s.sent.n || lost != s.lost.n || flight != s.flight {
		t.Fatalf("%d sent, %d lost, %d bytes in flight; counted %d, %d, %d", s.sent.n, s.lost.n, s.flight, sent, lost, flight)
	}
	checkList(t, s, &s.sent, slotSent)
	checkList(t, s, &s.lost, slotLost)
	if _, armed := s.Deadline(); armed != (s.InFlight() > 0) {
		t.Fatalf("deadline armed: %v, in flight: %d", armed, s.InFlight())
	}
}

func checkList(t testing.TB, s *Sender, l *slotList, state slotState) {
	t.Helper()
	var before *slot
	prev := frame.Seq(0)
	for i, q := 0, l.head; i < l.n; i++ {
		sl := s.slot(q)
		if q.Diff(s.una) < 0 || q.Diff(s.next) >= 0 || sl.state != state {
			t.Fatalf("list of %d: place %d holds id %d in state %d; ids in use are %d to %d", state, i, q, sl.state, s.una, s.next)
		}
		if before != nil {
			if sl.prev != prev {
				t.Fatalf("list of %d: id %d follows %d and says %d", state, q, prev, sl.prev)
			}
			if state == slotSent && int32(sl.order-before.order) <= 0 {
				t.Fatalf("id %d is behind %d and was sent earlier", q, prev)
			}
		}
		if i == l.n-1 && l.tail != q {
			t.Fatalf("list of %d ends with id %d, tail says %d", state, q, l.tail)
		}
		before, prev, q = sl, q, sl.next
	}
}

package session

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

// TestCalls checks what a program's calls do in each state.
func TestCalls(t *testing.T) {
	ended := func(w Why, reply Frame) Output { return Output{Ended: w, Reply: reply} }
	goodbye := Frame{Kind: Bye, Sender: local, Receiver: remote}
	for _, c := range []struct {
		name  string
		call  func(m *Machine, e Epochs) Output
		cells [states]outcome
	}{
		{"Connect", func(m *Machine, e Epochs) Output { return m.Connect(surroundings, e) }, [states]outcome{
			None: {Output{Reply: helloTold}, Asking, 0}, Down: {Output{Reply: helloTold}, Asking, 0},
			Asking: same(Asking), Confirming: same(Confirming), Up: same(Up),
		}},
		{"Restart", func(m *Machine, e Epochs) Output { return m.Restart(surroundings, e) }, [states]outcome{
			None: {ended(WasReset, Frame{}), None, 0}, Down: {ended(WasReset, helloTold), Asking, 0},
			Asking: {ended(WasReset, helloTold), Asking, 1}, Confirming: {ended(WasReset, helloTold), Asking, 1}, Up: {ended(WasReset, helloTold), Asking, 1},
		}},
		{"GiveUp", func(m *Machine, e Epochs) Output { return m.GiveUp(e) }, [states]outcome{
			None: same(None), Down: same(Down),
			Asking: {ended(NoAnswer, Frame{}), Down, 1}, Confirming: {ended(PeerSilent, Frame{}), Down, 1}, Up: {ended(PeerSilent, Frame{}), Down, 1},
		}},
		{"Close", func(m *Machine, e Epochs) Output { return m.Close(e) }, [states]outcome{
			None: {ended(WasClosed, Frame{}), None, 0}, Down: {ended(WasClosed, Frame{}), None, 0},
			Asking: {ended(WasClosed, Frame{}), None, 1}, Confirming: {ended(WasClosed, goodbye), None, 1}, Up: {ended(WasClosed, goodbye), None, 1},
		}},
	} {
		for s, want := range c.cells {
			m, e := in(State(s)), &fixed{}
			if o := c.call(&m, e); o != want.o || m.State != want.s || e.ends != want.ends {
				t.Errorf("%s in %v: %+v, %v, %d ended, want %+v, %v, %d", c.name, State(s), o, m.State, e.ends, want.o, want.s, want.ends)
			}
		}
	}
}

// TestRetries checks when HELLO and CONFIRM are sent again: after 20 ms, or a second where the peer is not known to be near, a CONFIRM after twice what the answer to HELLO took, then after four times as long each time,
// up to a second, and of a HELLO for which nothing is posted up to 8 seconds.
func TestRetries(t *testing.T) {
	for _, c := range []struct {
		s      State
		posted bool
		most   time.Duration
		far    bool
		trip   time.Duration
		first  time.Duration
	}{
		{Asking, true, time.Second, false, 0, 20 * time.Millisecond}, {Asking, false, 8 * time.Second, false, 0, 20 * time.Millisecond},
		{Asking, true, time.Second, true, 0, time.Second}, {Asking, false, 8 * time.Second, true, 0, time.Second},
		{Confirming, true, time.Second, false, 0, 20 * time.Millisecond}, {Confirming, false, time.Second, false, 0, 20 * time.Millisecond},
		{Confirming, true, time.Second, true, 0, time.Second}, {Confirming, true, time.Second, true, time.Millisecond, 20 * time.Millisecond},
		{Confirming, true, time.Second, true, 100 * time.Millisecond, 200 * time.Millisecond}, {Confirming, true, time.Second, false, 300 * time.Millisecond, 600 * time.Millisecond},
		{Confirming, true, time.Second, false, 2 * time.Second, time.Second},
	} {
		m, e := Machine{}, &fixed{}
		now := ack.Instant(time.Hour)
		m.Connect(At{Now: now, Routed: c.far}, e)
		kind := Hello
		if c.s == Confirming {
			m.Receive(At{Now: now, Routed: c.far, Trip: c.trip}, e, &Frame{Kind: Welcome, Sender: remote, Receiver: told})
			kind = Confirm
		}
		wait := c.first
		for range 14 {
			at, ok := m.RetryAt()
			if !ok || at != now.Add(wait) {
				t.Fatalf("%+v: next after %v, want %v", c, at.Sub(now), wait)
			}
			if o := m.Retry(At{Now: at - 1, Posted: c.posted}, false); o != (Output{}) {
				t.Fatalf("before its time: %+v", o)
			}
			now = at
			if o := m.Retry(At{Now: now, Posted: c.posted}, false); o.Reply.Kind != kind {
				t.Fatalf("%+v, want %v", o, kind)
			}
			wait = min(4*wait, c.most)
		}
	}
	for _, s := range []State{None, Down, Up} {
		m := in(s)
		if _, ok := m.RetryAt(); ok || m.Retry(surroundings, true) != (Output{}) {
			t.Errorf("%v repeats something", s)
		}
	}
}

// TestPathOpens checks that HELLO and CONFIRM leave at once when a key has been agreed.
func TestPathOpens(t *testing.T) {
	for s, want := range map[State]Frame{Asking: hello, Confirming: confirm} {
		m := in(s)
		m.retry.at = surroundings.Now.Add(time.Hour)
		if o := m.Retry(surroundings, true); o.Reply != want {
			t.Errorf("%v: %+v", s, o)
		}
	}
}

// TestResetsAreAnsweredSeldom checks that a flood of RESETs brings one CONFIRM in 20 ms, or in half of what the answer to HELLO took.
func TestResetsAreAnsweredSeldom(t *testing.T) {
	for trip, want := range map[time.Duration]int{0: 50, time.Millisecond: 50, 200 * time.Millisecond: 10} {
		m, e := in(Confirming), &fixed{}
		m.retry.trip = trip
		n := 0
		at := surroundings
		for range 1000 { // a second
			at.Now = at.Now.Add(time.Millisecond)
			if o := m.Receive(at, e, &Frame{Kind: Reset, QuotedTag: ourTag, ID: uint32(local) + 1}); o.Reply.Kind == Confirm {
				n++
			}
		}
		if n != want {
			t.Errorf("trip %v: %d CONFIRMs in a second, want %d", trip, n, want)
		}
	}
}

// TestGiveUpRemembersTheRefusal checks that the reason of a REFUSED outlives the attempt, for the error that the program gets.
func TestGiveUpRemembersTheRefusal(t *testing.T) {
	for _, s := range []State{Asking, Confirming} {
		m, e := in(s), &fixed{}
		m.Receive(surroundings, e, &Frame{Kind: Refused, Receiver: local, Refusal: NeedsSeal})
		if m.GiveUp(e); m.State != Down || !m.Refused || m.Refusal != NeedsSeal {
			t.Errorf("%v: %+v", s, m)
		}
	}
}

// TestShortPauses checks that HELLO and CONFIRM leave as often as the caller asks while something is posted, where a peer is given up soon.
func TestShortPauses(t *testing.T) {
	for _, pause := range []time.Duration{0, time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond, time.Minute} {
		most := time.Second
		if pause > 0 {
			most = min(pause, most)
		}
		for _, s := range []State{Asking, Confirming} {
			m, e, at := in(Down), &fixed{}, At{Now: surroundings.Now, Posted: true, Pause: pause}
			m.Connect(at, e)
			if s == Confirming {
				m.Receive(at, e, &Frame{Kind: Welcome, Sender: remote, Receiver: told})
			}
			wait := min(20*time.Millisecond, most)
			for range 10 {
				if next, _ := m.RetryAt(); next != at.Now.Add(wait) {
					t.Fatalf("%v, at most %v: next after %v, want %v", s, pause, next.Sub(at.Now), wait)
				}
				at.Now = at.Now.Add(wait)
				m.Retry(at, false)
				wait = min(4*wait, most)
			}
		}
	}
}

// TestHurry checks that the next HELLO leaves at once when something is posted, or as soon as one may follow the last, and that
// pauses begin again then.
func TestHurry(t *testing.T) {
	for _, since := range []time.Duration{0, 5 * time.Millisecond, 20 * time.Millisecond, time.Second} {
		m, e, at := in(Down), &fixed{}, At{Now: surroundings.Now}
		m.Connect(at, e)
		for range 12 {
			at.Now, _ = m.RetryAt()
			m.Retry(at, false)
		}
		last := at.Now
		at.Now, at.Posted = at.Now.Add(since), true
		m.Hurry(at)
		for _, want := range []time.Duration{max(since, 20*time.Millisecond), 20 * time.Millisecond, 80 * time.Millisecond} {
			next, _ := m.RetryAt()
			if next.Sub(last) != want {
				t.Errorf("posted %v after a HELLO: the next after %v, want %v", since, next.Sub(last), want)
			}
			last, at.Now = next, next
			m.Retry(at, false)
		}
	}
}

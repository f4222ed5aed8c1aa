package endpoint

import (
	"errors"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// helloRig is a halfRig that notes when introductions leave.
type helloRig struct {
	*halfRig
	at []ack.Instant
}

func newHelloRig(t *testing.T, cfg Config) *helloRig {
	t.Helper()
	h := &helloRig{}
	cfg.Trace = &Trace{FrameSent: func(_ PeerName, b []byte, _ bool) {
		f, err := frame.Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := helloOf(&f); ok && h.halfRig != nil {
			h.at = append(h.at, h.now)
		}
	}}
	h.halfRig = newHalfRig(t, 1, Native(), cfg) // which sends the first
	h.serve()
	return h
}

// post has something posted.
func (h *helloRig) post() {
	h.t.Helper()
	h.c.tx.post(h.now, &h.c.plain, write(64, make([]byte, 8), 0, 1))
	h.serve()
}

// until has time pass until then, or until the peer is given up, and returns how long after
// the one before each introduction left meanwhile.
func (h *helloRig) until(end ack.Instant) (pauses []time.Duration) {
	h.t.Helper()
	n := max(len(h.at), 1)
	for h.diary.at <= end && h.c.tx.err == nil {
		h.waits()
	}
	if h.c.tx.err == nil {
		h.now = end
	}
	for ; n < len(h.at); n++ {
		pauses = append(pauses, h.at[n].Sub(h.at[n-1]))
	}
	return pauses
}

// doubling fails unless pauses begin with one and double until they are as long as most.
func doubling(t *testing.T, pauses []time.Duration, first, most time.Duration) {
	t.Helper()
	want := min(first, most)
	for i, d := range pauses {
		if d != want {
			t.Fatalf("pause %d is %v, want %v: %v", i, d, want, pauses)
		}
		want = min(2*want, most)
	}
	if len(pauses) == 0 || pauses[len(pauses)-1] != most {
		t.Errorf("pauses of %v, want up to %v", pauses, most)
	}
}

// TestHellosToNobody become rare, less so while something is posted, until the peer is
// given up for that, at that moment.
func TestHellosToNobody(t *testing.T) {
	t.Run("at rest", func(t *testing.T) {
		h := newHelloRig(t, Config{})
		doubling(t, h.until(h.now.Add(time.Minute)), 2*helloFirst, helloIdle)
	})
	for _, x := range []struct{ giveUp, most time.Duration }{
		{30 * time.Second, helloMost},
		{time.Second, 100 * time.Millisecond},
		{20 * time.Millisecond, 2 * time.Millisecond},
		{5 * time.Millisecond, time.Millisecond},
	} {
		t.Run(x.giveUp.String(), func(t *testing.T) {
			h := newHelloRig(t, Config{GiveUp: x.giveUp})
			h.until(h.now.Add(time.Minute))
			posted := h.now
			h.post()
			if last := h.at[len(h.at)-1]; last != posted {
				t.Errorf("nobody is asked when something is posted, but %v before", posted.Sub(last))
			}
			h.at = h.at[len(h.at)-1:]
			doubling(t, h.until(posted.Add(time.Hour)), helloFirst, x.most)
			if d := h.now.Sub(posted); !errors.Is(h.c.tx.err, ErrPeerDown) || d != x.giveUp {
				t.Errorf("after %v: %v", d, h.c.tx.err)
			}
		})
	}
}

// TestHelloBehindAnother: what is posted has a peer asked that was asked a while ago, but no
// sooner than introductions may follow each other; and what is posted behind it does not.
func TestHelloBehindAnother(t *testing.T) {
	for _, since := range []time.Duration{time.Nanosecond, helloFirst / 4, helloFirst - 1, helloFirst, helloFirst + 1, time.Second} {
		h := newHelloRig(t, Config{})
		h.until(h.now.Add(time.Minute))
		for h.at = nil; len(h.at) == 0; {
			h.waits() // until one leaves at rest
		}
		h.now = h.now.Add(since)
		for range 100 {
			h.post()
			h.until(h.now.Add(time.Millisecond))
		}
		if d := h.at[1].Sub(h.at[0]); d != max(since, helloFirst) {
			t.Errorf("asked %v after the one before, when something was posted after %v", d, since)
		}
		if len(h.at) > 5 {
			t.Errorf("asked %d times in 100 ms", len(h.at))
		}
	}
}

// TestAnotherLifeIsAsked: a life that we do not believe yet is asked helloTries times, and
// once more whenever it introduces itself again; each that comes is.
func TestAnotherLifeIsAsked(t *testing.T) {
	h := newHelloRig(t, Config{})
	h.come(1 << 20)
	for _, life := range []uint32{1 << 21, 1 << 22, 1 << 21} {
		for again := range 3 {
			h.at = nil
			h.introduces(frame.Hello{Life: life})
			h.serve()
			pauses := h.until(h.now.Add(time.Minute))
			switch {
			case again > 0:
				if len(h.at) != 1 {
					t.Errorf("asked %d times when it introduced itself again", len(h.at))
				}
			case len(h.at) != helloTries:
				t.Errorf("asked %d times", len(h.at))
			default:
				doubling(t, pauses, helloFirst, helloFirst<<(helloTries-2))
			}
		}
	}
}

// TestHelloThatIsAskedAtOnce: who introduces itself to an endpoint that knows no life of its
// peer is asked at once, and otherwise as rarely as before.
func TestHelloThatIsAskedAtOnce(t *testing.T) {
	h := newHelloRig(t, Config{})
	h.until(h.now.Add(time.Minute))
	for life := range uint32(3) {
		h.at = nil
		h.introduces(frame.Hello{Life: 1<<20 + life})
		h.serve()
		doubling(t, h.until(h.now.Add(time.Minute)), helloIdle, helloIdle)
	}
}

// newDoubtedRig returns one whose peer came a minute ago, and has not shown that it believes
// our life.
func newDoubtedRig(t *testing.T) *helloRig {
	h := newHelloRig(t, Config{})
	hello := h.named(1 << 20)
	hello.Tells = false
	h.introduces(hello)
	h.serve()
	h.until(h.now.Add(time.Minute))
	return h
}

// TestPostHurriesNobodyWhoIsThere: to a peer that is there nothing but what is posted is sent
// because of that, though it has not shown yet that it believes our life.
func TestPostHurriesNobodyWhoIsThere(t *testing.T) {
	h := newDoubtedRig(t)
	h.at = nil
	h.post()
	if h.until(h.now.Add(time.Second)); len(h.at) > 2 {
		t.Errorf("asked %d times in a second", len(h.at))
	}
	if h.until(h.now.Add(helloIdle)); len(h.at) == 0 {
		t.Error("not asked any more")
	}
}

// TestAskingEnds: a peer that was not heard to believe our life is not asked for ever when
// another one came that does not answer either.
func TestAskingEnds(t *testing.T) {
	h := newDoubtedRig(t)
	h.introduces(frame.Hello{Life: 1 << 21})
	h.serve()
	h.until(h.now.Add(time.Minute))
	h.at = nil
	if h.until(h.now.Add(time.Minute)); len(h.at) > 0 {
		t.Errorf("asked %d times more", len(h.at))
	}
}

// TestResetAsksWhoWasSilent: a peer that came by itself, and went, is asked when somebody resets
// the connection to it.
func TestResetAsksWhoWasSilent(t *testing.T) {
	h := newHelloRig(t, Config{})
	h.come(1 << 20)
	h.c.learned.Store(true)
	h.now = h.now.Add(time.Hour)
	if err := h.c.reset(0); err != nil {
		t.Fatal(err)
	}
	h.at = nil
	h.serve()
	if h.until(h.now.Add(time.Minute)); len(h.at) < 2 {
		t.Errorf("asked %d times", len(h.at))
	}
}

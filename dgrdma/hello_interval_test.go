package dgrdma

import (
	"errors"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/session"
	"github.com/dgrdma/dgrdma/frame"
)

// helloRig is a halfRig that notes when frames of one kind of the handshake leave.
type helloRig struct {
	*halfRig
	kind frame.HandshakeKind
	at   []ack.Instant
}

func newHelloRig(t *testing.T, cfg Config) *helloRig {
	t.Helper()
	h := &helloRig{kind: frame.HandshakeHello}
	cfg.Trace = &Trace{FrameSent: func(_ PeerName, b []byte, _ bool) {
		if frame.IsSession(b) {
			return
		}
		f, err := frame.Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		if s, ok := handshakeIn(&f); ok && s.Kind == h.kind && h.halfRig != nil {
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

// until has time pass until then, or until the peer times out, and returns how long after the one before each frame left.
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

// helloFirst is the pause after the first HELLO to a peer that is near.
const helloFirst = 20 * time.Millisecond

// slowing fails unless pauses begin with one and grow fourfold until they are as long as most.
func slowing(t *testing.T, pauses []time.Duration, first, most time.Duration) {
	t.Helper()
	want := min(first, most)
	for i, d := range pauses {
		if d != want {
			t.Fatalf("pause %d is %v, want %v: %v", i, d, want, pauses)
		}
		want = min(4*want, most)
	}
	if len(pauses) == 0 || pauses[len(pauses)-1] != most {
		t.Errorf("pauses of %v, want up to %v", pauses, most)
	}
}

// helloIdle is the longest pause between two HELLOs when nothing is posted.
const helloIdle = 8 * time.Second

// TestHellosWithoutAnswer checks that HELLOs that are not answered become rare, less so while something is posted, until the peer times out
// for that, at that moment; and that several leave before, however short GiveUp is.
func TestHellosWithoutAnswer(t *testing.T) {
	t.Run("at rest", func(t *testing.T) {
		h := newHelloRig(t, Config{})
		slowing(t, h.until(h.now.Add(time.Minute)), 4*helloFirst, helloIdle)
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
				t.Errorf("no HELLO leaves when something is posted, but %v before", posted.Sub(last))
			}
			h.at = h.at[len(h.at)-1:]
			slowing(t, h.until(posted.Add(time.Hour)), helloFirst, x.most)
			if d := h.now.Sub(posted); !errors.Is(h.c.tx.err, ErrPeerDown) || d != x.giveUp {
				t.Errorf("after %v: %v", d, h.c.tx.err)
			}
		})
	}
}

// TestHelloAfterAnother checks that what is posted has a peer asked that was asked a while ago, but no sooner than HELLOs may follow
// each other; and that what is posted after it does not.
func TestHelloAfterAnother(t *testing.T) {
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

// TestHelloThatIsAnsweredAtOnce checks that a peer that says HELLO itself has a WELCOME at once, and is asked as rarely as before.
func TestHelloThatIsAnsweredAtOnce(t *testing.T) {
	h := newHelloRig(t, Config{})
	h.until(h.now.Add(time.Minute))
	for epoch := range uint32(3) {
		h.kind, h.at = frame.HandshakeWelcome, nil
		h.hellos(1<<20 + epoch)
		h.serve()
		if len(h.at) != 1 {
			t.Errorf("%d WELCOMEs at once", len(h.at))
		}
		h.kind, h.at = frame.HandshakeHello, nil
		slowing(t, h.until(h.now.Add(time.Minute)), helloIdle, helloIdle)
	}
}

// confirming has a peer answer, which does not show then that it has the session.
func (h *helloRig) confirming(epoch session.Epoch) {
	h.t.Helper()
	n := h.c.session
	n.acts(h.now, &session.Frame{Kind: session.Welcome, Sender: epoch, Receiver: n.tx.m.Local}, spoken{peerServices: peerServices{servesMemory(), true}})
	h.begins()
	h.kind, h.at = frame.HandshakeConfirm, nil
	h.serve()
}

// TestConfirmsBecomeRare checks that CONFIRM is repeated until the peer shows that it has the session, ever more rarely, that what is
// posted does not hurry it, because it leaves itself, and that nothing of the handshake leaves once the peer has shown that.
func TestConfirmsBecomeRare(t *testing.T) {
	h := newHelloRig(t, Config{})
	h.confirming(1 << 20)
	slowing(t, h.until(h.now.Add(time.Minute)), helloFirst, helloMost)
	h.at = nil
	h.post()
	if h.until(h.now.Add(time.Second)); len(h.at) != 1 {
		t.Errorf("%d CONFIRMs in a second, want 1", len(h.at))
	}
	h.c.session.rx.rises(h.now)
	h.at = nil
	for len(h.flying) > 0 {
		h.acknowledges(0)
	}
	for _, h.kind = range []frame.HandshakeKind{frame.HandshakeHello, frame.HandshakeConfirm} {
		if h.until(h.now.Add(time.Minute)); len(h.at) > 0 {
			t.Errorf("%d of kind %v when the peer has the session", len(h.at), h.kind)
		}
	}
}

// TestResetAsksASilentPeer checks that a peer that came by itself, and went, is asked when the program resets the connection to it.
func TestResetAsksASilentPeer(t *testing.T) {
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

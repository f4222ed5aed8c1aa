package dgrdma

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/endpoint/admission"
	"github.com/dgrdma/dgrdma/seal"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestFlowsAndLettersAreBounded checks that a program that posts to a service, or writes to it,
// faster than the network carries it is told so, and it is counted; what was taken is done.
func TestFlowsAndLettersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, here, there := posts(t, pairConfig{link: simnet.Link{Latency: time.Millisecond}})
		defer p.close()
		ch := here.channel(0)
		p.net.Link(addrA, addrB, simnet.Link{Down: true})
		flow, done := ch.Flow(), 0
		for range mostOfService {
			x := &Transaction{Done: func(_ *Transaction, err error) { done++ }}
			if err := flow.Post(x); err != nil {
				t.Fatal(err)
			}
		}
		if err := flow.Post(new(Transaction)); !errors.Is(err, ErrQueueFull) {
			t.Errorf("one more: %v", err)
		}
		if err := p.toB.Post(new(Transaction)); err != nil {
			t.Errorf("to the memory: %v", err)
		}
		var b mailbox
		for range mostLetters + 1 {
			ch.Mail(b.letter(p.toB.Life(), "letter"))
		}
		if err := b.settled[mostLetters]; !errors.Is(err, ErrQueueFull) || b.times[mostLetters-1] != 0 {
			t.Errorf("one letter more: %v; the one before was settled %d times", err, b.times[mostLetters-1])
		}
		if n := p.toB.Stats().QueueFull; n != 2 {
			t.Errorf("%d times a queue was full, want 2", n)
		}
		p.net.Link(addrA, addrB, simnet.Link{})
		time.Sleep(2 * time.Minute)
		b.once(t, nil)
		if n := len(there.came()); done != mostOfService || n != mostLetters || ch.Waiting() != 0 {
			t.Errorf("%d transactions are done and %d letters came, want %d and %d; %d wait", done, n, mostOfService, mostLetters, ch.Waiting())
		}
	})
}

// handshakes is a wire on which what leaves is no frames.
type handshakes struct {
	manyAtOnce
	sent int
}

func (w *handshakes) Send(batch []transport.Outgoing) (int, error) {
	w.sent += len(batch)
	return len(batch), nil
}

// TestSealedUnknownSourcesAtOnce checks that as many unknown sources that ask for a key at once are
// answered as without keys, and that the others are counted.
func TestSealedUnknownSourcesAtOnce(t *testing.T) {
	w := &handshakes{manyAtOnce: manyAtOnce{newForgery()}}
	e, err := New(w, &Config{ID: 2, Manual: true, AcceptAny: true, Keys: ringOf(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	const strangers = 500
	for i := range strangers {
		q := seal.Ask(ringOf(1).Of(1), seal.NewInstance(), 0).Again(nil, [4]byte{2, 0, 1, 0})
		w.in <- transport.Datagram{From: simnet.Addr(uint32(i)), Data: q}
	}
	if _, err := e.Progress(time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if s := e.Stats(); w.sent != admission.MostAnswers || s.Challenges != admission.MostAnswers || s.Unanswered != strangers-admission.MostAnswers {
		t.Errorf("%d left, %d are counted as answered and %d as not, want %d and %d", w.sent, s.Challenges, s.Unanswered, admission.MostAnswers, strangers-admission.MostAnswers)
	}
}

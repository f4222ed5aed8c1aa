package seal

import (
	"bytes"
	"testing"
)

// TestForgedChallenge: a challenge that was changed in any bit, is of who has another key, or of a question between others, leaves what
// is said as it was, and the true one is taken behind it; so with one that answers no question.
func TestForgedChallenge(t *testing.T) {
	var c Challenger
	a := Ask(&group, mine, 1)
	question := a.Again(nil, ids)
	challenge := c.Answer(nil, minute, &group, question, here)
	wrong := c.Answer(nil, minute, &Key{9}, question, here)
	between := bytes.Clone(question)
	between[0]++
	others := c.Answer(nil, minute, &group, between, here)
	copy(others, challenge[:idsSize])
	forge := func(taken string) {
		t.Helper()
		said := a.Again(nil, ids)
		refused := func(what string, b []byte) {
			t.Helper()
			ok, why := a.Take(b)
			if again := bytes.Equal(b[handshakeHead:macAt], said[handshakeHead:macAt]); ok || (why == Stale) != (nonceIn(b) != a.nonce || again) {
				t.Errorf("%s, %s: %v, %v", taken, what, ok, why)
			}
			if !bytes.Equal(a.Again(nil, ids), said) {
				t.Fatalf("%s, %s: something else is said now", taken, what)
			}
		}
		for i := range challenge {
			for bit := range 8 {
				changed := bytes.Clone(challenge)
				if changed[i] ^= 1 << bit; KindOf(changed) == Challenge {
					refused("changed", changed)
				}
			}
		}
		refused("another key", wrong)
		refused("for others", others)
	}
	forge("before")
	if ok, why := a.Take(challenge); !ok {
		t.Fatalf("the true one is refused: %v", why)
	}
	forge("after")

	unasked := c.Answer(nil, minute, &group, make([]byte, 46), here)
	if !Unasked(unasked) || !c.Authentic(&group, unasked) || c.Authentic(&Key{9}, unasked) {
		t.Error("whose an unasked challenge is is not known")
	}
}

// TestChallengesInAnyOrder: whatever challenges of the peer's come, for other addresses and from other times, the answer to one of them
// ends the handshake, also when there is another one by then, and when the same comes again it says the same.
func TestChallengesInAnyOrder(t *testing.T) {
	c := new(Challenger)
	a := Ask(&group, mine, 1)
	question := a.Again(nil, ids)
	take := func(challenge []byte) (first []byte) {
		t.Helper()
		if ok, why := a.Take(challenge); !ok {
			t.Fatalf("refused: %v", why)
		}
		return a.Again(nil, ids)
	}
	true1 := c.Answer(nil, minute, &group, question, here)
	elsewhere := take(c.Answer(nil, minute, &group, question, []byte("10.0.0.2:7000")))
	if f, why := c.Check(minute, &group, elsewhere, here); f != nil || why != Stale {
		t.Fatalf("a challenge for another address is taken: %v", why)
	}
	first := take(true1)
	other2 := take(c.Answer(nil, minute, &group, question, []byte("10.0.0.3:7000")))
	if again := take(true1); !bytes.Equal(again, first) || bytes.Equal(other2, first) {
		t.Error("something else answers the same challenge")
	}
	fresh, why := c.Check(minute, &group, first, here)
	if fresh == nil {
		t.Fatalf("refused: %v", why)
	}
	second, theirs, ok := fresh.Second(nil, other, 2)
	if !ok {
		t.Fatal("no second message")
	}
	late := take(c.Answer(nil, minute+challengeTime, &group, question, here))
	for i := range macSize + challengeSize { // nobody makes one first message of two
		mixed := bytes.Clone(late)
		copy(mixed[challengeAt+i:noiseAt], first[challengeAt+i:noiseAt])
		if bytes.Equal(mixed, late) {
			continue // it ends alike, as one byte does once in 256 times: it is the true one
		}
		if f, _ := c.Check(minute+challengeTime, &group, mixed, here); f != nil {
			t.Errorf("of two first messages, mixed at %d: answered", i)
		}
	}
	ours, ok := a.Second(second)
	if !ok {
		t.Fatal("the answer to another challenge is refused")
	}
	if got, ok := theirs.Opening.Open(sealed(ours.Sealing, plain(64))); !ok || !bytes.Equal(got, plain(64)) {
		t.Error("they have different keys")
	}
}

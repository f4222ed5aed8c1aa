package rpcrdma

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// modelPeer is a side of a world: it counts by credits2, and has messages to send.
type modelPeer struct {
	*credits2
	other   *modelPeer
	inbox   []modelMessage
	todo    int // to be sent unasked
	replies int // to be sent since something came
	posted  int // receives that are there, those taken by inbox included
	parts   int
	answers float64
	speed   int
	up      bool
	sum     int
}

type modelMessage struct {
	kind kind
	word uint32
}

func newModelPeer(r *rand.Rand, side Side, windows []int) *modelPeer {
	c := Config{Side: side, Window: windows[r.IntN(len(windows))]}
	p := &modelPeer{credits2: newCredits2(&c), up: side == Client}
	p.todo = []int{1, 3, 100, 500}[r.IntN(4)]
	p.answers = []float64{0, .5, 1}[r.IntN(3)]
	p.parts = []int{1, 1, 3}[r.IntN(3)]
	p.speed = []int{1, 1, 5}[r.IntN(3)]
	return p
}

func (p *modelPeer) send(k kind) error {
	p.posted = p.receives()
	p.other.inbox = append(p.other.inbox, modelMessage{k, p.sent(k)})
	p.sum++
	if n := len(p.other.inbox); n > p.other.posted {
		return fmt.Errorf("%d messages meet %d receives (window %d, the sender's %d)", n, p.other.posted, p.other.window, p.window)
	}
	return nil
}

func (p *modelPeer) take(r *rand.Rand) {
	x := p.inbox[0]
	p.inbox = p.inbox[1:]
	p.received(x.kind, x.word)
	p.up = true
	if x.kind != kindRefresh && r.Float64() < p.answers {
		p.replies += p.parts
	}
}

// world runs two peers to the end of what they want to send.
func (w *modelWorld) run(r *rand.Rand, windows []int) error {
	a, b := newModelPeer(r, Client, windows), newModelPeer(r, Server, windows)
	a.other, b.other = b, a
	a.posted, b.posted = a.receives(), b.receives()
	type act struct {
		p *modelPeer
		k int
	}
	const take, send, refresh = 0, 1, 2
	var acts []act
	for range 6000 {
		acts = acts[:0]
		for _, p := range []*modelPeer{a, b} {
			if len(p.inbox) > 0 {
				for range p.speed {
					acts = append(acts, act{p, take})
				}
			}
			if !p.up {
				continue
			}
			if p.todo+p.replies > 0 && p.maySend(kindCall) {
				acts = append(acts, act{p, send})
			} else if p.refreshDue() {
				acts = append(acts, act{p, refresh})
			}
		}
		if len(acts) == 0 {
			w.messages += a.sum + b.sum
			if a.up && a.todo+a.replies > 0 || b.up && b.todo+b.replies > 0 {
				return fmt.Errorf("deadlock: %+v %+v", *a.credits2, *b.credits2)
			}
			return nil
		}
		x := acts[r.IntN(len(acts))]
		var err error
		switch x.k {
		case take:
			x.p.take(r)
		case refresh:
			w.refreshes++
			err = x.p.send(kindRefresh)
		default:
			if x.p.replies > 0 && (r.Float64() < .7 || x.p.todo == 0) {
				x.p.replies--
			} else {
				x.p.todo--
			}
			err = x.p.send(kindCall)
		}
		if err != nil {
			return err
		}
	}
	w.endless++ // answers of answers
	return nil
}

type modelWorld struct{ messages, refreshes, endless int }

// TestCredits2 checks in 10,000 random worlds that the accounting of version 2 meets a receive for each message and never
// stops, whatever window a peer says (RPC2-011, RPC2-012, RPC2-014, RPC2-016, RPC2-019).
func TestCredits2(t *testing.T) {
	for name, windows := range map[string][]int{"small": {4, 5, 8, 16, 64}, "large": {4, 16, 64, 255, 1024}} {
		t.Run(name, func(t *testing.T) {
			var w modelWorld
			for seed := range uint64(5000) {
				if err := w.run(rand.New(rand.NewPCG(seed, 19)), windows); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
			t.Logf("%d messages, %d refreshes, %d worlds cut off", w.messages, w.refreshes, w.endless)
		})
	}
}

// TestCredits1 checks the words of version 1: a Call asks for what this side has receives for, a Reply grants what was asked, and no
// more than there is (RPC1-010, RPC1-013, RPC1-014).
func TestCredits1(t *testing.T) {
	for asked, want := range map[uint32]uint32{0: 8, 1: 1, 5: 5, 8: 8, 9: 8, 1<<32 - 1: 8} {
		c := newCredits1(&Config{Side: Server, Window: 8, Reverse: 3})
		c.received(kindCall, asked)
		for _, k := range []kind{kindReply, kindError} {
			if got := c.sent(k); got != want {
				t.Errorf("asked for %d, granted %d, want %d", asked, got, want)
			}
		}
		if got := c.sent(kindCall); got != 3 {
			t.Errorf("asked for %d reverse Calls", got)
		}
	}
	if got := newCredits1(&Config{Side: Client, Window: 8}).sent(kindError); got != 1 {
		t.Errorf("a side that takes no Calls grants %d, want 1", got)
	}
}

// TestUnreadableMessage checks that a message without a word of credits uses one, and grants none (RPC2-080).
func TestUnreadableMessage(t *testing.T) {
	s := open(t, Version2)
	s.call(&Call{Head: rpcCall(7, 40)}) // the peer's window is not whole
	before := *s.m.credits.(*credits2)
	s.raw([]byte{1, 2, 3})
	if c := s.m.credits.(*credits2); c.allowed != before.allowed || c.owed != before.owed+1 {
		t.Errorf("allowed %d, owed %d; before %d, %d", c.allowed, c.owed, before.allowed, before.owed)
	}
}

// TestRefreshOnTop checks that a side without a credit may send one refresh, and no other until something comes (RPC2-016, RPC2-017,
// RPC2-019).
func TestRefreshOnTop(t *testing.T) {
	c := newCredits2(&Config{Side: Client, Window: 8})
	c.sent(kindProperties)
	c.received(kindProperties, Credit2(8, 2))
	c.sent(kindCall)
	c.sent(kindCall)
	c.owed = 8
	if c.maySend(kindCall) || !c.refreshDue() {
		t.Fatal("a refresh may not go")
	}
	if word := c.sent(kindRefresh); word != Credit2(8, 8) || c.allowed != 0 {
		t.Errorf("the refresh says %#x", word)
	}
	if c.owed = 8; c.refreshDue() {
		t.Error("a second refresh may go")
	}
	if c.received(kindRefresh, Credit2(8, 1)); !c.refreshDue() || !c.maySend(kindCall) {
		t.Error("nothing may go after a message has come")
	}
	if c.sent(kindCall); c.allowed != 0 || !c.maySend(kindRefresh) {
		t.Errorf("%+v: the receive on top is not there again after a message has come", c)
	}
}

// TestUnprovenMessages checks that grants of one do not have a side send more messages than the lesser window, since they may be of nothing that the
// peer has taken, and that a grant of two is of two that it has (RPC2-014, RPC2-019).
func TestUnprovenMessages(t *testing.T) {
	for _, maximum := range []int{1, 2, 4, 8, 64} {
		c := newCredits2(&Config{Side: Client, Window: 8})
		send := func() (n int) {
			for ; n < 100 && c.maySend(kindCall); n++ {
				c.sent(kindCall)
				c.received(kindRefresh, Credit2(uint16(maximum), 1))
			}
			return n
		}
		if n := send(); n != min(maximum, 8) {
			t.Errorf("%d messages go, and the lesser window is %d", n, min(maximum, 8))
		}
		c.received(kindRefresh, Credit2(uint16(maximum), 2))
		if n := send(); n != min(maximum, 2) {
			t.Errorf("window %d: %d messages go after 2 were taken", maximum, n)
		}
	}
}

// TestFirstWindowCounts checks that the window of a peer is what its first message says, at least one, and no later one (RPC2-012, RPC2-019).
func TestFirstWindowCounts(t *testing.T) {
	for first, want := range map[uint16]int{0: 1, 1: 1, 4: 4, 8: 8} {
		for _, later := range []uint16{0, 1, 4, 100} {
			c := newCredits2(&Config{Side: Server, Window: 64, Reverse: 64})
			c.received(kindProperties, Credit2(first, first))
			c.received(kindCall, Credit2(later, 100))
			if c.peer != want || c.calls() != want || c.allowed != want || c.receives() != 64+want+1 {
				t.Errorf("%d, then %d: %+v, %d Calls, %d receives", first, later, c, c.calls(), c.receives())
			}
		}
	}
}

// TestReceivesGrowOnce checks how many receives a side posts: what it does not need before the peer has spoken it posts then, and none is taken back
// (RPC2-019, RPC2-022).
func TestReceivesGrowOnce(t *testing.T) {
	for _, x := range []struct {
		side            Side
		window, reverse int
		maximum         uint16
		before, after   int
	}{
		{Server, 8, 0, 1, 2, 10},
		{Server, 8, 3, 4, 2, 13},
		{Server, 8, 3, 64, 2, 17},
		{Client, 8, 0, 1, 9, 10},
		{Client, 8, 3, 1, 12, 12},
		{Client, 8, 3, 64, 12, 17},
	} {
		c := newCredits2(&Config{Side: x.side, Window: x.window, Reverse: x.reverse})
		before := c.receives()
		c.received(kindProperties, Credit2(x.maximum, 1))
		if after := c.receives(); before != x.before || after != x.after {
			t.Errorf("%+v: %d receives, then %d", x, before, after)
		}
	}
}

// TestWordsOfASide checks what each message says: this side's window, and what it grants. The first one grants the window; a later one what was taken, if that is two messages
// or more, and else one as a gift, so that no message grants nothing (RPC2-012, RPC2-013, RPC2-019).
func TestWordsOfASide(t *testing.T) {
	for _, k := range []kind{kindCall, kindReply, kindPart, kindError, kindProperties, kindRefresh} {
		for _, x := range []struct{ owed, granted, stays int }{{0, 1, 0}, {1, 1, 1}, {2, 2, 0}, {7, 7, 0}} {
			c := newCredits2(&Config{Side: Server, Window: 8})
			c.received(kindProperties, Credit2(8, 8))
			c.received(kindUnknown, 0) // it has used a credit, too
			c.owed = 5
			if word := c.sent(k); word != Credit2(8, 8) || c.owed != 0 {
				t.Errorf("kind %d: the first message says %#x, %d are owed", k, word, c.owed)
			}
			c.owed = x.owed
			if word := c.sent(k); word != Credit2(8, uint16(x.granted)) || c.owed != x.stays {
				t.Errorf("kind %d, %d owed: a message says %#x, %d are owed then", k, x.owed, word, c.owed)
			}
		}
	}
}

// TestGrantOfNothing checks that a grant of 0 counts as one of 1 (RPC2-013).
func TestGrantOfNothing(t *testing.T) {
	for _, granted := range []uint16{0, 1} {
		c := newCredits2(&Config{Side: Server, Window: 8})
		for n := 1; n <= 3; n++ {
			if c.received(kindCall, Credit2(8, granted)); c.allowed != n {
				t.Errorf("%d are allowed after %d grants of %d", c.allowed, n, granted)
			}
		}
	}
}

// TestRefreshTakesACredit checks that a refresh takes a credit where there is one, and that the receive on top is then still there (RPC2-016).
func TestRefreshTakesACredit(t *testing.T) {
	c := newCredits2(&Config{Side: Server, Window: 8})
	c.received(kindCall, Credit2(8, 2))
	if c.sent(kindRefresh); c.allowed != 1 || c.beyond || c.unproven != 0 {
		t.Errorf("%+v after a refresh with two credits", c)
	}
	if c.sent(kindRefresh); c.allowed != 0 || c.beyond {
		t.Errorf("%+v after a refresh with the last credit", c)
	}
	if c.sent(kindRefresh); c.allowed != 0 || !c.beyond || c.maySend(kindRefresh) {
		t.Errorf("%+v after a refresh without a credit", c)
	}
	c.allowed = 1 // what comes grants one
	if !c.maySend(kindRefresh) {
		t.Errorf("%+v: a refresh with a credit may not go", c)
	}
}

// TestFirstCredit checks that a client may send one message before it has heard of the server, and a server none (RPC2-022).
func TestFirstCredit(t *testing.T) {
	client, server := newCredits2(&Config{Side: Client, Window: 8}), newCredits2(&Config{Side: Server, Window: 8})
	if !client.maySend(kindProperties) || server.maySend(kindProperties) {
		t.Errorf("client %+v, server %+v", client, server)
	}
	if client.sent(kindProperties); client.maySend(kindCall) {
		t.Errorf("client %+v", client)
	}
}

// TestRefreshIsDue checks when a refresh goes: when half of the lesser window was taken, two messages at least, and not before both sides have spoken (RPC2-016).
func TestRefreshIsDue(t *testing.T) {
	for window, want := range map[int]int{1: 2, 3: 2, 4: 2, 5: 3, 8: 4, 16: 8} {
		c := newCredits2(&Config{Side: Server, Window: window})
		c.owed = 100
		if c.spoken = true; c.refreshDue() {
			t.Errorf("window %d: a refresh is due before the peer has spoken", window)
		}
		c.spoken = false
		c.received(kindProperties, Credit2(16, 16))
		if c.owed = 100; c.refreshDue() {
			t.Errorf("window %d: a refresh is due before this side has spoken", window)
		}
		c.sent(kindProperties)
		for c.owed = 0; !c.refreshDue(); c.owed++ {
		}
		if c.owed != want {
			t.Errorf("window %d: a refresh is due after %d messages, want %d", window, c.owed, want)
		}
		c = newCredits2(&Config{Side: Server, Window: window})
		c.received(kindProperties, Credit2(1, 1))
		c.sent(kindProperties)
		if c.owed = 2; !c.refreshDue() {
			t.Errorf("window %d, that of the peer 1: no refresh is due after 2 messages", window)
		}
	}
}

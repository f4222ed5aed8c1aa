package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/verbs"
)

func somePlan() Plan { return Plan{Size: 4096, Depth: 4, Peers: 1, Active: 4, Verify: VerifySample} }

// TestVerbsRivals: TCP and TLS have their turns between queue pairs, in the same memory, and then ours finds its own bytes there.
func TestVerbsRivals(t *testing.T) {
	fixture.NoGoroutineLeft(t)
	for _, receive := range []bool{false, true} {
		for _, v := range []Verb{VerbWrite, VerbRead, VerbSend} {
			carriers := []Carrier{TCP, TLS, Ours}
			var o *Outcome
			nothing := func(carrier Carrier) bool { return o.Spread(Contender{Carrier: carrier}, Turn.PerSecond).Least <= 0 }
			// A machine that is busy may do nothing in so short a turn.
			for turn := 10 * time.Millisecond; o == nil || slices.ContainsFunc(carriers, nothing) && turn < time.Second; turn *= 4 {
				_, c, served := verbsEnds(t, nil)
				c.Verb, c.Plan, c.Rivals, c.Congestion, c.Receive = v, somePlan(), carriers[:2], DefaultController, receive
				if receive {
					c.Plan.BothWays = 1
				}
				o = NewOutcome()
				err := c.Run(t.Context(), TurnsBeside*turn, o)
				c.Close()
				if err := errors.Join(err, <-served); err != nil {
					t.Fatal(err)
				}
			}
			for _, carrier := range carriers {
				if rate := o.Spread(Contender{Carrier: carrier}, Turn.PerSecond); rate.Turns != TurnsBeside || rate.Least <= 0 {
					t.Errorf("%v, receive %v: %v: %+v", v, receive, carrier, rate)
				}
			}
		}
	}
}

// TestNoServerOfVerbs: whoever else listens there is refused, with words, within seconds.
func TestNoServerOfVerbs(t *testing.T) {
	t.Parallel()
	fixture.NoGoroutineOfItsOwnLeft(t)
	there, err := verbs.Open("tcp:127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	l, err := there.Listen("0")
	if err != nil {
		t.Fatal(err)
	}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	var talks atomic.Bool
	go func() {
		for {
			c, err := tcp.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			if talks.Load() {
				c.Write([]byte("220 mail.example ESMTP, or whatever else a server says that speaks first\r\n"))
			}
		}
	}()
	answer := func(with func(r *verbs.Request)) func() {
		return func() {
			go func() {
				if r, err := l.Accept(t.Context()); err == nil {
					with(r)
				}
			}()
		}
	}
	for _, x := range []struct {
		name, address string
		before        func()
		says          string
		not           bool // it is no question of what listens there
	}{
		{"accepts as rping does", l.Addr().String(), answer(func(r *verbs.Request) { r.Accept(t.Context(), nil) }), "does not say that it measures", false},
		{"another version", l.Addr().String(), answer(func(r *verbs.Request) {
			r.Accept(t.Context(), &verbs.Options{Private: encode(&welcome{Protocol: protocol, Version: 9})})
		}), "version 9", false},
		{"rejects", l.Addr().String(), answer(func(r *verbs.Request) { r.Reject(t.Context(), []byte("go away")) }), "no server of bench over TCP listens there: " + l.Addr().String() + " rejected the connection: go away", false},
		{"rejects with what does something to a terminal", l.Addr().String(), answer(func(r *verbs.Request) { r.Reject(t.Context(), []byte("go away\x1b")) }), `with private data "go away\x1b"`, false},
		{"says nothing", tcp.Addr().String(), func() {}, "no server of bench over TCP", false},
		{"speaks something else", tcp.Addr().String(), func() { talks.Store(true) }, "no server of bench over TCP", false},
		{"nobody", "127.0.0.1:1", func() {}, "connection refused", true},
	} {
		t.Run(x.name, func(t *testing.T) {
			x.before()
			h, err := verbs.Open("tcp")
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			c := &VerbsClient{Host: h, Address: "tcp:" + x.address}
			if x.name != "says nothing" {
				c.introduction = time.Minute
			}
			err = c.Join(t.Context())
			c.Close()
			if err == nil || !strings.Contains(err.Error(), x.says) || errors.Is(err, ErrNoBench) == x.not {
				t.Error(err)
			}
		})
	}
}

// TestStrangersAreRejected: a server of bench opens no queue pair to whoever is no client of it, and goes on.
func TestStrangersAreRejected(t *testing.T) {
	s, c, served := verbsEnds(t, nil)
	for _, private := range [][]byte{
		nil, []byte("rping"), encode(&hello{protocol, version, 9, 0, 0}), encode(&hello{protocol, version, pairMeasured, 1, 0}),
		encode(&hello{protocol, version, pairMeasured, c.welcome.Session, 0}), encode(&hello{protocol, version + 1, pairControl, 0, 0}),
	} {
		if q, err := c.Host.Dial(t.Context(), "tcp:"+s.Listener.Addr().String(), &verbs.Options{Private: private}); err == nil {
			t.Errorf("%q got a queue pair", private)
			q.Abort()
		}
	}
	c.Plan = somePlan()
	err := c.Run(t.Context(), 20*time.Millisecond, NewOutcome())
	c.Close()
	if err := errors.Join(err, <-served); err != nil {
		t.Error(err)
	}
}

// TestWhatIsRefused by either side, whoever asks.
func TestWhatIsRefused(t *testing.T) {
	big, both, atomic := somePlan(), somePlan(), somePlan()
	big.Size, both.BothWays = 1<<30, 1
	for _, x := range []struct {
		verb Verb
		plan Plan
		says string
	}{
		{VerbWrite, big, "give the server more"}, {VerbSend, both, "one way after the other"}, {VerbFetchAdd, atomic, "of 8 bytes"}, {77, somePlan(), "no verb 77"}, {VerbWrite, Plan{}, "no run has"},
	} {
		_, c, served := verbsEnds(t, nil)
		c.Verb, c.Plan = x.verb, x.plan
		if err := c.Run(t.Context(), time.Second, NewOutcome()); err == nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%v: %v", x.verb, err)
		}
		// The server, too, if a client does not.
		if err := c.control.tell(t.Context(), kindOpen, &opening{Plan: x.plan, Verb: x.verb}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.answer(t.Context(), kindOpen); err == nil || !strings.Contains(err.Error(), "the server refuses: ") || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%v: %v", x.verb, err)
		}
		if err := <-served; err == nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%v: server: %v", x.verb, err)
		}
		c.Close()
	}
	// What comes in no order.
	for _, tell := range []func(c *VerbsClient) error{
		func(c *VerbsClient) error { p := somePlan(); return c.control.tell(t.Context(), kindBegin, &p) },
		func(c *VerbsClient) error { return c.control.tell(t.Context(), kindBegin, "short") },
		func(c *VerbsClient) error { return c.control.tell(t.Context(), kindOpen, nil) },
	} {
		_, c, served := verbsEnds(t, nil)
		if err := tell(c); err != nil {
			t.Fatal(err)
		}
		if err := <-served; err == nil {
			t.Error("the server went along")
		}
		c.Close()
	}
}

// TestVerbsServerIsBusy: one client at a time, and the other is told, with whom and for how long; one that is silent
// gives way.
func TestVerbsServerIsBusy(t *testing.T) {
	t.Parallel()
	fixture.NoGoroutineOfItsOwnLeft(t)
	s := verbsServer(t)
	s.GiveUp = 12 * time.Second // a busy machine has a client say nothing for seconds
	failed := make(chan error, 4)
	s.Failed = func(_ fmt.Stringer, err error) { failed <- err }
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, false) }()
	first, second := verbsClient(t, s), verbsClient(t, s)
	if err := first.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := second.Join(t.Context())
	var with *BusyError
	if !errors.As(err, &with) || !strings.HasPrefix(with.Client, "127.0.0.1:") || with.For <= 0 || with.Patience != s.GiveUp/2 {
		t.Errorf("%v: %+v", err, with)
	}
	first.leave() // it says nothing any more
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if err = second.Join(t.Context()); err == nil {
			break
		}
		if !errors.Is(err, ErrBusy) || time.Since(began) > time.Minute {
			t.Fatal(err)
		}
	}
	if err := <-failed; !errors.Is(err, ErrSilent) {
		t.Error(err)
	}
	<-first.control.qp.Done()
	second.Plan = somePlan()
	if err := second.Run(t.Context(), 20*time.Millisecond, NewOutcome()); err != nil {
		t.Error(err)
	}
	first.Close()
	second.Close()
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// TestVerbsServerDies amid a run: what was measured until then is told, by whichever side posts.
func TestVerbsServerDies(t *testing.T) {
	t.Parallel()
	fixture.NoGoroutineOfItsOwnLeft(t)
	for v := range Verb(len(verbNames)) {
		for _, receive := range []bool{false, true} {
			var err error
			o := NewOutcome()
			// A busy machine may do nothing before.
			for after := 250 * time.Millisecond; after < 20*time.Second && o.Mine.Transactions+o.Theirs.Transactions == 0; after *= 4 {
				s, c, served := verbsEnds(t, nil)
				c.Verb, c.Plan, c.Receive = v, somePlan(), receive
				if v.Atomic() {
					c.Plan.Size = AtomicSize
				}
				if receive {
					c.Plan.BothWays = 1
				}
				o = NewOutcome()
				time.AfterFunc(after, func() { s.Host.Close() })
				err = c.Run(t.Context(), time.Hour, o)
				c.Close()
				<-served
			}
			if err == nil || errors.Is(err, ErrInterrupted) || o.Mine.Transactions+o.Theirs.Transactions == 0 || o.Mine.Nanoseconds+o.Theirs.Nanoseconds == 0 {
				t.Errorf("%v, receive %v: %v, %+v %+v", v, receive, err, o.Mine, o.Theirs)
			}
		}
	}
}

// TestVerbsServerFallsSilent: a client that gets no answer gives it up.
func TestVerbsServerFallsSilent(t *testing.T) {
	t.Parallel()
	fixture.NoGoroutineOfItsOwnLeft(t)
	_, c, served := verbsEnds(t, func(s *VerbsServer) {
		s.GiveUp = time.Second
		s.Began = func(Plan, func() uint64) func() {
			s.client.mu.Lock() // it answers nothing any more
			time.AfterFunc(3*time.Second, s.client.mu.Unlock)
			return func() {}
		}
	})
	c.Plan = somePlan()
	c.Plan.Rate = 4096
	if err := c.Run(t.Context(), time.Hour, NewOutcome()); !errors.Is(err, ErrServerSilent) {
		t.Error(err)
	}
	c.Close()
	<-served
}

// TestVerbsInterrupted: what was measured until then is told, and the server is through with it.
func TestVerbsInterrupted(t *testing.T) {
	fixture.NoGoroutineLeft(t)
	o := NewOutcome()
	for after := 100 * time.Millisecond; after < 20*time.Second && o.Mine.Transactions == 0; after *= 4 {
		_, c, served := verbsEnds(t, nil)
		c.Plan = somePlan()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(after, cancel)
		o = NewOutcome()
		if err := c.Run(ctx, time.Hour, o); !errors.Is(err, ErrInterrupted) || o.Theirs.Arrived != o.Mine.Transactions {
			t.Errorf("%v, %+v", err, o.Mine)
		}
		c.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
	if o.Mine.Transactions == 0 {
		t.Error("nothing was measured")
	}
}

// TestThousandQueuePairs: they open, carry and close, twice, and leave nothing; at the server each takes bounded memory.
func TestThousandQueuePairs(t *testing.T) {
	fixture.NoGoroutineLeft(t)
	_, c, served := verbsEnds(t, func(s *VerbsServer) {
		// What tests before this one used may not be given back yet.
		s.Idle = MemoryInUse()
		for calm := 0; calm < 5; calm++ {
			time.Sleep(10 * time.Millisecond)
			now := MemoryInUse()
			if now+1<<20 < s.Idle {
				calm = 0
			}
			s.Idle = now
		}
	})
	c.Plan = Plan{Size: 1024, Peers: 1000, Verify: VerifyFull}.WithDepth(0, c.ServerMemory())
	var after [2]uint64
	for i := range after {
		var o *Outcome
		// A busy machine may not get round in so short a time.
		for long := 200 * time.Millisecond; long < time.Minute && (o == nil || o.Mine.Transactions < 1000); long *= 4 {
			o = NewOutcome()
			if err := c.Run(t.Context(), long, o); err != nil {
				t.Fatal(err)
			}
		}
		// Both ends are in this process.
		const most = 64 << 10
		if o.Mine.Transactions < 1000 || o.Theirs.PeerMemory == 0 || o.Theirs.PeerMemory > most {
			t.Errorf("%d transactions, %d bytes for a queue pair", o.Mine.Transactions, o.Theirs.PeerMemory)
		}
		t.Logf("%d bytes for both ends of a queue pair", o.Theirs.PeerMemory)
		after[i] = MemoryInUse()
	}
	for began := time.Now(); after[1] > after[0]+4<<20 && time.Since(began) < 10*time.Second; time.Sleep(50 * time.Millisecond) {
		after[1] = MemoryInUse() // on a busy machine some may still be closing
	}
	if after[1] > after[0]+4<<20 {
		t.Errorf("in use after the first time %d bytes, after the second %d", after[0], after[1])
	}
	c.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
	runtime.GC()
}

// TestLastWord: what the other side said before it left is heard, however late one listens.
func TestLastWord(t *testing.T) {
	fixture.NoGoroutineLeft(t)
	s := verbsServer(t)
	here, err := verbs.Open("tcp:127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	left := make(chan error, 1)
	go func() {
		r, err := s.Listener.Accept(t.Context())
		if err != nil {
			left <- err
			return
		}
		q, err := r.Accept(t.Context(), &verbs.Options{PeerToPeer: true})
		if err != nil {
			left <- err
			return
		}
		l := newControlLine(q, nil, nil)
		err = errors.Join(l.tell(t.Context(), kindRefuse, "no"), l.tell(t.Context(), kindRefuse, "never"))
		l.close(time.Second)
		left <- err
	}()
	buffers := controlReceives()
	q, err := here.Dial(t.Context(), "tcp:"+s.Listener.Addr().String(), &verbs.Options{Posted: buffers, PeerToPeer: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-left; err != nil {
		t.Fatal(err)
	}
	<-q.Done()
	l := newControlLine(q, buffers, nil)
	for _, want := range []string{"no", "never"} {
		if r, err := l.next(t.Context()); err != nil || string(r.data) != want {
			t.Errorf("%q, %v, want %q", r.data, err, want)
		}
	}
	if _, err := l.next(t.Context()); !errors.Is(err, verbs.ErrPeerClosed) {
		t.Error(err)
	}
}

// TestVerbsServerIsInterrupted: a server that was to wait for a client, and is interrupted before, says so, whoever of those that wait sees it first.
func TestVerbsServerIsInterrupted(t *testing.T) {
	s := verbsServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20_000 {
		if err := s.Serve(ctx, true); !errors.Is(err, ErrInterrupted) {
			t.Fatalf("the server ended with %v", err)
		}
	}
}

// TestAbortWhileOpening checks that queue pairs may be aborted while others are being opened, as when the server dies then: the race
// detector looks.
func TestAbortWhileOpening(t *testing.T) {
	l := &lanes{}
	for range 64 {
		l.all = append(l.all, &lane{})
	}
	opened := make(chan struct{})
	go func() {
		defer close(opened)
		for i := range l.all {
			l.opened(i, nil)
		}
	}()
	for range 64 {
		l.each(func(*verbs.QueuePair) {})
	}
	<-opened
}

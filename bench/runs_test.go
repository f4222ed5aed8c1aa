package bench

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/tests/fixture"
)

// serveOnce has a server answer one client.
func serveOnce(t *testing.T, s *Server) <-chan error {
	served := make(chan error, 1)
	go func() { served <- s.Serve(t.Context(), true) }()
	return served
}

// serveUntil serves one client after the other until it is stopped.
func serveUntil(t *testing.T, s *Server) (stop func(), served <-chan error) {
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, false) }()
	return stop, ended
}

// TestClientReceives: only the server writes, as fast as it is told, and both count the same.
func TestClientReceives(t *testing.T) {
	fixture.NoGoroutineLeft(t)
	const rate = 500_000
	var seen Moved
	o := NewOutcome()
	// A busy machine may end no interval in so short a time.
	for long := 300 * time.Millisecond; seen.Transactions == 0 && long < 20*time.Second; long *= 4 {
		s, c := sides(t, Plan{Size: 5000, Peers: 1, Verify: VerifyFull, BothWays: 1, Rate: rate})
		c.Receive = true
		c.Every, c.Each = 20*time.Millisecond, func(i Interval) {
			seen.Bytes += i.Bytes
			seen.Transactions += i.Transactions
		}
		served := serveOnce(t, s)
		o = NewOutcome()
		if err := errors.Join(c.Run(t.Context(), long, o), <-served); err != nil {
			t.Fatal(err)
		}
	}
	n := o.Theirs.Transactions
	if o.Mine.Transactions != 0 || o.Theirs.Arrived != 0 || n == 0 || o.Mine.Arrived != n || o.Theirs.Bytes != 5000*n || o.Times.N() != 0 {
		t.Errorf("%+v, %+v", o.Mine, o.Theirs)
	}
	if most := rate/5000*time.Duration(o.Theirs.Nanoseconds).Seconds() + 2; float64(n) > most {
		t.Errorf("%d transactions in %v, want %v at most", n, time.Duration(o.Theirs.Nanoseconds), most)
	}
	if seen.Transactions == 0 || seen.Transactions > n || seen.Bytes != 5000*seen.Transactions {
		t.Errorf("intervals have %+v of %d transactions", seen, n)
	}
}

// TestRunsFollow: one client runs plans of several sizes, each behind a warm-up that is not
// measured, and the server is there for all of them, and then through.
func TestRunsFollow(t *testing.T) {
	fixture.NoGoroutineLeft(t)
	s, c := sides(t, Plan{Size: 64, Peers: 1, Verify: VerifyFull})
	var ran []Run
	s.Ran = func(r Run) { ran = append(ran, r) }
	served := serveOnce(t, s)
	c.WarmUp = 10 * time.Millisecond
	sizes := []uint32{64, 3000, 128}
	var measured []uint64
	for i, size := range sizes {
		c.Plan.Size, c.MoreRuns = size, i < len(sizes)-1
		o := NewOutcome()
		if err := c.Run(t.Context(), 20*time.Millisecond, o); err != nil {
			t.Fatal(err)
		}
		measured = append(measured, o.Mine.Transactions)
	}
	if err := <-served; err != nil || len(ran) != 2*len(sizes) {
		t.Fatalf("%v, %d runs", err, len(ran))
	}
	for i, size := range sizes {
		warmUp, run := ran[2*i], ran[2*i+1]
		if n := measured[i]; n == 0 || run.Saw.Arrived != n || warmUp.Saw.Arrived == 0 || warmUp.Plan.Size != size || run.Plan.Size != size {
			t.Errorf("%d bytes: %d transactions were measured; %+v, %+v", size, n, warmUp, run)
		}
	}
}

// counting is a client that counts how often it looks at all of its connections.
type counting struct {
	*Client
	looks atomic.Int32
}

func (c *counting) counts() counts {
	c.looks.Add(1)
	return c.Client.counts()
}

// TestLooksAtConnectionsTwice checks that a run whose intervals are not shown looks at the counters of connections at its beginning and its end: there may
// be thousands.
func TestLooksAtConnectionsTwice(t *testing.T) {
	fixture.NoGoroutineLeft(t)
	for _, each := range []func(Interval){nil, func(Interval) {}} {
		s, c := sides(t, Plan{Size: 64, Peers: 1})
		c.Every, c.Each = sampleTick, each
		served := serveOnce(t, s)
		counted := counting{Client: c}
		if err := errors.Join(c.Join(t.Context()), c.run(t.Context(), &counted, 4*sampleTick, NewOutcome()), <-served); err != nil {
			t.Fatal(err)
		}
		if n := counted.looks.Load(); each == nil && n != 2 || each != nil && n < 3 {
			t.Errorf("intervals shown %v: %d looks", each != nil, n)
		}
	}
}

// forgetful is the memory of a client whose server is an older one: what that tells of itself
// is nothing.
type forgetful struct{ *Memory }

func (m forgetful) Complete(src dgrdma.EndpointID, msg *dgrdma.Message) {
	if msg.CompletionAddr == controlWord && msg.CompletionValue == kindReady {
		clear(m.Bytes()[controlData:completionsAt])
	}
	m.Memory.Complete(src, msg)
}

// TestOlderServerKnowsNoRate: it is not asked to write at one, and is let go of as it should.
func TestOlderServerKnowsNoRate(t *testing.T) {
	t.Parallel()
	fixture.NoGoroutineOfItsOwnLeft(t)
	for _, bothWays := range []uint32{0, 1} {
		s, c := sides(t, Plan{Size: 64, Peers: 1, BothWays: bothWays, Rate: 1e6})
		c.Endpoint.Close()
		var err error
		if c.Endpoint, err = dgrdma.Open("udp:127.0.0.1", &dgrdma.Config{ID: 7, Memory: forgetful{c.Memory}}); err != nil {
			t.Fatal(err)
		}
		defer c.Endpoint.Close()
		if c.Conns[0], err = c.Endpoint.Dial(s.Endpoint.URL()); err != nil {
			t.Fatal(err)
		}
		served := serveOnce(t, s)
		if err := c.Run(t.Context(), 10*time.Millisecond, NewOutcome()); errors.Is(err, ErrNoRate) != (bothWays == 1) {
			t.Errorf("both ways %d: %v", bothWays, err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
}

// TestRecordsLeaveNothingBehind: what a newer client said does not become part of what an
// older one says after it, whose record is shorter.
func TestRecordsLeaveNothingBehind(t *testing.T) {
	s, c := sides(t, Plan{Size: 64, Peers: 1, Rate: 5})
	if err := tell(t.Context(), c.Conns[0], kindBegin, &c.Plan); err != nil {
		t.Fatal(err)
	}
	var first, second Plan
	decode((<-s.Memory.control).data, &first)
	older := encode(&c.Plan)[:32]
	err := c.Conns[0].Write(t.Context(), &dgrdma.Transaction{
		Segments: []dgrdma.Segment{{Addr: controlData, Bytes: older}}, Completion: dgrdma.Word(controlWord, kindBegin),
	})
	if err != nil {
		t.Fatal(err)
	}
	decode((<-s.Memory.control).data, &second)
	if first.Rate != 5 || second.Rate != 0 || second.Size != 64 {
		t.Errorf("%+v, %+v", first, second)
	}
}

// TestServerDies: what was moved until then is told, whoever wrote it, and for how long
// something moved.
func TestServerDies(t *testing.T) {
	fixture.NoGoroutineLeft(t)
	for _, c := range []struct {
		name    string
		plan    Plan
		receive bool
	}{
		{"to the server", Plan{}, false},
		{"both ways", Plan{BothWays: 1}, false},
		{"to the client", Plan{BothWays: 1}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.plan.Size, c.plan.Peers = 5000, 1
			s, client := sides(t, c.plan)
			client.Endpoint.Close()
			const giveUp = 700 * time.Millisecond
			var err error
			if client.Endpoint, err = dgrdma.Open("udp:127.0.0.1", &dgrdma.Config{ID: 7, Memory: client.Memory, GiveUp: giveUp}); err != nil {
				t.Fatal(err)
			}
			defer client.Endpoint.Close()
			if client.Conns[0], err = client.Endpoint.Dial(s.Endpoint.URL()); err != nil {
				t.Fatal(err)
			}
			client.Receive = c.receive
			served := serveOnce(t, s)
			moved := func(by *dgrdma.Endpoint) bool { return by.Stats().TransactionsDone > 100 } // not only what the two agree on
			var last time.Duration
			client.Every, client.Each = 50*time.Millisecond, func(i Interval) {
				if last == 0 && (c.receive || moved(client.Endpoint)) && (c.plan.BothWays == 0 || moved(s.Endpoint)) {
					began := time.Now()
					s.Endpoint.Close()
					last = i.To + time.Since(began) // until then something moves, and a busy machine takes its time
				}
			}
			o := NewOutcome()
			err = client.Run(t.Context(), time.Hour, o)
			<-served
			if err == nil || errors.Is(err, ErrInterrupted) {
				t.Fatal(err)
			}
			if n := o.Mine.Transactions; (n > 0) == c.receive {
				t.Errorf("%d transactions to the server", n)
			}
			if n := o.Theirs.Transactions; (n > 0) != (c.plan.BothWays == 1) || n != o.Mine.Arrived || o.Theirs.Bytes != 5000*n {
				t.Errorf("%d transactions back, %d arrived", n, o.Mine.Arrived)
			}
			if took := time.Duration(o.Mine.Nanoseconds); took < 50*time.Millisecond || took > last+giveUp {
				t.Errorf("it took %v until %v", took, last)
			}
		})
	}
}

// TestLinksFollow: a client's links are one after the other, and the last one ends it. Who
// says that another one follows, and goes, fell silent.
func TestLinksFollow(t *testing.T) {
	fixture.NoGoroutineLeft(t)
	there, err := link.Open("udp:127.0.0.1?giveup=1s", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	here := openHost(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s, err := ServeLinks(ctx, there, nil)
	if err != nil {
		t.Fatal(err)
	}
	run := func(p LinkPlan) {
		t.Helper()
		_, load, err := DialLink(t.Context(), here, there.URL(), p, nil)
		if err != nil {
			t.Fatal(err)
		}
		load.Start(10 * time.Millisecond)
		if err := errors.Join(load.Over(t.Context()), load.Drain(t.Context())); err != nil {
			t.Error(err)
		}
	}
	for size := 64; size <= 256; size *= 2 {
		run(LinkPlan{Buffers: 8, Size: size, MoreRuns: size < 256})
	}
	if err := <-s.Ended(); err != nil {
		t.Error(err)
	}
	run(LinkPlan{Buffers: 8, Size: 64, MoreRuns: true})
	if err := <-s.Ended(); err != ErrSilent {
		t.Error(err)
	}
}

// TestLinksArePaced, as messages and as a stream.
func TestLinksArePaced(t *testing.T) {
	fixture.NoGoroutineLeft(t)
	const rate, size = 1_000_000, 3000
	for _, stream := range []bool{false, true} {
		there, here := openHost(t), openHost(t)
		ctx, cancel := context.WithCancel(t.Context())
		s, err := ServeLinks(ctx, there, nil)
		if err != nil {
			t.Fatal(err)
		}
		times := NewHistogram()
		_, load, err := DialLink(t.Context(), here, there.URL(), LinkPlan{Stream: stream, Buffers: 8, Size: size, Rate: rate}, times)
		if err != nil {
			t.Fatal(err)
		}
		load.Start(200 * time.Millisecond)
		if err := errors.Join(load.Over(t.Context()), load.Drain(t.Context()), <-s.Ended()); err != nil {
			t.Error(err)
		}
		n, _, _ := load.Progress()
		if most := rate*load.Elapsed().Seconds()/size + 2; n < 2 || float64(n) > most || there.Stats().Received.Messages != n+1 {
			t.Errorf("stream %v: %d messages in %v, want %v at most; %+v arrived", stream, n, load.Elapsed(), most, there.Stats().Received)
		}
		if times.N() != 0 {
			t.Error("buffers that waited for us were timed")
		}
		cancel()
	}
}

// TestLastWordBeforeTheEnd: what a side said last is read though it has closed the connection before the other one looked.
func TestLastWordBeforeTheEnd(t *testing.T) {
	fixture.NoGoroutineLeft(t)
	const looks = 30 // else chance reads it
	s, c := sides(t, Plan{Size: 64, Peers: 1})
	if err := c.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := tell(t.Context(), s.Endpoint.Conns()[0], kindReport, &Counts{Bytes: 5}); err != nil {
		t.Fatal(err)
	}
	s.Endpoint.Close()
	<-c.Conns[0].Done()
	for range looks {
		m, err := c.answer(t.Context(), kindReport)
		if err != nil {
			t.Fatalf("the server's report: %v", err)
		}
		c.Memory.control <- m
	}
	<-c.Memory.control
	if _, err := c.answer(t.Context(), kindReport); !errors.Is(err, dgrdma.ErrPeerClosed) {
		t.Errorf("behind that: %v", err)
	}

	s, c = sides(t, Plan{Size: 64, Peers: 1})
	if err := tell(t.Context(), c.Conns[0], kindEnd, nil); err != nil {
		t.Fatal(err)
	}
	client := s.Endpoint.Conns()[0]
	c.Endpoint.Close()
	<-client.Done()
	for range looks {
		m, err := s.await(t.Context(), client, kindEnd, nil)
		if err != nil {
			t.Fatalf("the client's end: %v", err)
		}
		s.Memory.control <- m
	}
	<-s.Memory.control
	if _, err := s.await(t.Context(), client, kindEnd, nil); !errors.Is(err, dgrdma.ErrPeerClosed) {
		t.Errorf("behind that: %v", err)
	}
}

// TestSameClientAtOnceAgain checks that a client that comes again under its id and port while the server is still there for the one before
// is served (F7).
func TestSameClientAtOnceAgain(t *testing.T) {
	fixture.NoGoroutineLeft(t)
	s, c := sides(t, Plan{Size: 64, Peers: 1, Active: 1, Depth: 1})
	s.Failed = func(client dgrdma.PeerName, err error) { t.Errorf("%v: %v", client, err) }
	stop, served := serveUntil(t, s)
	at := c.Endpoint.LocalAddr().AddrPort().String()
	for n := range 8 {
		if err := c.Run(t.Context(), time.Millisecond, NewOutcome()); err != nil {
			t.Fatalf("time %d: %v", n, err)
		}
		c.Endpoint.Close()
		time.Sleep(time.Duration(n) * Linger / 6) // the last ones come after it
		var err error
		if c.Endpoint, err = dgrdma.Open("udp:"+at, &dgrdma.Config{ID: 7, Memory: c.Memory}); err != nil {
			t.Fatal(err)
		}
		if c.Conns[0], err = c.Endpoint.Dial(s.Endpoint.URL()); err != nil {
			t.Fatal(err)
		}
	}
	c.Endpoint.Close()
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

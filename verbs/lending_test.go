package verbs_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/verbs"
)

// talkers are two ends that send each other messages of 64 bytes.
func talkers(t *testing.T, o verbs.Options) ends {
	t.Helper()
	oa, ob := o, o
	for _, o := range []*verbs.Options{&oa, &ob} {
		o.Posted = nil
		for i := range 4 {
			o.Posted = append(o.Posted, verbs.Receive{ID: uint64(i), Data: make([]byte, 64)})
		}
	}
	return connect(t, &oa, &ob)
}

// take waits for a message, and posts its receive again.
func take(ctx context.Context, q *verbs.QueuePair) (err error) {
	var done [1]verbs.Completion
	if _, err = q.Received().Wait(ctx, done[:]); err != nil {
		return err
	}
	if done[0].Err != nil {
		return done[0].Err
	}
	return q.PostReceive(verbs.Receive{ID: done[0].ID, Data: make([]byte, 64)})
}

func tell(q *verbs.QueuePair) error {
	return q.Post(&verbs.Work{Op: verbs.OpSend, Silent: true, Data: make([]byte, 64)})
}

// rally sends a message there and back, so many times.
func (e *ends) rally(t *testing.T, rounds int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	other := make(chan error, 1)
	go func() {
		for range rounds {
			if err := errors.Join(take(ctx, e.b), tell(e.b)); err != nil {
				other <- err
				return
			}
		}
		other <- nil
	}()
	for range rounds {
		if err := errors.Join(tell(e.a), take(ctx, e.a)); err != nil {
			t.Error(err)
			break
		}
	}
	if err := <-other; err != nil {
		t.Error(err)
	}
}

// TestWhoWaitsReceives: who waits for messages takes them in, with and without CRC, and the answers to its
// requests; where several queue pairs complete in a queue, nobody does.
func TestWhoWaitsReceives(t *testing.T) {
	for _, crc := range []bool{false, true} {
		e := talkers(t, verbs.Options{NoCRC: !crc})
		for e.a.Helped() == 0 || e.b.Helped() == 0 {
			e.rally(t, 200)
			if t.Failed() {
				return
			}
		}
		r, err := e.hb.Register(make([]byte, 4096), verbs.RemoteRead)
		if err != nil {
			t.Fatal(err)
		}
		for before := e.a.Helped(); e.a.Helped() == before; {
			if err := e.a.Read(t.Context(), make([]byte, 64), r.Key(), 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	cq := verbs.NewCompletionQueue()
	e := talkers(t, verbs.Options{NoCRC: true})
	f := ends{ha: e.ha, hb: e.hb}
	receives := func() []verbs.Receive { return []verbs.Receive{{Data: make([]byte, 64)}, {Data: make([]byte, 64)}} }
	for range 2 {
		f.join(t.Context(), t, &verbs.Options{Completions: cq, Received: cq, Posted: receives()}, &verbs.Options{Posted: receives()})
	}
	f.rally(t, 200)
	if n := f.a.Helped(); n != 0 {
		t.Errorf("who waited for two queue pairs took in %d times for one", n)
	}
}

// TestQueueOutlives: of the queue pairs that complete in a queue all but one have ended, or could not be opened, and who waits
// there receives for that one.
func TestQueueOutlives(t *testing.T) {
	receives := func() []verbs.Receive { return []verbs.Receive{{Data: make([]byte, 64)}, {Data: make([]byte, 64)}} }
	cq := verbs.NewCompletionQueue()
	o := &verbs.Options{Completions: cq, Received: cq, Posted: receives()}
	e := connect(t, o, nil)
	f := ends{ha: e.ha, hb: e.hb}
	f.join(t.Context(), t, o, &verbs.Options{Posted: receives()})
	e.a.Abort()
	for done := make([]verbs.Completion, 8); cq.Poll(done) > 0; {
	}
	closed, err := verbs.Open("tcp:127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	l, err := e.hb.Listen("0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if r, err := l.Accept(t.Context()); err == nil {
			r.Accept(t.Context(), nil)
		}
	}()
	if _, err := closed.Dial(t.Context(), l.String(), o); !errors.Is(err, verbs.ErrClosed) {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); f.a.Helped() == 0; {
		if f.rally(t, 200); t.Failed() {
			return
		}
		if time.Now().After(end) {
			t.Fatal("who waited did not receive")
		}
	}
}

// TestHelperLeaves: while a helper is away, or for good, the peer's requests are answered.
func TestHelperLeaves(t *testing.T) {
	e := talkers(t, verbs.Options{NoCRC: true})
	r, err := e.ha.Register(make([]byte, 4096), verbs.RemoteRead)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		e.rally(t, 50)
		began := time.Now()
		if err := e.b.Read(t.Context(), make([]byte, 4096), r.Key(), 0); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("a Read took %v", took)
		}
	}
}

// TestHelperIsRoused: a wait ends when another goroutine completes what is waited for, or with its context,
// at whatever moment, and the queue pair goes on.
func TestHelperIsRoused(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	e := talkers(t, verbs.Options{NoCRC: true})
	region, err := e.hb.Register(make([]byte, 4096), verbs.RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	for range 300 {
		e.rally(t, 3)
		after := time.Duration(rng.IntN(1000)) * time.Microsecond
		if rng.IntN(2) == 0 {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			if err := take(ctx, e.a); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			cancel()
			continue
		}
		posted := make(chan error)
		go func() {
			time.Sleep(after)
			posted <- e.a.Post(&verbs.Work{ID: 7, Op: verbs.OpWrite, STag: region.STag(), TO: region.Base(), Data: make([]byte, 100)})
		}()
		var done [1]verbs.Completion
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		n, err := e.a.Completions().Wait(ctx, done[:])
		if cancel(); n != 1 || err != nil || done[0].Err != nil || done[0].ID != 7 {
			t.Fatal(n, err, done)
		}
		if err := <-posted; err != nil {
			t.Fatal(err)
		}
	}
}

// TestManyWait: goroutines that wait for different things of one queue pair get all of them.
func TestManyWait(t *testing.T) {
	e := talkers(t, verbs.Options{Extensions: all})
	word := make([]byte, 8)
	r, err := e.hb.Register(word, verbs.RemoteAtomic|verbs.RemoteRead)
	if err != nil {
		t.Fatal(err)
	}
	const callers, adds = 6, 200
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var done sync.WaitGroup
	for range callers {
		done.Go(func() {
			for range adds {
				if _, err := e.a.FetchAdd(ctx, r.Key(), 0, 1); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	e.rally(t, 500)
	done.Wait()
	got := make([]byte, 8)
	if err := e.a.Read(ctx, got, r.Key(), 0); err != nil || binary.NativeEndian.Uint64(got) != callers*adds {
		t.Errorf("%d, %v", binary.NativeEndian.Uint64(got), err)
	}
}

// TestEndOfWhoReceives: whoever receives when the connection ends, all that is posted completes.
func TestEndOfWhoReceives(t *testing.T) {
	for round := range 40 {
		e := talkers(t, verbs.Options{NoCRC: round%2 == 0})
		e.rally(t, 20)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		ended := make(chan error)
		go func() {
			for {
				if err := take(ctx, e.a); err != nil {
					ended <- err
					return
				}
			}
		}()
		time.Sleep(time.Duration(round) * 50 * time.Microsecond)
		switch round % 3 {
		case 0:
			e.b.Abort()
		case 1:
			go e.b.Close()
		case 2:
			e.a.Abort()
		}
		if err := <-ended; !errors.Is(err, verbs.ErrFlushed) {
			t.Errorf("round %d: %v", round, err)
		}
		select {
		case <-e.a.Done():
		case <-ctx.Done():
			t.Errorf("round %d: it does not end", round)
		}
		cancel()
	}
}

// TestWaitsBeforeThereIsOne: who waits at a queue when its queue pair is opened receives for it, too.
func TestWaitsBeforeThereIsOne(t *testing.T) {
	for range 20 {
		cq := verbs.NewCompletionQueue()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		got := make(chan error)
		go func() {
			for {
				var done [1]verbs.Completion
				short, stop := context.WithTimeout(ctx, 100*time.Microsecond)
				n, err := cq.Wait(short, done[:])
				stop()
				if n > 0 || ctx.Err() != nil {
					got <- errors.Join(done[0].Err, ctx.Err(), err)
					return
				}
			}
		}()
		e := connect(t, &verbs.Options{Received: cq, Completions: cq, Posted: []verbs.Receive{{Data: make([]byte, 64)}}}, nil)
		e.a.Send(ctx, nil) // for which there is no receive, so that all that is posted completes
		if err := <-got; !errors.Is(err, verbs.ErrFlushed) {
			t.Error(err)
		}
		cancel()
	}
}

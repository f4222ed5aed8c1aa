package verbs_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
	"github.com/dgrdma/dgrdma/rdmap/mpa"
	"github.com/dgrdma/dgrdma/verbs"
)

// Two programs that close when they are done, at the same time or one shortly after the other, both end in good
// order, with what each has sent last, between strangers as well.
func TestBothClose(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for i := range 300 {
		at := func() *verbs.Options { return &verbs.Options{Strict: i%3 == 0, Posted: []verbs.Receive{{}, {}}} }
		e := connect(t, at(), at())
		if err := e.a.Send(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for _, q := range []*verbs.QueuePair{e.a, e.b} {
			wait := time.Duration(rng.IntN(300)) * time.Microsecond
			group.Go(func() {
				if err := q.Send(t.Context(), nil); err != nil && !errors.Is(err, verbs.ErrFlushed) {
					t.Error(err)
				} else if err != nil {
					return // the other one was faster
				}
				time.Sleep(wait)
				if err := q.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			})
		}
		group.Wait()
		e.ha.Close()
		e.hb.Close()
	}
}

// Who closes behind the other, when all is with that one, ends in good order too.
func TestCloseBehindThePeer(t *testing.T) {
	for _, strict := range []bool{false, true} {
		e := connect(t, &verbs.Options{Strict: strict}, &verbs.Options{Strict: strict, Posted: []verbs.Receive{{}}})
		if err := e.a.Send(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if err := e.b.Close(); err != nil {
			t.Errorf("strict=%v: the first: %v", strict, err)
		}
		<-e.a.Done()
		if err := e.a.Close(); err != nil {
			t.Errorf("strict=%v: the second: %v", strict, err)
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if err := e.a.Shutdown(over); err != nil {
			t.Errorf("strict=%v: the second, late: %v", strict, err)
		}
	}
}

// Who posts while the peer closes does not hear that all is with it, when some of it was flushed.
func TestPostWhileThePeerCloses(t *testing.T) {
	t.Parallel()
	for range 50 {
		e := connect(t, nil, nil)
		data := make([]byte, 64)
		r, err := e.hb.Register(make([]byte, 64), verbs.RemoteWrite)
		if err != nil {
			t.Fatal(err)
		}
		closed := make(chan error, 1)
		go func() { closed <- e.b.Close() }()
		done := make([]verbs.Completion, 128)
		flushed := 0
		poll := func() {
			for _, c := range done[:e.a.Completions().Poll(done)] {
				if c.Err != nil {
					flushed++
				}
			}
		}
		for err = nil; err == nil || errors.Is(err, verbs.ErrFull); poll() {
			err = e.a.Post(&verbs.Work{Op: verbs.OpWrite, STag: r.STag(), TO: r.Base(), Data: data})
		}
		err = e.a.Close()
		poll()
		if err == nil && flushed > 0 {
			t.Fatalf("Close says that all is with the peer, and %d requests were flushed", flushed)
		}
		if err := <-closed; err != nil {
			t.Fatal(err)
		}
	}
}

// The peer's TCP may take its time to say that it has what this side sent last, as long as nothing else does: neither side waits for that.
func TestCloseTakesNoTime(t *testing.T) {
	t.Parallel()
	const late = 40 * time.Millisecond // of an acknowledgment that has nothing to go with, at least
	least := time.Hour
	for i := 0; i < 20 || least >= late && i < 500; i++ { // on a busy machine each may take longer
		e := connect(t, nil, &verbs.Options{Posted: make([]verbs.Receive, 128)})
		closed := make(chan error, 1)
		for range 50 {
			if err := e.a.Post(&verbs.Work{Op: verbs.OpSend}); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		go func() { closed <- e.b.Close() }()
		for range 50 {
			if e.a.Post(&verbs.Work{Op: verbs.OpSend}) != nil {
				break
			}
		}
		e.a.Close() // it may have failed, if the peer was faster
		if err := <-closed; err != nil {
			t.Fatal(err)
		}
		least = min(least, time.Since(began))
	}
	if least >= late {
		t.Errorf("to close took %v, at least", least)
	}
}

// accepted is a queue pair, and its peer, which sends and reads what a test likes.
func accepted(t *testing.T, o *verbs.Options) (*verbs.QueuePair, *attacker) {
	t.Helper()
	_, l := listen(t)
	a := &attacker{nc: dial(t, l)}
	a.nc.(*net.TCPConn).SetReadBuffer(16 << 10)
	pairs := make(chan *verbs.QueuePair, 1)
	go func() {
		defer close(pairs)
		r, err := l.Accept(t.Context())
		if err != nil {
			t.Error(err)
			return
		}
		q, err := r.Accept(t.Context(), o)
		if err != nil {
			t.Error(err)
			return
		}
		pairs <- q
	}()
	var err error
	if a.conn, err = mpa.Initiate(t.Context(), a.nc, &mpa.Options{ORD: 1}); err != nil {
		t.Fatal(err)
	}
	q := <-pairs
	if q == nil {
		t.FailNow()
	}
	a.send(untagged(0x43, 0, 1, nil)) // who was dialed may speak when the other has
	return q, a
}

// A peer that ends its direction before it has read what was sent: the end is a good one when it has, and not before.
func TestPeerClosesUnread(t *testing.T) {
	const late = 300 * time.Millisecond
	for _, c := range []struct {
		name    string
		awaited bool // Close waits when the peer closes
		then    func(*attacker)
		good    bool
	}{
		{"closed later", false, func(*attacker) {}, false},
		{"read", true, func(a *attacker) {
			for a.conn.Discard() == nil {
			}
		}, true},
		{"reset", true, func(a *attacker) { a.conn.Abort() }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			q, a := accepted(t, &verbs.Options{Posted: []verbs.Receive{{}}})
			if err := q.Send(t.Context(), make([]byte, 256<<10)); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			closed := make(chan error, 1)
			if c.awaited {
				go func() { closed <- q.Close() }()
				time.Sleep(late / 3)
			}
			if err := a.conn.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			if !c.awaited {
				<-q.Done()
				closed <- q.Close()
			} else {
				time.Sleep(late)
				c.then(a)
			}
			err := <-closed
			if (err == nil) != c.good || c.awaited && time.Since(began) < late || time.Since(began) > late+5*time.Second {
				t.Errorf("Close after %v: %v", time.Since(began), err)
			}
			if !c.good && (!errors.Is(err, verbs.ErrPeerClosed) || errors.Is(err, verbs.ErrClosed)) {
				t.Errorf("Close: %v, want %v", err, verbs.ErrPeerClosed)
			}
		})
	}
}

// Of two that close at the same time neither hears that all was done, when it was not.
func TestCloseTwice(t *testing.T) {
	t.Parallel()
	here, there := both(t, "tcp", "127.0.0.1:0")
	q, _ := brought(t, here, there, nil)
	if err := q.Post(&verbs.Work{Op: verbs.OpRead, Data: make([]byte, 8)}); err != nil {
		t.Fatal(err)
	}
	closed := make(chan error, 2)
	for range 2 {
		go func() { closed <- q.Close() }()
	}
	time.Sleep(50 * time.Millisecond) // both wait for the answer
	there.(*net.TCPConn).CloseWrite()
	for range 2 {
		if err := <-closed; !errors.Is(err, verbs.ErrPeerClosed) {
			t.Errorf("Close: %v, want %v", err, verbs.ErrPeerClosed)
		}
	}
}

// RDMAP-085, MPA-018: a side that has ended its own direction takes what the peer still sends, and a question that it cannot answer any more
// does not change that, however long the rest takes.
func TestQuestionBehindTheClose(t *testing.T) {
	t.Parallel()
	last := make([]byte, 4)
	q, a := accepted(t, &verbs.Options{Posted: []verbs.Receive{{}, {ID: 7, Data: last}}})
	closed := make(chan error, 1)
	go func() { closed <- q.Close() }()
	if _, err := io.Copy(io.Discard, a.nc); err != nil { // until its end
		t.Fatal(err)
	}
	read := make([]byte, 28) // of nothing
	a.send(ddp.Message{Header: ddp.Header{Control: 0x41, QN: 1, MSN: 1}, Length: 28, Data: []ddp.Span{{Bytes: read}}})
	time.Sleep(1500 * time.Millisecond) // longer than a connection stays that has failed
	a.send(untagged(0x43, 0, 2, []byte("last")))
	a.nc.Close()
	if err := <-closed; err != nil {
		t.Errorf("Close: %v", err)
	}
	done := make([]verbs.Completion, 3)
	if n := q.Received().Poll(done); n != 2 || done[1].ID != 7 || done[1].Err != nil || string(last) != "last" {
		t.Errorf("%d receives: %+v, with %q", n, done[:n], last)
	}
}

// TestShutdownSaysWhatItWaitedFor checks that the error of a close that did not end in time says so, in addition to the context's (S9).
// Of a context that has ended already it says so each time, however fast the peer closes its side.
func TestShutdownSaysWhatItWaitedFor(t *testing.T) {
	for range 100 {
		e := connect(t, nil, nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := e.a.Shutdown(ctx)
		if !errors.Is(err, context.Canceled) || err == context.Canceled || !strings.HasPrefix(err.Error(), "close "+e.a.String()+": not all that was posted was done in time") {
			t.Fatalf("%v", err)
		}
	}
}

// TestShutdownOfWhatItsContextClosed checks that Shutdown tells of its context, and not of the connection that the context
// has closed before Shutdown looks (S9).
func TestShutdownOfWhatItsContextClosed(t *testing.T) {
	e := connect(t, nil, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e.a.Abort() // as the context does
	<-e.a.Done()
	if err := e.a.Shutdown(ctx); !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), "close "+e.a.String()+": not all that was posted was done in time") {
		t.Errorf("%v", err)
	}
}

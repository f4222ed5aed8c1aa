package verbs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/rdmap"
	"github.com/dgrdma/dgrdma/rdmap/ddp"
	"github.com/dgrdma/dgrdma/rdmap/mpa"
	"github.com/dgrdma/dgrdma/verbs"
)

// RDMAP-082, 084, 087, 088, 090: the end by a Terminate. A Write outside ends the connection at both ends, with the reason, and memory
// beside the region is as it was.
func TestTerminate(t *testing.T) {
	e := connect(t, nil, &verbs.Options{Posted: []verbs.Receive{{ID: 1}, {ID: 2}}})
	m := make([]byte, 300)
	r, err := e.hb.Register(m[100:200:200], verbs.RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	k := r.Key()
	ok := verbs.Work{ID: 1, Op: verbs.OpWrite, STag: k.STag, TO: k.Offset, Data: pattern(1, 10)}
	bad := verbs.Work{ID: 2, Op: verbs.OpWrite, STag: k.STag, TO: k.Offset + 91, Data: pattern(1, 10)}
	after := verbs.Work{ID: 3, Op: verbs.OpRead, STag: k.STag, TO: k.Offset, Data: make([]byte, 10)}
	if n, err := e.a.PostList([]verbs.Work{ok, bad, after}); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	<-e.a.Done()
	<-e.b.Done()
	for _, q := range []*verbs.QueuePair{e.a, e.b} {
		var te *verbs.TerminateError
		if err := q.Err(); !errors.As(err, &te) || te.Fault != ddp.TaggedBounds || te.Remote != (q == e.a) || !te.HasHeader || te.Header.TO != k.Offset+91 {
			t.Errorf("%v", err)
		}
	}
	done := make([]verbs.Completion, 5)
	// The Terminate may be here before this side has noticed that the first Writes are sent.
	n := e.a.Completions().Poll(done)
	if n != 3 || done[0].Err != nil && !errors.Is(done[0].Err, verbs.ErrFlushed) || !errors.Is(done[2].Err, verbs.ErrFlushed) || !errors.Is(done[2].Err, ddp.TaggedBounds) {
		t.Errorf("%d completions: %+v", n, done[:n])
	}
	if n := e.b.Received().Poll(done); n != 2 || !errors.Is(done[0].Err, ddp.TaggedBounds) {
		t.Errorf("%d receives: %+v", n, done[:n])
	}
	if !bytes.Equal(m[200:], make([]byte, 100)) || !bytes.Equal(m[100:110], pattern(1, 10)) {
		t.Error("memory is not what the first Write left")
	}
	if err := e.a.Post(&ok); !errors.Is(err, ddp.TaggedBounds) {
		t.Errorf("a request after the end: %v", err)
	}
}

// RDMAP-102, RPC2-095: when Invalidate or Reregister returns, nothing that the peer sends changes the memory, whatever is on its way.
func TestInvalidateIsSynchronous(t *testing.T) {
	for _, plain := range []bool{false, true} {
		t.Run(fmt.Sprintf("plain=%v", plain), func(t *testing.T) {
			for round := range 20 {
				e := connect(t, &verbs.Options{NoCRC: plain}, &verbs.Options{NoCRC: plain})
				m := make([]byte, 1<<20)
				r, err := e.hb.Register(m, verbs.RemoteWrite)
				if err != nil {
					t.Fatal(err)
				}
				k := r.Key()
				go func() {
					for i := 0; e.a.Write(context.Background(), k, 0, pattern(i, len(m))) == nil; i++ {
					}
				}()
				time.Sleep(time.Millisecond) // some Writes are on their way
				other := make([]byte, len(m))
				if round%2 == 0 {
					r.Invalidate()
				} else if err := r.Reregister(other, verbs.RemoteWrite, 0); err != nil {
					t.Fatal(err)
				}
				before := bytes.Clone(m)
				<-e.b.Done()
				if !bytes.Equal(m, before) || !bytes.Equal(other, make([]byte, len(m))) {
					t.Fatal("the memory changed after it was withdrawn")
				}
				if !errors.Is(e.b.Err(), ddp.TaggedSTag) {
					t.Errorf("the end: %v", e.b.Err())
				}
			}
		})
	}
}

// Buffers of a call whose context ends are the caller's again: nothing writes to them.
func TestContextEndsACall(t *testing.T) {
	t.Parallel() // most of it is waiting
	e := connect(t, nil, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond) // one that had ended before the call would leave the connection alone
	defer cancel()
	if _, err := e.a.Receive(ctx, make([]byte, 10)); !errors.Is(err, context.DeadlineExceeded) || !strings.HasSuffix(err.Error(), ", and the connection was given up with the call") {
		t.Errorf("%v", err)
	}
	<-e.a.Done()
	<-e.b.Done()
	if err := e.b.Err(); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("at the peer: %v", err)
	}
	if err := e.a.Send(t.Context(), nil); !errors.Is(err, net.ErrClosed) && err == nil {
		t.Errorf("a Send after that: %v", err)
	}
}

// MPA-014, 015, 016: both sides know what they may do, and who may speak first.
func TestSetUp(t *testing.T) {
	for _, ready := range []mpa.Ready{0, mpa.ReadyWrite, mpa.ReadyRead, mpa.ReadySend} {
		for _, rev := range []int{1, 2} {
			if ready != 0 && rev == 1 {
				continue
			}
			t.Run(fmt.Sprintf("ready=%v,rev=%d", ready, rev), func(t *testing.T) {
				buf := make([]byte, 5)
				e := connect(t, &verbs.Options{Private: []byte("hello"), ORD: 7, IRD: 3, Revision: rev, PeerToPeer: ready != 0, Ready: ready, Posted: []verbs.Receive{{Data: buf}}},
					&verbs.Options{Private: []byte("welcome"), IRD: 4, ORD: 9, Posted: []verbs.Receive{{}}})
				if string(e.a.Private()) != "welcome" || string(e.b.Private()) != "hello" {
					t.Errorf("private data %q and %q", e.a.Private(), e.b.Private())
				}
				if ird, ord := e.a.Limits(); rev == 2 && (ird != 3 || ord != 4) {
					t.Errorf("the initiator may have %d and %d", ird, ord)
				}
				if ird, ord := e.b.Limits(); rev == 2 && (ird != 4 || ord != 3) {
					t.Errorf("the responder may have %d and %d", ird, ord)
				}
				if ready == 0 {
					if err := e.a.Send(t.Context(), nil); err != nil {
						t.Fatal(err)
					}
				}
				if err := e.b.Send(t.Context(), []byte("first")); err != nil {
					t.Fatal(err)
				}
				done := make([]verbs.Completion, 1)
				if _, err := e.a.Received().Wait(t.Context(), done); err != nil || done[0].Err != nil || string(buf) != "first" {
					t.Errorf("%+v %q %v", done[0], buf, err)
				}
				if err := e.b.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestReject (MPA-012): the side that asked is told why it is rejected.
func TestReject(t *testing.T) {
	h, err := verbs.Open("tcp:127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	l, err := h.Listen("0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		r, err := l.Accept(context.Background())
		if err == nil {
			r.Reject(context.Background(), []byte("No, thanks"))
		}
	}()
	_, err = h.Dial(t.Context(), "tcp:"+l.Addr().String(), nil)
	var rejected *mpa.RejectedError
	if !errors.As(err, &rejected) || string(rejected.Private) != "No, thanks" {
		t.Errorf("%v", err)
	}
}

// One queue pair is used by many goroutines, and several share completions and receives.
func TestManyAtOnce(t *testing.T) {
	const pairs, goroutines, each = 4, 8, 50
	e := connect(t, nil, nil)
	shared := verbs.NewSharedReceives(64)
	m := make([]byte, 8)
	r, err := e.hb.Register(m, verbs.RemoteAtomic)
	if err != nil {
		t.Fatal(err)
	}
	k := r.Key()
	received := verbs.NewCompletionQueue()
	var senders sync.WaitGroup
	for range 64 {
		if err := shared.Post(verbs.Receive{}); err != nil {
			t.Fatal(err)
		}
	}
	for range pairs {
		e := e
		e.join(t.Context(), t, &verbs.Options{Extensions: all, Sends: 16}, &verbs.Options{Extensions: all, Received: received, Shared: shared})
		for range goroutines {
			senders.Go(func() {
				for range each {
					if _, err := e.a.FetchAdd(context.Background(), k, 0, 3); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	senders.Wait()
	want := uint64(pairs * goroutines * each * 3)
	e.join(t.Context(), t, &verbs.Options{Extensions: all}, &verbs.Options{Extensions: all})
	if got, err := e.a.FetchAdd(t.Context(), k, 0, 0); err != nil || got != want {
		t.Errorf("the counter is %d, want %d (%v)", got, want, err)
	}
}

// COMMIT-008, COMMIT-033: what takes long is carried out behind other requests, too, when nothing more comes.
func TestManyFlushesAtOnce(t *testing.T) {
	o := verbs.Options{Extensions: all}
	e := connect(t, &o, &o)
	r, err := e.hb.Domain().Register(make([]byte, 4096), verbs.RemoteWrite|verbs.RemoteRead|verbs.FlushGlobal|verbs.Verify, &verbs.RegionOptions{Algorithm: verbs.SHA256})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	flush := verbs.Work{Op: verbs.OpFlush, STag: r.STag(), Length: 8, Global: true, Silent: true}
	verify := verbs.Work{Op: verbs.OpVerify, STag: r.STag(), Length: 8, Silent: true}
	set := verbs.Work{Op: verbs.OpAtomicWrite, STag: r.STag(), Silent: true}
	read := verbs.Work{Op: verbs.OpRead, STag: r.STag(), Data: make([]byte, 8), Silent: true}
	last := flush
	last.Silent = false
	for range 20 {
		if _, err := e.a.PostList([]verbs.Work{flush, set, flush, verify, read, verify, flush, flush, set, last}); err != nil {
			t.Fatal(err)
		}
		done := make([]verbs.Completion, 2)
		if n, err := e.a.Completions().Wait(ctx, done); err != nil || n != 1 || done[0].Op != verbs.OpFlush || done[0].Err != nil {
			t.Fatalf("%d, %v, %v", n, &done[0], err)
		}
	}
}

// RDMAP-082: the graceful end. Closing waits for what is posted, and nothing of it is left behind.
func TestCloseWaits(t *testing.T) {
	before := runtime.NumGoroutine()
	func() {
		e := connect(t, nil, nil)
		m := make([]byte, 16<<20)
		r, err := e.hb.Register(m, verbs.RemoteWrite)
		if err != nil {
			t.Fatal(err)
		}
		k := r.Key()
		for i := range 16 {
			if err := e.a.Post(&verbs.Work{ID: uint64(i), Op: verbs.OpWrite, STag: k.STag, TO: uint64(i << 20), Data: pattern(i, 1<<20)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.a.Close(); err != nil {
			t.Error(err)
		}
		<-e.b.Done()
		for i := range 16 {
			if !bytes.Equal(m[i<<20:(i+1)<<20], pattern(i, 1<<20)) {
				t.Errorf("MiB %d is not there", i)
			}
		}
		done := make([]verbs.Completion, 20)
		if n := e.a.Completions().Poll(done); n != 16 || done[15].Err != nil {
			t.Errorf("%d completions, the last %+v", n, done[15])
		}
		if err := e.a.Post(&verbs.Work{}); !errors.Is(err, verbs.ErrClosed) {
			t.Errorf("a request after Close: %v", err)
		}
		e.ha.Close()
		e.hb.Close()
	}()
	for range 200 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	b := make([]byte, 1<<16)
	t.Errorf("goroutines are left:\n%s", b[:runtime.Stack(b, true)])
}

// RDMAP-082: the end without a word. A peer that stops reading does not hold Abort, nor the posting of requests.
func TestPeerThatDoesNotRead(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	go func() {
		r, err := mpa.Await(context.Background(), b, 0)
		if err == nil {
			r.Accept(context.Background(), &mpa.Options{})
		}
	}()
	h, err := verbs.Open("tcp")
	if err != nil {
		t.Fatal(err)
	}
	q, err := h.Connect(t.Context(), a, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		if err := q.Post(&verbs.Work{ID: uint64(i), Op: verbs.OpSend, Data: make([]byte, 1000)}); err != nil {
			t.Fatal(err)
		}
	}
	q.Abort()
	done := make([]verbs.Completion, 20)
	if n := q.Completions().Poll(done); n != 10 || !errors.Is(done[9].Err, rdmap.ErrFlushed) {
		t.Errorf("%d completions, the last %+v", n, done[9])
	}
}

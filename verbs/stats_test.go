package verbs_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/verbs"
)

// TestStats: both sides count what was done.
func TestStats(t *testing.T) {
	ctx := t.Context()
	e := connect(t, &verbs.Options{Extensions: all}, &verbs.Options{Extensions: all, Posted: []verbs.Receive{{Data: make([]byte, 100)}, {}, {}}})
	region, err := e.hb.Register(make([]byte, 1<<20), verbs.RemoteRead|verbs.RemoteWrite|verbs.RemoteAtomic)
	if err != nil {
		t.Fatal(err)
	}
	key := region.Key()
	for range 3 {
		if err := e.a.Write(ctx, key, 0, make([]byte, 300_000)); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.a.Send(ctx, make([]byte, 70)); err != nil {
		t.Fatal(err)
	}
	if err := e.a.Post(&verbs.Work{Op: verbs.OpImmediate, Silent: true}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := e.a.Read(ctx, make([]byte, 1000), key, 5); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.a.FetchAdd(ctx, key, 0, 1); err != nil {
		t.Fatal(err)
	}
	if got, want := e.a.Stats(), (verbs.Stats{Sent: 5, SentBytes: 900_078, Asked: 3, ReadBytes: 2000,
		Done: operations{verbs.OpWrite: 3, verbs.OpSend: 1, verbs.OpImmediate: 1, verbs.OpRead: 2, verbs.OpFetchAdd: 1}}); got != want {
		t.Errorf("who asked has %+v, want %+v", got, want)
	}
	if err := e.a.Close(); err != nil {
		t.Fatal(err)
	}
	<-e.b.Done()
	// Closing asks for a Read of nothing: see Close.
	want := verbs.Stats{Received: 2, ReceivedBytes: 78, Written: 3, WrittenBytes: 900_000, Answered: 4, FetchedBytes: 2000,
		Served: operations{verbs.OpWrite: 3, verbs.OpSend: 1, verbs.OpImmediate: 1, verbs.OpRead: 3, verbs.OpFetchAdd: 1}}
	if got := e.b.Stats(); got != want {
		t.Errorf("its peer has %+v, want %+v", got, want)
	}
}

// operations are counts by what was done.
type operations = [verbs.OpInvalidate]uint64

// TestHostStats: a host counts what all its queue pairs do, those that are open and those that have ended, how they came about and how
// they ended.
func TestHostStats(t *testing.T) {
	ctx := t.Context()
	e := connect(t, nil, &verbs.Options{Posted: []verbs.Receive{{Data: make([]byte, 100)}}})
	memory, err := e.hb.Register(make([]byte, 1<<20), verbs.RemoteRead|verbs.RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	key := memory.Key()
	use := func(q *verbs.QueuePair) {
		t.Helper()
		if err := errors.Join(q.Write(ctx, key, 0, make([]byte, 300_000)), q.Read(ctx, make([]byte, 1000), key, 0)); err != nil {
			t.Fatal(err)
		}
	}
	use(e.a)
	if err := e.a.Send(ctx, make([]byte, 70)); err != nil {
		t.Fatal(err)
	}
	use(e.a)
	a := verbs.HostStats{Dialed: 1, Sent: 3, SentBytes: 600_070, Asked: 2, ReadBytes: 2000, QueuePairs: 1,
		Done: operations{verbs.OpWrite: 2, verbs.OpSend: 1, verbs.OpRead: 2}}
	b := verbs.HostStats{Accepted: 1, Received: 1, ReceivedBytes: 70, Written: 2, WrittenBytes: 600_000, Answered: 2, FetchedBytes: 2000, QueuePairs: 1,
		Served: operations{verbs.OpWrite: 2, verbs.OpSend: 1, verbs.OpRead: 2}}
	want := func() {
		t.Helper()
		// What leaves is counted when it has left.
		for until := time.Now().Add(30 * time.Second); (e.ha.Stats() != a || e.hb.Stats() != b) && time.Now().Before(until); {
			time.Sleep(time.Millisecond)
		}
		if got := e.ha.Stats(); got != a {
			t.Errorf("who asks has\n%+v, want\n%+v", got, a)
		}
		if got := e.hb.Stats(); got != b {
			t.Errorf("its peer has\n%+v, want\n%+v", got, b)
		}
	}
	want()
	first, other := e.a, e.b
	e.join(ctx, t, nil, nil)
	use(e.a)
	if err := first.Close(); err != nil { // which asks for a Read of nothing
		t.Fatal(err)
	}
	<-other.Done()
	a.Dialed, a.Sent, a.SentBytes, a.Asked, a.ReadBytes = 2, 3+1, 900_070, 3+1, 3000
	b.Accepted, b.Written, b.WrittenBytes, b.Answered, b.FetchedBytes = 2, 3, 900_000, 4, 3000
	a.Done[verbs.OpWrite], a.Done[verbs.OpRead] = 3, 4
	b.Served[verbs.OpWrite], b.Served[verbs.OpRead] = 3, 4
	want()

	// A fault, as the Write is not within.
	if err := e.a.Post(&verbs.Work{Op: verbs.OpWrite, Silent: true, STag: key.STag, TO: key.Offset + 1<<20, Data: make([]byte, 8)}); err != nil {
		t.Fatal(err)
	}
	<-e.a.Done()
	<-e.b.Done()
	a.TerminatesReceived, b.TerminatesSent = 1, 1
	a.QueuePairs, b.QueuePairs = 0, 0
	if got := e.ha.Stats(); got.Sent == 5 { // it had left before the end
		a.Sent, a.SentBytes = 5, 900_078
		a.Done[verbs.OpWrite] = 4
	}
	want()

	// Those who are rejected, and what is no iWARP.
	l, err := e.hb.Listen("0")
	if err != nil {
		t.Fatal(err)
	}
	for n := range 2 {
		go func() {
			if r, err := l.Accept(ctx); err == nil && n == 0 {
				r.TurnAway(nil)
			} else if err == nil {
				r.Reject(ctx, nil)
			}
		}()
		if _, err := e.ha.Dial(ctx, l.String(), nil); err == nil {
			t.Fatal("it is not rejected")
		}
	}
	nc := dial(t, l)
	io.WriteString(nc, "GET / HTTP/1.0\r\nHost: a\r\n\r\n")
	if !closed(nc, 30*time.Second) {
		t.Error("what is no iWARP is not closed")
	}
	// A listener that is closed counts nobody who did not come about.
	for until := time.Now().Add(30 * time.Second); e.hb.Stats().SetUpFails == 0 && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
	l.Close()
	if _, err := e.ha.Dial(ctx, l.String(), nil); err == nil {
		t.Fatal("somebody listens")
	}
	a.SetUpFails, b.Rejected, b.SetUpFails = 3, 2, 1
	want()
	e.hb.Close()
	b.Closed = true
	want()
}

// TestOperationsByKind: each operation is counted by what it is, at both sides.
func TestOperationsByKind(t *testing.T) {
	ctx := t.Context()
	e := connect(t, &verbs.Options{Extensions: all}, &verbs.Options{Extensions: all, Posted: []verbs.Receive{{}, {}}})
	region, err := e.hb.Domain().Register(make([]byte, 64), verbs.RemoteRead|verbs.RemoteWrite|verbs.RemoteAtomic|verbs.FlushGlobal|verbs.Verify,
		&verbs.RegionOptions{Algorithm: verbs.SHA256})
	if err != nil {
		t.Fatal(err)
	}
	k := region.Key()
	_, added := e.a.FetchAdd(ctx, k, 0, 1)
	_, swapped := e.a.CompareSwap(ctx, k, 0, 1, 2)
	_, verified := e.a.Verify(ctx, k, 0, 64, nil)
	err = errors.Join(added, swapped, verified, e.a.Send(ctx, nil), e.a.Post(&verbs.Work{Op: verbs.OpImmediate, Silent: true}), e.a.Write(ctx, k, 0, make([]byte, 8)),
		e.a.AtomicWrite(ctx, k, 0, [8]byte{}), e.a.Flush(ctx, k, 0, 64, verbs.FlushGlobal), e.a.Read(ctx, make([]byte, 8), k, 0))
	if err != nil {
		t.Fatal(err)
	}
	if err := e.a.Close(); err != nil { // which asks for a Read of nothing
		t.Fatal(err)
	}
	<-e.b.Done()
	var want operations
	for op := range want {
		want[op] = 1
	}
	want[verbs.OpRead] = 2
	if done, served := e.a.Stats().Done, e.b.Stats().Served; done != want || served != want {
		t.Errorf("done %v, served %v, want %v", done, served, want)
	}
	if none := (operations{}); e.a.Stats().Served != none || e.b.Stats().Done != none {
		t.Errorf("%+v, %+v: the other way nothing was done", e.a.Stats(), e.b.Stats())
	}
}

// TestZeroAllocations: nothing is allocated per request in steady state, whether the program waits for each or posts many.
func TestZeroAllocations(t *testing.T) {
	if fixture.Race {
		t.Skip("the race detector allocates")
	}
	for _, plain := range []bool{false, true} {
		ctx, cancel := context.WithCancel(context.Background()) // as programs have it, with a Done
		defer cancel()
		e := connect(t, &verbs.Options{Extensions: all, NoCRC: plain}, &verbs.Options{Extensions: all, NoCRC: plain})
		region, err := e.hb.Register(make([]byte, 1<<20), verbs.RemoteRead|verbs.RemoteWrite|verbs.RemoteAtomic|verbs.FlushGlobal)
		if err != nil {
			t.Fatal(err)
		}
		key := region.Key()
		buf := make([]byte, 64)
		done := make([]verbs.Completion, 64)
		list := make([]verbs.Work, 32)
		for i := range list {
			list[i] = verbs.Work{Op: verbs.OpRead, STag: key.STag, TO: key.Offset, Data: buf[:1]}
		}
		again, err := e.hb.Domain().Register(nil, 0, &verbs.RegionOptions{Only: e.b.Stream()})
		if err != nil {
			t.Fatal(err)
		}
		scattered := verbs.Work{Op: verbs.OpRead, STag: key.STag, TO: key.Offset, Data: buf[:7], More: [][]byte{buf[7:9], buf[9:]}}
		inbox := make([]byte, 64)
		inboxes := make([]verbs.Receive, 32)
		sends := make([]verbs.Work, len(inboxes))
		for i := range inboxes {
			inboxes[i], sends[i] = verbs.Receive{Data: make([]byte, 4), More: [][]byte{make([]byte, 60)}}, verbs.Work{Op: verbs.OpSend, Data: buf, Silent: true}
		}
		for name, do := range map[string]func() error{
			"Write": func() error { return e.a.Write(ctx, key, 0, buf) },
			"Read":  func() error { return e.a.Read(ctx, buf, key, 0) },
			"Read into three": func() error {
				if err := e.a.Post(&scattered); err != nil {
					return err
				}
				_, err := e.a.Completions().Wait(ctx, done)
				return err
			},
			"FetchAdd":    func() error { _, err := e.a.FetchAdd(ctx, key, 0, 1); return err },
			"CompareSwap": func() error { _, err := e.a.CompareSwap(ctx, key, 0, 1, 2); return err },
			"AtomicWrite": func() error { return e.a.AtomicWrite(ctx, key, 0, [8]byte{}) },
			"Send, Receive": func() error {
				if err := e.b.PostReceive(verbs.Receive{Data: inbox}); err != nil {
					return err
				}
				if err := e.a.Send(ctx, buf); err != nil {
					return err
				}
				_, err := e.b.Received().Wait(ctx, done)
				return err
			},
			"Reregister, Write": func() error {
				if err := again.Reregister(buf, verbs.RemoteWrite, 1<<40); err != nil {
					return err
				}
				return e.a.Write(ctx, again.Key(), 0, buf[:0])
			},
			"PostReceives, Sends": func() error {
				if _, err := e.b.PostReceives(inboxes); err != nil {
					return err
				}
				if _, err := e.a.PostList(sends); err != nil {
					return err
				}
				for n := 0; n < len(inboxes); {
					k, err := e.b.Received().Wait(ctx, done)
					if err != nil {
						return err
					}
					n += k
				}
				return nil
			},
			"PostList, Wait": func() error {
				if _, err := e.a.PostList(list); err != nil {
					return err
				}
				for n := 0; n < len(list); {
					k, err := e.a.Completions().Wait(ctx, done)
					if err != nil {
						return err
					}
					n += k
				}
				return nil
			},
		} {
			run := func() {
				if err := do(); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			for range 200 {
				run()
			}
			if n := fixture.Allocations(1000, run); n > 0 {
				t.Errorf("plain %v: %s: %v allocations", plain, name, n)
			}
		}
	}
}

package verbs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/verbs"
)

// ends are two queue pairs that are connected.
type ends struct {
	a, b   *verbs.QueuePair
	ha, hb *verbs.Host
}

const all = verbs.Atomics | verbs.Immediates | verbs.Commit

func connect(t testing.TB, oa, ob *verbs.Options) ends {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var e ends
	for _, h := range []**verbs.Host{&e.ha, &e.hb} {
		host, err := verbs.Open("tcp:127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { host.Close() })
		*h = host
	}
	e.join(ctx, t, oa, ob)
	return e
}

func (e *ends) join(ctx context.Context, t testing.TB, oa, ob *verbs.Options) {
	t.Helper()
	l, err := e.hb.Listen("0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := make(chan error, 1)
	go func() {
		r, err := l.Accept(ctx)
		if err == nil {
			e.b, err = r.Accept(ctx, ob)
		}
		got <- err
	}()
	if e.a, err = e.ha.Dial(ctx, fmt.Sprint("tcp:", l.Addr()), oa); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Fatal(err)
	}
}

func pattern(seed, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(31*seed + 7*i + i>>8 + 1)
	}
	return b
}

// seen tells the race detector that what the queue pair's peer has written before is seen: the peer's
// word for it came by the network, of which the detector does not know.
func seen(q *verbs.QueuePair) { q.Room() }

func TestCalls(t *testing.T) {
	for _, plain := range []bool{false, true} {
		for _, strict := range []bool{false, true} {
			t.Run(fmt.Sprintf("plain=%v,strict=%v", plain, strict), func(t *testing.T) {
				ctx := t.Context()
				inbox := make([]byte, 1<<20)
				e := connect(t, &verbs.Options{Extensions: all, NoCRC: plain, Strict: strict}, &verbs.Options{Extensions: all, NoCRC: plain, Posted: []verbs.Receive{{ID: 5, Data: inbox}}})
				m := make([]byte, 4<<20)
				r, err := e.hb.Register(m, verbs.RemoteWrite|verbs.RemoteRead|verbs.RemoteAtomic|verbs.FlushGlobal)
				if err != nil {
					t.Fatal(err)
				}
				key := r.Key()
				for _, n := range []int{0, 1, 64, 4096, 65537, 3 << 20} {
					data, back := pattern(n, n), make([]byte, n)
					if err := e.a.Write(ctx, key, 1, data); err != nil {
						t.Fatal(err)
					}
					if err := e.a.Read(ctx, back, key, 1); err != nil {
						t.Fatal(err)
					}
					seen(e.b)
					if !bytes.Equal(back, data) || !bytes.Equal(m[1:1+n], data) {
						t.Fatalf("%d bytes written are not those read", n)
					}
					seen(e.b)
				}
				if old, err := e.a.FetchAdd(ctx, key, 3<<20+8, 7); err != nil || old != 0 {
					t.Fatal(old, err)
				}
				if old, err := e.a.CompareSwap(ctx, key, 3<<20+8, 7, 9); err != nil || old != 7 {
					t.Fatal(old, err)
				}
				if err := e.a.Flush(ctx, key, 0, 100, verbs.FlushGlobal); err != nil {
					t.Fatal(err)
				}
				if err := e.a.AtomicWrite(ctx, key, 3<<20, [8]byte{1, 2}); err != nil {
					t.Fatal(err)
				}
				seen(e.b)
				if m[3<<20+1] != 2 {
					t.Fatal("the marker is not there")
				}
				if err := e.a.Send(ctx, pattern(3, 1<<20)); err != nil {
					t.Fatal(err)
				}
				done := make([]verbs.Completion, 4)
				n, err := e.b.Received().Wait(ctx, done)
				if err != nil || n != 1 || done[0].Err != nil || done[0].ID != 5 || !bytes.Equal(inbox, pattern(3, 1<<20)) {
					t.Fatalf("%d %+v %v", n, done[0], err)
				}
				if err := e.a.Close(); err != nil {
					t.Error(err)
				}
				<-e.b.Done()
				if err := e.b.Err(); !errors.Is(err, verbs.ErrPeerClosed) {
					t.Errorf("the peer: %v", err)
				}
			})
		}
	}
}

// TestFlushesBehindEachOther: the peer carries out those that wait behind another one, although nothing more arrives
// (COMMIT-010).
func TestFlushesBehindEachOther(t *testing.T) {
	e := connect(t, &verbs.Options{Extensions: all}, &verbs.Options{Extensions: all})
	r, err := e.hb.Register(make([]byte, 4096), verbs.RemoteWrite|verbs.FlushGlobal)
	if err != nil {
		t.Fatal(err)
	}
	list := make([]verbs.Work, 20)
	for i := range list {
		list[i] = verbs.Work{ID: uint64(i), Op: verbs.OpFlush, STag: r.STag(), Length: 100, Global: true}
	}
	if n, err := e.a.PostList(list); n != len(list) || err != nil {
		t.Fatal(n, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	done := make([]verbs.Completion, len(list))
	for got := 0; got < len(list); {
		n, err := e.a.Completions().Wait(ctx, done)
		if err != nil {
			t.Fatalf("%d of %d were answered: %v", got, len(list), err)
		}
		for _, c := range done[:n] {
			if c.Err != nil || c.ID != uint64(got) {
				t.Fatalf("%+v", c)
			}
			got++
		}
	}
}

package verbs_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/dgrdma/dgrdma/verbs"
)

// BenchmarkWrite moves 64 MiB of memory at both ends, by 1 MiB.
func BenchmarkWrite(b *testing.B) { benchmark(b, verbs.OpWrite) }
func BenchmarkRead(b *testing.B)  { benchmark(b, verbs.OpRead) }

func benchmark(b *testing.B, op verbs.Op) {
	for _, plain := range []bool{true, false} {
		for _, strict := range []bool{false, true} {
			b.Run(fmt.Sprintf("plain=%v,strict=%v", plain, strict), func(b *testing.B) {
				e := connect(b, &verbs.Options{NoCRC: plain, Strict: strict}, &verbs.Options{NoCRC: plain})
				const size, memory, depth = 1 << 20, 64 << 20, 16
				r, err := e.hb.Register(make([]byte, memory), verbs.RemoteWrite|verbs.RemoteRead)
				if err != nil {
					b.Fatal(err)
				}
				key := r.Key()
				buf := make([]byte, memory)
				done := make([]verbs.Completion, depth)
				b.SetBytes(size)
				b.ReportAllocs()
				b.ResetTimer()
				posted, completed := 0, 0
				for completed < b.N {
					for ; posted < b.N && posted-completed < depth; posted++ {
						at := posted * size % memory
						if err := e.a.Post(&verbs.Work{Op: op, STag: key.STag, TO: key.Offset + uint64(at), Data: buf[at : at+size]}); err != nil {
							b.Fatal(err)
						}
					}
					n, err := e.a.Completions().Wait(context.Background(), done)
					if err != nil || done[0].Err != nil {
						b.Fatal(err, done[0].Err)
					}
					completed += n
				}
			})
		}
	}
}

// BenchmarkPing is a Send of 64 bytes each way.
func BenchmarkPing(b *testing.B) {
	ctx := context.Background()
	var posted [2][]verbs.Receive
	for i := range posted {
		for j := range 4 {
			posted[i] = append(posted[i], verbs.Receive{ID: uint64(j), Data: make([]byte, 64)})
		}
	}
	e := connect(b, &verbs.Options{NoCRC: true, Posted: posted[0]}, &verbs.Options{NoCRC: true, Posted: posted[1]})
	step := func(q *verbs.QueuePair, receives []verbs.Receive, send bool) error {
		done := make([]verbs.Completion, 1)
		data := make([]byte, 64)
		for range b.N {
			if send {
				if err := q.Post(&verbs.Work{Op: verbs.OpSend, Silent: true, Data: data}); err != nil {
					return err
				}
			}
			if _, err := q.Received().Wait(ctx, done); err != nil {
				return err
			}
			if err := q.PostReceive(receives[done[0].ID]); err != nil {
				return err
			}
			if !send {
				if err := q.Post(&verbs.Work{Op: verbs.OpSend, Silent: true, Data: data}); err != nil {
					return err
				}
			}
		}
		return nil
	}
	b.ReportAllocs()
	b.ResetTimer()
	other := make(chan error)
	go func() { other <- step(e.b, posted[1], false) }()
	if err := step(e.a, posted[0], true); err != nil {
		b.Fatal(err)
	}
	if err := <-other; err != nil {
		b.Fatal(err)
	}
}

// BenchmarkSend is 64-byte Sends, pipelined.
func BenchmarkSend(b *testing.B) {
	const depth = 256
	ctx := context.Background()
	var posted []verbs.Receive
	for j := range 2 * depth {
		posted = append(posted, verbs.Receive{ID: uint64(j), Data: make([]byte, 64)})
	}
	e := connect(b, &verbs.Options{NoCRC: true, Sends: depth}, &verbs.Options{NoCRC: true, Receives: 2 * depth, Posted: posted})
	b.ReportAllocs()
	b.ResetTimer()
	got := make(chan error)
	credit := make(chan int, 1<<20)
	go func() {
		done := make([]verbs.Completion, depth)
		for n := 0; n < b.N; {
			k, err := e.b.Received().Wait(ctx, done)
			if err != nil {
				got <- err
				return
			}
			for i := range k {
				if err := e.b.PostReceive(posted[done[i].ID]); err != nil {
					got <- err
					return
				}
			}
			n += k
			credit <- k
		}
		got <- nil
	}()
	data := make([]byte, 64)
	list := make([]verbs.Work, 64)
	for i := range list {
		list[i] = verbs.Work{Op: verbs.OpSend, Silent: true, Data: data}
	}
	room := 2 * depth
	for n := 0; n < b.N; {
		for room == 0 {
			room += <-credit
		}
		k, err := e.a.PostList(list[:min(len(list), room, b.N-n)])
		if err != nil && k == 0 {
			if !errors.Is(err, verbs.ErrFull) {
				b.Fatal(err)
			}
		}
		n += k
		room -= k
	}
	if err := <-got; err != nil {
		b.Fatal(err)
	}
}

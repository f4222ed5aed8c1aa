package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/dgrdma/dgrdma/verbs"
)

// orderLength is that of an order to write: for how long, how many blocks at once, and where.
const orderLength = 8 + 4 + 4 + 8

// serveWrites writes its memory, block by block, into that of whoever asks, and then says how many blocks these were.
func serveWrites(l *verbs.Listener, memory []byte) error {
	ctx := context.Background()
	for {
		r, err := l.Accept(ctx)
		if err != nil {
			return err
		}
		posted := verbs.Receive{Data: make([]byte, orderLength)}
		q, err := r.Accept(ctx, &verbs.Options{NoCRC: true, Posted: []verbs.Receive{posted}})
		if err != nil {
			return err
		}
		go func() {
			defer q.Close()
			var done [1]verbs.Completion
			for {
				if _, err := q.Received().Wait(ctx, done[:]); err != nil || done[0].Err != nil {
					return // the client has ended
				}
				long, atOnce := time.Duration(binary.BigEndian.Uint64(posted.Data)), int(binary.BigEndian.Uint32(posted.Data[8:]))
				stag, offset := binary.BigEndian.Uint32(posted.Data[12:]), binary.BigEndian.Uint64(posted.Data[16:])
				n, err := writeFor(ctx, q, memory, long, atOnce, stag, offset)
				if err == nil {
					err = q.PostReceive(posted)
				}
				if err == nil {
					err = q.Post(&verbs.Work{Op: verbs.OpSend, Silent: true, Data: binary.BigEndian.AppendUint64(nil, uint64(n))})
				}
				if err != nil {
					return
				}
			}
		}()
	}
}

// writeFor writes blocks for some time, and says how many. All of them are done.
func writeFor(ctx context.Context, q *verbs.QueuePair, memory []byte, long time.Duration, atOnce int, stag uint32, offset uint64) (n int, err error) {
	list, done := make([]verbs.Work, 0, atOnce), make([]verbs.Completion, atOnce)
	for began, left := time.Now(), 0; ; {
		list = list[:0]
		for time.Since(began) < long && left < atOnce {
			list = append(list, verbs.Work{Op: verbs.OpWrite, STag: stag, TO: offset + uint64(n%callBlocks*callBlock), Data: blockOf(memory, n)})
			n, left = n+1, left+1
		}
		if _, err := q.PostList(list); err != nil {
			return n, err
		}
		if left == 0 {
			return n, nil
		}
		k, err := q.Completions().Wait(ctx, done)
		if err != nil {
			return n, err
		}
		for i := range k {
			if done[i].Err != nil {
				return n, done[i].Err
			}
		}
		left -= k
	}
}

// writes is a way that has the server write by verbs.
type writes struct {
	q       *verbs.QueuePair
	region  *verbs.Region
	receive verbs.Receive
	order   [orderLength]byte
	atOnce  int
}

func dialWrites(ctx context.Context, host string, atOnce int, memory []byte) (way, error) {
	h, err := verbs.Open("tcp")
	if err != nil {
		return nil, err
	}
	w := &writes{receive: verbs.Receive{Data: make([]byte, 8)}, atOnce: atOnce}
	if w.q, err = h.Dial(ctx, "tcp:"+host+":"+portWrites, &verbs.Options{NoCRC: true, Posted: []verbs.Receive{w.receive}}); err != nil {
		return nil, err
	}
	w.region, err = h.Domain().Register(memory, verbs.RemoteWrite, nil)
	return w, err
}

// turn is that of [way]. A Send that comes after Writes tells that all of them are there.
func (w *writes) turn(ctx context.Context, long time.Duration) (n int, err error) {
	key := w.region.Key()
	binary.BigEndian.PutUint64(w.order[:], uint64(long))
	binary.BigEndian.PutUint32(w.order[8:], uint32(w.atOnce))
	binary.BigEndian.PutUint32(w.order[12:], key.STag)
	binary.BigEndian.PutUint64(w.order[16:], key.Offset)
	if err := w.q.Post(&verbs.Work{Op: verbs.OpSend, Silent: true, Data: w.order[:]}); err != nil {
		return 0, err
	}
	var done [1]verbs.Completion
	if _, err := w.q.Received().Wait(ctx, done[:]); err != nil {
		return 0, err
	}
	if done[0].Err != nil || done[0].Length != 8 {
		return 0, fmt.Errorf("%d octets came: %w", done[0].Length, done[0].Err)
	}
	n = int(binary.BigEndian.Uint64(w.receive.Data))
	return n, w.q.PostReceive(w.receive)
}

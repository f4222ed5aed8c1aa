package wires

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
)

// flow is a stream of transactions from one endpoint into slots of another's
// ledger. A slot is used again only when its transaction is done.
type flow struct {
	from   frame.EndpointID
	conn   *dgrdma.Conn
	size   int
	free   chan *slot
	slots  int
	next   uint32 // number of the next transaction
	acked  atomic.Int64
	failed atomic.Int64
	err    atomic.Pointer[error] // of the first that failed
}

type slot struct {
	tx     dgrdma.Transaction
	header [8]byte
	base   uint32
}

func newFlow(from frame.EndpointID, conn *dgrdma.Conn, first, slots, size int) *flow {
	f := &flow{from: from, conn: conn, size: size, slots: slots, next: 1, free: make(chan *slot, slots)}
	for i := range slots {
		s := &slot{base: uint32((first + i) * stride(size))}
		s.tx.Done = func(_ *dgrdma.Transaction, err error) {
			if err != nil {
				f.failed.Add(1)
				f.err.CompareAndSwap(nil, &err)
			} else {
				f.acked.Add(1)
			}
			f.free <- s
		}
		f.free <- s
	}
	return f
}

// post sends one transaction, as soon as a slot is free.
func (f *flow) post(ctx context.Context) error {
	var s *slot
	select {
	case s = <-f.free:
	case <-ctx.Done():
		return fmt.Errorf("no transaction was done for too long: %w; %+v", ctx.Err(), f.conn.Stats())
	}
	number := f.next
	binary.LittleEndian.PutUint32(s.header[:], number)
	binary.LittleEndian.PutUint32(s.header[4:], uint32(f.size))
	s.tx.Segments = append(s.tx.Segments[:0],
		dgrdma.Segment{Addr: s.base + slotHeader, Bytes: s.header[:]},
		dgrdma.Segment{Addr: s.base + slotData, Bytes: pattern(number, f.size)})
	s.tx.Completion = dgrdma.Word(s.base, number)
	if err := f.conn.Post(&s.tx); err != nil {
		f.free <- s
		return fmt.Errorf("post transaction %d: %w", number, err)
	}
	f.next++
	return nil
}

// settle waits until everything posted is done, and returns the error of the
// first transaction that failed.
func (f *flow) settle(ctx context.Context) error {
	taken := make([]*slot, 0, f.slots)
	defer func() {
		for _, s := range taken {
			f.free <- s
		}
	}()
	for range f.slots {
		select {
		case s := <-f.free:
			taken = append(taken, s)
		case <-ctx.Done():
			return fmt.Errorf("transactions are not done for too long: %w; %+v", ctx.Err(), f.conn.Stats())
		}
	}
	if err := f.err.Load(); err != nil {
		return *err
	}
	return nil
}

// pump posts transactions while more says so, and waits until they are done.
func (f *flow) pump(more func() bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for more() && f.err.Load() == nil {
		if err := f.post(ctx); err != nil {
			if f.err.Load() != nil {
				break // the others' failure is the cause
			}
			return err
		}
	}
	return f.settle(ctx)
}

// send posts n transactions and waits until they are done.
func (f *flow) send(n int) error {
	return f.pump(func() bool { n--; return n >= 0 })
}

// posted returns how many transactions were posted.
func (f *flow) posted() int { return int(f.next - 1) }

// patience is how long things may take that take much less: the machine may be
// busy with other things.
const patience = 60 * time.Second

package inspect_test

import (
	"encoding/binary"
	"io"
	"runtime"
	"testing"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/captured"
	"github.com/dgrdma/dgrdma/inspect"
)

// endless writes a capture on and on: flows in both directions between pairs,
// with gaps, copies, duplicates, transactions that end and others that do not.
type endless struct {
	pairs   int
	rest    []byte
	n       int
	buf     []byte
	micros  int64
	written int64
}

func newEndless(pairs int) *endless {
	h := make([]byte, 24)
	binary.LittleEndian.PutUint32(h, 0xA1B2C3D4)
	binary.LittleEndian.PutUint32(h[20:], 1)
	return &endless{pairs: pairs, rest: h, micros: 1e12}
}

func (e *endless) Read(b []byte) (int, error) {
	if len(e.rest) == 0 {
		e.rest = e.record()
	}
	n := copy(b, e.rest)
	e.rest = e.rest[n:]
	e.written += int64(n)
	return n, nil
}

// record makes the next one. Of 16 of a pair, 12 are frames with messages and 4
// acknowledge.
func (e *endless) record() []byte {
	pair := frame.EndpointID(e.n % e.pairs)
	round := e.n / e.pairs
	e.n++
	e.micros += 7
	from, to := 2*pair+1, 2*pair+2
	var f []byte
	switch k := round / 16; round % 16 {
	case 3, 7, 11, 15:
		from, to = to, from
		f = frameWith(from, to, frame.Seq(round/4))
		frame.PutAck(f, frame.Seq(12*k), 12)
	default:
		at := round - (round+1)/4
		switch at % 1000 {
		case 500:
			at += 2 // a gap
		case 501, 502:
			at -= 7 // copies
		}
		f = frameWith(from, to, frame.Seq(at), frame.Message{
			Txn: uint32(at / 8), Count: 8, Index: uint16(at%8 + 1), CompletionAddr: 8, Len: 1456, Addr: uint32(at),
		})
	}
	b := append(e.buf[:0], make([]byte, 16+14)...)
	binary.LittleEndian.PutUint32(b, uint32(e.micros/1e6))
	binary.LittleEndian.PutUint32(b[4:], uint32(e.micros%1e6))
	binary.LittleEndian.PutUint32(b[8:], uint32(14+len(f)))
	binary.LittleEndian.PutUint32(b[12:], uint32(14+len(f)))
	copy(b[16:], []byte{2, 0, 0, 0, byte(to >> 8), byte(to), 2, 0, 0, 0, byte(from >> 8), byte(from), 0xF0, 0x42})
	e.buf = append(b, f...)
	return e.buf
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// The memory for a capture of a gigabyte is that for a small one.
func TestConstantMemory(t *testing.T) {
	for _, tt := range []struct {
		pairs       int
		early, late int64 // bytes read
		most        int64 // of heap
	}{
		{1, 32 << 20, 1 << 30, 4 << 20},
		{200, 256 << 20, 384 << 20, 64 << 20}, // more than are followed
	} {
		if testing.Short() {
			tt.late = tt.early + tt.early/2
		}
		e := newEndless(tt.pairs)
		r, err := captured.NewFileReader(e, captured.Options{})
		if err != nil {
			t.Fatal(err)
		}
		before := heap()
		a := inspect.New()
		var then int64
		for e.written < tt.late {
			p, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			a.Add(p)
			if then == 0 && e.written >= tt.early {
				then = heap() - before
			}
		}
		now := heap() - before
		t.Logf("%d pairs: %d KiB after %d MiB, %d KiB after %d MiB", tt.pairs, then>>10, tt.early>>20, now>>10, tt.late>>20)
		if tt.pairs == 1 && now > then+then/8 || now > tt.most {
			t.Errorf("%d pairs: memory grows from %d to %d bytes", tt.pairs, then, now)
		}
		report := a.Report()
		f := report.Flows[0]
		if f.Resent == 0 || f.Acked == 0 || f.Transactions.Completed == 0 || len(f.Bins) <= 256 || len(f.Bins) > 512 || len(f.Points) > 1600 {
			t.Errorf("%d pairs: %d resent, %d acknowledged, %d completed, %d bins, %d points",
				tt.pairs, f.Resent, f.Acked, f.Transactions.Completed, len(f.Bins), len(f.Points))
		}
	}
}

func BenchmarkAnalyzer(b *testing.B) {
	e := newEndless(1)
	r, err := captured.NewFileReader(io.Reader(e), captured.Options{})
	if err != nil {
		b.Fatal(err)
	}
	a := inspect.New()
	b.ReportAllocs()
	for b.Loop() {
		p, err := r.Next()
		if err != nil {
			b.Fatal(err)
		}
		a.Add(p)
	}
	b.SetBytes(e.written / int64(b.N))
}

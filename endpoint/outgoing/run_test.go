package outgoing

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/transport"
)

// TestRunIsFrames checks that a batch has room for as many frames of a run as there is for them one by one, and that they are the same as those,
// copied or lent, whatever was in the batch before.
func TestRunIsFrames(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	to := new(transport.Addr)
	all := make([]byte, MaxBatch*2*leastLent)
	for i := range all {
		all[i] = byte(i / 7)
	}
	for range 100 {
		var run, single Batch
		for _, b := range []*Batch{&run, &single} {
			b.Init(2, small, LendingOf(false, false))
		}
		before := rnd.IntN(60)
		for range before {
			for _, b := range []*Batch{&run, &single} {
				b.Add(to, b.Buffer(1000), nil, nil)
			}
		}
		s := Shape{Head: 42, Data: 1 + rnd.IntN([]int{100, 2000, 2 * leastLent}[rnd.IntN(3)]), Spare: rnd.IntN(2) * 4}
		data := all[rnd.IntN(len(all)-MaxBatch*s.Data+1):][:MaxBatch*s.Data]
		room, size := run.RunRoom(s), s.Head+2+s.Spare
		if s.Data < leastLent {
			size += s.Data
		}
		n := 0
		for ; !single.IsFull() && single.Fits(size); n++ {
			buf, rest := single.Frame(s.Head, data[n*s.Data:][:s.Data], s.Spare)
			single.Add(to, buf, rest, nil)
		}
		if room != n {
			t.Fatalf("%+v after %d frames: room for %d, and one by one for %d", s, before, room, n)
		}
		got := run.AddRun(to, s, data[:n*s.Data])
		if len(got) != n || len(run.Frames()) != before+n {
			t.Fatalf("%d frames of %d", len(got), n)
		}
		for i, w := range single.Frames()[before:] {
			g := &got[i]
			if g.To != to || len(g.Buf) != len(w.Buf) || cap(g.Buf) != cap(w.Buf) || !bytes.Equal(g.Buf[min(2+s.Head, len(g.Buf)):], w.Buf[min(2+s.Head, len(w.Buf)):]) {
				t.Fatalf("%+v: frame %d differs", s, i)
			}
			if len(g.Rest) != len(w.Rest) || len(g.Rest) > 0 && &g.Rest[0] != &w.Rest[0] {
				t.Fatalf("%+v: the end of frame %d differs", s, i)
			}
		}
		if run.lent != single.lent || run.IsLending() != single.IsLending() || len(run.hot) != len(single.hot) || n > 0 && len(run.hot) > 0 && run.hot[len(run.hot)-1].used != single.hot[len(single.hot)-1].used {
			t.Fatalf("%+v: the batches differ", s)
		}
	}
}

// TestNoteRun checks that a run is noted as its frames would be one by one, also where the places have to become more.
func TestNoteRun(t *testing.T) {
	run, single := newFlight(Lengths{Full: 1500}), newFlight(Lengths{Full: 1500})
	var txn transaction
	p := Part{Segment: 1, Offset: 500, Index: 65530}
	for _, f := range []*flight{run, single} {
		f.Note(f.sent.Track(0, 100), &txn, &p, 100)
	}
	for _, n := range []int{1, 40, 7} {
		p.Offset, p.Index = p.Offset+100, p.Index+1
		first := run.sent.Next()
		if got := run.sent.TrackRun(0, 1500, 1400, n); got != n {
			t.Fatalf("%d frames of %d may leave", got, n)
		}
		run.NoteRun(first, n, &txn, p, 100, 1442)
		for i := range uint32(n) {
			q := Part{Segment: p.Segment, Offset: p.Offset + 100*i, Index: p.Index + uint16(i)}
			single.Note(single.sent.Track(0, 1400), &txn, &q, 1442)
		}
		for id := run.sent.Oldest(); id != run.sent.Next(); id++ {
			if *run.At(id) != *single.At(id) {
				t.Fatalf("frame %d is %+v, want %+v", id, *run.At(id), *single.At(id))
			}
		}
	}
}

// TestTrackRunEnds checks that no more frames of a run leave than may.
func TestTrackRunEnds(t *testing.T) {
	var f ack.Flight
	f.Init(0, ack.FlightConfig{Epoch: 7, Window: 100}, &ack.FixedWindow{Bytes: 14_000})
	for _, want := range []int{3, 7, 0} {
		if n := f.TrackRun(0, 1400, 1400, max(want, 20*(want/7), 1)); n != want {
			t.Errorf("%d frames leave, want %d, with %d in flight", n, want, f.InFlight())
		}
	}
}

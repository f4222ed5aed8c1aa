package foreign

import (
	"testing"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// BenchmarkCodecAndWindow is what a full frame costs to parse, to walk and to
// check against duplicates, without the copy of its data.
func BenchmarkCodecAndWindow(b *testing.B) {
	buf := make([]byte, 1490)
	var w frame.Writer
	w.Init(buf)
	w.Add(&frame.Message{Txn: 1, Count: 1, Index: 1, Len: uint16(w.Room())})
	h := frame.Header{Dst: 2, Src: 1, Flags: frame.FlagMessages}
	h.Put(buf)
	var r ack.Receiver
	r.Init(ack.ReceiverConfig{History: ack.MaxHistory, Repeat: true})
	var due ack.PendingAcks
	due.Init(64, 0)
	var seq frame.Seq
	placed := 0
	b.ReportAllocs()
	for b.Loop() {
		seq++
		buf[4], buf[5] = byte(seq), byte(seq>>8)
		f, err := frame.Parse(buf)
		if err != nil {
			b.Fatal(err)
		}
		for c := f.Cursor(); c.Next(); {
			if r.Check(f.Seq) == ack.New {
				placed += len(c.Data)
				r.Accept(f.Seq, tagOf(&c.Msg))
			}
		}
		if seq%64 == 0 {
			due.Take(0, &r)
			for _, ok := due.Next(); ok; _, ok = due.Next() {
			}
		}
	}
	if placed == 0 {
		b.Fatal("nothing was accepted")
	}
}

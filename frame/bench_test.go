package frame

import "testing"

var benchFrames = []struct {
	name string
	msgs []message
}{
	{"full", []message{dataMessage(1, 1466)}},
	{"messages3", []message{dataMessage(1, 464), dataMessage(2, 464), dataMessage(3, 464)}},
	{"messages60", func() (msgs []message) {
		for i := range 60 {
			msgs = append(msgs, message{Message: Message{Txn: uint32(i), CompletionAddr: 0x40, CompletionValue: 1, Index: 1}})
		}
		return msgs
	}()},
}

func BenchmarkParse(b *testing.B) {
	for _, bf := range benchFrames {
		b.Run(bf.name, func(b *testing.B) {
			buf := lay(Header{Dst: 2, Src: 1, Flags: 1}, 0, bf.msgs...)
			b.SetBytes(int64(len(buf)))
			b.ReportAllocs()
			sum := 0
			for b.Loop() {
				f, err := Parse(buf)
				if err != nil {
					b.Fatal(err)
				}
				for c := f.Cursor(); c.Next(); {
					sum += len(c.Data)
				}
			}
			if sum == 0 && bf.msgs[0].Len != 0 {
				b.Fatal("no data")
			}
		})
	}
}

func BenchmarkWriter(b *testing.B) {
	for _, bf := range benchFrames {
		b.Run(bf.name, func(b *testing.B) {
			buf := make([]byte, 1500)
			h := Header{Dst: 2, Src: 1, Flags: 1}
			b.ReportAllocs()
			for b.Loop() {
				var w Writer
				w.Init(buf)
				for i := range bf.msgs {
					w.Add(&bf.msgs[i].Message)
				}
				h.Put(buf)
			}
		})
	}
}

package text_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/captured"
	"github.com/dgrdma/dgrdma/inspect/text"
)

// BenchmarkAppend prints full-size frames: one message, as of a long
// transaction, or eight, as of short ones.
func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct {
		name     string
		messages int
	}{{"1", 1}, {"8", 8}} {
		data := make([]byte, 1466)
		var w frame.Writer
		w.Init(data)
		size := (len(data)-frame.HeaderSize)/c.messages/8*8 - frame.MessageHeaderSize
		for i := range c.messages {
			w.Add(&frame.Message{Txn: 1 << 31, CompletionAddr: 64, CompletionValue: 7, Count: 46, Index: uint16(1 + i), Addr: 1 << 20, Len: uint16(size)})
		}
		h := frame.Header{Dst: 2, Src: 1, Seq: 4711, AckStart: 1000, AckCount: 12, Flags: frame.FlagMessages}
		h.Put(data)
		p := captured.Packet{Prefix: []byte{0, 0}, Packet: capture.Packet{
			Record: 1 << 20, Segment: 3, Segments: 44, Time: time.Unix(1_700_000_000, 123456789), Data: data[:w.Len()], Length: w.Len(),
			Src: capture.Addr{UDP: netip.MustParseAddrPort("10.77.0.1:40001")}, Dst: capture.Addr{UDP: netip.MustParseAddrPort("10.77.0.2:7100")},
		}}
		for _, style := range []struct {
			name string
			text.Style
		}{{"line", text.Line}, {"fields", text.Fields}, {"json", text.JSON}} {
			b.Run(style.name+"/"+c.name, func(b *testing.B) {
				printer := text.Printer{Style: style.Style, Start: time.Unix(1_700_000_000, 0)}
				var v text.View
				var out []byte
				b.ReportAllocs()
				for b.Loop() {
					v.Decode(&p)
					out = printer.Append(out[:0], &v)
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mframes/s")
			})
		}
	}
}

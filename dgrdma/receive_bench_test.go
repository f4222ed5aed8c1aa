package dgrdma

import (
	"runtime"
	"testing"

	"github.com/dgrdma/dgrdma/frame"
)

// BenchmarkReceive is what a frame costs the receiver, from the wire to the acknowledgement,
// without a network and a second endpoint.
func BenchmarkReceive(b *testing.B) {
	for _, x := range []struct {
		name  string
		burst int // frames that come at once
		frame func(i uint32) []frame.Message
	}{
		{"doorbell", 1, func(i uint32) []frame.Message { return []frame.Message{bare(life+i, 1, 1)} }},
		{"60 doorbells", 1, func(i uint32) []frame.Message {
			return times(60, func(j int) frame.Message { return bare(life+60*i+uint32(j), 1, 1) })
		}},
		{"part of 14 frames", 1, func(i uint32) []frame.Message {
			return []frame.Message{{Txn: life + i/14, Count: 14, Index: uint16(1 + i%14), Len: 1456}}
		}},
		{"part of 60000 frames", 1, func(i uint32) []frame.Message {
			return []frame.Message{{Txn: life + i/60000, Count: 60000, Index: uint16(1 + i%60000), Len: 1456}}
		}},
		{"part of 60000 frames, in bursts of 44", 44, func(i uint32) []frame.Message {
			return []frame.Message{{Txn: life + i/60000, Count: 60000, Index: uint16(1 + i%60000), Addr: i % 44 * 1456, Len: 1456}}
		}},
		{"part of 14 frames, each eighth late", 1, func(i uint32) []frame.Message {
			switch { // by 7 of 8 frames
			case i%8 == 0:
				i += 7
			default:
				i--
			}
			return []frame.Message{{Txn: life + i/14, Count: 14, Index: uint16(1 + i%14), Len: 1456}}
		}},
	} {
		b.Run(x.name, func(b *testing.B) {
			memory, err := NewRegion(1 << 16)
			if err != nil {
				b.Fatal(err)
			}
			f := newFeed(b, Config{Memory: memory})
			c, err := f.e.Connect(Peer{ID: 1, Addr: addrA})
			if err != nil {
				b.Fatal(err)
			}
			f.introduce(1, life)
			const chunk = 2048
			frames := make([][]byte, chunk)
			i := uint32(0)
			b.ReportAllocs()
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			least := 0.0
			for n := 0; n < b.N; n += chunk {
				b.StopTimer()
				for k := range frames {
					frames[k] = encode(1, frame.Seq(2+i), x.frame(i)...)
					i++
				}
				b.StartTimer()
				began, now := threadTime(b), frames[:min(chunk, b.N-n)]
				for k := 0; k < len(now); k += x.burst {
					f.next, f.more = now[k], now[k+1:min(k+x.burst, len(now))]
					f.e.Progress(0)
				}
				if each := float64(threadTime(b)-began) / float64(len(now)); least == 0 || each < least {
					least = each
				}
			}
			b.StopTimer()
			b.ReportMetric(least, "cpu-ns/frame") // of the fastest few thousand
			if st := c.Stats(); st.Refused != [numReasons]uint64{} {
				b.Fatalf("refused %v", st.Refused)
			}
		})
	}
}

package iwarp_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/capture/records"
	"github.com/dgrdma/dgrdma/capture/tcp"
)

// mangle cuts segments of a capture in other places, joins them as a host with offload does, has some twice, or later again, and
// changes their order within a window.
func mangle(t testing.TB, rnd *rand.Rand, records []capture.Record, window int) []capture.Record {
	var out []capture.Record
	for i := range records {
		r := records[i]
		s := mustSegment(t, &r)
		if n := len(out); n > 0 && s.Length > 0 && rnd.IntN(3) == 0 {
			if before := mustSegment(t, &out[n-1]); before.Src == s.Src && before.Length > 0 && before.Ack == s.Ack && before.Seq+uint32(before.Length) == s.Seq && before.Length+s.Length < 60_000 {
				before.Data = slices.Concat(before.Data, s.Data)
				before.Length += s.Length
				before.Flags |= s.Flags
				out[n-1] = segmentLike(t, &out[n-1], &before)
				continue
			}
		}
		for s.Length > 1 && rnd.IntN(2) == 0 {
			part := s
			cut := 1 + rnd.IntN(s.Length-1)
			part.Data, part.Length = s.Data[:cut], cut
			part.Flags &^= capture.FIN
			out = append(out, segmentLike(t, &r, &part))
			s.Seq, s.Data, s.Length = s.Seq+uint32(cut), s.Data[cut:], s.Length-cut
		}
		out = append(out, segmentLike(t, &r, &s))
		for rnd.IntN(4) == 0 {
			again := out[rnd.IntN(len(out))]
			if rnd.IntN(2) == 0 {
				again = out[len(out)-1]
			}
			out = append(out, again)
		}
	}
	type late struct {
		at int
		r  capture.Record
	}
	order := make([]late, len(out))
	for i := range out {
		order[i] = late{i + rnd.IntN(window), out[i]}
	}
	slices.SortStableFunc(order, func(a, b late) int { return a.at - b.at })
	for i := range out {
		out[i] = order[i].r
	}
	return out
}

// TestAnyOrder: however what was sent is cut, joined, doubled and reordered in the capture, the same is read of it.
func TestAnyOrder(t *testing.T) {
	for _, name := range []string{"ops-short", "term-read-bounds", "rping-p2p-read-crc", "rping-rev2", "siw-zero-read-stale", "send-65537-nocrc", "write-65537-gso", "perf-read-64"} {
		t.Run(name, func(t *testing.T) {
			records := records.Of(t, testdata+name+".pcap")
			tcpOnly := records[:0:0]
			for i := range records {
				if _, ok := records[i].Segment(); ok {
					tcpOnly = append(tcpOnly, records[i])
				}
			}
			want := linesOf(t, tcpOnly)
			for range 60 {
				seed := rand.Uint64()
				rnd := rand.New(rand.NewPCG(seed, 2))
				got := linesOf(t, mangle(t, rnd, tcpOnly, 1+rnd.IntN(tcp.Patience/3)))
				for way, lines := range want {
					for i, line := range lines {
						if i >= len(got[way]) || got[way][i] != line {
							t.Fatalf("seed %d, %s: line %d of %d, there are %d, is\n%.500s\nwant\n%.500s", seed, way, i, len(lines), len(got[way]), slices.Concat(got[way], make([]string, i+1))[i], line)
						}
					}
				}
			}
		})
	}
}

// without drops records by their numbers.
func without(records []capture.Record, drop ...int) (left []capture.Record) {
	for i, r := range records {
		if !slices.Contains(drop, i+1) {
			left = append(left, r)
		}
	}
	return left
}

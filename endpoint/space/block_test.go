package space

import (
	"slices"
	"testing"
)

// TestSmallPieces: a piece of any length up to a unit takes one, and a block has as many
// as lie in it whole, in whichever order they are given back.
func TestSmallPieces(t *testing.T) {
	const base, units = 1 << 20, 4
	for _, size := range []int{units * unit, units*unit + 1, units*unit + 64, units*unit + unit - 1} {
		for order := range units * units * units * units {
			b := NewBlock(base, size)
			var taken []Span
			for i, n := range []uint64{0, 1, unit - 1, unit} {
				s, ok := b.Take(n)
				if !ok || s != (Span{base + uint64(i)*unit, n}) {
					t.Fatalf("of %d bytes, piece %d: %+v, %v", size, i, s, ok)
				}
				taken = append(taken, s)
			}
			if s, ok := b.Take(0); ok {
				t.Fatalf("of %d bytes, one more: %+v", size, s)
			}
			given := make([]bool, units)
			for o := order; slices.Contains(given, false); o /= units {
				i := o % units
				for given[i] {
					i = (i + 1) % units
				}
				given[i] = true
				b.Give(taken[i])
				var want []Span
				for i, free := range given {
					switch {
					case !free:
					case i > 0 && given[i-1]:
						want[len(want)-1].N += unit
					default:
						want = append(want, Span{base + uint64(i)*unit, unit})
					}
				}
				if got := b.Free(); !slices.Equal(got, want) {
					t.Fatalf("of %d bytes, given back in order %d: %v are free, want %v", size, order, got, want)
				}
			}
		}
	}
}

package space

import (
	"math/rand/v2"
	"testing"
)

// TestOldEntry: who takes back what it may no longer have leaves alone who has it now.
func TestOldEntry(t *testing.T) {
	var x Table[string]
	x.Add(Span{1 << 16, 256}, "before")
	x.Remove(1<<16, "before")
	x.Add(Span{1 << 16, 128}, "now")
	x.Remove(1<<16, "before")
	if got, ok := x.Find(1 << 16); got != "now" || !ok {
		t.Errorf("the addresses are of %q, want now", got)
	}
	x.Remove(1<<16+1, "now") // where nothing begins
	if x.Len() != 1 {
		t.Errorf("%d entries", x.Len())
	}
}

// TestTable holds a table against a map of all addresses.
func TestTable(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	const size = 300
	for range 200 {
		var x Table[int]
		var model [size]int
		at := make(map[int]uint64)
		for step := 1; step < 60; step++ {
			if r.IntN(3) == 0 {
				for owner, a := range at {
					x.Remove(a, owner)
					for i := range model {
						if model[i] == owner {
							model[i] = 0
						}
					}
					delete(at, owner)
					break
				}
			} else if a, n := r.IntN(size), 1+r.IntN(40); a+n <= size {
				free := true
				for _, o := range model[a : a+n] {
					free = free && o == 0
				}
				if free {
					x.Add(Span{uint64(a), uint64(n)}, step)
					at[step] = uint64(a)
					for i := range n {
						model[a+i] = step
					}
				}
			}
			if x.Len() != len(at) {
				t.Fatalf("seed %d: %d entries, want %d", seed, x.Len(), len(at))
			}
			for range 20 {
				a := r.IntN(size + 2)
				want := 0
				if a < size {
					want = model[a]
				}
				if got, ok := x.Find(uint64(a)); got != want || ok != (want != 0) {
					t.Fatalf("seed %d: %d is of %d, %v; want %d", seed, a, got, ok, want)
				}
			}
		}
	}
}

// TestBlock: pieces never overlap, lie in the block, and when all are given back it is
// in one piece again.
func TestBlock(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	const base, size = 1 << 20, 64 << 10
	b := NewBlock(base, size)
	var taken []Span
	for range 5000 {
		if r.IntN(2) == 0 && len(taken) > 0 {
			i := r.IntN(len(taken))
			b.Give(taken[i])
			taken = append(taken[:i], taken[i+1:]...)
			continue
		}
		n := r.Uint64N(4000)
		s, ok := b.Take(n)
		if !ok {
			continue
		}
		if s.N != n || s.At%unit != 0 || s.At < base || s.At+s.N > base+size || uint64(len(b.Bytes(s))) != n {
			t.Fatalf("seed %d: %+v for %d bytes", seed, s, n)
		}
		for _, o := range taken {
			if s.At < o.At+max(o.N, 1) && o.At < s.At+max(s.N, 1) {
				t.Fatalf("seed %d: %+v and %+v", seed, s, o)
			}
		}
		taken = append(taken, s)
	}
	for _, s := range taken {
		b.Give(s)
	}
	if f := b.Free(); len(f) != 1 || f[0] != (Span{base, size}) {
		t.Errorf("seed %d: %v is free", seed, f)
	}
	if _, ok := b.Take(size); !ok {
		t.Error("not all can be taken")
	}
	if _, ok := b.Take(1); ok {
		t.Error("more than all can be taken")
	}
}

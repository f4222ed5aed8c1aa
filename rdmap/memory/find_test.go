package memory_test

import (
	"bytes"
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
	"github.com/dgrdma/dgrdma/rdmap/memory"
	"github.com/dgrdma/dgrdma/tests/fixture"
)

// TestFind (RDMAP-018): what a peer may not do, and what it is told, for a segment and for a request. The
// answers to a segment are those of siw, the wrap excepted, which siw
// does not look for.
func TestFind(t *testing.T) {
	table := memory.NewTable()
	ours, theirs := table.NewDomain(), table.NewDomain()
	stream, sibling, stranger := ours.NewStream(), ours.NewStream(), theirs.NewStream()
	shared := register(t, ours, []byte("0123456789abcdef"), memory.RemoteRead|memory.RemoteWrite, &memory.Options{Base: 1000})
	alone := register(t, ours, make([]byte, 16), memory.RemoteRead, &memory.Options{Stream: sibling})
	top := register(t, ours, make([]byte, 16), memory.RemoteRead, &memory.Options{Base: math.MaxUint64 - 15})
	empty := register(t, ours, nil, memory.RemoteRead, nil)
	window := bind(t, shared, 4, 8, memory.RemoteRead, &memory.Options{Base: 50})
	slit := bind(t, shared, 16, 0, memory.RemoteRead, nil)
	old := register(t, ours, make([]byte, 16), memory.RemoteRead, nil)
	old.Invalidate()
	for _, c := range []struct {
		name    string
		stream  *memory.Stream
		stag    uint32
		to      uint64
		n       uint32
		right   memory.Rights
		want    memory.Violation
		segment ddp.Fault
		request ddp.Fault
	}{
		{"RDMAP-095: all of it", stream, shared.STag(), 1000, 16, memory.RemoteWrite, memory.None, 0, 0},
		{"RDMAP-095: its last byte", stream, shared.STag(), 1015, 1, memory.RemoteRead, memory.None, 0, 0},
		{"RDMAP-095 a: no STag", stream, shared.STag() ^ 1<<20, 1000, 1, memory.RemoteRead, memory.STag, 0x1100, 0x0100},
		{"RDMAP-095 a: another key", stream, shared.STag() ^ 1, 1000, 1, memory.RemoteRead, memory.STag, 0x1100, 0x0100},
		{"RDMAP-095 a: an index that nobody has", stream, 0, 0, 0, 0, memory.STag, 0x1100, 0x0100},
		{"RDMAP-052: invalidated", stream, old.STag(), 0, 1, memory.RemoteRead, memory.STag, 0x1100, 0x0100},
		{"RDMAP-098: another domain's", stranger, shared.STag(), 1000, 1, memory.RemoteRead, memory.Association, 0x1102, 0x0103},
		{"RDMAP-098: another domain's, and nothing in it is right", stranger, shared.STag(), 5, 100, memory.RemoteAtomic, memory.Association, 0x1102, 0x0103},
		{"RDMAP-095 b, RDMAP-099: another stream's", stream, alone.STag(), 0, 1, memory.RemoteRead, memory.Association, 0x1102, 0x0103},
		{"RDMAP-099: its own", sibling, alone.STag(), 0, 16, memory.RemoteRead, memory.None, 0, 0},
		{"RDMAP-095 c, RDMAP-100: below", stream, shared.STag(), 999, 1, memory.RemoteRead, memory.Bounds, 0x1101, 0x0101},
		{"RDMAP-095 c, RDMAP-100: far below, as much as there is", stream, shared.STag(), 0, 16, memory.RemoteRead, memory.Bounds, 0x1101, 0x0101},
		{"RDMAP-095 c, RDMAP-100: behind", stream, shared.STag(), 1016, 1, memory.RemoteRead, memory.Bounds, 0x1101, 0x0101},
		{"RDMAP-095 d, RDMAP-100: over the end", stream, shared.STag(), 1015, 2, memory.RemoteRead, memory.Bounds, 0x1101, 0x0101},
		{"RDMAP-095 d, RDMAP-100: as long as can be", stream, shared.STag(), 1000, math.MaxUint32, memory.RemoteRead, memory.Bounds, 0x1101, 0x0101},
		{"RDMAP-095 e: wraps", stream, shared.STag(), math.MaxUint64, 2, memory.RemoteRead, memory.Wrap, 0x1103, 0x0104},
		{"RDMAP-095 e: wraps into the region", stream, shared.STag(), math.MaxUint64 - 99, 1108, memory.RemoteRead, memory.Wrap, 0x1103, 0x0104},
		{"RDMAP-095 e: the last offset that there is", stream, shared.STag(), math.MaxUint64, 1, memory.RemoteRead, memory.Bounds, 0x1101, 0x0101},
		{"a region up to the last offset", stream, top.STag(), math.MaxUint64 - 15, 16, memory.RemoteRead, memory.None, 0, 0},
		{"a region up to the last offset, wrapping", stream, top.STag(), math.MaxUint64 - 15, 17, memory.RemoteRead, memory.Wrap, 0x1103, 0x0104},
		{"RDMAP-101: a right that it has not", stream, alone.STag(), 0, 1, 0, memory.Association, 0x1102, 0x0103},
		{"RDMAP-101: no right to write", sibling, alone.STag(), 0, 1, memory.RemoteWrite, memory.Permission, 0x1100, 0x0102},
		{"RDMAP-101: one of two rights", stream, window.STag(), 50, 1, memory.RemoteRead | memory.RemoteWrite, memory.Permission, 0x1100, 0x0102},
		{"RDMAPX-017: atomics need a right of their own", stream, shared.STag(), 1000, 8, memory.RemoteAtomic, memory.Permission, 0x1100, 0x0102},
		{"COMMIT-040: not flushable", stream, shared.STag(), 1000, 8, memory.FlushGlobal, memory.Permission, 0x1100, 0x0102},
		{"an empty region", stream, empty.STag(), 0, 1, memory.RemoteRead, memory.Bounds, 0x1101, 0x0101},
		{"nothing of an empty region", stream, empty.STag(), 0, 0, memory.RemoteRead, memory.None, 0, 0},
		{"nothing, anywhere", stream, shared.STag(), math.MaxUint64, 0, memory.RemoteRead, memory.None, 0, 0},
		{"a window", stream, window.STag(), 50, 8, memory.RemoteRead, memory.None, 0, 0},
		{"a window of nothing", stream, slit.STag(), 0, 0, memory.RemoteRead, memory.None, 0, 0},
		{"a byte of it", stream, slit.STag(), 0, 1, memory.RemoteRead, memory.Bounds, 0x1101, 0x0101},
		{"RDMAP-100: before a window, in its region", stream, window.STag(), 49, 1, memory.RemoteRead, memory.Bounds, 0x1101, 0x0101},
		{"RDMAP-100: behind a window, in its region", stream, window.STag(), 58, 1, memory.RemoteRead, memory.Bounds, 0x1101, 0x0101},
	} {
		span, v := c.stream.Find(c.stag, c.to, c.n, c.right)
		if v != c.want || v.Segment() != c.segment || v.Request() != c.request {
			t.Errorf("%s: %v, for a segment %v, for a request %v", c.name, v, v.Segment(), v.Request())
		}
		if v == memory.None && len(span.Bytes) != int(c.n) || v != memory.None && (span.Bytes != nil || span.Guard != nil) {
			t.Errorf("%s: %d bytes of %d", c.name, len(span.Bytes), c.n)
		}
	}
	span, _ := stream.Find(window.STag(), 52, 3, memory.RemoteRead)
	if !bytes.Equal(span.Bytes, []byte("678")) || cap(span.Bytes) != 3 {
		t.Errorf("3 bytes at 52 of the window are %q, with room for %d", span.Bytes, cap(span.Bytes))
	}
}

// TestFindModel: against arithmetic that does not overflow.
func TestFindModel(t *testing.T) {
	random := seeded(t)
	domain := memory.NewTable().NewDomain()
	stream := domain.NewStream()
	edge := func() uint64 { // around where something begins to be different
		return []uint64{0, 1 << 31, 1 << 32, 1 << 63, math.MaxUint64, 4096}[random.IntN(6)] + random.Uint64N(200) - 100
	}
	limit := new(big.Int).Lsh(big.NewInt(1), 64)
	seen := map[memory.Violation]int{}
	for range 2000 {
		size, base := random.IntN(300), edge()
		end := new(big.Int).Add(new(big.Int).SetUint64(base), big.NewInt(int64(size)))
		region, err := domain.Register(make([]byte, size), memory.RemoteRead, &memory.Options{Base: base})
		if beyond := size > 0 && end.Cmp(limit) > 0; (err != nil) != beyond {
			t.Fatalf("%d bytes from %#x on: %v", size, base, err)
		} else if beyond {
			continue
		}
		for range 50 {
			to, n := base+random.Uint64N(400)-50, uint32(random.IntN(300))
			if random.IntN(10) == 0 {
				to, n = edge(), uint32(edge())
			}
			last := new(big.Int).Add(new(big.Int).SetUint64(to), big.NewInt(int64(n)))
			want := memory.None
			switch {
			case n == 0:
			case last.Cmp(limit) > 0:
				want = memory.Wrap
			case to < base || last.Cmp(end) > 0:
				want = memory.Bounds
			}
			span, v := stream.Find(region.STag(), to, n, memory.RemoteRead)
			if v != want || v == memory.None && (len(span.Bytes) != int(n) || n > 0 && &span.Bytes[0] != &region.Bytes()[to-base]) {
				t.Fatalf("%d bytes at %#x of %d at %#x: %v, want %v", n, to, size, base, v, want)
			}
			seen[v]++
		}
		region.Invalidate()
	}
	for _, v := range []memory.Violation{memory.None, memory.Bounds, memory.Wrap} {
		if seen[v] < 100 {
			t.Errorf("%v came %d times only", v, seen[v])
		}
	}
}

func TestFindAllocatesNothing(t *testing.T) {
	domain := memory.NewTable().NewDomain()
	stream := domain.NewStream()
	stag := register(t, domain, words(8), memory.RemoteWrite|memory.RemoteAtomic, nil).STag()
	payload := make([]byte, 8)
	if n := fixture.Allocations(100, func() {
		write(stream, stag, 0, payload)
		stream.FetchAdd(stag, 0, 1, 1)
		stream.CompareSwap(stag, 0, 0, 0, 1, 1)
		stream.Store(stag, 0, [8]byte{})
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestRegisterRefuses (COMMIT-037): rights belong to memory, and not all go together.
func TestRegisterRefuses(t *testing.T) {
	table := memory.NewTable()
	domain, other := table.NewDomain(), table.NewDomain()
	region := register(t, domain, make([]byte, 16), memory.RemoteRead, nil)
	stream := domain.NewStream()
	alone := register(t, domain, make([]byte, 16), memory.RemoteRead, &memory.Options{Stream: stream})
	dead := register(t, domain, make([]byte, 16), memory.RemoteRead, nil)
	dead.Invalidate()
	before := table.Len()
	reg := func(rights memory.Rights, o memory.Options) func() error {
		return func() error { _, err := domain.Register(make([]byte, 16), rights, &o); return err }
	}
	bound := func(r *memory.Region, at, n int, rights memory.Rights, o *memory.Options) func() error {
		return func() error { _, err := r.Bind(at, n, rights, o); return err }
	}
	for _, c := range []struct {
		name string
		do   func() error
		want error  // or
		says string // what to do
	}{
		{"COMMIT-038: persistent memory", reg(memory.FlushPersistent, memory.Options{}), memory.ErrNotPersistent, "RegisterFile"},
		{"COMMIT-038: no algorithm", reg(memory.Verify, memory.Options{}), memory.ErrRights, "Algorithm"},
		{"COMMIT-030: an algorithm that tells the bytes", reg(memory.Verify, memory.Options{Algorithm: memory.CRC32C}), memory.ErrRights, "RemoteRead"},
		{"COMMIT-030: as all do, byte by byte", reg(memory.Verify, memory.Options{Algorithm: memory.SHA256}), memory.ErrRights, "RemoteRead"},
		{"COMMIT-030: which the right to write does not allow", reg(memory.Verify|memory.RemoteWrite, memory.Options{Algorithm: memory.CRC32C}), memory.ErrRights, "RemoteRead"},
		{"COMMIT-038: the first algorithm that nobody has", reg(memory.Verify, memory.Options{Algorithm: 3}), nil, "CRC32C"},
		{"COMMIT-038: an algorithm that nobody has", reg(memory.Verify, memory.Options{Algorithm: 77}), nil, "CRC32C"},
		{"no such right", reg(1<<12, memory.Options{}), nil, "no such rights"},
		{"offsets beyond 2^64", reg(0, memory.Options{Base: math.MaxUint64 - 14}), nil, "smaller base"},
		{"RDMAP-098: a stream of another domain", reg(0, memory.Options{Stream: other.NewStream()}), memory.ErrAssociation, "domain"},
		{"a stream of no domain", reg(0, memory.Options{Stream: &memory.Stream{}}), memory.ErrAssociation, "domain"},
		{"a window over the end", bound(region, 8, 9, 0, nil), memory.ErrBounds, "9 bytes at 8"},
		{"a window far behind the end", bound(region, math.MaxInt, 1, 0, nil), memory.ErrBounds, "16"},
		{"a window as long as can be", bound(region, 8, math.MaxInt, 0, nil), memory.ErrBounds, "16"},
		{"a window before", bound(region, -1, 1, 0, nil), memory.ErrBounds, "-1"},
		{"a window of less than nothing", bound(region, 0, -1, 0, nil), memory.ErrBounds, "-1"},
		{"RDMAP-101: a window with more rights", bound(region, 0, 8, memory.RemoteRead|memory.RemoteWrite, nil), memory.ErrRights, "RemoteWrite"},
		{"RDMAP-099: another stream's window of a stream's region", bound(alone, 0, 8, 0, &memory.Options{Stream: domain.NewStream()}), memory.ErrAssociation, "alone"},
		{"a window of what is gone", bound(dead, 0, 8, 0, nil), memory.ErrInvalidated, "invalidated"},
	} {
		if err := c.do(); err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if table.Len() != before {
		t.Errorf("the table has %d, not %d", table.Len(), before)
	}
	// The windows of a stream's region are the stream's, whether that was said or not.
	for _, o := range []*memory.Options{nil, {Stream: stream}} {
		w := bind(t, alone, 0, 8, memory.RemoteRead, o)
		if _, v := domain.NewStream().Find(w.STag(), 0, 1, memory.RemoteRead); v != memory.Association {
			t.Errorf("a sibling reaches a window of a stream's region: %v", v)
		}
		if _, v := stream.Find(w.STag(), 0, 1, memory.RemoteRead); v != memory.None {
			t.Errorf("the stream does not: %v", v)
		}
	}
}

// TestSizeOfAlgorithms: that of one that nobody has is 0, as is that of none.
func TestSizeOfAlgorithms(t *testing.T) {
	for a, want := range map[memory.Algorithm]int{memory.NoAlgorithm: 0, memory.CRC32C: 4, memory.SHA256: 32, 3: 0, 9: 0, 255: 0} {
		if got := a.Size(); got != want {
			t.Errorf("hashes of %v (%d) have %d bytes, want %d", a, a, got, want)
		}
	}
}

func TestWords(t *testing.T) {
	for got, want := range map[string]string{
		(memory.RemoteRead | memory.Verify).String():         "RemoteRead|Verify",
		memory.Rights(0).String():                            "no rights",
		(memory.LocalWrite | memory.Rights(1<<15)).String():  "LocalWrite|unknown rights",
		memory.SHA256.String() + memory.NoAlgorithm.String(): "SHA-256none",
		memory.Algorithm(9).String():                         "unknown",
		memory.Wrap.String() + "; " + memory.Bounds.String(): "the tagged offset wraps; base or bounds violation",
		memory.None.String() + "; " + memory.STag.String():   "no violation; invalid STag",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

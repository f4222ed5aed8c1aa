package memory_test

import (
	"bytes"
	"errors"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
	"github.com/dgrdma/dgrdma/rdmap/memory"
	"github.com/dgrdma/dgrdma/tests/fixture"
)

// TestReregister checks that a region which is registered again, valid or withdrawn before by either side, has other bytes, rights, base and STag for
// the same streams, that nothing of before reaches either run of bytes, and that its windows are gone (RPC2-095).
func TestReregister(t *testing.T) {
	table := memory.NewTable()
	domain := table.NewDomain()
	stream, sibling := domain.NewStream(), domain.NewStream()
	for name, before := range map[string]func(*memory.Region){
		"valid":                    func(*memory.Region) {},
		"withdrawn":                func(r *memory.Region) { r.Invalidate() },
		"withdrawn by the peer":    func(r *memory.Region) { stream.Invalidate(r.STag()) },
		"registered again already": func(r *memory.Region) { r.Reregister(nil, 0, 7) },
	} {
		first, second := []byte("first bytes"), []byte("second")
		r := register(t, domain, first, memory.RemoteWrite, &memory.Options{Stream: stream})
		old := r.STag()
		w := bind(t, r, 2, 3, memory.RemoteWrite, nil)
		late, v := stream.Find(old, 0, 4, memory.RemoteWrite)
		if v != memory.None {
			t.Fatal(v)
		}
		before(r)
		if err := r.Reregister(second, memory.RemoteRead|memory.RemoteWrite, 1<<40); err != nil {
			t.Fatal(err)
		}
		if !r.Valid() || w.Valid() || r.STag() == old || r.Base() != 1<<40 || r.Rights() != memory.RemoteRead|memory.RemoteWrite || r.Len() != 6 || &r.Bytes()[0] != &second[0] {
			t.Errorf("%s: valid %v, window %v, STag %#x after %#x, base %#x, %v, %d bytes", name, r.Valid(), w.Valid(), r.STag(), old, r.Base(), r.Rights(), r.Len())
		}
		if n := table.Len(); n != 1 {
			t.Errorf("%s: %d STags", name, n)
		}
		for what, err := range map[string]error{
			"the STag of before":          write(stream, old, 0, []byte("x")),
			"the window's STag":           write(stream, w.STag(), 0, []byte("x")),
			"what was found before":       late.Touch(func(b []byte) { copy(b, "x") }),
			"the old STag, in the new":    write(stream, old, 1<<40, []byte("x")),
			"what is beyond its end":      write(stream, r.STag(), 1<<40+6, []byte("x")),
			"a sibling":                   write(sibling, r.STag(), 1<<40, []byte("x")),
			"withdrawing the STag before": stream.Invalidate(old),
		} {
			if fault := ddp.Fault(0); !errors.As(err, &fault) {
				t.Errorf("%s: %s: %v", name, what, err)
			}
		}
		if err := write(stream, r.STag(), 1<<40+4, []byte("!!")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if string(first) != "first bytes" || string(second) != "seco!!" {
			t.Errorf("%s: %q, %q", name, first, second)
		}
		if w := bind(t, r, 0, 6, memory.RemoteRead, nil); !w.Valid() {
			t.Errorf("%s: a new window is not valid", name)
		}
		r.Invalidate()
		if n := table.Len(); n != 0 || r.Valid() {
			t.Errorf("%s: %d STags are left", name, n)
		}
	}
}

// TestReregisterWaits checks that Reregister returns when nothing touches the old bytes any more (RPC2-095), and that callers of Invalidate
// which wait at the same time return, too.
func TestReregisterWaits(t *testing.T) {
	domain := memory.NewTable().NewDomain()
	for range 100 {
		r := register(t, domain, make([]byte, 8), 0, nil)
		r.Enter(r.Epoch())
		again := async(func() { r.Reregister(make([]byte, 9), 0, 0) })
		others := []<-chan struct{}{async(r.Invalidate), async(func() { r.Reregister(nil, 0, 0) })}
		until(func() bool { return !r.Valid() })
		select {
		case <-again:
			t.Fatal("did not wait")
		default:
		}
		r.Leave()
		ended(t, again, "Reregister")
		for _, c := range others {
			ended(t, c, "at the same time")
		}
		r.Invalidate()
	}
}

// TestReregisterRefuses checks that a region whose new registration is refused stays withdrawn.
func TestReregisterRefuses(t *testing.T) {
	domain := memory.NewTable().NewDomain()
	f := newFile(t, 100)
	for name, c := range map[string]struct {
		r      *memory.Region
		n      int
		rights memory.Rights
		base   uint64
		want   string
	}{
		"no such right":       {nil, 1, 1 << 15, 0, "no such rights"},
		"no file":             {nil, 1, memory.FlushPersistent, 0, "RegisterFile"},
		"no algorithm":        {nil, 1, memory.RemoteRead | memory.Verify, 0, "Algorithm"},
		"beyond the offsets":  {nil, 2, memory.RemoteRead, math.MaxUint64, "smaller base"},
		"a region of a file":  {func() *memory.Region { r, _ := domain.RegisterFile(f, 0, 8, memory.RemoteRead, nil); return r }(), 1, 0, 0, "of a file"},
		"nothing wrong, that": {nil, 1, memory.RemoteRead, math.MaxUint64, ""},
	} {
		if c.r == nil {
			c.r = register(t, domain, make([]byte, 8), memory.RemoteRead, nil)
		}
		err := c.r.Reregister(make([]byte, c.n), c.rights, c.base)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) || c.r.Valid() != (err == nil) {
			t.Errorf("%s: %v, valid %v", name, err, c.r.Valid())
		}
		c.r.Close()
	}
}

// TestReregisterAmongWriters checks that bytes which a region was taken from never change, whatever peers do with the STags and places that they
// have of it: they find, touch, and withdraw what they know of before (RPC2-095). The race detector says the same.
func TestReregisterAmongWriters(t *testing.T) {
	domain := memory.NewTable().NewDomain()
	stream := domain.NewStream()
	const size, rounds = 1 << 10, 3000
	type known struct {
		stag  uint32
		found ddp.Span
	}
	var told atomic.Pointer[known] // what the peer may use
	var gone atomic.Uint32         // an STag of before
	var stop atomic.Bool
	var wrote, refused atomic.Int64
	var all sync.WaitGroup
	r := register(t, domain, make([]byte, size), memory.RemoteWrite, &memory.Options{Stream: stream})
	tell := func() {
		found, v := stream.Find(r.STag(), 0, size, memory.RemoteWrite)
		if v != memory.None {
			t.Error(v)
		}
		told.Store(&known{r.STag(), found})
	}
	tell()
	all.Go(func() { // a single one, or the race detector tells of writers of the same bytes
		for n := 0; !stop.Load(); n++ {
			k := told.Load()
			runtime.Gosched()
			b := bytes.Repeat([]byte{byte(n) | 1}, size)
			err := k.found.Touch(func(to []byte) { copy(to, b) })
			if n%2 == 0 {
				err = write(stream, k.stag, 0, b)
			}
			if err == nil {
				wrote.Add(1)
			} else if refused.Add(1); err != ddp.TaggedSTag {
				t.Errorf("writing: %v", err)
			}
		}
	})
	all.Go(func() {
		for !stop.Load() {
			runtime.Gosched()
			stream.Invalidate(gone.Load())
		}
	})
	buffers := [2][]byte{make([]byte, size), make([]byte, size)}
	for round := range rounds {
		for seen := wrote.Load(); round%8 == 0 && wrote.Load() == seen; {
			runtime.Gosched()
		}
		was, before := r.STag(), r.Bytes()
		gone.Store(was)
		now := buffers[round%2]
		clear(now)
		if err := r.Reregister(now, memory.RemoteWrite, 0); err != nil {
			t.Fatal(err)
		}
		then := bytes.Clone(before)
		runtime.Gosched()
		if !r.Valid() || r.STag() == was {
			t.Fatalf("round %d: the STag of before has withdrawn the new one", round)
		}
		if !bytes.Equal(before, then) || !bytes.Equal(now, make([]byte, size)) {
			t.Fatalf("round %d: bytes changed that nothing may reach", round)
		}
		tell()
	}
	stop.Store(true)
	all.Wait()
	if wrote.Load() == 0 || refused.Load() == 0 {
		t.Errorf("%d writes, %d refused", wrote.Load(), refused.Load())
	}
}

// TestReregisterAllocatesNothing in the long run either: the table does not grow, and is not made again.
func TestReregisterAllocatesNothing(t *testing.T) {
	if fixture.Race {
		t.Skip("the race detector allocates")
	}
	domain := memory.NewTable().NewDomain()
	b := make([]byte, 4096)
	regions := make([]*memory.Region, 64)
	for i := range regions {
		regions[i] = register(t, domain, b, memory.RemoteRead, &memory.Options{Stream: domain.NewStream()})
	}
	i := 0
	again := func() {
		i++
		if err := regions[i%len(regions)].Reregister(b, memory.RemoteWrite, uint64(i)); err != nil {
			t.Fatal(err)
		}
	}
	for range 200_000 { // until as many indexes rest as ever do
		again()
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const n = 100_000
	for range n {
		again()
	}
	runtime.ReadMemStats(&after)
	if got := after.Mallocs - before.Mallocs; got > n/1000 {
		t.Errorf("%d allocations of %d bytes in %d registrations", got, after.TotalAlloc-before.TotalAlloc, n)
	}
}

package memory_test

import (
	"bytes"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
	"github.com/dgrdma/dgrdma/rdmap/memory"
)

// TestInvalidateAmongWriters (RDMAP-102): when Invalidate has returned, not one byte changes, though
// peers go on writing through the region, its windows, and what they found before. The race
// detector says the same of all touches together.
func TestInvalidateAmongWriters(t *testing.T) {
	table := memory.NewTable()
	domain := table.NewDomain()
	const rounds, size = 50, 512 << 10 // whoever writes is inside most of the time
	for round := range rounds {
		bytesOf := make([]byte, size)
		region := register(t, domain, bytesOf, memory.RemoteWrite, nil)
		window := bind(t, region, size/2, size/4, memory.RemoteWrite, nil)
		var stop atomic.Bool
		var wrote, refused atomic.Int64
		var writers sync.WaitGroup
		for _, to := range []struct {
			g  *memory.Grant
			at uint64
		}{{region.Grant, 0}, {region.Grant, size / 4}, {window.Grant, 0}, {window.Grant, size / 8}} {
			stream, stag := domain.NewStream(), to.g.STag()
			// To ranges of their own, or the race detector tells of them and each other.
			found, v := stream.Find(stag, to.at, size/8, memory.RemoteWrite)
			if v != memory.None {
				t.Fatal(v)
			}
			writers.Go(func() {
				patterns := [2][]byte{bytes.Repeat([]byte{0x55}, size/8), bytes.Repeat([]byte{0xaa}, size/8)}
				for n := 0; !stop.Load(); n++ {
					runtime.Gosched() // more goroutines than processors: the others shall come to it
					b := patterns[n%2]
					var err error
					if n/2%2 == 0 {
						err = found.Touch(func(to []byte) { copy(to, b) })
					} else {
						err = write(stream, stag, to.at, b)
					}
					switch err {
					case nil:
						wrote.Add(1)
					case ddp.TaggedSTag:
						refused.Add(1)
					default:
						t.Errorf("writing: %v", err)
					}
				}
			})
		}
		until(func() bool { return wrote.Load() >= 20 })
		if round%2 == 0 {
			region.Invalidate()
		} else { // in parts
			window.Invalidate()
			region.Invalidate()
		}
		then := bytes.Clone(bytesOf)
		count := wrote.Load()
		seen := refused.Load()
		until(func() bool { return refused.Load() >= seen+20 })
		if !bytes.Equal(bytesOf, then) {
			t.Fatalf("round %d: bytes changed after Invalidate", round)
		}
		// A writer may have been between its copy and its count.
		if n := wrote.Load(); n > count+4 {
			t.Fatalf("round %d: %d writes succeeded after Invalidate", round, n-count)
		}
		stop.Store(true)
		writers.Wait()
	}
	if n := table.Len(); n != 0 {
		t.Errorf("%d STags are left", n)
	}
}

// TestEnterAgainstInvalidate (RDMAP-102): whoever enters did so before Invalidate returned, at
// whatever instruction the two meet.
func TestEnterAgainstInvalidate(t *testing.T) {
	domain := memory.NewTable().NewDomain()
	type round struct {
		*memory.Region
		over atomic.Bool
	}
	var now atomic.Pointer[round]
	now.Store(&round{Region: register(t, domain, nil, 0, nil)})
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for r := now.Load(); r != nil; r = now.Load() {
				for r.Enter(r.Epoch()) {
					if r.over.Load() {
						t.Error("somebody entered after Invalidate returned")
					}
					r.Leave()
				}
			}
		})
	}
	for range 20_000 {
		r := now.Load()
		r.Invalidate()
		r.over.Store(true)
		now.Store(&round{Region: register(t, domain, nil, 0, nil)})
	}
	now.Swap(nil).Invalidate()
	all.Wait()
}

// TestInvalidateWaits (RDMAP-102): for whoever is inside, the region or a window, and nobody
// enters meanwhile. A second caller waits as well.
func TestInvalidateWaits(t *testing.T) {
	domain := memory.NewTable().NewDomain()
	for _, c := range []struct {
		name   string
		inside func(*memory.Region, *memory.Window) *memory.Grant
		do     func(*memory.Region, *memory.Window)
		stays  bool // the region does
	}{
		{"the region, its own", func(r *memory.Region, _ *memory.Window) *memory.Grant { return r.Grant },
			func(r *memory.Region, _ *memory.Window) { r.Invalidate() }, false},
		{"the region, its window's", func(_ *memory.Region, w *memory.Window) *memory.Grant { return w.Grant },
			func(r *memory.Region, _ *memory.Window) { r.Invalidate() }, false},
		{"a window", func(_ *memory.Region, w *memory.Window) *memory.Grant { return w.Grant },
			func(_ *memory.Region, w *memory.Window) { w.Invalidate() }, true},
		{"Close", func(r *memory.Region, _ *memory.Window) *memory.Grant { return r.Grant },
			func(r *memory.Region, _ *memory.Window) { r.Close() }, false},
	} {
		r := register(t, domain, make([]byte, 8), 0, nil)
		w := bind(t, r, 0, 8, 0, nil)
		inside := c.inside(r, w)
		for range 2 {
			if !inside.Enter(inside.Epoch()) {
				t.Fatal("cannot enter")
			}
		}
		done := []<-chan struct{}{async(func() { c.do(r, w) }), async(func() { c.do(r, w) })}
		until(func() bool { return !inside.Valid() })
		if inside.Enter(inside.Epoch()) {
			t.Errorf("%s: somebody entered what is being withdrawn", c.name)
		}
		inside.Leave()
		for _, d := range done {
			select {
			case <-d:
				t.Errorf("%s: did not wait", c.name)
			default:
			}
		}
		inside.Leave()
		for _, d := range done {
			ended(t, d, c.name)
		}
		if w.Valid() || w.Enter(w.Epoch()) || r.Valid() != c.stays || r.Enter(r.Epoch()) != c.stays {
			t.Errorf("%s: window %v, region %v", c.name, w.Valid(), r.Valid())
		}
		if c.stays {
			r.Leave()
		}
		ended(t, async(func() { c.do(r, w); w.Invalidate(); r.Invalidate(); r.Invalidate(); r.Close() }), c.name+", again")
	}
}

// TestInvalidateTakesAllWindows along, and waits for each.
func TestInvalidateTakesAllWindows(t *testing.T) {
	table := memory.NewTable()
	domain := table.NewDomain()
	for inside := range 3 {
		region := register(t, domain, make([]byte, 8), 0, nil)
		var windows [3]*memory.Window
		for i := range windows {
			windows[i] = bind(t, region, i, 8-i, 0, nil)
		}
		if !windows[inside].Enter(windows[inside].Epoch()) {
			t.Fatal("cannot enter")
		}
		done := async(region.Invalidate)
		until(func() bool { return table.Len() == 0 })
		for i, w := range windows {
			if w.Valid() {
				t.Errorf("window %d is valid", i)
			}
		}
		select {
		case <-done:
			t.Errorf("did not wait for window %d", inside)
		default:
		}
		windows[inside].Leave()
		ended(t, done, "Invalidate")
	}
}

// TestInvalidateOfAWindowOnly waits for nobody in the region, or in other windows.
func TestInvalidateOfAWindowOnly(t *testing.T) {
	domain := memory.NewTable().NewDomain()
	stream := domain.NewStream()
	r := register(t, domain, make([]byte, 8), memory.RemoteRead, nil)
	w, other := bind(t, r, 0, 8, 0, nil), bind(t, r, 0, 8, memory.RemoteRead, nil)
	r.Enter(r.Epoch())
	other.Enter(other.Epoch())
	ended(t, async(w.Invalidate), "a window that nobody is in")
	for _, g := range []*memory.Grant{r.Grant, other.Grant} {
		if _, v := stream.Find(g.STag(), 0, 8, memory.RemoteRead); v != memory.None {
			t.Errorf("%v", v)
		}
		g.Leave()
	}
}

// TestInvalidateGetsThrough: those who enter again and again, and overlap, hold up nobody.
func TestInvalidateGetsThrough(t *testing.T) {
	domain := memory.NewTable().NewDomain()
	for range 10 {
		r := register(t, domain, make([]byte, 8), 0, nil)
		w := bind(t, r, 0, 8, 0, nil)
		var stop atomic.Bool
		var in atomic.Int64
		var all sync.WaitGroup
		for i := range 8 {
			g := []*memory.Grant{r.Grant, w.Grant}[i%2]
			all.Go(func() {
				for held := false; !stop.Load(); {
					runtime.Gosched()
					more := g.Enter(g.Epoch()) // hand over hand: somebody is always inside
					if held {
						g.Leave()
					}
					if held = more; held {
						in.Add(1)
					}
				}
			})
		}
		until(func() bool { return in.Load() >= 100 })
		ended(t, async(r.Invalidate), "Invalidate among those who enter again and again")
		stop.Store(true)
		all.Wait()
	}
}

// TestPeerInvalidates: memory that one stream alone may use, and no other (RDMAP-050, RDMAP-094,
// RDMAP-103).
func TestPeerInvalidates(t *testing.T) {
	table := memory.NewTable()
	domain := table.NewDomain()
	stream, sibling, stranger := domain.NewStream(), domain.NewStream(), table.NewDomain().NewStream()
	only := &memory.Options{Stream: stream}
	shared := register(t, domain, make([]byte, 8), memory.RemoteRead, nil)
	alone := register(t, domain, make([]byte, 8), memory.RemoteRead, only)
	part := bind(t, alone, 0, 4, memory.RemoteRead, nil)
	window := bind(t, shared, 0, 4, memory.RemoteRead, only)
	open := bind(t, shared, 0, 4, memory.RemoteRead, nil)
	for _, c := range []struct {
		name string
		by   *memory.Stream
		what *memory.Grant
		want error
	}{
		{"RDMAP-103: a shared region", stream, shared.Grant, ddp.ProtectionInvalidate},
		{"RDMAP-103: a shared window", stream, open.Grant, ddp.ProtectionInvalidate},
		{"RDMAP-099: a sibling's region", sibling, alone.Grant, ddp.ProtectionInvalidate},
		{"RDMAP-099: a sibling's window", sibling, window.Grant, ddp.ProtectionInvalidate},
		{"RDMAP-098: another domain's", stranger, alone.Grant, ddp.ProtectionInvalidate},
		{"RDMAP-050: its own window of a shared region", stream, window.Grant, nil},
		{"RDMAP-051: once only", stream, window.Grant, ddp.ProtectionInvalidate},
		{"RDMAP-050: its own region", stream, alone.Grant, nil},
		{"RDMAP-052: which took its window along", stream, part.Grant, ddp.ProtectionInvalidate},
	} {
		valid := c.what.Valid()
		if err := c.by.Invalidate(c.what.STag()); err != c.want {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.want != nil && c.what.Valid() != valid || c.want == nil && c.what.Valid() {
			t.Errorf("%s: valid: %v", c.name, c.what.Valid())
		}
	}
	if err := stream.Invalidate(0); err != ddp.ProtectionInvalidate {
		t.Errorf("the STag 0: %v", err)
	}
	if _, v := stream.Find(alone.STag(), 0, 1, memory.RemoteRead); v != memory.STag {
		t.Errorf("RDMAP-051: it is usable still: %v", v)
	}
	if n := table.Len(); n != 2 {
		t.Errorf("%d STags are left, want the shared region's and its shared window's", n)
	}
}

// TestPeerInvalidatesWhatIsInUse: it does not wait, even for its own goroutine, and its owner
// still can.
func TestPeerInvalidatesWhatIsInUse(t *testing.T) {
	domain := memory.NewTable().NewDomain()
	stream := domain.NewStream()
	shared := register(t, domain, make([]byte, 8), 0, nil)
	region := register(t, domain, make([]byte, 8), 0, &memory.Options{Stream: stream})
	window := bind(t, shared, 0, 8, 0, &memory.Options{Stream: stream})
	for name, c := range map[string]struct {
		g     *memory.Grant
		owner func()
	}{
		"region": {region.Grant, region.Invalidate},
		"window": {window.Grant, window.Invalidate},
	} {
		if !c.g.Enter(c.g.Epoch()) {
			t.Fatalf("%s: cannot enter", name)
		}
		ended(t, async(func() {
			if err := stream.Invalidate(c.g.STag()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}), "a peer's Invalidate of a "+name)
		if c.g.Enter(c.g.Epoch()) {
			t.Errorf("%s: somebody entered", name)
		}
		owner := async(c.owner)
		select {
		case <-owner:
			t.Errorf("%s: its owner did not wait", name)
		default:
		}
		c.g.Leave()
		ended(t, owner, "the owner's of a "+name)
	}
	// The region of a window that its peer invalidated and nobody asks for again waits for
	// it as well.
	another := bind(t, shared, 0, 8, 0, &memory.Options{Stream: stream})
	another.Enter(another.Epoch())
	stream.Invalidate(another.STag())
	owner := async(shared.Invalidate)
	until(func() bool { return !shared.Valid() })
	select {
	case <-owner:
		t.Error("the region did not wait for its window")
	default:
	}
	another.Leave()
	ended(t, owner, "the region's owner")
}

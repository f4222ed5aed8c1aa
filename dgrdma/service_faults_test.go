package dgrdma

import (
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// odd is a service whose methods do what a test says.
type odd struct {
	name string
	size func() uint64
	meet func(*Channel) Handler
}

func (o *odd) Name() string             { return o.name }
func (o *odd) Size() uint64             { return o.size() }
func (o *odd) Meet(ch *Channel) Handler { return o.meet(ch) }

// vast is memory that says that it is larger than all addresses.
type vast struct{ nowhere }

func (vast) Size() uint64 { return math.MaxUint64 - 100 }

// TestWindowsOfOddSizes checks that a window lies where it was checked to be, whatever sizes say.
func TestWindowsOfOddSizes(t *testing.T) {
	e, err := New(newForgery(), &Config{ID: 2, Memory: vast{}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if base, err := e.Serve(newShelf("post", 1<<16)); !errors.Is(err, ErrBounds) {
		t.Errorf("beside memory of all addresses and more: %#x, %v", base, err)
	}
	f, err := New(newForgery(), &Config{ID: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	asked := 0
	grows := &odd{"grows", func() uint64 { asked++; return uint64(asked) << 16 }, nil}
	if _, err := f.Serve(grows); err != nil {
		t.Fatal(err)
	}
	if f.Size() != 1<<16 {
		t.Errorf("the window ends at %#x and was checked up to %#x", f.Size(), 1<<16)
	}
	all := &odd{"all", func() uint64 { return 1 << 32 }, nil}
	if base, err := f.Serve(all); !errors.Is(err, ErrBounds) {
		t.Errorf("all addresses, of which some are taken: %#x, %v", base, err)
	}
	g, err := New(newForgery(), &Config{ID: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if base, err := g.Serve(all); base != 0 || err != nil || g.Size() != 1<<32 {
		t.Errorf("all addresses: %#x, %v", base, err)
	}
}

// TestStopInMeet checks that Stop in Meet does not block, although Meet may not call the
// endpoint.
func TestStopInMeet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{})
		defer p.close()
		s := newShelf("post", 1<<16)
		bad := &odd{"post", s.Size, func(ch *Channel) Handler {
			ch.Conn().ep.Stop()
			return &board{s, ch}
		}}
		serve(t, p.a, bad)
		time.Sleep(time.Second)
		if err := p.toB.Err(); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
}

// TestNoHandler checks that a service that meets a peer without a handler hears of that before the
// peer does, and that nothing is served.
func TestNoHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{})
		defer p.close()
		func() {
			defer func() {
				if recover() == nil {
					t.Error("a service without a handler was served")
				}
			}()
			p.a.Serve(&odd{"post", func() uint64 { return 1 << 16 }, func(*Channel) Handler { return nil }})
		}()
		if n := p.a.Size(); p.toB.Channel("post") != nil || n != 1<<20 {
			t.Errorf("something of it is left, %#x addresses", n)
		}
		serve(t, p.a, newShelf("post", 1<<16))
	})
}

// TestServeAnywhere checks that a service may be added while frames come, by several goroutines at
// once, in callbacks of another, and while the endpoint ends.
func TestServeAnywhere(t *testing.T) {
	for _, end := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p, here, there := posts(t, pairConfig{link: simnet.Link{Latency: 10 * time.Microsecond}})
			defer p.close()
			var wg sync.WaitGroup
			var b mailbox
			for range 100 {
				here.channel(0).Mail(b.letter(p.toB.Life(), "letter"))
			}
			var got []uint32
			var mu sync.Mutex
			add := func(e *Endpoint, name string) {
				base, err := e.Serve(newShelf(name, 1<<16))
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					got = append(got, base)
				} else if !end {
					t.Error(err)
				}
			}
			for _, name := range []string{"a", "b", "c"} {
				wg.Go(func() { add(p.b, name) })
			}
			done := make(chan struct{})
			here.channel(0).Mail(Letter{Life: p.toB.Life(), Settled: func(error) {
				add(p.b, "d")
				close(done)
			}})
			if end {
				wg.Go(func() { p.b.Close() })
				wg.Go(func() { p.a.Close() })
			}
			wg.Wait()
			<-done
			time.Sleep(time.Minute)
			b.once(t, nil)
			if !end && (len(there.came()) != 101 || len(got) != 4) {
				t.Errorf("%d letters came, windows at %v", len(there.came()), got)
			}
		})
	}
}

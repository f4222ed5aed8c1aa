package dgrdma

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/frame"
)

// sized is memory of so many addresses, which has none of them.
type sized struct {
	nowhere
	n uint64
}

func (s sized) Size() uint64 { return s.n }

// TestWindows checks that services get addresses that no other has, from the end of the memory on
// and up to the last one, each window at a page, and none that is not there.
func TestWindows(t *testing.T) {
	const all, most = 1 << 32, math.MaxUint64
	for _, c := range []struct {
		memory, size uint64
		ok           bool
	}{
		{0, MailSize, true}, {0, all, true}, {0, all + 1, false}, {0, 2*all + 1, false}, {0, most, false}, {0, MailSize - 1, false}, {0, 0, false},
		{1, MailSize, true}, {4095, MailSize, true}, {4096, MailSize, true}, {4097, MailSize, true}, {11_000, MailSize, true}, {8191, MailSize, true},
		{4096, all - 4096, true}, {4096, all - 4095, false}, {4096, most, false}, {4096, most - 4095, false},
		{3 << 30, 1 << 30, true}, {3 << 30, 1<<30 + 1, false},
		{all - 3*4096, 3 * 4096, true}, {all - 4095, MailSize, false}, {all, MailSize, false}, {2 * all, MailSize, false}, {most, MailSize, false}, {most - 4096, 3 * 4096, false},
	} {
		f := newFeed(t, Config{Memory: sized{n: c.memory}})
		base, err := f.e.Serve(&shelf{name: "post", size: c.size})
		if !c.ok {
			if !errors.Is(err, ErrBounds) || base != 0 || f.e.Size() != c.memory {
				t.Errorf("%d addresses behind %d: at %d, %d in all, %v", c.size, c.memory, base, f.e.Size(), err)
			}
			continue
		}
		if at := uint64(base); err != nil || at < c.memory || at-c.memory > 4095 || at%4096 != 0 || f.e.Size() != at+c.size {
			t.Errorf("%d addresses behind %d: at %d, %d in all, %v", c.size, c.memory, base, f.e.Size(), err)
		}
		x := f.e.services[0]
		for addr, want := range map[uint64]bool{x.base: true, x.end - 1: true, x.base + c.size/2: true, x.base - 1: false, x.end: false} {
			if addr < all && x.has(uint32(addr)) != want {
				t.Errorf("a window of %d addresses at %d has %d: %v", c.size, base, addr, !want)
			}
		}
	}
}

// TestWindowsWithoutMemory checks that an endpoint without memory has no address but those of its
// services, and that peers are told of none but those.
func TestWindowsWithoutMemory(t *testing.T) {
	e := newFeed(t, Config{Memory: noMemory{}}).e
	if n := e.Size(); n != 0 {
		t.Errorf("%d addresses of no memory", n)
	}
	if base := serve(t, e, newShelf("post", 1<<16)); base != 0 {
		t.Errorf("the first window is at %d", base)
	}
	for _, guest := range []bool{false, true} {
		if got := e.localServices.to(guest).String(); got != "post" {
			t.Errorf("guest %v: told of %s", guest, got)
		}
	}
}

// TestServeSaysWhatItNeeds checks that what an error names as enough is enough, and that less is
// not.
func TestServeSaysWhatItNeeds(t *testing.T) {
	named := func(err error, form string) (n int) {
		t.Helper()
		if err == nil {
			t.Fatal("no error")
		}
		if at := strings.Index(err.Error(), form[:8]); at < 0 {
			t.Fatalf("%v, want %q", err, form)
		} else if _, err := fmt.Sscanf(err.Error()[at:], form, &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	refused := func(base uint32, err error) error {
		t.Helper()
		if base != 0 {
			t.Errorf("refused, and at %d: %v", base, err)
		}
		return err
	}
	e := newFeed(t, Config{}).e
	need := named(refused(e.Serve(&shelf{name: "small", size: 1})), "addresses, need %d to 2^32")
	if err := refused(e.Serve(&shelf{name: "small", size: uint64(need) - 1})); err == nil {
		t.Errorf("%d addresses are enough, and %d are said to be needed", need-1, need)
	}
	serve(t, e, &shelf{name: "small", size: uint64(need)})
	served := 2 // the memory is one
	var err error
	for ; err == nil; served++ {
		_, err = e.Serve(&shelf{name: "s" + string(rune('a'+served)), size: MailSize})
	}
	if most := named(refused(e.Serve(&shelf{name: "last", size: MailSize})), "each name once and %d at most"); most != served-1 {
		t.Errorf("%d are served, and %d are said to be the most", served-1, most)
	}
	e = newFeed(t, Config{MTU: 64}).e
	need = named(refused(e.Serve(newShelf("post", 1<<16))), "where it is, which takes %d")
	if err := refused(newFeed(t, Config{MTU: need - 1}).e.Serve(newShelf("post", 1<<16))); err == nil {
		t.Errorf("frames of %d bytes are enough, and %d are said to be needed", need-1, need)
	}
	serve(t, newFeed(t, Config{MTU: need}).e, newShelf("post", 1<<16))
}

// TestServeThatIsRefused checks that Serve returns no base with an error, and that an endpoint has no
// size whose memory does not say how large it is.
func TestServeThatIsRefused(t *testing.T) {
	e := newFeed(t, Config{Memory: nowhere{}}).e
	if e.Size() != 0 {
		t.Errorf("%d addresses of memory that does not say how many", e.Size())
	}
	closed := newFeed(t, Config{}).e
	closed.Close()
	for _, x := range []struct {
		e    *Endpoint
		s    Service
		want error
	}{
		{e, &shelf{name: "post", size: MailSize}, ErrBounds}, {closed, &shelf{name: "post", size: MailSize}, ErrClosed},
	} {
		if base, err := x.e.Serve(x.s); base != 0 || !errors.Is(err, x.want) {
			t.Errorf("at %d: %v, want %v", base, err, x.want)
		}
	}
}

// TestServingIsLearnt checks that what a HELLO says of services counts if it is the first to say
// something, or says more than those before it.
func TestServingIsLearnt(t *testing.T) {
	list := func(names ...string) (s peerServices) {
		s.listed = true
		for i, n := range names {
			s.list.Add(serviceAt(n, uint32(i)<<16))
		}
		return s
	}
	silent, none, one, two := peerServices{}, list(), list("memory"), list("memory", "post")
	for _, c := range []struct {
		before, said peerServices
		news         bool
	}{
		{silent, silent, false}, {silent, none, true}, {silent, two, true},
		{none, silent, false}, {none, none, false}, {none, one, true},
		{two, silent, false}, {two, none, false}, {two, one, false}, {two, two, false}, {one, two, true},
	} {
		s, want := c.before, c.before
		if c.news {
			want = c.said
		}
		if news := s.learn(c.said); news != c.news || s != want {
			t.Errorf("%v, %v, then %v, %v: news %v, and %v is known", c.before.list.All(), c.before.listed, c.said.list.All(), c.said.listed, news, s.list.All())
		}
	}
	if err := none.serves(frame.ServiceName{}, false); !errors.Is(err, ErrNoService) {
		t.Errorf("of none: %v", err)
	}
}

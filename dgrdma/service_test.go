package dgrdma

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// shelf is a service with a few bytes after its mail, into which every peer may write.
type shelf struct {
	name string
	size uint64

	mu      sync.Mutex
	met     []*Channel
	letters []string
	events  []EventKind
	words   map[uint32]uint32
	bytes   []byte
}

func newShelf(name string, size uint64) *shelf {
	return &shelf{name: name, size: size, words: make(map[uint32]uint32), bytes: make([]byte, size-MailSize)}
}

func (s *shelf) Name() string { return s.name }
func (s *shelf) Size() uint64 { return s.size }

func (s *shelf) Meet(ch *Channel) Handler {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.met = append(s.met, ch)
	return &board{s, ch}
}

type board struct {
	*shelf
	ch *Channel
}

func (p *board) Admit(_ frame.EndpointID, m *frame.Message) ([]byte, error) {
	at := uint64(m.Addr) - uint64(p.ch.Base()) - MailSize
	if m.Len == 0 {
		return nil, nil
	}
	if at+uint64(m.Len) > uint64(len(p.bytes)) || at > uint64(len(p.bytes)) {
		return nil, ErrBounds
	}
	return p.bytes[at:][:m.Len:m.Len], nil
}

func (p *board) Complete(_ frame.EndpointID, m *frame.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.words[m.CompletionAddr-p.ch.Base()] = m.CompletionValue
}

func (p *board) Letter(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.letters = append(p.letters, string(b))
}

func (p *board) Event(ev Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, ev.Kind)
}

func (s *shelf) channel(i int) *Channel {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.met[i]
}

func serve(t testing.TB, e *Endpoint, s Service) uint32 {
	t.Helper()
	base, err := e.Serve(s)
	if err != nil {
		t.Fatal(err)
	}
	return base
}

// settle posts to a flow and returns how it went.
func settle(t testing.TB, f *Flow, x *Transaction) error {
	t.Helper()
	done := make(chan error, 1)
	x.Done = func(_ *Transaction, err error) { done <- err }
	if err := f.Post(x); err != nil {
		return err
	}
	return <-done
}

// TestServicesShareAnEndpoint checks that memory and two services stand on one endpoint, and that
// what a peer writes to one of them reaches no other.
func TestServicesShareAnEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{size: 10_000})
		defer p.close()
		here, there := [2]*shelf{}, [2]*shelf{}
		var base [2]uint32
		for i, name := range []string{"upper", "lower"} {
			here[i], there[i] = newShelf(name, 1<<16), newShelf(name, 1<<16)
			serve(t, p.a, here[i])
			base[i] = serve(t, p.b, there[i])
		}
		if base[0] != 12288 || base[1] != base[0]+1<<16 || p.b.Size() != uint64(base[1])+1<<16 {
			t.Fatalf("windows at %v, size %d", base, p.b.Size())
		}
		time.Sleep(time.Second) // until the peers know
		for i := range here {
			flow := here[i].channel(0).Flow()
			data := pattern(i, 5000)
			x := write(base[i]+MailSize+100, data, base[i]+MailSize, uint32(i+1))
			if err := settle(t, flow, x); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(there[i].bytes[100:5100], data) || there[i].words[MailSize] != uint32(i+1) {
				t.Errorf("%s did not get what was sent to it", there[i].name)
			}
		}
		if err := p.toB.Write(t.Context(), write(100, pattern(9, 5000), 0, 9)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(p.memB.Bytes()[100:5100], pattern(9, 5000)) || p.memB.Load32(0) != 9 {
			t.Error("the memory did not get what was sent to it")
		}
		for i, s := range there {
			if len(s.words) != 1 || !bytes.Equal(s.bytes[5100:], make([]byte, len(s.bytes)-5100)) || !bytes.Equal(s.bytes[100:5100], pattern(i, 5000)) {
				t.Errorf("%s was written into by others", s.name)
			}
		}
	})
}

// TestServicesAreApart checks that data that completes in another service's window is refused,
// whichever the two are, and that nothing of it is placed.
func TestServicesAreApart(t *testing.T) {
	const memory, windows = 8192, 1 << 16
	first, second := uint32(memory), uint32(memory+windows)
	for _, c := range []struct {
		name       string
		data, word uint32
		swallowed  bool
	}{
		{"service to memory", 64, first + MailSize, false},
		{"service to service", first + MailSize, second + MailSize, false},
		{"memory to service", first + MailSize, 0, false},
		{"across the end of memory", memory - 4, 0, false},
		{"across the end of a window", second - 4, first + MailSize, false},
		{"word across the end of a window", first + MailSize, second - 2, false},
		{"the mail's addresses", first + 100, first + MailSize, true},
		{"a word among the mail's addresses", first + MailSize, first + 100, true},
		{"behind all", second + windows, second + MailSize, false},
		{"nobody's", second + windows, second + windows + 64, false},
		{"letter into memory", 64, first + mailBells, false},
		{"letter into another's box", second + mailBox, first + mailBells, false},
		{"letter in front of its box", first + mailBox - 8, first + mailBells, true},
		{"letter across the end of its box", first + mailBox + MaxLetter - 4, first + mailBells, true},
		{"letter behind its box", first + MailSize, first + mailBells, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t, pairConfig{size: memory, b: Config{GiveUp: time.Second}, a: Config{GiveUp: time.Second}})
				defer p.close()
				upper, lower := newShelf("upper", windows), newShelf("lower", windows)
				if serve(t, p.b, upper) != first || serve(t, p.b, lower) != second {
					t.Fatal("the windows are elsewhere")
				}
				p.toB.size.Store(0)
				err := p.toB.Write(t.Context(), write(c.data, []byte("forgery!"), c.word, 8))
				if (err == nil) != c.swallowed {
					t.Errorf("%v", err)
				}
				for _, b := range [][]byte{p.memB.Bytes(), upper.bytes, lower.bytes} {
					if !bytes.Equal(b, make([]byte, len(b))) {
						t.Error("memory was written into")
					}
				}
				if len(upper.words)+len(lower.words)+len(upper.letters)+len(lower.letters) != 0 {
					t.Errorf("%v %v %q %q", upper.words, lower.words, upper.letters, lower.letters)
				}
			})
		})
	}
}

// TestNoService checks that what is posted to a service that is not there fails, says what is, and
// leaves the peer's memory alone: nothing is sent but the handshake (attack A18, SECURITY.md).
func TestNoService(t *testing.T) {
	for _, c := range []struct {
		name string
		b    Config
		says string
	}{
		{"memory", Config{}, "it serves memory, not parcels; is it the peer that you mean?"},
		{"other memory", Config{Service: "ping"}, "it serves ping, not parcels; is it the peer that you mean?"},
		{"nothing", Config{Memory: &Region{}}, "it serves nothing, so no parcels either; is it the peer that you mean, and does its program add that?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var others atomic.Int64
				c.b.Trace = &Trace{FrameReceived: func(_ PeerName, b []byte, _ Reason) {
					others.Add(int64(len(messagesIn(t, b))))
				}}
				p := newPair(t, pairConfig{b: c.b})
				defer p.close()
				parcels := newShelf("parcels", 1<<16)
				serve(t, p.a, parcels)
				flow := parcels.channel(0).Flow()
				for _, when := range []string{"before the introduction", "after it"} {
					err := settle(t, flow, write(64, []byte("parcel"), 0, 1))
					var e *ServiceError
					if !errors.Is(err, ErrNoService) || !errors.As(err, &e) || e.Want != "parcels" || !strings.HasSuffix(err.Error(), c.says) {
						t.Errorf("%s: %v", when, err)
					}
					letter := make(chan error, 1)
					parcels.channel(0).Mail(Letter{Life: p.toB.Life(), Bytes: []byte("letter"), Settled: func(err error) { letter <- err }})
					if err := <-letter; !errors.Is(err, ErrNoService) {
						t.Errorf("a letter %s: %v", when, err)
					}
				}
				if n := others.Load(); n > 0 {
					t.Errorf("%d messages but for those of introductions", n)
				}
			})
		})
	}
}

// TestMemoryOfAnotherKind checks that the name of memory is compared, also with a peer that has
// none.
func TestMemoryOfAnotherKind(t *testing.T) {
	for _, c := range []struct {
		here, there Config
		says        string
	}{
		{Config{}, Config{}, ""},
		{Config{Service: "ping"}, Config{Service: "ping"}, ""},
		{Config{}, Config{Service: "ping"}, "it serves ping, not memory; is it the peer that you mean?"},
		{Config{Service: "ping"}, Config{}, "it serves memory, not ping; is it the peer that you mean?"},
		{Config{}, Config{Memory: &Region{}}, "it serves nothing, so no memory either; is it the peer that you mean, and does its program add that?"},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, pairConfig{a: c.here, b: c.there})
			defer p.close()
			err := p.toB.Write(t.Context(), write(64, []byte("data"), 0, 1))
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.HasSuffix(err.Error(), c.says)) {
				t.Errorf("%v, want %q", err, c.says)
			}
			if c.says != "" && !bytes.Equal(p.memB.Bytes(), make([]byte, 1<<20)) {
				t.Error("memory was written into")
			}
		})
	}
}

// TestServeLater checks that peers that are connected are told of a new service, and that what they
// have may be used from then on.
func TestServeLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{link: simnet.Link{Loss: 0.5}})
		defer p.close()
		if err := p.toB.Write(t.Context(), write(64, []byte("data"), 0, 1)); err != nil {
			t.Fatal(err)
		}
		here, there := newShelf("late", 1<<16), newShelf("late", 1<<16)
		serve(t, p.a, here)
		x := write(1<<20+MailSize, []byte("late"), 1<<20+MailSize, 1)
		if err := settle(t, here.channel(0).Flow(), x); !errors.Is(err, ErrNoService) {
			t.Errorf("before it is there: %v", err)
		}
		serve(t, p.b, there)
		var err error
		for range 100 { // the frame that tells it may be lost
			time.Sleep(time.Second)
			if err = settle(t, here.channel(0).Flow(), x); err == nil {
				break
			}
			p.toA.Write(t.Context(), write(64, []byte("data"), 0, 1))
		}
		if err != nil || string(there.bytes[:4]) != "late" {
			t.Errorf("%v, %q", err, there.bytes[:4])
		}
	})
}

// TestLetters checks that letters come whole, once, in order, to the service of that name, through
// loss and reordering.
func TestLetters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{link: simnet.Link{Latency: time.Millisecond, Loss: 0.2, Duplicate: 0.2, Reorder: 0.2}})
		defer p.close()
		here, there := newShelf("post", 1<<16), newShelf("post", 1<<16)
		other := newShelf("other", 1<<16)
		serve(t, p.a, here)
		serve(t, p.b, other) // so that the windows are not at the same place
		serve(t, p.b, there)
		time.Sleep(time.Minute)
		var want []string
		var wg sync.WaitGroup
		for i := range 200 {
			text := strings.Repeat(fmt.Sprintf("letter %d ", i), 1+i%90)[:min(MaxLetter, (1+i%90)*9)]
			if i == 0 {
				text = ""
			}
			if i == 1 {
				text = strings.Repeat("x", MaxLetter)
			}
			want = append(want, text)
			wg.Add(1)
			here.channel(0).Mail(Letter{Life: p.toB.Life(), Bytes: []byte(text), Settled: func(err error) {
				if err != nil {
					t.Error(err)
				}
				wg.Done()
			}})
		}
		wg.Wait()
		if !slices.Equal(there.letters, want) {
			t.Errorf("%d letters came, want %d, or they differ", len(there.letters), len(want))
		}
		if len(other.letters) != 0 || here.channel(0).Waiting() != 0 {
			t.Errorf("%d came elsewhere, %d wait", len(other.letters), here.channel(0).Waiting())
		}
	})
}

// TestLetterOfAnEarlierLife checks that a letter of an earlier life is not delivered to the next
// one, and that those after it are.
func TestLetterOfAnEarlierLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{})
		defer p.close()
		here, there := newShelf("post", 1<<16), newShelf("post", 1<<16)
		serve(t, p.a, here)
		serve(t, p.b, there)
		time.Sleep(time.Second)
		old := p.toB.Life()
		p.toB.Reset(0)
		results := make(chan error, 2)
		for _, l := range []Letter{{Life: old, Bytes: []byte("old")}, {Life: p.toB.Life(), Bytes: []byte("new")}} {
			l.Settled = func(err error) { results <- err }
			here.channel(0).Mail(l)
		}
		if err := <-results; !errors.Is(err, ErrPeerRestarted) {
			t.Errorf("of an earlier life: %v", err)
		}
		if err := <-results; err != nil {
			t.Error(err)
		}
		if !slices.Equal(there.letters, []string{"new"}) {
			t.Errorf("%q", there.letters)
		}
	})
}

// TestServiceHearsOfLives checks that a service hears of the lives of its peer in order with what
// it admits.
func TestServiceHearsOfLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{b: Config{GiveUp: time.Second}})
		defer p.close()
		there := newShelf("post", 1<<16)
		serve(t, p.b, there)
		here := newShelf("post", 1<<16)
		serve(t, p.a, here)
		time.Sleep(time.Second)
		kill(p.a)
		p.a = p.open(addrA, &Config{ID: 1, Memory: p.memA})
		toB := p.connect(p.a, Peer{ID: 2, Addr: addrB})
		again := newShelf("post", 1<<16)
		serve(t, p.a, again)
		settled := make(chan error, 1)
		time.Sleep(10 * time.Second)
		again.channel(0).Mail(Letter{Life: toB.Life(), Bytes: []byte("x"), Settled: func(err error) { settled <- err }})
		if err := <-settled; err != nil {
			t.Fatal(err)
		}
		p.net.Link(addrA, addrB, simnet.Link{Down: true})
		p.toA.Post(write(64, []byte("data"), 0, 1))
		time.Sleep(10 * time.Second)
		there.mu.Lock()
		defer there.mu.Unlock()
		// The first session may have begun before there is a service.
		if want := []EventKind{PeerUp, PeerRestarted, PeerDown}; !slices.Equal(there.events, want) && !slices.Equal(there.events, want[1:]) {
			t.Errorf("%v, want %v", there.events, want)
		}
	})
}

// TestServeRefuses checks that Serve refuses what can be no service.
func TestServeRefuses(t *testing.T) {
	e, w := openForgery(t, Config{})
	defer w.Close()
	defer e.Close()
	for name, s := range map[string]*shelf{
		"a name":         newShelf("Not a name", 1<<16),
		"no name":        newShelf("", 1<<16),
		"the memory's":   newShelf("memory", 1<<16),
		"no room for it": {name: "small", size: MailSize - 1},
		"too large":      {name: "large", size: 1<<32 - 100},
		"larger still":   {name: "large", size: 1 << 40},
	} {
		if base, err := e.Serve(s); err == nil || base != 0 {
			t.Errorf("%s: %d, %v", name, base, err)
		}
	}
	for i := range frame.MostServices - 1 {
		if _, err := e.Serve(newShelf("s"+string(rune('a'+i)), 1<<16)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.Serve(newShelf("last", 1<<16)); err == nil {
		t.Error("more than an introduction can name")
	}
	e.Close()
	if _, err := e.Serve(newShelf("x", 1<<16)); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	vast, err := New(newForgery(), &Config{ID: 2, Memory: nowhere{}})
	if err != nil {
		t.Fatal(err)
	}
	defer vast.Close()
	if _, err := vast.Serve(newShelf("x", 1<<16)); !errors.Is(err, ErrBounds) {
		t.Errorf("beside memory that may take all addresses: %v", err)
	}
}

// nowhere is memory that does not say how large it is.
type nowhere struct{}

func (nowhere) Admit(frame.EndpointID, *frame.Message) ([]byte, error) { return nil, ErrBounds }
func (nowhere) Complete(frame.EndpointID, *frame.Message)              {}

// TestUnknownSourcesAreToldServices checks that unknown sources are told of services in as many bytes as
// they asked with, and not more (attack A4, SECURITY.md: no amplification).
func TestUnknownSourcesAreToldServices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, w := openForgery(t, Config{})
		defer e.Close()
		serve(t, e, newShelf("post", 1<<16))
		for n := 0; n <= 300; n += 10 {
			for _, m := range []frame.Message{{Txn: 7, CompletionAddr: frame.NoCompletion, CompletionValue: frame.NoCompletion}, {Txn: 5, CompletionValue: 1, Count: 1, Index: 1}} {
				asked := w.padded(addrA, 1, m, n)
				for _, s := range w.frames(time.Second) {
					if s.n > asked {
						t.Fatalf("%d bytes answer %d", s.n, asked)
					}
					got, told := s.f.Services()
					if told != (asked >= frame.ListedSize) || told && got.String() != "memory, post" {
						t.Errorf("asked with %d bytes: %v, %v", asked, told, got.String())
					}
				}
			}
		}
	})
}

// padded is message with bytes after it.
func (w *forgery) padded(from transport.Addr, id frame.EndpointID, m frame.Message, n int) (length int) {
	b := make([]byte, frame.HeaderSize+frame.MessageHeaderSize+n)
	hdr := frame.Header{Dst: 2, Src: id, Seq: 1, Flags: frame.FlagMessages}
	hdr.Put(b)
	m.Put(b[frame.HeaderSize:])
	w.in <- transport.Datagram{From: from, Data: b}
	return len(b)
}

// TestSmallFramesTellNoServices checks that nothing is said where the list of services does not
// fit, and that peers take what is not said for there.
func TestSmallFramesTellNoServices(t *testing.T) {
	for _, mtu := range []int{64, 128, 133, 134, 136, 144, 1500} {
		synctest.Test(t, func(t *testing.T) {
			var told, greeted bool
			p := newPair(t, pairConfig{a: Config{MTU: mtu, Trace: &Trace{FrameSent: func(_ PeerName, b []byte, _ bool) {
				if len(b) > mtu {
					t.Errorf("MTU %d: a frame of %d bytes", mtu, len(b))
				}
				if frame.IsSession(b) {
					return
				}
				f, err := frame.Parse(b)
				if err != nil {
					t.Error(err)
				}
				if _, ok := handshakeIn(&f); ok {
					_, ok = f.Services()
					told, greeted = told || ok, true
				}
			}}}})
			defer p.close()
			if err := p.toA.Write(t.Context(), write(64, []byte("data"), 0, 1)); err != nil {
				t.Errorf("MTU %d: %v", mtu, err)
			}
			if !greeted || told != (mtu >= 138) {
				t.Errorf("MTU %d: greeted %v, told %v", mtu, greeted, told)
			}
		})
	}
}

// TestServicesOfTheNextLife checks that what a peer serves is what its present life says.
func TestServicesOfTheNextLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{})
		defer p.close()
		if err := p.toB.Write(t.Context(), write(64, []byte("data"), 0, 1)); err != nil {
			t.Fatal(err)
		}
		p.b.Close()
		p.b = p.open(addrB, &Config{ID: 2, Memory: p.memB, Service: "other"})
		p.toA = p.connect(p.b, Peer{ID: 1, Addr: addrA})
		time.Sleep(time.Minute)
		if err := p.toB.Write(t.Context(), write(64, []byte("data"), 0, 1)); !errors.Is(err, ErrNoService) {
			t.Error(err)
		}
		p.b.Close()
		p.b = p.open(addrB, &Config{ID: 2, Memory: p.memB})
		p.toA = p.connect(p.b, Peer{ID: 1, Addr: addrA})
		time.Sleep(time.Minute)
		if err := p.toB.Write(t.Context(), write(64, []byte("data"), 0, 1)); err != nil {
			t.Error(err)
		}
	})
}

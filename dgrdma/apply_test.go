package dgrdma

import (
	"errors"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/endpoint/reassembly"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/settings"
)

// TestWhatAFrameTakes checks that a frame is admitted if what is left of the memory is enough for what it begins and does not
// end. What goes on takes nothing.
func TestWhatAFrameTakes(t *testing.T) {
	const (
		many = 65535
		x    = life       // is open, with its first message
		n    = life + 500 // is not
	)
	type list = []frame.Message
	for _, c := range []struct {
		name string
		left int // of the memory
		msgs list
		fits bool
	}{
		{"one begins", reassembly.Size, list{bare(n, 4, 1)}, true},
		{"one begins", reassembly.Size - 1, list{bare(n, 4, 1)}, false},
		{"one goes on in order", reassembly.Size, list{bare(n, 4, 1), bare(n, 4, 2), bare(n, 4, 3)}, true},
		{"one goes on after a gap", reassembly.Size, list{bare(n, 4, 1), bare(n, 4, 3)}, true},
		{"two begin", reassembly.Size, list{bare(n, 2, 1), bare(n+1, 2, 1)}, false},
		{"two begin", 2 * reassembly.Size, list{bare(n, 2, 1), bare(n+1, 2, 1)}, true},
		{"one begins and ends", 0, list{bare(n, 2, 1), bare(n, 2, 2)}, true},
		{"single ones", 0, list{bare(n, 1, 1), bare(n+1, 0, 0), bare(n+2, 1, 1)}, true},
		{"one begins after one that ends", reassembly.Size, list{bare(n, 2, 1), bare(n, 2, 2), bare(n+1, 2, 1)}, true},
		{"one begins after one that ends", reassembly.Size - 1, list{bare(n, 2, 1), bare(n, 2, 2), bare(n+1, 2, 1)}, false},
		{"an open one goes on", 0, list{bare(x, many, 2), bare(x, many, 3)}, true},
	} {
		f := newFeed(t, Config{OpenMemory: settings.LeastOpenMemory/reassembly.Size*reassembly.Size + reassembly.Size + c.left})
		conn := f.native()
		h := &hostilePeer{f: f}
		all := conn.cfg.OpenMemory
		h.give(times((all-c.left)/reassembly.Size, func(i int) frame.Message { return bare(x+uint32(i), many, 1) })...)
		before := conn.Stats()
		if left := all - before.OpenMemory; left != c.left {
			t.Fatalf("%s: %d bytes are left, want %d", c.name, left, c.left)
		}
		h.give(c.msgs...)
		st := conn.Stats()
		if refused := st.RefusedBy(RefusedOpenMemory) > 0; refused == c.fits || refused && st.OpenMemory != before.OpenMemory {
			t.Errorf("%s, with %d bytes left: refused %v, %d bytes more are held", c.name, c.left, st.RefusedReasons(), st.OpenMemory-before.OpenMemory)
		}
	}
}

// wrongLength admits one byte more or less than there are.
type wrongLength struct {
	nowhere
	by int
}

func (w wrongLength) Admit(_ frame.EndpointID, m *frame.Message) ([]byte, error) {
	return make([]byte, int(m.Len)+w.by), nil
}

// TestMemoryOfTheWrongLength checks that a memory that admits another number of bytes ends its
// endpoint, and is not written to.
func TestMemoryOfTheWrongLength(t *testing.T) {
	for _, by := range []int{-1, 1} {
		f := newFeed(t, Config{Memory: wrongLength{by: by}})
		f.native()
		m := bare(life, 1, 1)
		m.Len = 8
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%d bytes more are admitted", by)
				}
			}()
			f.give(f.encode(1, 1, m))
		}()
	}
}

// TestRefusalsAreToldApart checks that a refusal says why the memory does not take a frame: the
// frame lies outside, or the memory says no.
func TestRefusalsAreToldApart(t *testing.T) {
	picky := &pickyMemory{new(Region), 64, 128}
	for _, x := range []struct {
		addr uint32
		why  Reason
		is   error
	}{{64, RefusedMemory, errPicky}, {4096, RefusedBounds, ErrBounds}} {
		var told []Event
		cfg := Config{Memory: picky, OnEvent: func(e Event) {
			if e.Kind == FrameRefused {
				told = append(told, e)
			}
		}}
		withFakePeer(t, cfg, Native(), func(t *testing.T, _ *Endpoint, c *Conn, s *fakePeer) {
			s.send(2, data(life, 1, 1, x.addr, pattern(1, 8)))
			s.recv(10 * time.Millisecond)
			if len(told) != 1 || told[0].Reason != x.why || told[0].Txn != life || !errors.Is(told[0].Err, x.is) || c.Stats().RefusedBy(x.why) != 1 {
				t.Errorf("told of %+v, refused %v", told, c.Stats().Refused)
			}
		})
	}
}

// TestFewAreLeftOpen checks that the endpoint keeps few of the transactions that a peer leaves open
// for good: the latest if it never sends again, else the first.
func TestFewAreLeftOpen(t *testing.T) {
	counts := OpenCPI(false)
	counts.OverCounts = true
	for _, x := range []struct {
		prof Profile
		open int
	}{{OpenCPI2(), mostLeft}, {FPGA(), mostLeft}, {counts, mostLeft}, {OpenCPI(false), 4 * mostLeft}} {
		f := newFeed(t, Config{})
		c, err := f.e.Connect(Peer{ID: 1, Addr: addrA, Profile: &x.prof})
		if err != nil {
			t.Fatal(err)
		}
		h := &hostilePeer{f: f}
		for i := range uint32(4 * mostLeft) {
			h.give(bare(1+i, 9, 1))
		}
		if st := c.Stats(); st.Open != x.open {
			t.Errorf("%s: %d are open, want %d", x.prof.Name, st.Open, x.open)
		}
	}
}

// TestDiscardedMessageLosesItsTransaction checks that a transaction is lost with any message that the memory discards, in
// the frame of the others or in one before.
func TestDiscardedMessageLosesItsTransaction(t *testing.T) {
	for _, apart := range []bool{false, true} {
		for lost := range 3 {
			mem, _ := NewRegion(4096)
			var told []uint32
			cfg := Config{Memory: &pickyMemory{mem, 512, 1024}, OnEvent: func(e Event) {
				if e.Kind == TransactionLost {
					told = append(told, e.Txn)
				}
			}}
			withFakePeer(t, cfg, Native(), func(t *testing.T, _ *Endpoint, c *Conn, s *fakePeer) {
				var msgs []msg
				for i := range 3 {
					addr := uint32(64 + 8*i)
					if i == lost {
						addr = 1024
					}
					msgs = append(msgs, data(life, 3, uint16(1+i), addr, pattern(1, 8)))
				}
				if apart {
					for i, m := range msgs {
						s.send(frame.Seq(1+i), m)
					}
				} else {
					s.send(2, msgs...)
				}
				s.recv(10 * time.Millisecond)
				if st := c.Stats(); mem.Load32(0) != 0 || len(told) != 1 || told[0] != life || st.Completions != 0 || st.Swallowed != 1 || st.Open != 0 {
					t.Errorf("message %d: word %d, told of %v, %d completions, %d swallowed", lost, mem.Load32(0), told, st.Completions, st.Swallowed)
				}
			})
		}
	}
}

// TestNewLifeKeepsWhatItBegins checks that Reset gives back what it took over from the earlier
// life, and not what began since.
func TestNewLifeKeepsWhatItBegins(t *testing.T) {
	f := newFeed(t, Config{})
	c, h := f.plain()
	h.give(bare(1, 2, 1))
	if err := c.Reset(0); err != nil {
		t.Fatal(err)
	}
	h.seq = 0
	h.give(bare(5, 2, 1))
	if st := c.Stats(); st.Open != 1 {
		t.Errorf("%d are open, want 1", st.Open)
	}
	if h.give(bare(5, 2, 2)); c.Stats().Completions != 1 {
		t.Error("what began after Reset does not complete")
	}
}

// TestShortDataIsPlaced checks that every byte of short data is placed, also in a memory that does
// not want to know of it.
func TestShortDataIsPlaced(t *testing.T) {
	mem, err := NewRegion(4096)
	if err != nil {
		t.Fatal(err)
	}
	withFakePeer(t, Config{Memory: struct{ Memory }{mem}}, Native(), func(t *testing.T, _ *Endpoint, c *Conn, s *fakePeer) {
		bytes := 0
		for n := range 10 {
			s.send(frame.Seq(2+n), data(life+uint32(n), 1, 1, uint32(64+16*n), pattern(n, n)))
			s.recv(10 * time.Millisecond)
			bytes += n
			if got := string(mem.Bytes()[64+16*n:][:16]); got != string(append(pattern(n, n), make([]byte, 16-n)...)) {
				t.Errorf("of %d bytes there are %x", n, got)
			}
			if st := c.Stats(); st.MessagesPlaced != uint64(n) || st.DataPlaced != uint64(bytes) {
				t.Errorf("%d messages of %d bytes are counted, want %d of %d", st.MessagesPlaced, st.DataPlaced, n, bytes)
			}
		}
	})
}

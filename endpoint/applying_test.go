package endpoint

import (
	"errors"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/settings"
)

// TestWhatAFrameTakes: a frame is admitted if what is left of the memory is enough for what
// it begins and does not end, and for each gap between messages that came. Those in order
// take nothing, even where more is held than may be.
func TestWhatAFrameTakes(t *testing.T) {
	const (
		many = 65535
		x, y = life, life + 1 // are open, with their first message
		n    = life + 500     // is not
	)
	type list = []frame.Message
	for _, c := range []struct {
		name string
		left int // of the memory
		msgs list
		fits bool
	}{
		{"one begins", openSize, list{bare(n, 4, 1)}, true},
		{"one begins", openSize - gapSize, list{bare(n, 4, 1)}, false},
		{"one goes on in order", openSize, list{bare(n, 4, 1), bare(n, 4, 2), bare(n, 4, 3)}, true},
		{"one goes on behind a gap", openSize, list{bare(n, 4, 1), bare(n, 4, 3)}, false},
		{"one goes on behind a gap", openSize + gapSize, list{bare(n, 4, 1), bare(n, 4, 3)}, true},
		{"one has two gaps", openSize + gapSize, list{bare(n, 9, 1), bare(n, 9, 3), bare(n, 9, 5)}, false},
		{"two begin", openSize, list{bare(n, 2, 1), bare(n+1, 2, 1)}, false},
		{"two begin", 2 * openSize, list{bare(n, 2, 1), bare(n+1, 2, 1)}, true},
		{"one begins and ends", 0, list{bare(n, 2, 1), bare(n, 2, 2)}, true},
		{"single ones", 0, list{bare(n, 1, 1), bare(n+1, 0, 0), bare(n+2, 1, 1)}, true},
		{"one begins behind one that ends", openSize, list{bare(n, 2, 1), bare(n, 2, 2), bare(n+1, 2, 1)}, true},
		{"one begins behind one that ends", openSize - gapSize, list{bare(n, 2, 1), bare(n, 2, 2), bare(n+1, 2, 1)}, false},
		{"an open one goes on", 0, list{bare(x, many, 2), bare(x, many, 3)}, true},
		{"an open one has a gap", 0, list{bare(x, many, 5)}, false},
		{"an open one goes on behind a gap", gapSize, list{bare(x, many, 5), bare(x, many, 6)}, true},
		{"an open one has two gaps", gapSize, list{bare(x, many, 5), bare(x, many, 7)}, false},
		{"an open one has two gaps", 2 * gapSize, list{bare(x, many, 5), bare(x, many, 7)}, true},
		{"a gap of one behind another's message", 0, list{bare(x, many, 2), bare(y, many, 3)}, false},
		{"more is held than may be", -pageSize, list{bare(x, many, 2)}, true},
		{"more is held than may be", -pageSize, list{bare(n, 2, 1), bare(n, 2, 2)}, true},
		{"more is held than may be", -pageSize, list{bare(x, many, 5)}, false},
	} {
		f := newFeed(t, Config{OpenMemory: settings.LeastOpenMemory})
		conn := f.native()
		h := &hostilePeer{f: f, seq: 1}
		take := settings.LeastOpenMemory - max(c.left, 0)
		h.give(times(take/openSize, func(i int) frame.Message { return bare(x+uint32(i), many, 1) })...)
		for i := range take % openSize / gapSize {
			h.give(bare(y+1, many, uint16(3+2*i)))
		}
		if c.left < 0 {
			h.give(bare(n+50, 1, 1)) // is complete before others that are older
		}
		before := conn.Stats()
		if left := settings.LeastOpenMemory - before.OpenMemory; left != c.left {
			t.Fatalf("%s: %d bytes are left, want %d", c.name, left, c.left)
		}
		h.give(c.msgs...)
		st := conn.Stats()
		if refused := st.RefusedBy(RefusedOpenMemory) > 0; refused == c.fits || refused && st.OpenMemory != before.OpenMemory {
			t.Errorf("%s, with %d bytes left: refused %v, %d bytes more are held", c.name, c.left, st.RefusedReasons(), st.OpenMemory-before.OpenMemory)
		}
		if take := st.OpenMemory - before.OpenMemory; st.Completions == before.Completions && c.left >= 0 && take > c.left {
			t.Errorf("%s, with %d bytes left: %d more are held", c.name, c.left, take)
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

// TestMemoryOfTheWrongLength: a memory that admits another number of bytes ends its
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
			f.give(encode(1, 2, m))
		}()
	}
}

// TestRefusalsAreToldApart: why the memory does not take a frame is said: it lies outside,
// or the memory says no.
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
		withStranger(t, cfg, Native(), func(t *testing.T, _ *Endpoint, c *Conn, s *stranger) {
			s.send(2, data(life, 1, 1, x.addr, pattern(1, 8)))
			s.recv(10 * time.Millisecond)
			if len(told) != 1 || told[0].Reason != x.why || told[0].Txn != life || !errors.Is(told[0].Err, x.is) || c.Stats().RefusedBy(x.why) != 1 {
				t.Errorf("told of %+v, refused %v", told, c.Stats().Refused)
			}
		})
	}
}

// TestFewAreLeftOpen: of a peer that leaves transactions for good, few are kept: the latest
// if it never sends again, else the first.
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

// TestSwallowedAmid: a transaction is lost with any message that the memory swallows, in the
// frame of the others or in one before.
func TestSwallowedAmid(t *testing.T) {
	for _, apart := range []bool{false, true} {
		for lost := range 3 {
			mem, _ := NewRegion(4096)
			var told []uint32
			cfg := Config{Memory: &pickyMemory{mem, 512, 1024}, OnEvent: func(e Event) {
				if e.Kind == TransactionLost {
					told = append(told, e.Txn)
				}
			}}
			withStranger(t, cfg, Native(), func(t *testing.T, _ *Endpoint, c *Conn, s *stranger) {
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
						s.send(frame.Seq(2+i), m)
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

// TestNewLifeKeepsWhatItBegins: what is given back after Reset is not what began since.
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

// TestOtherLivesSayNothing: what a frame acknowledges that is of another life, or another
// use of its id, does not count; it is no news, and its sender is told who we are.
func TestOtherLivesSayNothing(t *testing.T) {
	for why, txn := range map[Reason]uint32{RefusedStale: life, RefusedForeign: life + 1<<24} {
		var told []Event
		cfg := Config{OnEvent: func(e Event) { told = append(told, e) }}
		withStranger(t, cfg, Native(), func(t *testing.T, _ *Endpoint, c *Conn, s *stranger) {
			s.send(2, data(life, 1, 1, 64, pattern(1, 8)))
			done := false
			tx := &Transaction{Completion: Word(4, 1), Done: func(*Transaction, error) { done = true }}
			if err := c.Post(tx); err != nil {
				t.Fatal(err)
			}
			sent := s.recv(time.Millisecond)
			told = nil
			b := s.encode(3, data(txn, 1, 1, 64, pattern(1, 8)))
			frame.PutAck(b, sent[len(sent)-1].Seq, 1)
			s.raw(b)
			hellos := 0
			for _, got := range s.recv(2 * helloFirst) {
				if _, ok := helloOf(&got); ok {
					hellos++
				}
			}
			if st := c.Stats(); done || len(told) != 0 || hellos == 0 || st.RefusedBy(why) != 1 {
				t.Errorf("%v: done %v, told of %+v, %d introductions, refused %v", why, done, told, hellos, st.Refused)
			}
		})
	}
}

// TestShortDataIsPlaced: every byte is, also in a memory that does not want to know of it.
func TestShortDataIsPlaced(t *testing.T) {
	mem, err := NewRegion(4096)
	if err != nil {
		t.Fatal(err)
	}
	withStranger(t, Config{Memory: struct{ Memory }{mem}}, Native(), func(t *testing.T, _ *Endpoint, c *Conn, s *stranger) {
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

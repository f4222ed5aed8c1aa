package dgrdma

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/endpoint/reassembly"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestMemoryIsBoundedByWhatCame checks that what is kept of incomplete transactions is a small
// multiple of the bytes that a peer sent, whatever it announces, and is given back when they end
// (attack A6, SECURITY.md).
func TestMemoryIsBoundedByWhatCame(t *testing.T) {
	if fixture.Race {
		t.Skip("the race detector's memory is in the way")
	}
	// A header of 24 bytes opens an entry of 80 in a map; 8 KiB are for ids that are
	// over in no order.
	const most, once = 10, 40 << 10
	const each = 2000
	const first = life + manyMessages // those before warm the engine up
	for _, x := range []struct {
		name   string
		frames int
		frame  func(h *hostilePeer, i int) []frame.Message
		end    func(h *hostilePeer) // completes them all
	}{
		{
			"65535 messages announced", 2,
			func(h *hostilePeer, i int) []frame.Message {
				return times(each, func(int) frame.Message { h.txn++; return bare(h.txn, 65535, 1) })
			}, nil,
		},
		{
			"the last of 65535", 2,
			func(h *hostilePeer, i int) []frame.Message {
				return times(each, func(int) frame.Message { h.txn++; return bare(h.txn, 65535, 65535) })
			}, nil,
		},
		{
			"three far apart", 6,
			func(h *hostilePeer, i int) []frame.Message {
				return times(each, func(j int) frame.Message { return bare(first+uint32(i%2*each+j), 65535, uint16(1+i/2*30000)) })
			}, nil,
		},
		{
			"every second of 65535", 12,
			func(h *hostilePeer, i int) []frame.Message {
				return times(2500, func(j int) frame.Message { return bare(first, 65535, uint16(1+2*(i*2500+j))) })
			}, nil,
		},
		{
			"two messages each", 2,
			func(h *hostilePeer, i int) []frame.Message {
				return times(each, func(int) frame.Message { h.txn++; return bare(h.txn, 2, 1) })
			},
			func(h *hostilePeer) {
				for i := range uint32(2) {
					h.give(times(each, func(j int) frame.Message { return bare(first+i*each+uint32(j), 2, 2) })...)
				}
			},
		},
	} {
		t.Run(x.name, func(t *testing.T) {
			f := newFeed(t, Config{})
			c := f.native()
			h := &hostilePeer{f: f, txn: life - 1}
			h.give(times(manyMessages, func(int) frame.Message { h.txn++; return bare(h.txn, 1, 1) })...)
			before, sent := heapAfterGC(), 0
			for i := range x.frames {
				msgs := x.frame(h, i)
				sent += len(encode(1, 0, msgs...))
				h.give(msgs...)
			}
			grew := int(heapAfterGC()) - int(before)
			st := c.Stats()
			t.Logf("%d bytes came, the heap grew by %d; accounted for %d", sent, grew, st.OpenMemory)
			if grew > most*sent+once {
				t.Errorf("%d bytes came, the heap grew by %d, at most %d times as much", sent, grew, most)
			}
			if 2*st.OpenMemory+once < grew {
				t.Errorf("the heap grew by %d, accounted for are %d", grew, st.OpenMemory)
			}
			if n := st.FramesReceived - uint64(x.frames); n > 3 || st.RefusedBy(RefusedInconsistent)+st.RefusedBy(RefusedForeign)+st.RefusedBy(RefusedTooManyOpen) > 0 {
				t.Fatalf("not what was meant: %+v", st.Counters)
			}
			if x.end != nil {
				x.end(h)
			} else {
				c.Reset(0)
				h.give(bare(1, 1, 1))
			}
			if grew, st := int(heapAfterGC())-int(before), c.Stats(); grew > once || st.OpenMemory != 0 || st.Open != 0 {
				t.Errorf("afterwards the heap is %d larger, accounted for are %d in %d transactions", grew, st.OpenMemory, st.Open)
			}
		})
	}
}

// TestLearnedPeersShareMemory checks that learned peers hold together no more than one bound; that
// one that hits it is refused, counted, and gets on in small steps; and that connected peers have a
// bound of their own (attack A6, SECURITY.md).
func TestLearnedPeersShareMemory(t *testing.T) {
	peers := 4096
	if testing.Short() || fixture.Race {
		peers = 400
	}
	const bound, opened = 1 << 20, 60
	f := newFeed(t, Config{AcceptAny: true, OpenMemory: bound, MaxPeers: peers + 2})
	at := func(i int) (frame.EndpointID, *hostilePeer) {
		f.from = simnet.Addr(uint32(1000 + i))
		return frame.EndpointID(1000 + i), &hostilePeer{f: f, id: frame.EndpointID(1000 + i), seq: 1, txn: life}
	}
	for i := range peers {
		id, h := at(i)
		f.introduce(id, life)
		h.give(bare(life, 1, 1))
	}
	held := func() (sum int) {
		for _, c := range f.e.Conns() {
			sum += c.Stats().OpenMemory
		}
		return sum
	}
	before, sent := heapAfterGC(), 0
	greedy := func(h *hostilePeer) {
		h.seq = 2
		msgs := times(opened, func(int) frame.Message { h.txn++; return bare(h.txn, 65535, 1) })
		sent += len(encode(1, 0, msgs...))
		h.give(msgs...)
	}
	for i := range peers {
		_, h := at(i)
		greedy(h)
	}
	grew := int(heapAfterGC()) - int(before)
	refused := f.e.Stats().RefusedBy(RefusedOpenMemory)
	t.Logf("%d peers sent %d bytes: the heap grew by %d, accounted for %d, refused %d frames", peers, sent, grew, held(), refused)
	if most := bound + peers*reassembly.Reserve; held() > most || grew > 2*most && !fixture.Race {
		t.Errorf("accounted for %d, the heap grew by %d, the bound is %d", held(), grew, most)
	}
	if want := peers - bound/(opened*reassembly.Size); refused < uint64(want-1) {
		t.Errorf("%d frames were refused, want %d", refused, want)
	}

	// Nothing is left for any peer.
	_, h := at(peers - 2)
	h.seq = 10 // after those that it sent
	h.give(times((bound-held())/reassembly.Size, func(int) frame.Message { h.txn++; return bare(h.txn, 2, 1) })...)
	if left := bound - held(); left >= reassembly.Size {
		t.Errorf("%d bytes are left", left)
	}

	// The last one was refused, and still completes what it sends bit by bit.
	var id frame.EndpointID
	id, h = at(peers - 1)
	var last *Conn
	for _, c := range f.e.Conns() {
		if c.Peer().ID == id {
			last = c
		}
	}
	h.seq = 2
	for i := range uint32(100) {
		txn := life + 1 + i
		h.give(bare(txn, 3, 1), bare(txn, 3, 2))
		h.give(bare(txn, 3, 3))
	}
	// What begins and ends in one frame takes nothing.
	h.give(times(200, func(i int) frame.Message { return bare(life+101+uint32(i/2), 2, uint16(1+i%2)) })...)
	if st := last.Stats(); st.Completions != 201 || st.OpenMemory != 0 {
		t.Errorf("beside the greedy, %d of 201 transactions completed, %d bytes are held", st.Completions, st.OpenMemory)
	}

	// A connected peer is not affected.
	f.from = addrA
	c := f.native()
	h = &hostilePeer{f: f, id: 1, seq: 1, txn: life}
	greedy(h)
	if st := c.Stats(); st.Open != opened {
		t.Errorf("a connected peer has %d transactions open, want %d", st.Open, opened)
	}

	// Those that are connected later leave the bound, those that are closed give back.
	id, h = at(0)
	c, err := f.e.Connect(Peer{ID: id, Addr: f.from})
	if err != nil {
		t.Fatal(err)
	}
	h.txn, h.seq = life+opened, 3
	h.give(times(100, func(int) frame.Message { h.txn++; return bare(h.txn, 2, 1) })...)
	if st := c.Stats(); st.Open != opened+100 {
		t.Errorf("after it was connected, a peer has %d transactions open, want %d", st.Open, opened+100)
	}
	for _, c := range f.e.Conns() {
		if p := c.Peer().ID; p != id && p != 1 && c != last {
			c.Close()
		}
	}
	h.give(bare(life, 1, 1))
	_, h = at(peers - 1)
	h.txn, h.seq = life+200, 203
	h.give(times(100, func(int) frame.Message { h.txn++; return bare(h.txn, 2, 1) })...)
	if st := last.Stats(); st.Open != 100 {
		t.Errorf("after the others went, %d transactions are open, want 100", st.Open)
	}
	last.Close()
	f.from = addrA
	f.introduce(1, 2*life)
	if f.e.pool.Learned() != 0 {
		t.Errorf("all learned peers are gone, accounted for are %d bytes", f.e.pool.Learned())
	}
	if grew := int(heapAfterGC()) - int(before); grew > 256<<10 && !fixture.Race {
		t.Errorf("all are gone, the heap is %d larger", grew)
	}
}

// TestOpenMemoryIsGivenBack checks that whatever ends a peer's life ends what was kept of it.
func TestOpenMemoryIsGivenBack(t *testing.T) {
	for _, x := range []struct {
		name string
		end  func(f *feed, c *Conn)
	}{
		{"reset", func(f *feed, c *Conn) { c.Reset(0) }},
		{"a new life", func(f *feed, c *Conn) { f.introduce(1, 2*life) }},
		{"given up", func(f *feed, c *Conn) {
			if err := c.Post(write(0, pattern(1, 8), 0, 1)); err != nil {
				f.t.Fatal(err)
			}
			for began := time.Now(); c.Err() == nil && time.Since(began) < 5*time.Second; time.Sleep(time.Millisecond) {
				f.give(nil)
			}
		}},
		{"closed", func(f *feed, c *Conn) { c.Close() }},
	} {
		t.Run(x.name, func(t *testing.T) {
			f := newFeed(t, Config{GiveUp: 50 * time.Millisecond})
			c := f.native()
			other, err := f.e.Connect(Peer{ID: 3, Addr: simnet.Addr(3)})
			if err != nil {
				t.Fatal(err)
			}
			h := &hostilePeer{f: f, txn: life - 1}
			h.give(times(500, func(int) frame.Message { h.txn += 2; return bare(h.txn, 65535, 7) })...)
			if st := c.Stats(); st.Open != 500 || st.OpenMemory != 500*reassembly.Size {
				t.Fatalf("%d open, %d bytes", st.Open, st.OpenMemory)
			}
			x.end(f, c)
			// Whichever peer's frame comes next.
			f.from = simnet.Addr(3)
			f.introduce(3, life)
			if n := c.rx.held.Bytes(); n != 0 || c.rx.open.Len() != 0 {
				t.Errorf("%d bytes are kept", n)
			}
			if other.Stats().Theirs != life {
				t.Error("another peer is affected")
			}
		})
	}
}

// TestConfigOpenMemory checks that New refuses less memory for incomplete transactions than one
// needs.
func TestConfigOpenMemory(t *testing.T) {
	if _, err := New(&feed{}, &Config{ID: 1, OpenMemory: 1000}); err == nil {
		t.Error("1000 bytes are enough")
	}
}

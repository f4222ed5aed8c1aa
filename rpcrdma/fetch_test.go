package rpcrdma

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"
)

// TestItemsAreFetched checks that items are read and inserted in order of their Positions, whatever segments they come in, with and without
// a Read chunk at Position 0, and that each is as long as its length word says (RPC2-035, RPC2-047, RPC2-052, RPC2-103, RPC1-032). A chunk of
// version 1 may have the roundup, which is not fetched (RPC1-028).
func TestItemsAreFetched(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		f := newForeign(t, 3, version, nil)
		f.places = placeAll
		xid := uint32(100)
		for _, items := range [][]int{{1}, {4096}, {5, 0, 7001}, {0}, {3, 3, 3, 3}} {
			for _, pieces := range []int{1, 4} {
				for _, pad := range []int{0, 1} {
					for _, special := range []bool{false, true} {
						if pad == 1 && version == Version2 {
							continue
						}
						xid++
						m := f.noise(xid, msgCall, 200, items...)
						h := f.header(xid, TypeMsg)
						h.Reads = f.reads(m, pieces, pad, none)
						payload := m.head
						if special {
							h.Type = TypeNoMsg
							h.Reads = append([]ReadChunk{{0, f.lend(m.head, false, pieces)}}, h.Reads...)
							payload = nil
						}
						f.send(h, payload)
						f.reply(f.noise(xid, msgReply, 24))
						f.take(TypeMsg)
						if f.closed != nil || f.pair.ended != "" {
							t.Fatalf("items %v, %d pieces: %v %s", items, pieces, f.closed, f.pair.ended)
						}
					}
				}
			}
		}
	})
}

// TestNothingIsFetchedBeforeItsPlace checks that items are not read before the program has said where they go, and not at all if it answers
// at once: of a Call that was sent again the data would be the old one's (RPC2-006).
func TestNothingIsFetchedBeforeItsPlace(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		f := newForeign(t, 4, version, nil)
		m := f.noise(9, msgCall, 100, 5000, 6000)
		h := f.header(9, TypeMsg)
		h.Reads = f.reads(m, 2, 0, none)
		f.send(h, m.head)
		f.run()
		f.noReads()
		if len(f.placing) != 1 || len(f.placing[0].Items) != 2 || !bytes.Equal(f.placing[0].Message, m.head) {
			t.Fatalf("%d Calls want places", len(f.placing))
		}
		f.end.m.Reply(f.pair.now, f.placing[0], Answer{Head: f.noise(9, msgReply, 24).head})
		f.end.drive()
		f.run()
		f.take(TypeMsg)
		f.noReads()

		h.XID = 10
		binary.BigEndian.PutUint32(m.head, 10)
		own := [][]byte{make([]byte, 5001), make([]byte, 10)} // the second one is too short
		f.places = func(*Incoming) [][]byte { return own }
		f.send(h, m.head)
		f.reply(f.noise(10, msgReply, 24))
		if !bytes.Equal(own[0][:5000], m.items[0].Data) || own[0][5000] != 0 || !bytes.Equal(own[1], make([]byte, 10)) {
			t.Error("the item is not in the memory that the program named")
		}
	})
}

// TestChunkLengths checks that a Read chunk that has not the length of its item is refused: in version 2 the roundup is none of it
// (RPC2-036), in version 1 it may be (RPC1-028).
func TestChunkLengths(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		f := newForeign(t, 5, version, nil)
		f.places = placeAll
		for i, wrong := range []int{-1, 1, 2, 4, 3} {
			xid := uint32(20 + i)
			m := f.noise(xid, msgCall, 100, 1001)
			h := f.header(xid, TypeMsg)
			data := append(bytes.Clone(m.items[0].Data), make([]byte, 8)...)
			h.Reads = []ReadChunk{{uint32(m.items[0].At), f.lend(data[:1001+wrong], false, 1)}}
			f.send(h, m.head)
			if version == Version1 && wrong == 3 {
				f.reply(f.noise(xid, msgReply, 24))
				f.take(TypeMsg)
				continue
			}
			f.refusedWith(xid, Report{Code: CodeBadXDR})
			f.noReads()
		}
	})
}

// TestReadsOfACall checks that at most ORD Reads are posted (RPC2-020), and that Calls take turns: one of a single Read is complete long before
// one of many that came first.
func TestReadsOfACall(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		f := newForeign(t, 6, version, nil)
		f.places = placeAll
		long := f.noise(1, msgCall, 100, 60000)
		h := f.header(1, TypeMsg)
		h.Reads = f.reads(long, 40, 0, none)
		f.send(h, long.head)
		short := f.noise(2, msgCall, 100, 500)
		h = f.header(2, TypeMsg)
		h.Reads = f.reads(short, 1, 0, none)
		f.send(h, short.head)
		for len(f.work) == 0 && f.pair.step() {
		}
		if len(f.work) != 1 || f.work[0].XID != 2 || f.end.reads > 20 {
			t.Fatalf("%d Calls are there after %d Reads", len(f.work), f.end.reads)
		}
		f.run()
		if len(f.work) != 2 || !bytes.Equal(f.work[1].Items[0].Data, long.items[0].Data) {
			t.Fatal("the long Call is not there")
		}
	})
}

// TestReadsThatAreNotAnswered checks that the connection ends if the peer does not answer a Read in time.
func TestReadsThatAreNotAnswered(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		f := newForeign(t, 7, version, nil)
		f.places = placeAll
		m := f.noise(1, msgCall, 100, 60000)
		h := f.header(1, TypeMsg)
		h.Reads = f.reads(m, 1, 0, none)
		f.send(h, m.head)
		f.pair.slow = time.Hour
		f.run()
		now := f.pair.now
		if next := f.end.m.Tick(now.Add(9 * time.Second)); next.After(now.Add(10*time.Second)) || f.closed != nil {
			t.Fatalf("the time limit is %v", next.Sub(now))
		}
		f.end.m.Tick(now.Add(10 * time.Second))
		f.end.drive()
		if f.closed == nil || !strings.Contains(f.closed.Error(), "answered a Read") {
			t.Fatalf("the connection ends with %v", f.closed)
		}
	})
}

// TestReadsThatAreSlow checks that the time limit is for each Read, not for all of a Call.
func TestReadsThatAreSlow(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		f := newForeign(t, 10, version, nil) // 2 Reads at a time
		f.places = placeAll
		m := f.noise(1, msgCall, 100, 60000)
		h := f.header(1, TypeMsg)
		h.Reads = f.reads(m, 7, 0, none)
		f.send(h, m.head)
		f.pair.slow = 1000 * time.Hour
		for range 30 {
			if f.run(); len(f.work) > 0 {
				return
			}
			f.pair.now = f.pair.now.Add(9 * time.Second)
			f.end.m.Tick(f.pair.now)
			if f.end.drive(); f.closed != nil || len(f.raw.owed) == 0 {
				t.Fatalf("%d Reads wait, %v", len(f.raw.owed), f.closed)
			}
			f.raw.owed[0].ready = f.pair.now
		}
		t.Fatal("the Call does not come")
	})
}

// TestTimeOfReads checks when the time limit of a Call's Reads begins: when its first Read is posted, however late its place was named, and again when one is complete.
// A Read that is posted while another one of the Call is not answered does not put that one's limit off.
func TestTimeOfReads(t *testing.T) {
	const limit = 10 * time.Second
	bothVersions(t, func(t *testing.T, version uint32) {
		for _, x := range []struct {
			name   string
			ord    int
			pieces []int         // of the item of each Call
			placed time.Duration // when the places are named
			answer time.Duration // when the first Read is answered; 0: never
			end    time.Duration // of the connection
		}{
			{"a place that is named late", 2, []int{1}, 7 * time.Second, 0, 7*time.Second + limit},
			{"one Read at a time", 1, []int{2}, 0, 9 * time.Second, 9*time.Second + limit},
			{"two Reads at a time", 2, []int{3}, 0, 9 * time.Second, 9*time.Second + limit},
			{"a Read of another Call is answered", 2, []int{1, 2}, 0, 6 * time.Second, limit},
		} {
			f := newForeign(t, 11, version, func(c *Config) { c.ORD = x.ord })
			begin := f.pair.now
			f.pair.slow = 1000 * time.Hour
			for i, pieces := range x.pieces {
				m := f.noise(uint32(1+i), msgCall, 100, 6000)
				h := f.header(uint32(1+i), TypeMsg)
				for at := range pieces {
					h.Reads = append(h.Reads, ReadChunk{uint32(m.items[0].At), f.lend(m.items[0].Data[at*6000/pieces:(at+1)*6000/pieces], false, 1)})
				}
				for _, r := range h.Reads[1:] {
					h.Reads[0].Segments = append(h.Reads[0].Segments, r.Segments...)
				}
				h.Reads = h.Reads[:1]
				f.send(h, m.head)
				f.run()
			}
			f.pair.now = begin.Add(x.placed)
			for _, in := range f.placing {
				f.end.m.Place(f.pair.now, in, nil)
			}
			f.end.drive()
			f.run()
			if x.answer > 0 {
				f.pair.now = begin.Add(x.answer)
				f.raw.owed[0].ready = f.pair.now
				f.run()
			}
			f.end.m.Tick(begin.Add(x.end - 1))
			if f.end.drive(); f.closed != nil {
				t.Errorf("%s: the connection ends before %v: %v", x.name, x.end, f.closed)
				continue
			}
			f.end.m.Tick(begin.Add(x.end))
			if f.end.drive(); f.closed == nil {
				t.Errorf("%s: the connection does not end after %v", x.name, x.end)
			}
		}
	})
}

// TestEmptyItemsWaitForNothing checks that a Call whose items are empty waits for no buffer, and not until Reads of other Calls are answered.
func TestEmptyItemsWaitForNothing(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		f := newForeign(t, 12, version, nil) // 2 Reads at a time
		f.places = placeAll
		f.pair.slow = 1000 * time.Hour
		m := f.noise(1, msgCall, 100, 6000)
		h := f.header(1, TypeMsg)
		h.Reads = f.reads(m, 4, 0, none)
		f.send(h, m.head)
		f.run()
		f.places = func(*Incoming) [][]byte {
			f.end.pool.scarce = 100
			return nil
		}
		m = f.noise(2, msgCall, 100, 0, 0)
		h = f.header(2, TypeMsg)
		h.Reads = f.reads(m, 1, 0, none)
		f.send(h, m.head)
		f.run()
		if len(f.placing) != 2 || len(f.work) != 1 || f.work[0].XID != 2 || f.end.reads != 2 {
			t.Errorf("of %d Calls that want places %d are there, after %d Reads", len(f.placing), len(f.work), f.end.reads)
		}
	})
}

// TestMemoryOfThePlace checks that an item goes to the memory that the program names if it is long enough for it, and else to some of the pool.
func TestMemoryOfThePlace(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		f := newForeign(t, 14, version, nil)
		for i, length := range []int{0, 4999, 5000, 5001} {
			own := make([]byte, length)
			f.places = func(*Incoming) [][]byte { return [][]byte{own} }
			xid := uint32(1 + i)
			m := f.noise(xid, msgCall, 100, 5000)
			h := f.header(xid, TypeMsg)
			h.Reads = f.reads(m, 2, 0, none)
			f.send(h, m.head)
			f.run()
			if len(f.work) != 1 || !bytes.Equal(f.work[0].Items[0].Data, m.items[0].Data) {
				t.Fatalf("memory of %d octets: %d Calls, or another item", length, len(f.work))
			}
			if used := length > 0 && &f.work[0].Items[0].Data[0] == &own[0]; used != (length >= 5000) {
				t.Errorf("memory of %d octets is used: %v", length, used)
			}
			f.reply(f.noise(xid, msgReply, 24))
			f.take(TypeMsg)
		}
	})
}

// TestMemoryForAllItems checks that a Call takes no buffer as long as there is none for one of its items, so that another Call may have it, that it goes on when there are, and
// that each is given back once if the connection ends before.
func TestMemoryForAllItems(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		for _, lost := range []bool{false, true} {
			f := newForeign(t, 15, version, nil)
			f.places = placeAll
			f.end.pool.refuse = 6000
			m := f.noise(1, msgCall, 100, 5000, 6000)
			h := f.header(1, TypeMsg)
			h.Reads = f.reads(m, 1, 0, none)
			f.send(h, m.head)
			f.run()
			f.noReads()
			for b := range f.end.pool.out {
				if len(b.B) == 5000 {
					t.Error("a buffer for one of two items is taken")
				}
			}
			if lost {
				f.end.m.Lost(nil)
				f.end.drive()
				continue
			}
			f.end.pool.refuse = 0
			f.reply(f.noise(1, msgReply, 24))
			f.take(TypeMsg)
		}
	})
}

// TestEmptyHeads checks that a Call whose Read chunk at Position 0 is empty is refused, waits for nothing, and counts: the connection of a peer that
// goes on with them ends.
func TestEmptyHeads(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		f := newForeign(t, 16, version, nil)
		for i := range maxMalformed + 1 {
			if f.closed != nil {
				t.Fatalf("the connection ends after %d: %v", i, f.closed)
			}
			h := f.header(uint32(1+i), TypeNoMsg)
			h.Reads = []ReadChunk{{0, f.lend(nil, false, 1)}}
			f.send(h, nil)
			f.run()
		}
		f.noReads()
		if !errors.Is(f.closed, ErrProtocol) {
			t.Errorf("the connection ends with %v", f.closed)
		}
	})
}

// TestPlaceIsNamedOnce checks that a second Place, and one after the answer, change nothing: no item is read again, and nothing of it moves.
func TestPlaceIsNamedOnce(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		f := newForeign(t, 13, version, nil)
		f.places = func(in *Incoming) [][]byte {
			if len(f.work) == 0 && f.end.reads == 0 {
				defer f.end.m.Place(f.pair.now, in, [][]byte{make([]byte, 6000)})
			}
			return nil
		}
		m := f.noise(1, msgCall, 100, 6000)
		h := f.header(1, TypeMsg)
		h.Reads = f.reads(m, 3, 0, none)
		f.send(h, m.head)
		f.run()
		in := f.placing[0]
		for _, when := range []string{"while it is carried out", "after its answer"} {
			f.end.m.Place(f.pair.now, in, nil)
			f.end.drive()
			if f.run(); len(f.placing) != 1 || f.end.reads > 3 || when == "while it is carried out" && len(f.work) != 1 {
				t.Fatalf("%s: %d Reads, %d Calls", when, f.end.reads, len(f.work))
			}
			if len(f.work) > 0 {
				f.reply(f.noise(1, msgReply, 24))
				f.take(TypeMsg)
			}
		}
		if !f.silent() || f.done != 1 {
			t.Errorf("%d answers, more messages: %v", f.done, !f.silent())
		}
	})
}

// TestPlacesOfItems checks that a Position where no item can be is refused before the first Read: beyond the message, inside the header of RPC, or with
// no length word of its own before it (RPC2-103).
func TestPlacesOfItems(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		f := newForeign(t, 8, version, nil)
		f.places = placeAll
		for i, at := range [][]int{{4}, {8}, {104}, {4000}, {40, 40 + 1000}, {40, 40 + 1000 + 4000}} {
			for _, special := range []bool{false, true} {
				xid := uint32(20 + 2*i)
				m := f.noise(xid, msgCall, 100)
				h := f.header(xid, TypeMsg)
				for _, at := range at {
					if at >= 16 {
						binary.BigEndian.PutUint32(m.head[min(at, 100)-4:], 1000)
					}
					h.Reads = append(h.Reads, ReadChunk{uint32(at), f.lend(make([]byte, 1000), false, 1)})
				}
				binary.BigEndian.PutUint32(m.head, xid)
				payload := m.head
				if special {
					h.Type, payload = TypeNoMsg, nil
					h.Reads = append([]ReadChunk{{0, f.lend(m.head, false, 1)}}, h.Reads...)
				}
				if at[0] == 4 {
					continue // the Decoder's
				}
				f.send(h, payload)
				f.refusedWith(xid, Report{Code: CodeBadXDR})
				f.noReads()
				f.end.m.malformed.n = 0
			}
		}
	})
}

// TestLongCalls checks that a Call longer than the limit is refused before the first Read, whatever its segments add up to
// (RPC2-031, RPC2-096, RPC2-104).
// Attack P2 (SECURITY.md).
func TestLongCalls(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		f := newForeign(t, 9, version, func(c *Config) { c.MaxCall = 10000 })
		f.places = placeAll
		for i, lengths := range [][]uint32{{10000}, {1<<32 - 1, 1<<32 - 1, 1<<32 - 1}, {5000, 4997}, {1 << 31, 1 << 31}} {
			xid := uint32(20 + i)
			m := f.noise(xid, msgCall, 100)
			h := f.header(xid, TypeMsg)
			var c Chunk
			for _, n := range lengths {
				c = append(c, Segment{77, n, 0})
			}
			h.Reads = []ReadChunk{{48, c}}
			f.send(h, m.head)
			f.refusedWith(xid, Report{Code: CodeSystem})
			f.noReads()
		}
		m := f.noise(50, msgCall, 100)
		h := f.header(50, TypeMsg)
		h.Reads = []ReadChunk{{48, Chunk{{77, 9901, 0}}}} // 9904 with its roundup
		f.send(h, m.head)
		f.refusedWith(50, Report{Code: CodeSystem})
		h.Reads = []ReadChunk{{48, Chunk{{77, 9900, 0}}}}
		binary.BigEndian.PutUint32(m.head[44:], 9900)
		f.send(h, m.head)
		for f.pair.step() {
		}
		if f.end.reads != 1 {
			t.Errorf("a Call as long as the limit: %d Reads", f.end.reads)
		}
	})
}

package rpcrdma

import (
	"bytes"
	"encoding/binary"
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

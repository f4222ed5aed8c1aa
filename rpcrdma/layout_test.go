package rpcrdma

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/dgrdma/dgrdma/xdr"
)

var layouts = flag.Int("layouts", 200, "how many random Calls TestLayouts makes of each version")

// TestLayouts checks random Calls of a foreign peer: any of their items in Read chunks of any segments, empty ones among them, in version 1 with
// or without the roundup, at Position 0 or inline or in parts; Write chunks of any segments, empty, unused, or none; a Reply chunk or none. The
// Call arrives as it was, and the Reply is what was replied, with all lists as they were given (RPC2-030, RPC2-031, RPC2-035, RPC2-038 to
// RPC2-042, RPC2-046 to RPC2-052, RPC2-103, RPC1-027 to RPC1-032).
func TestLayouts(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		seed := rand.Uint64()
		for i := range *layouts {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				f := newForeign(t, seed+uint64(i), version, func(c *Config) { c.ORD = 1 + i%5 })
				f.places = placeAll
				for xid := range uint32(3) {
					layout(t, f, xid)
				}
			})
		}
	})
}

// split lends memory as a chunk of random segments, with empty ones among them.
func (f *foreign) split(b []byte, write bool) Chunk {
	return f.lend(b, write, 1+f.rng.IntN(1+f.rng.IntN(6)))
}

// some draws lengths of items.
func (f *foreign) some(n, most int) (list []int) {
	for range f.rng.IntN(n) {
		list = append(list, []int{0, 1, 2, 3, 4, 5, 100, 1023, 4096, f.rng.IntN(most)}[f.rng.IntN(10)])
	}
	return list
}

// layout makes one Call, and looks at its Reply.
func layout(t *testing.T, f *foreign, xid uint32) {
	m := f.noise(xid, msgCall, 40+f.rng.IntN(200)*4, f.some(5, 9000)...)
	special := f.rng.IntN(3) == 0
	inline := make([]bool, len(m.items))
	for i := range inline {
		inline[i] = f.rng.IntN(2) == 0 && (special || f.version == Version2 || len(m.items[i].Data) < 300)
	}
	h := f.header(xid, TypeMsg)
	h.Reads = f.reads(m, 1+f.rng.IntN(4), f.rng.IntN(2)*int(2-f.version), func(i int) bool { return inline[i] })
	for i := range h.Reads {
		if h.Reads[i].Length() == 0 { // one chunk with the next if that is at the same Position
			h.Reads[i].Segments = h.Reads[i].Segments[:1]
		}
	}
	payload := insert(m.head, m.items, func(i int) bool { return inline[i] })
	if special {
		h.Type = TypeNoMsg
		h.Reads = append([]ReadChunk{{0, f.split(payload, false)}}, h.Reads...)
		payload = nil
	}

	result := f.noise(xid, msgReply, 24+f.rng.IntN(300)*4, f.some(5, 9000)...)
	var memory [][]byte
	for i := range f.rng.IntN(6) {
		n := f.rng.IntN(50)
		if i < len(result.items) {
			n += len(result.items[i].Data)
		}
		b := bytes.Repeat([]byte{rubbish}, n)
		c := Chunk{}
		if f.rng.IntN(4) > 0 {
			c = f.split(b, true)
		}
		h.Writes, memory = append(h.Writes, c), append(memory, b)
	}
	placed := func(i int) bool { return i < len(h.Writes) && len(h.Writes[i]) > 0 }
	reduced := insert(result.head, result.items, func(i int) bool { return !placed(i) })
	whole := bytes.Repeat([]byte{rubbish}, len(reduced)+f.rng.IntN(50))
	if f.rng.IntN(2) == 0 {
		h.HasReply, h.Reply = true, f.split(whole, true)
	}

	// Parts, if it is too long for one Send.
	for f.version == Version2 && h.Size()+len(payload) > 4096 {
		n := min(len(payload), 4096-36)
		f.part(xid, payload[:n], true)
		payload = payload[n:]
	}
	if h.Size()+len(payload) > 4096 {
		return // version 1 has no way for it
	}
	f.send(h, payload)
	f.reply(result)

	answer := Header{XID: xid, Version: f.version, Type: TypeMsg, Writes: h.Writes}
	if f.version == Version1 && answer.Size()+len(reduced) > 4096 && !h.HasReply {
		f.take(TypeError)
		return
	}
	if len(f.replies) == 0 {
		t.Fatal("there is no Reply")
	}
	var got []byte
	var last Header
	for more := true; more; more = last.Flags&FlagMore != 0 {
		for f.replies[0].h.IsRefresh() {
			f.replies = f.replies[1:]
		}
		r := f.take(f.replies[0].h.Type)
		last = r.h
		got = append(got, r.payload...)
	}
	if last.Type == TypeNoMsg {
		returnsAs(t, last.Reply, h.Reply, len(reduced))
		got = whole[:len(reduced)]
		if len(bytes.Trim(whole[len(reduced):], "\xdb")) > 0 {
			t.Error("more is written than the Reply")
		}
	}
	if !bytes.Equal(got, reduced) {
		t.Errorf("the Reply has %d octets %s, want %d", len(got), differ(got, reduced), len(reduced))
	}
	if len(last.Writes) != len(h.Writes) {
		t.Fatalf("%d Write chunks come back, want %d", len(last.Writes), len(h.Writes))
	}
	for i := range h.Writes {
		var data []byte
		if i < len(result.items) && placed(i) {
			data = result.items[i].Data
		}
		returnsAs(t, last.Writes[i], h.Writes[i], len(data))
		if n := len(data); !bytes.Equal(memory[i][:n], data) || len(bytes.Trim(memory[i][n:], "\xdb")) > 0 {
			t.Errorf("wrong octets are written for item %d", i)
		}
	}
	if f.done == 0 || f.closed != nil || xdr.Padded(len(reduced)) != len(reduced) {
		t.Errorf("%d answers are done, %v", f.done, f.closed)
	}
}

package frame

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// runFrame encodes a frame with that header and that one message.
func runFrame(h Header, m Message) []byte {
	b := make([]byte, HeaderSize+MessageHeaderSize+int(m.Len))
	h.Put(b)
	m.Put(b[HeaderSize:])
	for i := range int(m.Len) {
		b[runHeaders+i] = byte(i)
	}
	return b
}

// TestRun: of what goes on where a frame ended all of the headers is compared, and each of
// their bits matters.
func TestRun(t *testing.T) {
	h := Header{Dst: 0xFEDC, Src: 0x1234, Seq: 65534, AckStart: 77, Flags: FlagMessages}
	m := Message{Txn: 0x89ABCDEF, CompletionAddr: 0xFFFF0123, CompletionValue: 0x80000001, Count: 65535, Index: 3, Addr: 0xFFFFFF00, Len: 100, Type: 9}
	var r Run
	r.Begin(&h, &m)
	next := m
	for range 5 { // over the end of the ids, and of the addresses
		r.Next(&next)
		h.Seq++
		m.Index++
		m.Addr += 100
		if next != m {
			t.Fatalf("next is %+v, want %+v", next, m)
		}
		b := runFrame(h, m)
		onlyGoesOn(t, b, runHeaders, r.Data)
	}
}

// onlyGoesOn checks that a frame with headers of that length goes on as data says, and that none does of which a bit of the headers or the
// length differs.
func onlyGoesOn(t *testing.T, b []byte, headers int, data func(b []byte) ([]byte, bool)) {
	t.Helper()
	if d, ok := data(b); !ok || !slices.Equal(d, b[headers:]) {
		t.Fatalf("% x does not go on", b[:headers])
	}
	for bit := range 8 * headers {
		b[bit/8] ^= 1 << (bit % 8)
		if _, ok := data(b); ok {
			t.Errorf("% x goes on, with bit %d of byte %d changed", b[:headers], bit%8, bit/8)
		}
		b[bit/8] ^= 1 << (bit % 8)
	}
	for n := range len(b) {
		if _, ok := data(b[:n]); ok {
			t.Errorf("%d of %d bytes go on", n, len(b))
		}
	}
	if _, ok := data(append(b, 0)); ok {
		t.Error("with padding it goes on")
	}
}

// TestRunIsWhatParses: what goes on parses, as the message that Next says.
func TestRunIsWhatParses(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 1000 {
		h := Header{Dst: EndpointID(rnd.Uint32()), Src: EndpointID(rnd.Uint32()), Seq: Seq(rnd.Uint32()), AckStart: Seq(rnd.Uint32()), AckCount: uint8(rnd.Uint32()), Flags: uint8(rnd.Uint32()) | FlagMessages}
		m := Message{Txn: rnd.Uint32(), CompletionAddr: rnd.Uint32(), CompletionValue: rnd.Uint32(), Count: uint16(rnd.Uint32()), Index: uint16(rnd.Uint32()), Addr: rnd.Uint32(), Len: uint16(rnd.IntN(2000)), Type: uint8(rnd.Uint32())}
		var r Run
		r.Begin(&h, &m)
		r.Next(&m)
		h.Seq++
		b := runFrame(h, m)
		f, err := Parse(b)
		c := f.Cursor()
		put := make([]byte, len(b))
		r.Put(put)
		if !slices.Equal(put[:runHeaders], b[:runHeaders]) {
			t.Fatalf("%+v %+v: headers %x, want %x", h, m, put[:runHeaders], b[:runHeaders])
		}
		data, ok := r.Data(b)
		if err != nil || f.Header != h || !c.Next() || c.Msg != m || !ok || !slices.Equal(data, c.Data) {
			t.Fatalf("%+v %+v: %v, parsed %+v, goes on %v", h, m, err, c.Msg, ok)
		}
	}
}

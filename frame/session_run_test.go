package frame

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// sessionRunFrame encodes a frame of a session with that header and that one message.
func sessionRunFrame(h SessionHeader, m Message) []byte {
	b := make([]byte, sessionRunHeaders+int(m.Len))
	h.Put(b)
	m.Put(b[SessionHeaderSize:])
	for i := range int(m.Len) {
		b[sessionRunHeaders+i] = byte(i)
	}
	return b
}

// TestSessionRun checks that all bits of the headers are compared of a frame that goes on where one ended, over the end of the
// ids, the indexes and the addresses.
func TestSessionRun(t *testing.T) {
	for _, h := range []SessionHeader{
		{Dst: 0xFEDC, Src: 0x1234, ID: 0xFFFFFFFE, Tag: 0x11223344, Ack: 0x55667788},
		{Dst: 0xFEDC, Src: 0x1234, ID: 0x7FFFFFFE, Tag: 0xFFFFFFFF, Ack: 0xFFFFFFFF, Checks: true},
		{Dst: 1, Src: 2, ID: 0xFFFF, Copy: MostCopies},
	} {
		m := Message{Txn: 0x89ABCDEF, CompletionAddr: 0xFFFF0123, CompletionValue: 0x80000001, Count: 65535, Index: 0xFFFD, Addr: 0xFFFFFF00, Len: 100, Type: 9}
		var r SessionRun
		r.Begin(&h, &m)
		next := m
		for range 5 {
			r.Next(&next)
			h.ID++
			m.Index++
			m.Addr += 100
			if next != m {
				t.Fatalf("next is %+v, want %+v", next, m)
			}
			b := sessionRunFrame(h, m)
			onlyGoesOn(t, b, sessionRunHeaders, r.Data)
		}
	}
}

// sessionRunOf draws a header and a message from bytes.
func sessionRunOf(u func() uint32, size int) (h SessionHeader, m Message) {
	h = SessionHeader{
		Dst: EndpointID(u()), Src: EndpointID(u()), ID: u(), Copy: uint8(u() % (MostCopies + 1)), Tag: u(), Ack: u(), Checks: u()%2 == 0,
	}
	m = Message{
		Txn: u(), CompletionAddr: u(), CompletionValue: u(), Count: uint16(u()), Index: uint16(u()), Addr: u(), Len: uint16(size), Type: uint8(u()),
	}
	return h, m
}

// TestSessionRunIsWhatParses checks that what goes on parses, as the message that Next says, and that Put writes it as the
// encoders of header and message do.
func TestSessionRunIsWhatParses(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 1000 {
		h, m := sessionRunOf(rnd.Uint32, rnd.IntN(2000))
		checkSessionRun(t, h, m, 1+rnd.IntN(4))
	}
}

// checkSessionRun compares a run of frames with the same frames as they are written and parsed one by one.
func checkSessionRun(t *testing.T, h SessionHeader, m Message, frames int) {
	t.Helper()
	var r SessionRun
	r.Begin(&h, &m)
	for range frames {
		r.Next(&m)
		h.ID++
		b := sessionRunFrame(h, m)
		put := slices.Clone(b)
		clear(put[:sessionRunHeaders])
		if r.Put(put); !bytes.Equal(put, b) {
			t.Fatalf("%+v %+v: headers %x, want %x", h, m, put[:sessionRunHeaders], b[:sessionRunHeaders])
		}
		f, err := ParseSession(b)
		c := f.Cursor()
		data, ok := r.Data(b)
		if err != nil || f.SessionHeader != h || !c.Next() || c.Msg != m || r.Size() != len(b) || !ok || !bytes.Equal(data, c.Data) || c.Next() {
			t.Fatalf("%+v %+v: %v, parsed %+v, %+v, goes on %v", h, m, err, f.SessionHeader, c.Msg, ok)
		}
	}
}

// sessionGoesOn says of a frame, read alone, whether it is the next one of a run: its header is the same but for the id, and it has one
// message, the next one, with nothing after it.
func sessionGoesOn(b []byte, h SessionHeader, m Message) ([]byte, bool) {
	f, err := ParseSession(b)
	c := f.Cursor()
	if err != nil || f.Control != NoControl || f.SessionHeader != h || f.Messages() != 1 || len(f.Padding()) > 0 {
		return nil, false
	}
	c.Next()
	return c.Data, c.Msg == m
}

// FuzzSessionRun compares a run with frames that are read one by one, whatever came: those that it takes are those that go on.
func FuzzSessionRun(f *testing.F) {
	h := SessionHeader{Dst: 2, Src: 1, ID: 0xFFFFFFFE, Tag: 0x11223344, Ack: 0x55667788}
	m := Message{Txn: 1, CompletionAddr: 64, CompletionValue: 1, Count: 4, Index: 1, Addr: 4096, Len: 16}
	first := sessionRunFrame(h, m)
	h.ID++
	m.Index, m.Addr = 2, 4096+16
	f.Add(first, sessionRunFrame(h, m))
	f.Add(first, first)
	f.Add(first, []byte{})
	f.Add(first[:17], first)
	for _, g := range sessionGoldens {
		f.Add(bytesOf(f, g.hex), bytesOf(f, g.hex))
	}
	f.Fuzz(func(t *testing.T, first, b []byte) {
		fr, err := ParseSession(first)
		if err != nil || fr.Control != NoControl {
			return
		}
		c := fr.Cursor()
		c.Next()
		if c.Msg.More {
			return
		}
		h, m := fr.SessionHeader, c.Msg
		var r SessionRun
		r.Begin(&h, &m)
		r.Next(&m)
		h.ID++
		for _, b := range [][]byte{b, sessionRunFrame(h, m)} {
			before := bytes.Clone(b)
			data, ok := r.Data(b)
			want, wants := sessionGoesOn(b, h, m)
			if ok != wants || ok && !bytes.Equal(data, want) || !bytes.Equal(b, before) {
				t.Fatalf("after %x:\n%x goes on: %v, want %v", first, b, ok, wants)
			}
		}
		checkSessionRun(t, h, m, 3)
	})
}

package frame

import (
	"strings"
	"testing"
)

// TestHandshakeOnTheWire checks the bytes of each kind of handshake frame, and that they are read back.
func TestHandshakeOnTheWire(t *testing.T) {
	const sender, receiver, check = 0xAABBCCDD, 0x11223344, 0x56781234
	for _, c := range []struct {
		h                         Handshake
		halves, kind, index, peer string
	}{
		{Handshake{HandshakeHello, sender, 0, 0, false}, "0000 0000", "00", "0000", "00000000"},
		{Handshake{HandshakeHello, sender, 0, 0, true}, "0000 0000", "01", "0000", "00000000"},
		{Handshake{HandshakeWelcome, sender, receiver, check, false}, "3412 7856", "00", "0100", "44332211"},
		{Handshake{HandshakeConfirm, sender, receiver, check, true}, "3412 7856", "01", "0500", "44332211"},
		{Handshake{HandshakeReject, sender, receiver, check, false}, "3412 7856", "00", "0600", "44332211"},
		{Handshake{HandshakeRefused, sender, sender, 0, false}, "0000 0000", "00", "0400", "ddccbbaa"},
	} {
		want := bytesOf(t, "0200 0100 "+c.halves+" 00 01"+"ddccbbaa ffffffff ffffffff 0000"+c.index+c.peer+"0000"+c.kind+"00")
		b := make([]byte, HandshakeSize)
		c.h.Put(b, 2, 1)
		if string(b) != string(want) {
			t.Errorf("%v: %x, want %x", c.h.Kind, b, want)
		}
		if got, ok := handshakeOf(t, b); !ok || got != c.h {
			t.Errorf("%v: read as %+v, %v", c.h.Kind, got, ok)
		}
	}
}

func handshakeOf(t *testing.T, b []byte) (h Handshake, ok bool) {
	t.Helper()
	f, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	c := f.Cursor()
	c.Next()
	return HandshakeOf(&f, &c.Msg)
}

// TestNoHandshake checks what is none: data, frames that acknowledge, and epochs that do not belong to the kind.
func TestNoHandshake(t *testing.T) {
	good := Message{Txn: 7, Addr: 9, Index: 1, CompletionAddr: NoCompletion, CompletionValue: NoCompletion}
	for name, change := range map[string]func(h *Header, m *Message){
		"it completes":               func(_ *Header, m *Message) { m.CompletionAddr = 64 },
		"data":                       func(_ *Header, m *Message) { m.Len = 1 },
		"one of many":                func(_ *Header, m *Message) { m.Count = 1 },
		"an index of nothing":        func(_ *Header, m *Message) { m.Index = 7 },
		"a completion without data":  func(_ *Header, m *Message) { m.Index = NotHello },
		"no sender":                  func(_ *Header, m *Message) { m.Txn = 0 },
		"it acknowledges":            func(h *Header, _ *Message) { h.AckCount = 1 },
		"a HELLO to an epoch":        func(_ *Header, m *Message) { m.Index = 0 },
		"a WELCOME to no epoch":      func(_ *Header, m *Message) { m.Addr = 0 },
		"a CONFIRM to no epoch":      func(_ *Header, m *Message) { m.Index, m.Addr = 5, 0 },
		"a REJECT to no epoch":       func(_ *Header, m *Message) { m.Index, m.Addr = 6, 0 },
		"a REFUSED to another epoch": func(_ *Header, m *Message) { m.Index = 4 },
	} {
		h, m := Header{Dst: 2, Src: 1, Flags: FlagMessages}, good
		change(&h, &m)
		b := make([]byte, HandshakeSize+1)
		h.Put(b)
		m.Put(b[HeaderSize:])
		if got, ok := handshakeOf(t, b); ok {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestRefusalOnTheWire checks what follows the message of a REFUSED.
func TestRefusalOnTheWire(t *testing.T) {
	h := Handshake{Kind: HandshakeRefused, Sender: 5, Receiver: 5}
	read := func(said []byte) (Refusal, bool) {
		b := make([]byte, HandshakeSize, HandshakeSize+len(said))
		h.Put(b, 2, 1)
		f, err := Parse(append(b, said...))
		if err != nil {
			t.Fatal(err)
		}
		return RefusalOf(&f)
	}
	for why := range uint8(mostWhy + 1) {
		r := Refusal{Identity{ID: 0x1122, Size: 1 << 32}, why}
		said := make([]byte, IdentitySize)
		r.Put(said)
		if want := bytesOf(t, "49 0"+string('0'+rune(why))+" 2211 0000000001000000"); string(said) != string(want) {
			t.Errorf("%x, want %x", said, want)
		}
		if got, ok := read(said); !ok || got != r {
			t.Errorf("%+v, %v, want %+v", got, ok, r)
		}
	}
	for name, said := range map[string]string{
		"cut":                                "49 01 2211 00000000010000",
		"another mark":                       "48 01 2211 0000000001000000",
		"a reason of nothing":                "49 04 2211 0000000001000000",
		"no id":                              "49 01 0000 0000000001000000",
		"a memory that is too large":         "49 01 2211 0000000002000000",
		"another id that is the one it has":  "49 00 0100 0000000001000000",
		"another id, the same, of no memory": "49 00 0100 0000000000000000",
	} {
		if got, ok := read(bytesOf(t, said)); ok {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestServicesOfAConfirm checks that a CONFIRM has a list of services, as a HELLO and a WELCOME.
func TestServicesOfAConfirm(t *testing.T) {
	var s Services
	s.Add(Service{serviceName(t, "link"), 4096})
	for _, h := range []Handshake{{Kind: HandshakeHello, Sender: 1}, {Kind: HandshakeWelcome, Sender: 1, Receiver: 2}, {Kind: HandshakeConfirm, Sender: 1, Receiver: 2}} {
		b := make([]byte, HandshakeSize+ServicesSize)
		h.Put(b, 2, 1)
		s.Put(b[HandshakeSize:])
		f, err := Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := f.Services(); !ok || got != s {
			t.Errorf("%v: %v, %v", h.Kind, got, ok)
		}
	}
}

// TestServicesAsData checks the data of a message that tells of services in a session: it has no more than there are.
func TestServicesAsData(t *testing.T) {
	var s Services
	for n := range MostServices + 1 {
		data := make([]byte, ServicesLen(&s))
		s.Put(data)
		if got, ok := ParseServices(data); !ok || got != s || len(data) != 4+12*n {
			t.Errorf("%d services: %v, %v", n, got, ok)
		}
		if got, ok := ParseServices(append(data, 0)); ok {
			t.Errorf("%d services and a byte: %v", n, got)
		}
		if got, ok := ParseServices(data[:len(data)-1]); ok {
			t.Errorf("%d services but a byte: %v", n, got)
		}
		s.Add(Service{serviceName(t, strings.Repeat("a", n%8+1)), uint32(n)})
	}
}

package frame

import (
	"bytes"
	"encoding/hex"
	"math"
	"slices"
	"strings"
	"testing"
)

func bytesOf(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

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
		"a completion without data":  func(_ *Header, m *Message) { m.Index = NotHandshake },
		"no sender":                  func(_ *Header, m *Message) { m.Txn = 0 },
		"one of two":                 func(_ *Header, m *Message) { m.More = true },
		"it acknowledges":            func(h *Header, _ *Message) { h.AckCount = 1 },
		"a HELLO to an epoch":        func(_ *Header, m *Message) { m.Index = 0 },
		"a WELCOME to no epoch":      func(_ *Header, m *Message) { m.Addr = 0 },
		"a CONFIRM to no epoch":      func(_ *Header, m *Message) { m.Index, m.Addr = 5, 0 },
		"a REJECT to no epoch":       func(_ *Header, m *Message) { m.Index, m.Addr = 6, 0 },
		"a REFUSED to another epoch": func(_ *Header, m *Message) { m.Index = 4 },
	} {
		h, m := Header{Dst: 2, Src: 1, Flags: FlagMessages}, good
		change(&h, &m)
		b := make([]byte, 2*HandshakeSize)
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
		if r, ok := f.Refusal(); ok && len(f.Padding()) != len(said)-RefusalSize || !ok && len(f.Padding()) != len(said) {
			t.Errorf("%+v, and %d bytes of padding, of %d", r, len(f.Padding()), len(said))
		}
		return RefusalOf(&f)
	}
	for why := range uint8(mostWhy + 1) {
		r := Refusal{ID: 0x1122, Size: 1 << 32, Why: why}
		said := make([]byte, RefusalSize)
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

// TestRefusalOfNoRefused checks that what follows another frame is no refusal.
func TestRefusalOfNoRefused(t *testing.T) {
	said := make([]byte, RefusalSize)
	Refusal{ID: 5, Size: 64}.Put(said)
	ack := make([]byte, HeaderSize)
	(&Header{Dst: 2, Src: 1, AckCount: 1}).Put(ack)
	all := map[string][]byte{"an acknowledgement": ack, "data": lay(Header{Dst: 2, Src: 1, Flags: FlagMessages}, 0, dataMessage(1, 8))}
	for k := HandshakeHello; k < HandshakeRefused; k++ {
		h := Handshake{Kind: k, Sender: 5, Receiver: 5}
		if k == HandshakeHello {
			h.Receiver = 0
		}
		all[k.String()] = make([]byte, HandshakeSize)
		h.Put(all[k.String()], 2, 1)
	}
	for name, b := range all {
		f, err := Parse(append(b, said...))
		if err != nil {
			t.Fatal(err)
		}
		if r, ok := f.Refusal(); ok || len(f.Padding()) != RefusalSize {
			t.Errorf("%s: %+v, %v", name, r, ok)
		}
	}
}

// TestIdentityOnTheWire checks which frames ask for an identity, and which have one.
func TestIdentityOnTheWire(t *testing.T) {
	hello := Handshake{Kind: HandshakeHello, Sender: 7}
	answer := Handshake{Kind: HandshakeWelcome, Sender: 9, Receiver: 7}
	is := Refusal{ID: 5, Size: 1 << 32}
	for _, x := range []struct {
		name      string
		dst, src  EndpointID
		h         Handshake
		services  int
		change    func(said []byte) []byte
		asks, has bool
	}{
		{name: "a question", src: 1, h: hello, asks: true},
		{name: "a question to an endpoint", dst: 2, src: 1, h: hello},
		{name: "a question without a mark", src: 1, h: hello, change: func(b []byte) []byte { b[lastServiceAt] = 0; return b }},
		{name: "a question that is cut", src: 1, h: hello, change: func(b []byte) []byte { return b[:len(b)-1] }},
		{name: "a question with many services", src: 1, h: hello, services: MostServices - 1, asks: true},
		{name: "a question with as many services as can be", src: 1, h: hello, services: MostServices},
		{name: "an answer", dst: 1, h: answer, has: true},
		{name: "an answer of an endpoint", dst: 1, src: 5, h: answer},
		{name: "an answer with as many services as can be", dst: 1, h: answer, services: MostServices},
		{name: "an answer without a mark", dst: 1, h: answer, change: func(b []byte) []byte { b[lastServiceAt] = 0; return b }},
		{name: "an answer with a reason", dst: 1, h: answer, change: func(b []byte) []byte { b[lastServiceAt+1] = 1; return b }},
		{name: "an answer of no id", dst: 1, h: answer, change: func(b []byte) []byte { b[lastServiceAt+2] = 0; return b }},
		{name: "an answer of too much memory", dst: 1, h: answer, change: func(b []byte) []byte { b[lastServiceAt+8] = 2; return b }},
		{name: "a CONFIRM", dst: 1, h: Handshake{Kind: HandshakeConfirm, Sender: 7, Receiver: 9}},
	} {
		var s Services
		for i := range x.services {
			s.Add(Service{serviceName(t, string(rune('a'+i))), 0})
		}
		said := make([]byte, ServicesSize)
		if s.Put(said); s.HasRoom() {
			PutIdentity(said, is)
		}
		if x.change != nil {
			said = x.change(said)
		}
		b := make([]byte, HandshakeSize)
		x.h.Put(b, x.dst, x.src)
		f, err := Parse(append(b, said...))
		if err != nil {
			t.Fatal(err)
		}
		r, ok := f.Identity()
		if asks := f.AsksIdentity(); asks != x.asks || ok != x.has || ok && r != is {
			t.Errorf("%s: asks %v, has %v, %+v", x.name, asks, ok, r)
		}
		if s, listed := f.Services(); listed && len(s.All()) != x.services || listed && len(f.Padding()) > 0 {
			t.Errorf("%s: %d services, padding % x", x.name, len(s.All()), f.Padding())
		}
	}
}

// TestTripOnTheWire checks how a CONFIRM says how long a round trip takes, and that no other frame does.
func TestTripOnTheWire(t *testing.T) {
	said := make([]byte, ServicesSize)
	(&Services{Known: 1}).Put(said)
	for _, trip := range []uint32{1, 300_000, math.MaxUint32} {
		PutTrip(said, trip)
		for k := HandshakeHello; k < handshakes; k++ {
			h := Handshake{Kind: k, Sender: 7}
			if k != HandshakeHello {
				h.Receiver = 7
			}
			b := make([]byte, HandshakeSize)
			h.Put(b, 2, 1)
			f, err := Parse(append(b, said...))
			if err != nil {
				t.Fatal(err)
			}
			want := trip
			if k != HandshakeConfirm {
				want = 0
			}
			if got := f.Trip(); got != want {
				t.Errorf("%v: %d, want %d", k, got, want)
			}
			if !k.HasServices() {
				continue
			}
			if s, ok := f.Services(); !ok || s.Known != 1 || len(s.All()) != 0 {
				t.Errorf("%+v, %v", s, ok)
			}
		}
	}
	PutTrip(said, 300_000)
	if want := bytesOf(t, "54 000000 e0930400 00000000"); string(said[lastServiceAt:]) != string(want) {
		t.Errorf("% x, want % x", said[lastServiceAt:], want)
	}
}

// TestHandshakeInWords checks how each kind of handshake frame is printed.
func TestHandshakeInWords(t *testing.T) {
	var s Services
	s.Add(Service{serviceName(t, "link"), 4096})
	list := make([]byte, ServicesSize)
	s.Put(list)
	identity := slices.Clone(list)
	PutIdentity(identity, Refusal{ID: 5, Size: 64})
	why := func(r Refusal) []byte {
		b := make([]byte, RefusalSize)
		r.Put(b)
		return b
	}
	for _, c := range []struct {
		dst, src EndpointID
		h        Handshake
		said     []byte
		want     string
	}{
		{2, 1, Handshake{Kind: HandshakeHello, Sender: 7}, nil, "1->2 [HELLO from epoch 7]"},
		{2, 1, Handshake{Kind: HandshakeHello, Sender: 4294967295}, list, "1->2 [HELLO from epoch 4294967295, serves link]"},
		{2, 1, Handshake{Kind: HandshakeHello, Sender: 7, Check: 99}, make([]byte, ServicesSize), "1->2 [HELLO from epoch 7]"},
		{0, 1, Handshake{Kind: HandshakeHello, Sender: 7}, nil, "1->0 [HELLO from epoch 7, asks who is there]"},
		{0, 1, Handshake{Kind: HandshakeHello, Sender: 7}, list, "1->0 [HELLO from epoch 7, asks who is there, serves link]"},
		{1, 2, Handshake{Kind: HandshakeWelcome, Sender: 9, Receiver: 7, Check: 5}, list, "2->1 [WELCOME from epoch 9 to epoch 7, serves link]"},
		{1, 0, Handshake{Kind: HandshakeWelcome, Sender: 9, Receiver: 7, Check: 5}, list, "0->1 [WELCOME from epoch 9 to epoch 7, serves link]"},
		{1, 0, Handshake{Kind: HandshakeWelcome, Sender: 9, Receiver: 7, Check: 5}, identity, "0->1 [WELCOME from epoch 9 to epoch 7, serves link, endpoint 5 with 64 bytes]"},
		{0, 1, Handshake{Kind: HandshakeHello, Sender: 7}, identity, "1->0 [HELLO from epoch 7, asks who is there, serves link]"},
		{2, 1, Handshake{Kind: HandshakeConfirm, Sender: 7, Receiver: 9, Check: 5}, list, "1->2 [CONFIRM from epoch 7 to epoch 9, serves link]"},
		{1, 2, Handshake{Kind: HandshakeReject, Sender: 9, Receiver: 7, Check: 5}, list, "2->1 [REJECT from epoch 9 to epoch 7]"},
		{1, 2, Handshake{Kind: HandshakeRefused, Sender: 7, Receiver: 7}, nil, "2->1 [REFUSED to epoch 7]"},
		{1, 0, Handshake{Kind: HandshakeRefused, Sender: 7, Receiver: 7}, why(Refusal{ID: 5, Size: 1 << 20}), "0->1 [REFUSED to epoch 7: another id is here, endpoint 5 with 1048576 bytes]"},
		{1, 2, Handshake{Kind: HandshakeRefused, Sender: 7, Receiver: 7}, why(Refusal{ID: 5}), "2->1 [REFUSED to epoch 7: another id is here, endpoint 5]"},
		{1, 2, Handshake{Kind: HandshakeRefused, Sender: 7, Receiver: 7}, why(Refusal{ID: 2, Why: 1}), "2->1 [REFUSED to epoch 7: no unknown sources are taken, endpoint 2]"},
		{1, 2, Handshake{Kind: HandshakeRefused, Sender: 7, Receiver: 7}, why(Refusal{ID: 2, Why: 2}), "2->1 [REFUSED to epoch 7: there is no room, endpoint 2]"},
		{1, 2, Handshake{Kind: HandshakeRefused, Sender: 7, Receiver: 7}, why(Refusal{ID: 2, Why: 3}), "2->1 [REFUSED to epoch 7: a seal is needed, endpoint 2]"},
	} {
		b := make([]byte, HandshakeSize)
		c.h.Put(b, c.dst, c.src)
		f, err := Parse(append(b, c.said...))
		if err != nil {
			t.Fatal(err)
		}
		if got := f.String(); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
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

// TestHandshakeWithAList checks how long the frames of a handshake are, with a list of services and without: a HELLO without one is as long as a
// REFUSED, which may answer it, and a list can be read again.
func TestHandshakeWithAList(t *testing.T) {
	name, err := ParseServiceName("link")
	if err != nil {
		t.Fatal(err)
	}
	var list Services
	list.Add(Service{Name: name, Base: 4096})
	for k := HandshakeHello; k < handshakes; k++ {
		h := Handshake{Kind: k, Sender: 5, Receiver: 5}
		want := HandshakeSize
		if k == HandshakeHello {
			h.Receiver, want = 0, RefusedSize
		}
		b := bytes.Repeat([]byte{0xff}, ListedSize)
		if n := h.PutWith(b, 2, 1, nil); n != want || len(bytes.Trim(b[HandshakeSize:n], "\x00")) > 0 {
			t.Errorf("%v has %d bytes, want %d, zeros after the message", k, n, want)
		}
		n := h.PutWith(b, 2, 1, &list)
		f, err := Parse(b[:n])
		if err != nil || n != ListedSize {
			t.Fatalf("%v with a list: %d bytes, %v", k, n, err)
		}
		got, ok := f.Handshake()
		if s, listed := f.Services(); !ok || got != h || listed != k.HasServices() || listed && !slices.Equal(s.All(), list.All()) {
			t.Errorf("%v with a list: %+v, %+v", k, got, s.All())
		}
	}
}

package frame

import (
	"encoding/hex"
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

func TestHelloOnTheWire(t *testing.T) {
	for index, hello := range map[string]Hello{
		"0000": {Life: 0xAABBCCDD, Peer: 0x11223344},
		"0100": {Life: 0xAABBCCDD, Peer: 0x11223344, Tells: true},
		"0300": {Life: 0xAABBCCDD, Peer: 0x11223344, Leaves: true},
		"0400": {Life: 0x11223344, Peer: 0x11223344, Refers: true},
	} {
		helloOnTheWire(t, hello, index)
	}
}

func helloOnTheWire(t *testing.T, hello Hello, index string) {
	life := map[bool]string{false: "ddccbbaa", true: "44332211"}[hello.Refers]
	want := "0200 0100 3412 7856 00 01" + life + " ffffffff ffffffff 0000 " + index + " 44332211 0000 00 00"
	h := Header{Dst: 2, Src: 1, Flags: FlagMessages}
	h.SetHelloID(0x56781234)
	b := make([]byte, HeaderSize+MessageHeaderSize)
	h.Put(b)
	m := hello.Message()
	m.Put(b[HeaderSize:])
	if string(b) != string(bytesOf(t, want)) {
		t.Errorf("%x, want %s", b, want)
	}
	f, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	c := f.Cursor()
	c.Next()
	if got, ok := c.Msg.Hello(); !ok || got != hello || f.HelloID() != 0x56781234 {
		t.Errorf("%+v, %v, id %#x", got, ok, f.HelloID())
	}
}

func TestNotHellos(t *testing.T) {
	for name, change := range map[string]func(m *Message){
		"completes":           func(m *Message) { m.CompletionAddr = 64 },
		"marked":              func(m *Message) { m.Index = NotHello },
		"data":                func(m *Message) { m.Len = 1 },
		"counted":             func(m *Message) { m.Count = 1 },
		"no life":             func(m *Message) { m.Txn = 0 },
		"one of two":          func(m *Message) { m.More = true },
		"a goodbye to nobody": func(m *Message) { *m = Hello{Life: 1, Leaves: true}.Message() },
		"of two lives":        func(m *Message) { *m = Hello{Life: 1, Peer: 2, Refers: true}.Message() },
		"of a kind to come":   func(m *Message) { m.Index = helloRefer + 1 },
	} {
		m := Hello{Life: 1}.Message()
		if _, ok := m.Hello(); !ok {
			t.Fatal("a hello is none")
		}
		change(&m)
		if h, ok := m.Hello(); ok {
			t.Errorf("%s: %+v", name, h)
		}
	}
}

// TestIdentityOnTheWire: it stands behind an introduction that refers to somebody else than its
// source, and is nothing anywhere else.
func TestIdentityOnTheWire(t *testing.T) {
	const refers = "0200 0700 0000 0000 00 01" + "44332211 ffffffff ffffffff 0000 0400 44332211 0000 00 00"
	const behind = "49 00 0500 0000100000000000"
	want := Identity{ID: 5, Size: 1 << 20}
	b := make([]byte, IdentitySize)
	want.Put(b)
	if string(b) != string(bytesOf(t, behind)) {
		t.Errorf("%x, want %s", b, behind)
	}
	f, err := Parse(bytesOf(t, refers+behind+"0000"))
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := f.Identity(); !ok || got != want || len(f.Padding()) != 2 {
		t.Errorf("%+v, %v, %d bytes of padding", got, ok, len(f.Padding()))
	}
	if got, want := f.String(), "7->2 id 0 [another endpoint is here, life 287454020: endpoint 5 with 1048576 bytes]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for name, s := range map[string]string{
		"short":             refers + "49 00 0500 00001000000000",
		"marked otherwise":  refers + "53 00 0500 0000100000000000",
		"of a kind to come": refers + "49 01 0500 0000100000000000",
		"nobody":            refers + "49 00 0000 0000100000000000",
		"its source":        refers + "49 00 0700 0000100000000000",
		"too large":         refers + "49 00 0500 0100000001000000",
		"of an answer":      "0200 0700 0000 0000 00 01" + "44332211 ffffffff ffffffff 0000 0100 44332211 0000 00 00" + behind,
		"no message":        "0200 0700 0000 0000 00 00" + behind,
	} {
		f, err := Parse(bytesOf(t, s))
		if err != nil {
			t.Fatal(err)
		}
		if i, ok := f.Identity(); ok {
			t.Errorf("%s: %+v", name, i)
		}
	}
}

func TestStampOnTheWire(t *testing.T) {
	b := bytesOf(t, "0200 0100 3412 feff 03 00"+"ddccbbaa 34120500 feff0100")
	want := Stamp{Life: 0xAABBCCDD, ID: 0x51234, Start: 0x1FFFE}
	f, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := f.Stamp(); !ok || got != want {
		t.Errorf("%+v, %v", got, ok)
	}
	put := make([]byte, StampSize)
	if want.Put(put); string(put) != string(b[HeaderSize:]) {
		t.Errorf("%x, want %x", put, b[HeaderSize:])
	}
	for i := range b {
		other := append([]byte(nil), b...)
		if other[i]++; i == 9 {
			continue // it would hold messages
		}
		f, err := Parse(other)
		if err != nil {
			t.Fatal(err)
		}
		_, ok := f.Stamp()
		if covered := i >= 4 && i < 8 || i == 14 || i == 15 || i == 18 || i == 19; ok == covered {
			t.Errorf("byte %d changed: stamp %v", i, ok)
		}
	}
	if f, err = Parse(b[:len(b)-1]); err != nil {
		t.Fatal(err)
	}
	if _, ok := f.Stamp(); ok {
		t.Error("a stamp of eleven bytes")
	}
}

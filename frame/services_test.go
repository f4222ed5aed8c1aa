package frame

import (
	"strings"
	"testing"
)

func serviceName(t testing.TB, s string) ServiceName {
	t.Helper()
	n, err := ParseServiceName(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// introduction returns a HELLO with what follows its message.
func introduction(behind []byte) []byte {
	b := make([]byte, HandshakeSize, 256)
	(&Handshake{Kind: HandshakeHello, Sender: 7}).Put(b, 2, 1)
	return append(b, behind...)
}

func TestServicesOnTheWire(t *testing.T) {
	var s Services
	if !s.Add(Service{serviceName(t, "memory"), 0}) || !s.Add(Service{serviceName(t, "link"), 0x11223344}) {
		t.Fatal("not added")
	}
	s.Known = 5
	want := bytesOf(t, "53 02 0500"+"6d656d6f7279 0000 00000000"+"6c696e6b 00000000 44332211"+strings.Repeat("00", 6*12))
	b := make([]byte, ServicesSize)
	for i := range b {
		b[i] = 0xff // Put overwrites whatever was there
	}
	if s.Put(b); string(b) != string(want) {
		t.Errorf("%x, want %x", b, want)
	}
	f, err := Parse(append(introduction(b), 0, 0, 0)) // and padding
	if err != nil {
		t.Fatal(err)
	}
	got, ok := f.Services()
	if !ok || got != s {
		t.Fatalf("%v, %v", got.String(), ok)
	}
	if got.String() != "memory, link" {
		t.Error(got.String())
	}
	if base, ok := got.Find(serviceName(t, "link")); !ok || base != 0x11223344 {
		t.Errorf("%#x, %v", base, ok)
	}
	if _, ok := got.Find(serviceName(t, "lin")); ok {
		t.Error("found what is not there")
	}
	if n := f.Messages(); n != 1 || len(f.Body()) != MessageHeaderSize {
		t.Errorf("%d messages, body of %d", n, len(f.Body()))
	}
}

// TestServicesSaidWrong: a list is taken whole or not at all.
func TestServicesSaidWrong(t *testing.T) {
	var s Services
	s.Add(Service{serviceName(t, "memory"), 0})
	s.Add(Service{serviceName(t, "a-1"), 16})
	good := make([]byte, ServicesSize)
	s.Put(good)
	for name, change := range map[string]func(b []byte) []byte{
		"nothing":        func(b []byte) []byte { return nil },
		"link padding":   func(b []byte) []byte { clear(b); return b },
		"cut":            func(b []byte) []byte { return b[:len(b)-1] },
		"nine":           func(b []byte) []byte { b[1] = 9; return b },
		"knows nine":     func(b []byte) []byte { b[2] = 9; return b },
		"reserved":       func(b []byte) []byte { b[3] = 1; return b },
		"no name":        func(b []byte) []byte { b[1] = 3; return b },
		"capital":        func(b []byte) []byte { b[4] = 'M'; return b },
		"behind its end": func(b []byte) []byte { b[16+5] = 'x'; return b },
		"twice":          func(b []byte) []byte { copy(b[16:], b[4:16]); return b },
	} {
		f, err := Parse(introduction(change(append([]byte(nil), good...))))
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := f.Services(); ok || got != (Services{}) {
			t.Errorf("%s: %v, %v", name, got.String(), ok)
		}
	}
}

// TestServicesOfNoIntroduction: behind anything else, a list is padding.
func TestServicesOfNoIntroduction(t *testing.T) {
	var s Services
	s.Add(Service{serviceName(t, "memory"), 0})
	list := make([]byte, ServicesSize)
	s.Put(list)
	h := Header{Dst: 2, Src: 1, Flags: FlagMessages}
	hello := message{Message{Txn: 7, CompletionAddr: NoCompletion, CompletionValue: NoCompletion}, nil}
	completion := hello
	completion.Index = NotHandshake
	ack := make([]byte, HeaderSize)
	(&Header{Dst: 2, Src: 1, AckCount: 1}).Put(ack)
	for name, b := range map[string][]byte{
		"acknowledgement":    ack,
		"data":               lay(h, 0, dataMessage(1, 8)),
		"completion":         lay(h, 0, completion),
		"hello before data":  lay(h, 0, hello, dataMessage(1, 8)),
		"hello behind data":  lay(h, 0, dataMessage(1, 8), hello),
		"hello behind hello": lay(h, 0, hello, hello),
	} {
		f, err := Parse(append(b, list...))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got, ok := f.Services(); ok || len(f.Padding()) != ServicesSize {
			t.Errorf("%s: %v, %v, %d bytes of padding", name, got.String(), ok, len(f.Padding()))
		}
	}
}

// TestPadding is behind what peers of our own kind say, and is all that follows what
// they could not have said.
func TestPadding(t *testing.T) {
	var s Services
	s.Add(Service{serviceName(t, "memory"), 0})
	list := make([]byte, ServicesSize)
	s.Put(list)
	ack := bytesOf(t, "0200 0100 3412 feff 03 00")
	for name, tt := range map[string]struct {
		b    []byte
		want int
	}{
		"acknowledgement":  {ack, 0},
		"padded":           {append(ack[:len(ack):len(ack)], make([]byte, 36)...), 36},
		"hello":            {introduction(nil), 0},
		"hello, padded":    {introduction(make([]byte, 200)), 200},
		"services":         {introduction(list), 0},
		"services, padded": {introduction(append(list[:len(list):len(list)], 1, 2, 3)), 3},
		"services, cut":    {introduction(list[:len(list)-1]), ServicesSize - 1},
	} {
		f, err := Parse(tt.b)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := f.Padding(); len(got) != tt.want || string(got) != string(tt.b[len(tt.b)-tt.want:]) {
			t.Errorf("%s: %d bytes of padding, want %d", name, len(got), tt.want)
		}
	}
}

func TestServicesInWords(t *testing.T) {
	var s Services
	for _, want := range []string{"no service", "serves memory", "serves memory, link"} {
		b := make([]byte, ServicesSize)
		s.Put(b)
		f, err := Parse(introduction(b))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := f.String(), "1->2 [HELLO from epoch 7, "+want+"]"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		s.Add(Service{serviceName(t, []string{"memory", "link"}[len(s.All())%2]), 0})
	}
	out := make([]byte, 0, 100)
	if n := testing.AllocsPerRun(100, func() { out = s.Append(out[:0]) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestServicesAreFull(t *testing.T) {
	var s Services
	for i := range MostServices {
		if !s.Add(Service{Name: ServiceName{'a' + byte(i)}}) {
			t.Fatal(i)
		}
	}
	if s.Add(Service{Name: ServiceName{'z'}}) || len(s.All()) != MostServices {
		t.Error("a ninth")
	}
	b := make([]byte, ServicesSize)
	s.Put(b)
	f, _ := Parse(introduction(b))
	if got, ok := f.Services(); !ok || got != s {
		t.Errorf("%v, %v", got.String(), ok)
	}
	var none Services
	if none.String() != "no service" {
		t.Error(none.String())
	}
}

func TestServiceNames(t *testing.T) {
	for _, s := range []string{"", "memories9", "Memory", "a b", "a\x00b", "é", "a_b"} {
		if n, err := ParseServiceName(s); err == nil || n != (ServiceName{}) {
			t.Errorf("%q: %v, %v", s, n, err)
		}
	}
	for _, s := range []string{"m", "memories", "link", "rdma-1"} {
		if n := serviceName(t, s); n.String() != s {
			t.Errorf("%q: %v", s, n)
		}
	}
}

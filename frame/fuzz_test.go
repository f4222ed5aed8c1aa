package frame

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
)

func FuzzParse(f *testing.F) {
	for _, g := range goldens {
		b := readHex(f, g.file)[g.prefix:]
		f.Add(b)
		f.Add(b[:len(b)-1])
	}
	f.Add([]byte{})
	f.Add(lay(Header{Flags: 1}, 0xEE, dataMessage(1, 1), dataMessage(2, 9), dataMessage(3, 0)))
	f.Add(bytesOf(f, "0200 0100 3412 feff 03 00"+"ddccbbaa 34120500 feff0100 00"))
	var two Services
	two.Add(Service{serviceName(f, "memory"), 0})
	two.Add(Service{serviceName(f, "link"), 1 << 16})
	list := make([]byte, ServicesSize)
	two.Put(list)
	f.Add(introduction(append(list, 0)))
	f.Add(bytesOf(f, "0200 0700 0000 0000 00 01"+"44332211 ffffffff ffffffff 0000 0400 44332211 0000 00 00"+"49 00 0500 0000100000000000 00"))

	f.Fuzz(func(t *testing.T, b []byte) {
		b = b[:len(b):len(b)]
		before := bytes.Clone(b)
		fr, err := Parse(b)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Len != len(b) || e.Off < 0 || e.Off > len(b) || e.Reason.String() == "" {
				t.Fatalf("error %#v for %d bytes", err, len(b))
			}
			if fr.Messages() != 0 || fr.Body() != nil || fr.Header != (Header{}) {
				t.Fatal("error with a frame")
			}
			return
		}

		// canonical is b as Writer would have written it.
		canonical := bytes.Clone(b)
		at, count := HeaderSize, 0
		var msgs []message
		for c := fr.Cursor(); c.Next(); count++ {
			length := int(binary.LittleEndian.Uint16(b[at+20:]))
			data := b[at+24 : at+24+length]
			if int(c.Msg.Len) != length || len(c.Data) != length || cap(c.Data) != length {
				t.Fatalf("message %d: length %d read as %d", count, length, len(c.Data))
			}
			if length > 0 && &c.Data[0] != &data[0] {
				t.Fatalf("message %d: data not at %d", count, at+24)
			}
			at += 24 + length
			if c.Msg.More {
				canonical[at-length-1] = 1
				for (at-HeaderSize)%8 != 0 {
					canonical[at] = 0
					at++
				}
			}
			m := c.Msg
			m.More = false
			msgs = append(msgs, message{m, c.Data})
		}
		if count != fr.Messages() || (count > 0) != fr.HasMessages() {
			t.Fatalf("%d messages, Messages says %d", count, fr.Messages())
		}
		if len(fr.Body()) != at-HeaderSize {
			t.Fatalf("body of %d bytes, messages end at %d", len(fr.Body()), at)
		}
		if !bytes.Equal(b, before) {
			t.Fatal("input was changed")
		}

		checkSaid(t, &fr)

		out := bytes.Repeat([]byte{0xAA}, at)
		var w Writer
		w.Init(out)
		for i := range msgs {
			if w.Room() < len(msgs[i].data) {
				t.Fatalf("no room for message %d", i)
			}
			copy(w.Add(&msgs[i].Message), msgs[i].data)
		}
		fr.Put(out)
		if w.Len() != at || !bytes.Equal(out, canonical[:at]) {
			t.Fatalf("encoded\n% x, want\n% x", out, canonical[:at])
		}
		again, err := Parse(out)
		if err != nil || again.Header != fr.Header || !sameMessages(collect(again), msgs) {
			t.Fatalf("second parse differs: %v", err)
		}
	})
}

// checkSaid checks what is said behind the messages of f: all of it, or nothing, and
// padding for the rest.
func checkSaid(t *testing.T, f *Frame) {
	t.Helper()
	rest := f.Rest()
	said := make([]byte, len(rest)-len(f.Padding()))
	services, told := f.Services()
	refusal, refused := f.Refusal()
	checkHandshake(t, f)
	switch {
	case refused:
		if refusal.Put(said); refusal.ID == 0 || refusal.ID == f.Src && refusal.Why == 0 || refusal.Size > 1<<32 {
			t.Fatalf("%+v is taken", refusal)
		}
	case told:
		services.Put(said)
		rest = rest[:servicesHead+len(services.All())*serviceSize]
		said = said[:len(rest)]
		for _, x := range services.All() {
			if n, err := ParseServiceName(x.Name.String()); err != nil || n != x.Name {
				t.Fatalf("service %v is taken: %v", x, err)
			}
		}
	}
	if !bytes.Equal(said, rest[:len(said)]) {
		t.Fatalf("% x is taken for % x", rest, said)
	}
}

// checkHandshake checks that a handshake frame is what its fields make.
func checkHandshake(t *testing.T, f *Frame) {
	t.Helper()
	c := f.Cursor()
	c.Next()
	h, ok := HandshakeOf(f, &c.Msg)
	if !ok {
		return
	}
	again := make([]byte, HandshakeSize)
	h.Put(again, f.Dst, f.Src)
	g, err := Parse(again)
	if err != nil {
		t.Fatal(err)
	}
	c = g.Cursor()
	c.Next()
	if got, ok := HandshakeOf(&g, &c.Msg); !ok || got != h {
		t.Fatalf("%+v became %+v, %v", h, got, ok)
	}
	if r, ok := RefusalOf(f); h.Kind == HandshakeRefused && ok {
		said := make([]byte, RefusalSize)
		if r.Put(said); !bytes.Equal(said, f.Rest()[:RefusalSize]) {
			t.Fatalf("%+v is taken for %x", r, f.Rest()[:RefusalSize])
		}
	}
}

// FuzzWriter reads a script of messages, 26 bytes each: a header as on the
// wire, then how much of the room to take.
func FuzzWriter(f *testing.F) {
	f.Add(uint16(1490), bytes.Repeat([]byte{1}, 26*3))
	f.Add(uint16(34), make([]byte, 26))
	f.Add(uint16(0), make([]byte, 26))
	f.Add(uint16(65535), bytes.Repeat([]byte{0xFF}, 26*70))
	f.Fuzz(func(t *testing.T, size uint16, script []byte) {
		buf := bytes.Repeat([]byte{0xAA}, int(size)+8)
		var w Writer
		w.Init(buf[:size:size])
		end := 10
		var want []message
		for ; len(script) >= 26; script = script[26:] {
			room := int(size) - (10 + (end-10+7)/8*8) - 24
			if w.Room() != room {
				t.Fatalf("room %d, want %d", w.Room(), room)
			}
			if room < 0 {
				break
			}
			var m Message
			m.get(script)
			m.More = false
			m.Len = uint16(int(binary.LittleEndian.Uint16(script[24:])) % (room + 1))
			data := w.Add(&m)
			if len(data) != int(m.Len) {
				t.Fatalf("%d data bytes for %d", len(data), m.Len)
			}
			for i := range data {
				data[i] = byte(len(want) + i)
			}
			want = append(want, message{m, data})
			end = 10 + (end-10+7)/8*8 + 24 + int(m.Len)
			if w.Len() != end {
				t.Fatalf("length %d, want %d", w.Len(), end)
			}
		}
		if w.Empty() != (len(want) == 0) {
			t.Fatalf("empty %v with %d messages", w.Empty(), len(want))
		}
		for i := range buf {
			if (i < 10 || i >= w.Len()) && buf[i] != 0xAA {
				t.Fatalf("byte %d outside the messages changed", i)
			}
		}
		if w.Empty() {
			return
		}
		h := Header{Dst: 2, Src: 1, Seq: 3, AckStart: 4, AckCount: 5, Flags: FlagMessages}
		h.Put(buf)
		if !bytes.Equal(buf[:w.Len()], lay(h, 0, want...)) {
			t.Fatal("bytes differ from the layout table")
		}
		fr, err := Parse(buf[:w.Len()])
		if err != nil || fr.Header != h || !sameMessages(collect(fr), want) {
			t.Fatalf("does not parse back: %v", err)
		}
	})
}

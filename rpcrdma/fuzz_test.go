package rpcrdma

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
)

// FuzzHeader1 decodes whatever comes on a connection of version 1. What is taken keeps the rules, and is the same octets when it is
// encoded; what is not is a Fault whose answer can be decoded.
func FuzzHeader1(f *testing.F) {
	f.Add(wire(0x77, 2, 64, 4, 1, 1, 1))
	f.Add(wire(0x77, 1, 64, 4, 2))
	f.Add(wire(0x11, 1, 32, 0, 1, 8, 1, 100, 0, 1, 1, 8, 2, 3, 0, 2, 0, 1, 1, 5, 10, 0, 5, 1, 0, 0, 1, 1, 7, 50, 0, 7, 0x11, 0))
	f.Add(wire(0x11, 1, 32, 1, 1, 0, 1, 100, 0, 1, 0, 0, 0))
	fuzzHeader(f, Version1)
}

// FuzzHeader2 is that of version 2.
func FuzzHeader2(f *testing.F) {
	f.Add(wire(0x77, 3, 64, 4, 1, 1, 2, 2))
	f.Add(wire(0x77, 2, 64, 4, 1, 8, 16))
	f.Add(wire(0, 2, 64, 1, 0, 0, 0, 0, 0))
	f.Add(wire(0x11, 2, 32, 0, 0, 5, 1, 8, 1, 100, 0, 1, 1, 8, 2, 3, 0, 2, 0, 1, 1, 5, 10, 0, 5, 1, 0, 0, 1, 1, 7, 50, 0, 7, 0x11, 0))
	f.Add(wire(0x11, 2, 32, 0, 2, 0, 0, 0, 0, 0x11, 0))
	f.Add(connProp(3, 1, 4, 8192, 77, 5, 1, 0, 6, 12, 5, 0, 0))
	fuzzHeader(f, Version2)
}

func fuzzHeader(f *testing.F, version uint32) {
	d := dice{rand.New(rand.NewPCG(uint64(version), 3))}
	for range 20 {
		f.Add(d.header(version).Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, decoder := range []*Decoder{settled(version), NewDecoder(DefaultLimits()), NewDecoder(Limits{3, 2, 1})} {
			checkDecoded(t, decoder, b)
		}
	})
}

// checkDecoded decodes a message, and checks what comes of it.
func checkDecoded(t *testing.T, d *Decoder, b []byte) {
	was := bytes.Clone(b)
	var h Header
	payload, err := d.Decode(b, &h)
	if !bytes.Equal(b, was) {
		t.Fatal("the message has changed")
	}
	if err != nil {
		checkFault(t, b, err)
		return
	}
	n := len(b) - len(payload)
	if h.Size() != n {
		t.Fatalf("%d octets are read, and the header has %d: %+v", n, h.Size(), h)
	}
	again := h.Append(nil)
	if !bytes.Equal(again, plainHeader(&h, b[:n])) {
		t.Fatalf("encoded again: %x", again)
	}
	segments := len(h.Reply)
	for i := range h.Reads {
		segments += len(h.Reads[i].Segments)
		if h.Reads[i].Position%4 != 0 || i > 0 && uint64(h.Reads[i].Position) < h.Reads[i-1].end() || len(h.Reads[i].Segments) == 0 {
			t.Fatalf("%+v", h.Reads)
		}
	}
	for _, w := range h.Writes {
		segments += len(w)
	}
	if segments > d.Limits.Segments || len(h.Reads) > d.Limits.ReadChunks || len(h.Writes) > d.Limits.WriteChunks {
		t.Fatalf("beyond %+v: %+v", d.Limits, h)
	}
	if total, ok := h.Unreduced(len(payload)); ok && total > uint64(len(payload))+MaxSegments<<32 {
		t.Fatalf("%d octets", total)
	}
}

// checkFault checks that a message is refused by a Fault that says where, and whose answer is one.
func checkFault(t *testing.T, b []byte, err error) {
	var f *Fault
	if !errors.As(err, &f) || f.At > len(b) || f.Error() == "" {
		t.Fatalf("%v of %x", err, b)
	}
	h, is := f.Answer(7)
	if !is {
		return
	}
	var got Header
	if _, err := NewDecoder(DefaultLimits()).Decode(h.Append(nil), &got); err != nil || got.XID != word(b, 0) || got.Report != h.Report {
		t.Fatalf("%v is answered by %+v, which is read as %+v, %v", f, h, got, err)
	}
	if f.Type == TypeError {
		t.Fatalf("an ERROR is answered: %v", f)
	}
}

// plainHeader returns a header without what is not kept of it: unknown flags and pads.
func plainHeader(h *Header, b []byte) []byte {
	if h.Version == Version1 {
		return b
	}
	b = bytes.Clone(b)
	clear(b[16:19])
	b[19] &= byte(knownFlags)
	at := PrefixSize2 + wordSize
	for _, p := range h.Properties {
		clear(b[at+2*wordSize+len(p.Data) : at+p.size()])
		at += p.size()
	}
	return b
}

// FuzzPrivate reads whatever comes as private data.
func FuzzPrivate(f *testing.F) {
	f.Add(Private{4096, 4096, true}.Append(nil))
	f.Add(append(Private{1 << 20, 0, false}.Append(nil), make([]byte, 24)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		p := ParsePrivate(b)
		send, receive := Thresholds1(Private{8192, 8192, true}, p)
		if send < 1024 || send > 8192 || receive < 1024 || receive > 8192 {
			t.Fatalf("%x: %d, %d", b, send, receive)
		}
		if p == (Private{}) {
			return
		}
		again := p.Append(nil)
		if again[5] = b[5]; !bytes.Equal(again, b[:PrivateSize]) {
			t.Fatalf("%x is read as %+v", b, p)
		}
	})
}

// FuzzProperties reads whatever comes as the properties of a CONNPROP. What is taken is within bounds, and is the same when this
// side says it.
func FuzzProperties(f *testing.F) {
	for _, body := range [][]uint32{{0}, {2, 1, 4, 8192, 2, 0}, {3, 1, 4, 8192, 77, 5, 1, 0, 6, 12, 5, 0, 0}, {1, 6, 4, 0}, {1, 1, 3, 0}, {1, 6, 4, 1<<32 - 4}} {
		f.Add(wire(body...))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var h Header
		decoder := NewDecoder(DefaultLimits())
		message := append(connProp(), body...)
		if _, err := decoder.Decode(message, &h); err != nil {
			checkFault(t, message, err)
			return
		}
		p := DefaultProperties()
		if !p.Apply(h.Properties) {
			t.Fatal("not taken over")
		}
		for id := PropertySendSize; id < PropertyHostAuth; id++ {
			if v := *p.number(id); v < numbers[id].lowest || v > numbers[id].upper {
				t.Fatalf("property %d is %d", id, v)
			}
		}
		again := DefaultProperties()
		if !again.Apply(p.List()) {
			t.Fatal("what is said is not taken over")
		}
		p.count, p.octets, again.count, again.octets = 0, 0, 0, 0
		if string(p.HostAuth) != string(again.HostAuth) || (p.HostAuth == nil) != (again.HostAuth == nil) {
			t.Fatalf("%x, said again %x", p.HostAuth, again.HostAuth)
		}
		if p.HostAuth, again.HostAuth = nil, nil; p.SendSize != again.SendSize || p.ReceiveSize != again.ReceiveSize || p.SegmentSize != again.SegmentSize ||
			p.SegmentCount != again.SegmentCount || p.Reverse != again.Reverse {
			t.Fatalf("%+v, said again %+v", p, again)
		}
	})
}

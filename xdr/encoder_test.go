package xdr

import (
	"bytes"
	"testing"
)

// TestEncoder checks the octets of each type (RFC 4506, sections 4.1 to 4.11).
func TestEncoder(t *testing.T) {
	for name, c := range map[string]struct {
		encode func(*Encoder)
		want   []byte
	}{
		"uint32":           {func(e *Encoder) { e.Uint32(0xfffefdfc) }, []byte{0xff, 0xfe, 0xfd, 0xfc}},
		"int32":            {func(e *Encoder) { e.Int32(-2) }, []byte{0xff, 0xff, 0xff, 0xfe}},
		"uint64":           {func(e *Encoder) { e.Uint64(1<<40 + 7) }, []byte{0, 0, 1, 0, 0, 0, 0, 7}},
		"int64":            {func(e *Encoder) { e.Int64(-1) }, bytes.Repeat([]byte{255}, 8)},
		"true":             {func(e *Encoder) { e.Bool(true) }, []byte{0, 0, 0, 1}},
		"false":            {func(e *Encoder) { e.Bool(false) }, []byte{0, 0, 0, 0}},
		"fixed of 5":       {func(e *Encoder) { e.Fixed([]byte("abcde")) }, []byte("abcde\x00\x00\x00")},
		"fixed of 4":       {func(e *Encoder) { e.Fixed([]byte("abcd")) }, []byte("abcd")},
		"opaque of 3":      {func(e *Encoder) { e.Opaque([]byte("abc")) }, []byte("\x00\x00\x00\x03abc\x00")},
		"opaque of none":   {func(e *Encoder) { e.Opaque(nil) }, []byte{0, 0, 0, 0}},
		"string of 6":      {func(e *Encoder) { e.String("abcdef") }, []byte("\x00\x00\x00\x06abcdef\x00\x00")},
		"bulk of none":     {func(e *Encoder) { e.Bulk(nil) }, []byte{0, 0, 0, 0}},
		"bulk of 5, a one": {func(e *Encoder) { e.Bulk([]byte("abcde")); e.Uint32(1) }, []byte("\x00\x00\x00\x05abcde\x00\x00\x00\x00\x00\x00\x01")},
	} {
		var e Encoder
		e.Reset([]byte("head"))
		c.encode(&e)
		got := AppendFlat(nil, e.Bytes(), e.Items())
		if want := append([]byte("head"), c.want...); !bytes.Equal(got, want) || e.Len() != len(want) {
			t.Errorf("%s: % x of length %d, want % x", name, got, e.Len(), want)
		}
	}
}

// TestEncoderKeepsBulkByReference checks that the data of Bulk is not copied, and is forgotten by Reset.
func TestEncoderKeepsBulkByReference(t *testing.T) {
	var e Encoder
	data := []byte("some data")
	e.Bulk(data)
	e.Uint32(9)
	items := e.Items()
	if len(items) != 1 || &items[0].Data[0] != &data[0] || items[0].At != 4 || len(e.Bytes()) != 8 {
		t.Fatalf("inline bytes % x, items %v", e.Bytes(), items)
	}
	e.Bulk(nil)
	e.Bulk([]byte{})
	if len(e.Items()) != 1 {
		t.Errorf("empty data is an item: %v", e.Items())
	}
	e.Reset(e.Bytes()[:0])
	if items[0].Data != nil || e.Len() != 0 || len(e.Items()) != 0 {
		t.Errorf("after Reset %d octets, items %v, was %v", e.Len(), e.Items(), items)
	}
}

// TestEncoderAllocatesNothing checks that an Encoder that is used again has all its memory.
func TestEncoderAllocatesNothing(t *testing.T) {
	var e Encoder
	data := make([]byte, 5000)
	if n := testing.AllocsPerRun(100, func() {
		e.Reset(e.Bytes()[:0])
		e.Uint64(1)
		e.String("a name")
		e.Bulk(data)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

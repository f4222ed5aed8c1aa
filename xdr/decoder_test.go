package xdr

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// value is one item of a random message.
type value struct {
	kind   int
	number uint64
	data   []byte
}

const kinds = 9

func (v *value) MarshalXDR(e *Encoder) {
	switch v.kind {
	case 0:
		e.Uint32(uint32(v.number))
	case 1:
		e.Int32(int32(v.number))
	case 2:
		e.Uint64(v.number)
	case 3:
		e.Int64(int64(v.number))
	case 4:
		e.Bool(v.number&1 == 1)
	case 5:
		e.Fixed(v.data)
	case 6:
		e.Opaque(v.data)
	case 7:
		e.String(string(v.data))
	case 8:
		e.Bulk(v.data)
	}
}

func (v *value) UnmarshalXDR(d *Decoder) {
	n := len(v.data)
	v.data = nil
	switch v.kind {
	case 0:
		v.number = uint64(d.Uint32())
	case 1:
		v.number = uint64(d.Int32())
	case 2:
		v.number = d.Uint64()
	case 3:
		v.number = uint64(d.Int64())
	case 4:
		v.number = 0
		if d.Bool() {
			v.number = 1
		}
	case 5:
		v.data = d.Fixed(n)
	case 6:
		v.data = d.Opaque(n)
	case 7:
		v.data = []byte(d.String(n))
	case 8:
		v.data = d.Bulk(n)
	}
}

func (v *value) equals(w *value) bool {
	mask := uint64(math.MaxUint64)
	switch v.kind {
	case 0, 1:
		mask = math.MaxUint32
	case 4:
		mask = 1
	case 5, 6, 7, 8:
		return bytes.Equal(v.data, w.data)
	}
	return v.number&mask == w.number&mask
}

// TestRoundTrip checks that random messages decode to what was encoded, with each item inline, by
// itself, or by itself with its padding (RPC1-028, RPC2-103).
func TestRoundTrip(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	for range 5000 {
		values := make([]value, dice.IntN(12))
		var e Encoder
		for i := range values {
			v := &values[i]
			v.kind, v.number = dice.IntN(kinds), dice.Uint64()
			v.data = make([]byte, dice.IntN(20))
			for k := range v.data {
				v.data[k] = byte(dice.Uint32())
			}
			v.MarshalXDR(&e)
		}
		var inline []byte // with those items that do not travel by themselves
		var items []Item
		done := 0
		for _, item := range e.Items() {
			inline = append(inline, e.Bytes()[done:item.At]...)
			done = item.At
			switch dice.IntN(3) {
			case 0:
				inline = AppendFlat(inline, nil, []Item{{0, item.Data}})
			case 1:
				items = append(items, Item{len(inline), item.Data})
			case 2:
				items = append(items, Item{len(inline), AppendFlat(nil, nil, []Item{{0, item.Data}})})
			}
		}
		inline = append(inline, e.Bytes()[done:]...)
		var d Decoder
		d.Reset(inline, items)
		for i := range values {
			got := value{kind: values[i].kind, data: values[i].data}
			if got.UnmarshalXDR(&d); d.Err() != nil || !got.equals(&values[i]) {
				t.Fatalf("value %d: %+v, want %+v: %v", i, got, values[i], d.Err())
			}
		}
		if err := d.Done(); err != nil || len(d.Left()) != 0 || d.Offset() != len(inline) {
			t.Fatalf("%d octets are left: %v", len(d.Left()), err)
		}
		if len(inline) > 0 { // cut short, something is missing, and nothing is read outside
			d.Reset(inline[:dice.IntN(len(inline))], items)
			for i := range values {
				got := value{kind: values[i].kind, data: values[i].data}
				got.UnmarshalXDR(&d)
			}
			if err := d.Err(); !errors.Is(err, ErrInvalid) {
				t.Fatalf("cut short: %v", err)
			}
		}
	}
}

// TestDecoderRefuses checks what is invalid, and that lengths are held against their bounds and
// against the message before anything else (ONC-008).
func TestDecoderRefuses(t *testing.T) {
	word := func(n ...uint32) []byte {
		var e Encoder
		for _, n := range n {
			e.Uint32(n)
		}
		return e.Bytes()
	}
	for name, c := range map[string]struct {
		b         []byte
		items     []Item
		decode    func(*Decoder)
		want      Error
		mayBeDone bool // the fault is found at the end
	}{
		"nothing":                {nil, nil, func(d *Decoder) { d.Uint32() }, Error{0, "4 octets are wanted, 0 are left", false, false}, false},
		"three octets":           {[]byte{1, 2, 3}, nil, func(d *Decoder) { d.Uint32() }, Error{0, "4 octets are wanted, 3 are left", false, false}, false},
		"half a hyper":           {word(1), nil, func(d *Decoder) { d.Uint64() }, Error{0, "8 octets are wanted, 4 are left", false, false}, false},
		"a boolean of 2":         {word(2), nil, func(d *Decoder) { d.Bool() }, Error{0, "a boolean is 2", false, false}, false},
		"an enumeration":         {word(7, 8), nil, func(d *Decoder) { d.Uint32(); d.Uint32(); d.Fail("a status of 8") }, Error{4, "a status of 8", false, false}, false},
		"beyond the bound":       {word(9, 0, 0, 0), nil, func(d *Decoder) { d.Opaque(8) }, Error{0, "9 octets, at most 8 are allowed", false, false}, false},
		"beyond the message":     {word(9, 0, 0), nil, func(d *Decoder) { d.Opaque(100) }, Error{4, "9 octets are wanted, 8 are left", false, false}, false},
		"without its padding":    {[]byte{0, 0, 0, 1, 5}, nil, func(d *Decoder) { d.Opaque(100) }, Error{4, "4 octets are wanted, 1 are left", false, false}, false},
		"largest":                {word(math.MaxInt32), nil, func(d *Decoder) { d.Opaque(math.MaxInt32) }, Error{4, "2147483647 octets are wanted, 0 are left", false, false}, false},
		"a string of 4 GiB":      {word(math.MaxUint32), nil, func(d *Decoder) { _ = d.String(255) }, Error{0, "4294967295 octets, at most 255 are allowed", false, false}, false},
		"bulk beyond the bound":  {word(9), []Item{{4, make([]byte, 9)}}, func(d *Decoder) { d.Bulk(8) }, Error{0, "9 octets, at most 8 are allowed", false, false}, false},
		"an item, too long":      {word(9, 0, 0, 0), nil, func(d *Decoder) { d.Detach(make([]byte, 8)); d.Bulk(99) }, Error{0, "an item of 9 octets, there is room for 8", false, true}, false},
		"many elements":          {word(1 << 30), nil, func(d *Decoder) { d.Count(1<<30, 4) }, Error{0, "1073741824 elements in 0 octets", false, false}, false},
		"17 elements of 16":      {word(17), nil, func(d *Decoder) { d.Count(16, 0) }, Error{0, "17 elements, at most 16 are allowed", false, false}, false},
		"an item in an opaque":   {word(4, 1), []Item{{6, []byte{1}}}, func(d *Decoder) { d.Opaque(4) }, Error{4, "an item that was sent by itself is where none may be", true, false}, false},
		"an item in a number":    {word(4, 1), []Item{{4, []byte{1}}}, func(d *Decoder) { d.Uint64() }, Error{0, "an item that was sent by itself is where none may be", true, false}, false},
		"an item for an opaque":  {word(4), []Item{{4, make([]byte, 4)}}, func(d *Decoder) { d.Opaque(4) }, Error{4, "4 octets are wanted, 0 are left", false, false}, false},
		"an item too long":       {word(4, 4), []Item{{4, make([]byte, 5)}}, func(d *Decoder) { d.Bulk(9) }, Error{0, "an item of 4 octets was sent by itself with 5", true, false}, false},
		"an item too short":      {word(4, 4), []Item{{Floating, make([]byte, 3)}}, func(d *Decoder) { d.Bulk(9) }, Error{0, "an item of 4 octets was sent by itself with 3", true, false}, false},
		"an item before":         {word(4, 4), []Item{{0, make([]byte, 3)}}, func(d *Decoder) { d.Uint32() }, Error{0, "an item that was sent by itself is where none may be", true, false}, false},
		"an item of nothing":     {word(1), []Item{{4, make([]byte, 3)}}, func(d *Decoder) { d.Uint32() }, Error{4, "an item of 3 octets belongs to nothing", true, false}, true},
		"a floating one, unused": {word(1), []Item{{Floating, make([]byte, 3)}}, func(d *Decoder) { d.Uint32() }, Error{4, "an item of 3 octets belongs to nothing", true, false}, true},
	} {
		var d Decoder
		d.Reset(c.b, c.items)
		c.decode(&d)
		if d.Err() != nil == c.mayBeDone {
			t.Errorf("%s: %v", name, d.Err())
		}
		err := d.Done()
		var e *Error
		if !errors.As(err, &e) || *e != c.want || !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v, want %v", name, err, &c.want)
		}
		if d.Uint32() != 0 || d.Uint64() != 0 || d.Bool() || d.Bulk(9) != nil || d.Count(9, 0) != 0 || len(d.Left()) > 0 && !c.mayBeDone || d.Err() != err {
			t.Errorf("%s: decoding goes on after the error", name)
		}
	}
}

// TestDecoderTakesFloatingItems checks that results that a peer placed are taken in order, and that
// one which was not placed is inline (RPC1-031, RPC2-040).
func TestDecoderTakesFloatingItems(t *testing.T) {
	var e Encoder
	e.Uint32(3)          // of the first item
	e.Opaque([]byte{1})  // is no bulk item
	e.Opaque([]byte{77}) // the second item is inline
	e.Uint32(0)          // the third one is empty
	var d Decoder
	first := []byte{1, 2, 3}
	d.Reset(e.Bytes(), []Item{{Floating, first}, {Floating, nil}, {Floating, nil}})
	if b := d.Bulk(9); &b[0] != &first[0] || len(b) != 3 {
		t.Errorf("first % x", b)
	}
	if b := d.Opaque(9); !bytes.Equal(b, []byte{1}) {
		t.Errorf("opaque % x", b)
	}
	if b := d.Bulk(9); !bytes.Equal(b, []byte{77}) {
		t.Errorf("second % x", b)
	}
	if b := d.Bulk(9); len(b) != 0 || d.Done() != nil {
		t.Errorf("third % x: %v", b, d.Done())
	}
}

// TestOfferedMemoryIsUsed checks that an item is invalid which comes inline although there was memory for it, unless it is empty (RPC2-043).
func TestOfferedMemoryIsUsed(t *testing.T) {
	for n, valid := range map[int]bool{0: true, 1: false, 4: false} {
		var e Encoder
		e.Opaque(make([]byte, n))
		var d Decoder
		d.Reset(e.Bytes(), []Item{{Floating, make([]byte, 9)[:0]}})
		if b := d.Bulk(9); len(b) > 0 || (d.Done() == nil) != valid {
			t.Errorf("%d octets: took %d: %v", n, len(b), d.Err())
		}
	}
}

// TestDecoderAllocatesNothing checks that decoding takes no memory.
func TestDecoderAllocatesNothing(t *testing.T) {
	var e Encoder
	e.Uint64(1)
	e.Opaque(make([]byte, 9))
	e.Bulk(make([]byte, 5000))
	items := e.Items()
	var d Decoder
	if n := testing.AllocsPerRun(100, func() {
		d.Reset(e.Bytes(), items)
		d.Uint64()
		d.Opaque(9)
		if len(d.Bulk(5000)) != 5000 || d.Done() != nil {
			t.Error(d.Err())
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestDecoderTakesNothing checks that an opaque and an item of no octets are nil, and part of no message.
func TestDecoderTakesNothing(t *testing.T) {
	for name, decode := range map[string]func(*Decoder) []byte{
		"fixed":  func(d *Decoder) []byte { return d.Fixed(0) },
		"opaque": func(d *Decoder) []byte { d.Uint32(); return d.Opaque(0) },
		"bulk":   func(d *Decoder) []byte { d.Uint32(); return d.Bulk(0) },
	} {
		for _, detached := range []bool{false, true} {
			var d Decoder
			d.Reset(make([]byte, 12), nil)
			if detached {
				d.Detach(nil)
			}
			if b := decode(&d); b != nil || d.Done() != nil {
				t.Errorf("%s, detached %v: %v: %v", name, detached, b, d.Err())
			}
		}
	}
}

// TestDoneFindsItems checks that an item is found that was not taken, unless it is empty, be there one or several (RPC1-031).
func TestDoneFindsItems(t *testing.T) {
	one, none := Item{Floating, []byte{1}}, Item{Floating, nil}
	for _, c := range []struct {
		items   []Item
		invalid bool
	}{
		{nil, false},
		{[]Item{none}, false},
		{[]Item{{Floating, []byte{}}}, false},
		{[]Item{{4, nil}}, false},
		{[]Item{one}, true},
		{[]Item{{4, []byte{1}}}, true},
		{[]Item{none, one}, true},
		{[]Item{one, one}, true},
	} {
		var d Decoder
		d.Reset(make([]byte, 4), c.items)
		d.Uint32()
		err := d.Done()
		if !c.invalid {
			if err != nil {
				t.Errorf("%v: %v", c.items, err)
			}
			continue
		}
		want := Error{Offset: 4, Problem: "an item of 1 octets belongs to nothing", Misplaced: true}
		if e := (*Error)(nil); !errors.As(err, &e) || *e != want {
			t.Errorf("%v: %v, want %v", c.items, err, &want)
		}
	}
}

// TestCount checks that Count returns how many elements follow if they can be there, and 0 of more than that, or than are allowed (ONC-008).
func TestCount(t *testing.T) {
	for _, c := range []struct {
		n           uint32
		limit, size int
		left        int
		valid       bool
	}{
		{0, 0, 4, 0, true},
		{0, 5, 4, 0, true},
		{1, 1, 4, 4, true},
		{3, 5, 4, 12, true},
		{3, 5, 4, 16, true},
		{5, 5, 0, 0, true},
		{3, 5, 4, 8, false},
		{1, 1, 4, 0, false},
		{6, 5, 4, 40, false},
		{6, 5, 0, 0, false},
		{math.MaxUint32, math.MaxInt, math.MaxInt32, 40, false},
	} {
		var e Encoder
		e.Uint32(c.n)
		e.Fixed(make([]byte, c.left))
		var d Decoder
		d.Reset(e.Bytes(), nil)
		want := 0
		if c.valid {
			want = int(c.n)
		}
		if n := d.Count(c.limit, c.size); n != want || (d.Err() == nil) != c.valid {
			t.Errorf("%d elements of %d octets or more in %d, at most %d: %d, %v", c.n, c.size, c.left, c.limit, n, d.Err())
		}
	}
}

// TestDetach checks that values that are taken after Detach are no part of the message, and that items go to the memory that
// was given for them, one after the other, and are invalid where they do not fit.
func TestDetach(t *testing.T) {
	var e Encoder
	e.Opaque([]byte("opaque"))
	e.Bulk([]byte("first"))
	e.String("string")
	e.Bulk([]byte("second"))
	e.Bulk([]byte("third"))
	message := AppendFlat(nil, e.Bytes(), e.Items())
	var d Decoder
	d.Reset(message, nil)
	into := make([]byte, 5+6+4)
	d.Detach(into)
	opaque, first, s, second := d.Opaque(10), d.Bulk(10), d.String(10), d.Bulk(10)
	clear(message[:len(message)-12])
	if string(opaque) != "opaque" || string(first) != "first" || s != "string" || string(second) != "second" {
		t.Errorf("%q %q %q %q", opaque, first, s, second)
	}
	if &first[0] != &into[0] || &second[0] != &into[5] || cap(first) != 5 {
		t.Error("the items are elsewhere")
	}
	if third := d.Bulk(10); third != nil || !errors.Is(d.Err(), ErrInvalid) {
		t.Errorf("an item that does not fit: %q, %v", third, d.Err())
	}
	// An item that has travelled by itself is where it is, and what came inline instead is copied there.
	d.Reset([]byte{0, 0, 0, 3, 'a', 'b', 'c', 0}, []Item{{Floating, nil}})
	d.Detach(into)
	if b := d.Bulk(10); string(b) != "abc" || &b[0] != &into[0] {
		t.Errorf("%q", b)
	}
	d.Reset([]byte{0, 0, 0, 3, 'a', 'b', 'c', 0}, nil)
	d.Detach(nil)
	if b := d.Bulk(10); string(b) != "abc" {
		t.Errorf("%q", b)
	}
	// A place that the item fills, and an empty item after it.
	d.Reset([]byte{0, 0, 0, 3, 'a', 'b', 'c', 0, 0, 0, 0, 0}, nil)
	d.Detach(into[:3])
	if b, none := d.Bulk(10), d.Bulk(10); string(b) != "abc" || &b[0] != &into[0] || len(none) != 0 || d.Done() != nil {
		t.Errorf("%q, %q: %v", b, none, d.Err())
	}
}

// TestTakenItems checks that Taken counts the items of Bulk that are not empty, and the inline bytes of those that came inline.
func TestTakenItems(t *testing.T) {
	for n := 1; n <= 5; n++ {
		var e Encoder
		e.Bulk(nil)
		e.Opaque([]byte("abc"))
		e.Bulk(make([]byte, n))
		flat := AppendFlat(nil, e.Bytes(), e.Items())
		for name, d := range map[string]*Decoder{
			"inline":    {b: flat},
			"detached":  {b: flat, detached: true},
			"copied":    {b: flat, detached: true, into: make([]byte, 9)},
			"by itself": {b: e.Bytes(), items: e.Items()},
		} {
			d.Bulk(9)
			d.Opaque(9)
			d.Bulk(9)
			inline := Padded(n)
			if name == "by itself" {
				inline = 0
			}
			if items, got := d.Taken(); d.Done() != nil || items != 1 || got != inline {
				t.Errorf("%d octets, %s: %d items of %d octets, %v", n, name, items, got, d.Err())
			}
		}
		// Of an item that is not there as a whole nothing was taken.
		for name, d := range map[string]*Decoder{
			"inline": {b: flat[:len(flat)-1]},
			"copied": {b: flat[:len(flat)-1], detached: true, into: make([]byte, 9)},
			"long":   {b: flat, detached: true, into: make([]byte, n-1)},
		} {
			d.Bulk(9)
			d.Opaque(9)
			d.Bulk(9)
			if items, got := d.Taken(); d.Done() == nil || items != 1 || got != 0 {
				t.Errorf("%d octets, %s, invalid: %d items of %d octets, %v", n, name, items, got, d.Err())
			}
		}
	}
}

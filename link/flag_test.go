package link

import (
	"fmt"
	"testing"
	"testing/quick"
)

func TestFlagGolden(t *testing.T) {
	for _, c := range []struct {
		length int
		opcode uint8
		eof    bool
		want   Flag
	}{
		{0, 0, false, 0x00000001},
		{0, 0, true, 0x00400001},
		{32, 0, false, 0x00000041},
		{1, 0, false, 0x00000003},
		{0, 1, false, 0x01000001},
		{0, 255, false, 0xFF000001},
		{MaxMessage, 0, false, 0x003FFFFF},
		{MaxMessage, 0x12, true, 0x127FFFFF},
		{MaxMessage, 255, true, 0xFF7FFFFF},
	} {
		got := PackFlag(c.length, c.opcode, c.eof)
		if got != c.want {
			t.Errorf("PackFlag(%d, %d, %v) = %#08x, want %#08x", c.length, c.opcode, c.eof, got, c.want)
		}
		checkFlag(t, got, c.length, c.opcode, c.eof)
	}
}

func checkFlag(t *testing.T, f Flag, length int, opcode uint8, eof bool) {
	t.Helper()
	if !f.Full() || f.Truncated() || f.Length() != length || f.Opcode() != opcode || f.EOF() != eof {
		t.Errorf("%#08x: full %v, truncated %v, length %d, opcode %d, eof %v; packed from length %d, opcode %d, eof %v",
			f, f.Full(), f.Truncated(), f.Length(), f.Opcode(), f.EOF(), length, opcode, eof)
	}
}

func TestFlagRoundTrip(t *testing.T) {
	for opcode := range 256 {
		for length := 0; length <= MaxMessage; length += 1009 {
			checkFlag(t, PackFlag(length, uint8(opcode), false), length, uint8(opcode), false)
			checkFlag(t, PackFlag(length, uint8(opcode), true), length, uint8(opcode), true)
		}
	}
	for length := range MaxMessage + 1 {
		if f := PackFlag(length, 0, false); f.Length() != length || !f.Full() {
			t.Fatalf("length %d: flag %#08x has length %d", length, f, f.Length())
		}
	}
}

// Every bit of a word belongs to exactly one of the parts.
func TestFlagParts(t *testing.T) {
	sameWord := func(word uint32) bool {
		f := Flag(word)
		sum := uint32(f.Length())*2 + uint32(f.Opcode())*(1<<24)
		if f.Full() {
			sum++
		}
		if f.EOF() {
			sum += 0x00400000
		}
		if f.Truncated() {
			sum += 0x00800000
		}
		return sum == word
	}
	if err := quick.Check(sameWord, &quick.Config{MaxCount: 100000}); err != nil {
		t.Error(err)
	}
	for bit := range 32 {
		if word := uint32(1) << bit; !sameWord(word) || !sameWord(^word) {
			t.Errorf("bit %d is in no part, or in two", bit)
		}
	}
}

func TestFlagTruncated(t *testing.T) {
	f := Flag(0x05800041)
	if !f.Truncated() || f.EOF() || f.Length() != 32 || f.Opcode() != 5 || !f.Full() {
		t.Errorf("%#08x: truncated %v, eof %v, length %d, opcode %d", f, f.Truncated(), f.EOF(), f.Length(), f.Opcode())
	}
	if Flag(0x00400001).Truncated() {
		t.Error("end of file taken for truncated")
	}
	if Flag(0).Full() || Flag(0xFFFFFFFE).Full() {
		t.Error("full without bit 0")
	}
}

func TestPackFlagRefusesLength(t *testing.T) {
	for _, length := range []int{-1, MaxMessage + 1} {
		func() {
			defer func() {
				if got, want := recover(), fmt.Sprintf("BUG: link: flag of a message of %d bytes, expected 0 to 2097151", length); got != want {
					t.Errorf("length %d: %v, want %s", length, got, want)
				}
			}()
			PackFlag(length, 0, false)
		}()
	}
}

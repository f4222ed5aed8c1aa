package link

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

func sampleLetter() letter {
	return letter{
		kind: letterOpen, directions: toListener | toDialer, from: 7, to: 9, attempt: 1 << 63,
		out: half{1, 2, 3, 4, 5, 6, 7}, back: half{8, 9, 10, 11, 12, 13, 14},
		name: "port", private: []byte("private"), text: "why",
	}
}

// TestLetterBytes: golden bytes, written by hand.
func TestLetterBytes(t *testing.T) {
	l := sampleLetter()
	var box [boxSize]byte
	got := box[:l.put(box[:])]
	want := "\x47\x4c\x01\x01\x03\x00\x00\x00" + // "GL", version, open, both ways
		"\x07\x00\x00\x00\x09\x00\x00\x00" + // from, to
		"\x00\x00\x00\x00\x00\x00\x00\x80" // attempt
	for i := range 14 {
		want += string([]byte{byte(i + 1), 0, 0, 0})
	}
	want += "\x04\x00port\x07\x00private\x03\x00why"
	if string(got) != want {
		t.Errorf("%x\nwant %x", got, want)
	}
	for n := range got {
		if _, err := parseLetter(got[:n]); err == nil {
			t.Errorf("the first %d bytes are a letter", n)
		}
	}
	if _, err := parseLetter(append(bytes.Clone(got), 0)); err == nil {
		t.Error("a letter with more behind it is one")
	}
	longest := letter{kind: letterRefuse, name: strings.Repeat("n", MaxName), private: make([]byte, MaxPrivate), text: strings.Repeat("t", maxText)}
	if n := longest.put(box[:]); n > boxSize {
		t.Errorf("%d bytes", n)
	}
}

// FuzzLetter: whatever comes is a letter or an error, and a letter says the same
// when it is written again.
func FuzzLetter(f *testing.F) {
	l := sampleLetter()
	var box [boxSize]byte
	f.Add(box[:l.put(box[:])])
	f.Add([]byte("GL"))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := parseLetter(b)
		if err != nil {
			return
		}
		var box [boxSize]byte
		again, err := parseLetter(box[:l.put(box[:])])
		if err != nil || !reflect.DeepEqual(again, l) {
			t.Errorf("%+v became %+v, %v", l, again, err)
		}
	})
}

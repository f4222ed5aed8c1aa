package link

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

func sampleLetter() letter {
	return letter{
		kind: letterOpen, directions: toListener | toDialer, refusal: 5, from: 7, to: 9, attempt: 1 << 63, first: 6,
		out: half{1, 2, 3, 4, 5, 6, 7}, back: half{8, 9, 10, 11, 12, 13, 14},
		name: "port", private: []byte("private"), text: "why",
	}
}

// TestLetterBytes checks golden bytes, written by hand.
func TestLetterBytes(t *testing.T) {
	l := sampleLetter()
	var box [boxSize]byte
	got := box[:l.put(box[:])]
	want := "\x47\x4c\x02\x01\x03\x00\x05\x00" + // "GL", version, open, both ways, refusal
		"\x07\x00\x00\x00\x09\x00\x00\x00" + // from, to
		"\x00\x00\x00\x00\x00\x00\x00\x80" + // attempt
		"\x06\x00\x00\x00" // first
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
		t.Error("a letter with more after it is one")
	}
}

// TestLongestLetter checks that the longest of each part fits and is read, and that one byte more is
// not.
func TestLongestLetter(t *testing.T) {
	parts := func(name, private, text int) letter {
		return letter{kind: letterRefuse, name: strings.Repeat("n", name), private: make([]byte, private), text: strings.Repeat("t", text)}
	}
	longest := parts(64, 256, 256)
	var box [boxSize]byte
	got, err := parseLetter(box[:longest.put(box[:])])
	if err != nil || !reflect.DeepEqual(got, longest) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, l := range []letter{parts(65, 0, 0), parts(0, 257, 0), parts(0, 0, 257)} {
		if _, err := parseLetter(box[:l.put(box[:])]); err == nil {
			t.Errorf("a name of %d, private data of %d, and a text of %d bytes", len(l.name), len(l.private), len(l.text))
		}
	}
}

// FuzzLetter checks that all bytes are a letter or an error, and that a letter has the same bytes when
// it is written again.
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

// TestKindsOfLetters checks that a letter of an unknown kind is refused, from either side.
func TestKindsOfLetters(t *testing.T) {
	var box [boxSize]byte
	for kind := range letterGrown + 3 {
		l := sampleLetter()
		l.kind = kind
		_, err := parseLetter(box[:l.put(box[:])])
		if known := kind >= letterOpen && kind <= letterGrown; known != (err == nil) {
			t.Errorf("kind %d: %v", kind, err)
		}
	}
}

// TestVersionsDiffer checks that a peer of another version is told which versions there are.
func TestVersionsDiffer(t *testing.T) {
	var b [boxSize]byte
	l := sampleLetter()
	n := l.put(b[:])
	b[2] = 3
	if _, err := parseLetter(b[:n]); !says(err, ErrVersion, "link: the peer speaks version 3 of links, this is version 2: ") {
		t.Error(err)
	}
}

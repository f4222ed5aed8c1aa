package round

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestRecent: a capture keeps its header and its end, and once something was wrong what was
// before and what comes next, whatever follows.
func TestRecent(t *testing.T) {
	record := func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, mostRecent/4) }
	var r recent
	r.Write([]byte("header"))
	saved := func() (numbers []byte) {
		t.Helper()
		name := filepath.Join(t.TempDir(), "x.pcap")
		if err := r.save(name); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(name)
		rest, ok := bytes.CutPrefix(b, []byte("header"))
		if err != nil || !ok {
			t.Fatalf("%d bytes, header %v: %v", len(b), ok, err)
		}
		for i := 0; i < len(rest); i += mostRecent / 4 {
			numbers = append(numbers, rest[i])
		}
		return numbers
	}
	for i := range 10 {
		r.Write(record(i))
	}
	r.Write([]byte("HEADER")) // of another life
	if got := saved(); !bytes.Equal(got, []byte{4, 5, 6, 7, 8, 9}) {
		t.Errorf("it has %v", got)
	}
	r.freeze()
	for i := 10; i < 20; i++ {
		r.Write(record(i))
	}
	if got := saved(); !bytes.Equal(got, []byte{4, 5, 6, 7, 8, 9, 10, 11}) {
		t.Errorf("behind what was wrong it has %v", got)
	}
}

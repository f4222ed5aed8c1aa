package capture

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/capture/capturetest"
)

// droppedIn reads a file to its end.
func droppedIn(t *testing.T, b []byte) int {
	t.Helper()
	f, err := NewFile(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Next()
	}
	if err != io.EOF {
		t.Errorf("the file ends with %v", err)
	}
	return f.Dropped()
}

// TestWriterTellsWhatWasDropped checks that what the kernel dropped is in the file, and the latest count of it is read (N4).
func TestWriterTellsWhatWasDropped(t *testing.T) {
	rec := Record{Time: time.Unix(9, 5), Name: "eth0", LinkType: linkEthernet, Data: []byte{1, 2, 3}, Length: 3}
	var w Writer
	b := w.Begin(nil, nil)
	if n := droppedIn(t, b); n != 0 {
		t.Errorf("%d dropped, and nothing was said", n)
	}
	b = w.Append(b, &rec)
	for _, n := range []int{7, 10_668} {
		b = w.Append(w.Dropped(b, n, rec.Time), &rec)
		if got := droppedIn(t, b); got != n {
			t.Errorf("%d dropped, want %d", got, n)
		}
	}
	// A capture that got nothing but was too slow for it.
	var empty Writer
	if n := droppedIn(t, empty.Dropped(empty.Begin(nil, nil), 3, time.Time{})); n != 3 {
		t.Errorf("%d dropped, want 3", n)
	}
	// Interfaces beyond those of a section begin another one, whose count goes on.
	var many Writer
	b = many.Dropped(many.Begin(nil, nil), 5, time.Time{})
	for i := range maxInterfaces + 1 {
		b = many.Append(b, &Record{Interface: i, Name: "x", LinkType: linkRaw})
	}
	if b = many.Dropped(b, 8, time.Time{}); many.before == 0 || droppedIn(t, b) != 8 {
		t.Errorf("%d dropped in two sections, want 8", droppedIn(t, b))
	}
}

// TestDroppedOfOthers checks what is read of the statistics that other programs write: of several interfaces and sections, in both
// byte orders, and none of what makes no sense (N4).
func TestDroppedOfOthers(t *testing.T) {
	for _, o := range []capturetest.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		statistics := func(iface uint32, options ...byte) []byte {
			return capturetest.Block(o, ngStatistics, append(append(o.AppendUint32(nil, iface), make([]byte, 8)...), options...))
		}
		number := func(code uint16, n uint64) []byte { return capturetest.Option(o, code, o.AppendUint64(nil, n)...) }
		join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
		two := join(capturetest.Section(o), capturetest.Interface(o, 1, 0), capturetest.Interface(o, 1, 0))
		for _, c := range []struct {
			name string
			file []byte
			want int
		}{
			{"as dumpcap does", join(two, statistics(0, join(number(4, 100), number(5, 7), capturetest.Option(o, 0))...), statistics(1, number(5, 2)...)), 9},
			{"by the system", join(two, statistics(1, join(number(5, 1), number(7, 4))...)), 5},
			{"later ones replace", join(two, statistics(0, number(5, 7)...), statistics(0, number(5, 9)...), statistics(0, number(4, 1)...)), 9},
			{"two sections", join(two, statistics(0, number(5, 7)...), two, statistics(1, number(7, 5)...)), 12},
			{"of no interface", join(two, statistics(2, number(5, 7)...)), 0},
			{"of another length", join(two, statistics(0, capturetest.Option(o, 5, 1, 2, 3, 4)...)), 0},
			{"cut", join(two, capturetest.Block(o, ngStatistics, []byte{0, 0, 0, 0})), 0},
			{"endless", join(two, statistics(0, join(number(5, 1<<63), number(7, 1<<63))...), statistics(1, number(5, 1<<64-1)...)), maxDropped},
		} {
			if got := droppedIn(t, c.file); got != c.want {
				t.Errorf("%v, %s: %d dropped, want %d", o, c.name, got, c.want)
			}
		}
	}
	packet := capturetest.Of(1, []byte{1})
	if n := droppedIn(t, capturetest.Pcap(binary.LittleEndian, true, packet)); n != 0 {
		t.Errorf("pcap: %d dropped", n)
	}
}

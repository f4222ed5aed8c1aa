package frame

import (
	"bytes"
	"testing"
)

// Room must be exact for every length of the message before and every size of
// the buffer: what Room grants fits, one byte more does not.
func TestRoomForEveryLength(t *testing.T) {
	for n := range 65 {
		for size := range 200 {
			var w Writer
			w.Init(make([]byte, size))
			if got, want := w.Room(), size-34; got != want {
				t.Fatalf("empty frame of %d: room %d, want %d", size, got, want)
			}
			if w.Room() < n {
				continue
			}
			m := dataMessage(1, n)
			w.Add(&m.Message)
			want := size - (10 + 24 + (n+7)/8*8) - 24
			if got := w.Room(); got != want {
				t.Fatalf("size %d after %d bytes: room %d, want %d", size, n, got, want)
			}
			if w.Len() != 34+n {
				t.Fatalf("after %d bytes: length %d", n, w.Len())
			}
			if want >= 0 && want <= 64 {
				m := dataMessage(2, want)
				if got := len(w.Add(&m.Message)); got != want || w.Len() != size {
					t.Fatalf("size %d after %d: %d bytes, frame of %d", size, n, got, w.Len())
				}
			}
		}
	}
}

func TestZeroWriterHasNoRoom(t *testing.T) {
	var w Writer
	if w.Room() >= 0 {
		t.Errorf("room %d", w.Room())
	}
	if !w.Empty() {
		t.Error("not empty")
	}
}

func TestInitStartsOver(t *testing.T) {
	buf := make([]byte, 200)
	var w Writer
	w.Init(buf)
	if w.Len() != HeaderSize || !w.Empty() {
		t.Errorf("new frame: length %d, empty %v", w.Len(), w.Empty())
	}
	m := dataMessage(1, 5)
	w.Add(&m.Message)
	if w.Empty() {
		t.Error("empty with a message")
	}
	w.Init(buf)
	if w.Len() != HeaderSize || !w.Empty() || w.Room() != 200-34 {
		t.Errorf("reused: length %d, empty %v, room %d", w.Len(), w.Empty(), w.Room())
	}
}

// Every message but the last says that another follows (DGRDMA-020).
func TestMoreFlags(t *testing.T) {
	for count := 1; count <= 5; count++ {
		buf := bytes.Repeat([]byte{0xAA}, 400)
		var w Writer
		w.Init(buf)
		for i := range count {
			m := dataMessage(uint32(i), 3)
			w.Add(&m.Message)
		}
		at := HeaderSize
		for i := range count {
			want := byte(1)
			if i == count-1 {
				want = 0
			}
			if buf[at+msgMore] != want {
				t.Errorf("message %d of %d: more byte %#x", i+1, count, buf[at+msgMore])
			}
			at += 32
		}
	}
}

// DGRDMA-019: padding is zero even in a buffer that was used before, and
// nothing outside the frame changes, the frame header included.
func TestPaddingOfDirtyBuffer(t *testing.T) {
	for n := range 65 {
		buf := bytes.Repeat([]byte{0xAA}, 256)
		var w Writer
		w.Init(buf)
		first, second := dataMessage(1, n), dataMessage(2, 1)
		copy(w.Add(&first.Message), first.data)
		copy(w.Add(&second.Message), second.data)
		for i := 34 + n; i < 34+(n+7)/8*8; i++ {
			if buf[i] != 0 {
				t.Errorf("length %d: pad byte at %d is %#x", n, i, buf[i])
			}
		}
		for i := range buf {
			if (i < HeaderSize || i >= w.Len()) && buf[i] != 0xAA {
				t.Errorf("length %d: byte %d outside the messages changed", n, i)
			}
		}
	}
}

// A stream of full messages makes frames of one length, which the kernel can
// cut from one buffer.
func TestFullFramesAreEqual(t *testing.T) {
	for _, size := range []int{500, 1486, 1498, 1500, 8990} {
		var first int
		for range 4 {
			var w Writer
			w.Init(make([]byte, size))
			m := dataMessage(1, w.Room())
			w.Add(&m.Message)
			if first == 0 {
				first = w.Len()
			}
			if w.Len() != size || w.Len() != first || w.Room() >= 0 {
				t.Errorf("size %d: frame of %d, then room %d", size, w.Len(), w.Room())
			}
		}
	}
}

// Data of a message must not be growable over the frame.
func TestAddLimitsCapacity(t *testing.T) {
	var w Writer
	w.Init(make([]byte, 100))
	m := dataMessage(1, 5)
	if data := w.Add(&m.Message); len(data) != 5 || cap(data) != 5 {
		t.Errorf("length %d, capacity %d", len(data), cap(data))
	}
}

func TestAddLeavesMessageAlone(t *testing.T) {
	var w Writer
	w.Init(make([]byte, 200))
	a, b := dataMessage(1, 5), dataMessage(2, 5)
	before := a
	w.Add(&a.Message)
	w.Add(&b.Message)
	if a.Message != before.Message {
		t.Error("caller's message was changed")
	}
}

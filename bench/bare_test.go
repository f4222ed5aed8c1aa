package bench

import (
	"net"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// TestBareFrame: whatever comes is placed within the memory, or not at all.
func TestBareFrame(t *testing.T) {
	memory := make([]byte, 100)
	frame := func(kind uint16, at, length uint64, there int) []byte {
		b := make([]byte, bareHead+there)
		putBareHead(b, kind, 7, at, int(length))
		return b
	}
	for _, c := range []struct {
		name string
		b    []byte
		ok   bool
	}{
		{"first", frame(bareData, 0, 10, 10), true},
		{"last", frame(bareData, 90, 10, 10), true},
		{"padded", frame(bareData, 90, 10, 26), true},
		{"behind the end", frame(bareData, 91, 10, 10), false},
		{"far behind it", frame(bareData, 1<<63, 10, 10), false},
		{"around", frame(bareData, ^uint64(0)-4, 10, 10), false},
		{"cut", frame(bareData, 0, 11, 10), false},
		{"of a wild length", frame(bareData, 0, ^uint64(0), 10), false},
		{"empty", frame(bareData, 0, 0, 0), false},
		{"an acknowledgement", frame(bareAck, 0, 10, 10), false},
		{"short", frame(bareData, 0, 10, 10)[:bareHead-1], false},
		{"nothing", nil, false},
	} {
		number, at, data, ok := bareFrame(c.b, memory)
		if ok != c.ok || ok && (number != 7 || len(data) != 10 || at > 90) {
			t.Errorf("%s: %d at %d, %d bytes, %v", c.name, number, at, len(data), ok)
		}
	}
}

// TestBareAcknowledged: of what was sent only, and of nothing else.
func TestBareAcknowledged(t *testing.T) {
	ack := make([]byte, bareHead)
	for next, want := range map[uint64]uint64{0: 0, 9: 9, 10: 10, 11: 0, ^uint64(0): 0} {
		putBareHead(ack, bareAck, next, 0, 0)
		if got := bareAcknowledged(ack, 10); got != want {
			t.Errorf("%d: %d, want %d", next, got, want)
		}
	}
	putBareHead(ack, bareData, 9, 0, 0)
	if got := bareAcknowledged(ack, 10); got != 0 || bareAcknowledged(ack[:8], 10) != 0 {
		t.Errorf("%d", got)
	}
}

// ackingWire is a transport to a receiver that acknowledges each frame of a batch when it is asked, or never.
type ackingWire struct {
	dgrdma.Transport
	never      bool
	sent, seen uint64
	asked      int
	closed     bool
}

func (w *ackingWire) Caps() dgrdma.Caps { return dgrdma.Caps{Headroom: 2, Batch: 64} }

func (w *ackingWire) Send(batch []dgrdma.Outgoing) (int, error) {
	w.sent += uint64(len(batch))
	return len(batch), nil
}

func (w *ackingWire) Recv(in []dgrdma.Datagram, _ time.Duration) (int, error) {
	w.asked++
	if w.closed {
		return 0, net.ErrClosed
	}
	if w.never {
		return 0, nil
	}
	w.seen++
	ack := make([]byte, bareHead)
	putBareHead(ack, bareAck, w.seen, 0, 0)
	in[0].Data = ack
	return 1, nil
}

// TestBareWindow: no more is under way than the window has; what is never acknowledged counts as gone after a while, and the sender goes on.
func TestBareWindow(t *testing.T) {
	for _, never := range []bool{false, true} {
		w := &ackingWire{never: never}
		b := &bare{wire: w, in: make([]dgrdma.Datagram, 4), room: 100, window: 8, batch: make([]dgrdma.Outgoing, 0, 4), slab: make([]byte, 4*(2+bareHead+100))}
		op := &Op{Slot: 1, Bytes: make([]byte, 2050)} // 21 frames
		for range 10 {
			if complete, err := b.Post(op); err != nil || !complete {
				t.Fatal(complete, err)
			}
			if b.next-b.acked > b.window {
				t.Errorf("%d frames are under way, the window has %d", b.next-b.acked, b.window)
			}
		}
		if w.sent != 210 || b.next != 210 || w.asked == 0 || !never && w.seen < 202 {
			t.Errorf("never %v: %+v", never, w)
		}
		w.closed = true
		if err := b.await(0); err == nil {
			t.Error("it waits on a wire that is closed")
		}
	}
}

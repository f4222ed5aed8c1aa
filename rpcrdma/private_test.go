package rpcrdma

import (
	"bytes"
	"encoding/hex"
	"testing"
)

// TestPrivate checks the layout of private data, with what Linux says on both sides (RPC1-020).
func TestPrivate(t *testing.T) {
	for _, c := range []struct {
		p    Private
		want string
	}{
		{Private{4096, 4096, true}, "f6ab0e1801010303"},  // Linux's client
		{Private{4096, 4096, false}, "f6ab0e1801000303"}, // and server
		{Private{1024, 262144, false}, "f6ab0e18010000ff"},
	} {
		b := c.p.Append(nil)
		if hex.EncodeToString(b) != c.want || len(b) != PrivateSize {
			t.Errorf("%+v is %x, want %s", c.p, b, c.want)
		}
		if got := ParsePrivate(b); got != c.p {
			t.Errorf("%x is read as %+v", b, got)
		}
		if got := ParsePrivate(append(b, make([]byte, 24)...)); got != c.p {
			t.Errorf("%x and 24 octets more are read as %+v", b, got)
		}
	}
	for size := range 256 {
		p := Private{(size + 1) * 1024, (256 - size) * 1024, false}
		if got := ParsePrivate(p.Append(nil)); got != p {
			t.Errorf("%+v comes back as %+v", p, got)
		}
	}
	// What cannot be said is not promised.
	for _, c := range []struct{ size, want int }{{-1, 1024}, {0, 1024}, {1023, 1024}, {2047, 1024}, {4097, 4096}, {262145, 262144}, {1 << 30, 262144}} {
		if got := ParsePrivate(Private{c.size, c.size, false}.Append(nil)); got.SendSize != c.want || got.ReceiveSize != c.want {
			t.Errorf("%d is said as %+v", c.size, got)
		}
	}
	flags := Private{4096, 4096, false}.Append(nil)
	flags[5] = 0xfe
	if got := ParsePrivate(flags); got.Invalidate || got.SendSize != 4096 {
		t.Errorf("other flags are read as %+v", got)
	}
}

// TestNoPrivate checks that data of something else, of another version, or too short are as none (RPC1-021, 023).
func TestNoPrivate(t *testing.T) {
	good := Private{4096, 4096, true}.Append(nil)
	for n := range good {
		if got := ParsePrivate(good[:n]); got != (Private{}) {
			t.Errorf("%d octets are read as %+v", n, got)
		}
	}
	for i := range 5 {
		b := bytes.Clone(good)
		b[i] ^= 3
		if got := ParsePrivate(b); got != (Private{}) {
			t.Errorf("%x is read as %+v", b, got)
		}
	}
}

// TestThresholds1 checks that the threshold of a direction is the lower of what one side sends and the other one receives, and 1024
// where either says nothing (RPC1-020, 021).
func TestThresholds1(t *testing.T) {
	for _, c := range []struct {
		local, peer   Private
		send, receive int
	}{
		{Private{}, Private{}, 1024, 1024},
		{Private{8192, 8192, true}, Private{}, 1024, 1024},
		{Private{}, Private{8192, 8192, true}, 1024, 1024},
		{Private{4096, 8192, false}, Private{2048, 16384, false}, 4096, 2048},
		{Private{16384, 1024, false}, Private{2048, 4096, false}, 4096, 1024},
		{Private{5000, 5000, false}, Private{8192, 8192, false}, 4096, 4096},
		{Private{1023, 1023, true}, Private{8192, 8192, true}, 1024, 1024},
		{Private{1 << 30, 1 << 30, false}, Private{262144, 262144, false}, 262144, 262144},
	} {
		if send, receive := Thresholds1(c.local, c.peer); send != c.send || receive != c.receive {
			t.Errorf("%+v and %+v: %d, %d, want %d, %d", c.local, c.peer, send, receive, c.send, c.receive)
		}
		if receive, send := Thresholds1(c.peer, c.local); send != c.send || receive != c.receive {
			t.Errorf("%+v and %+v, from the other side: %d, %d", c.local, c.peer, send, receive)
		}
	}
}

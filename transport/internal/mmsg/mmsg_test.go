package mmsg

import (
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/internal/patience"
)

// pair returns two connected sockets.
func pair(t testing.TB) (a, b *Socket) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range []**Socket{&a, &b} {
		if *s, err = New(fds[i]); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { (*s).Close() })
	}
	return a, b
}

// socketOf returns which socket a descriptor is of. Another goroutine of the process may open a file, and get the number
// of a descriptor that was closed.
func socketOf(fd int) (inode uint64, open bool) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, false
	}
	return st.Ino, true
}

// TestGatherAndReceive: pieces of memory become one datagram, neighbours one
// piece.
func TestGatherAndReceive(t *testing.T) {
	a, b := pair(t)
	out, in := NewBatch(4, 3, 0), NewReceiver(4, 64, 0)
	memory := []byte("one two three")
	out.Begin(0)
	if !out.Fits(3) || out.Fits(4) {
		t.Error("room for other than 3 pieces")
	}
	if !out.Add(memory[:3]) || !out.Add(memory[3:7]) || !out.Add(memory[8:]) {
		t.Fatal("no room")
	}
	out.Begin(0)
	if !out.Add(memory[4:7]) {
		t.Fatal("neighbours took a piece each")
	}
	if out.Fits(1) || out.Add([]byte("too much")) || out.Begin(0) != nil {
		t.Error("room for more than was made")
	}
	if n, err := out.Send(a, 0); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	n, err := in.Receive(b, Forever)
	if n != 2 || err != nil || string(in.Data(0)) != "one twothree" || string(in.Data(1)) != "two" {
		t.Fatalf("%d, %v: %q %q", n, err, in.Data(0), in.Data(1))
	}
	in.Done(n)
	out.Reset()
	out.Begin(0)
	out.Add(make([]byte, 65))
	if _, err := out.Send(a, 0); err != nil {
		t.Fatal(err)
	}
	if n, err := in.Receive(b, Forever); n != 1 || err != nil || !in.Truncated(0) {
		t.Errorf("%d, %v: a datagram that is too long is not truncated", n, err)
	}
	if n, err := in.Receive(b, 0); n != 0 || err != nil {
		t.Errorf("nothing is there, and yet %d, %v", n, err)
	}
}

// TestReceiveAsksForOne: a call asks for one datagram while they come alone, and for all
// that are there as soon as they do not.
func TestReceiveAsksForOne(t *testing.T) {
	a, b := pair(t)
	in := NewReceiver(4, 64, 0)
	sent, received := byte(0), byte(0)
	send := func(n int) {
		t.Helper()
		for range n {
			if _, err := unix.Write(a.fd, []byte{sent}); err != nil {
				t.Fatal(err)
			}
			sent++
		}
	}
	calls := func(want ...int) {
		t.Helper()
		for _, w := range want {
			n, err := in.Receive(b, 0)
			if n != w || err != nil {
				t.Fatalf("%d, %v, want %d", n, err, w)
			}
			for i := range n {
				if d := in.Data(i); len(d) != 1 || d[0] != received {
					t.Fatalf("datagram %d is %v", received, d)
				}
				received++
			}
			in.Done(n)
		}
	}
	send(3)
	calls(3, 0, 0)
	send(1)
	calls(1, 0, 0)
	send(6)
	calls(1, 4, 1, 0) // alone, for all that was known
	send(3)
	calls(3, 0)
	send(1)
	calls(1)
	send(2)
	calls(2, 0)
}

// TestCloseWakesAndReleases: whoever waits in either direction returns, and the
// descriptor is closed when the last one is gone, not before.
func TestCloseWakesAndReleases(t *testing.T) {
	for range 100 {
		a, b := pair(t)
		fd := b.fd
		socket, _ := socketOf(fd)
		isOpen := func() bool {
			now, open := socketOf(fd)
			return open && now == socket
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := NewReceiver(4, 64, 0).Receive(b, Forever); !errors.Is(err, net.ErrClosed) {
				t.Errorf("receive: %v", err)
			}
		})
		wg.Go(func() { // until a's buffer is full, and then waiting for room
			out := NewBatch(1, 1, 0)
			out.Begin(0)
			out.Add(make([]byte, 32))
			for {
				if _, err := out.Send(b, 0); err != nil && err != unix.EAGAIN {
					if !errors.Is(err, net.ErrClosed) {
						t.Errorf("send: %v", err)
					}
					return
				}
			}
		})
		if !b.Hold() {
			t.Fatal("closed already")
		}
		for range 3 {
			wg.Go(func() { b.Close() })
		}
		wg.Wait()
		if !isOpen() {
			t.Fatal("closed while it is held")
		}
		b.Release()
		if isOpen() || b.Hold() {
			t.Fatal("still open")
		}
		a.Close()
	}
}

// TestReceiverSleeps: a receiver stops to look for what does not come soon.
func TestReceiverSleeps(t *testing.T) {
	a, b := pair(t)
	in := NewReceiver(1, 64, 0)
	in.patience = lucky()
	for range 8 { // nothing comes while it looks
		time.AfterFunc(20*time.Millisecond, func() {
			out := NewBatch(1, 1, 0)
			out.Begin(0)
			out.Add([]byte("late"))
			out.Send(a, 0)
		})
		if n, err := in.Receive(b, Forever); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		in.Done(1)
		// One wait of many is a try; two in a row are not.
		p := in.patience
		if again := looks(&p); !again || !looks(&p) {
			return
		}
	}
	t.Error("it still looks, though that does not pay")
}

func looks(p *patience.Patience) bool {
	p.Begin()
	return p.Again()
}

// lucky is the patience of a receiver that has found much of late, wherever the test runs.
func lucky() patience.Patience {
	p := patience.New(2)
	for range 1000 {
		if looks(&p) {
			p.Found()
		}
	}
	return p
}

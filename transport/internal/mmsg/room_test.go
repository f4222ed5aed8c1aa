package mmsg

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// narrow returns two connected sockets, the first of which has hardly any room, and
// a batch of one datagram.
func narrow(t *testing.T) (a, b *Socket, out *Batch) {
	t.Helper()
	a, b = pair(t)
	if err := a.Control(func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 1) }); err != nil {
		t.Fatal(err)
	}
	out = NewBatch(1, 1, 0)
	out.Begin(0)
	out.Add(make([]byte, 1000))
	return a, b, out
}

// TestRoomThatNeverComes (attack A15, SECURITY.md): nobody waits for it without
// bound, and who waited in vain waits less the next time.
func TestRoomThatNeverComes(t *testing.T) {
	a, b, out := narrow(t)
	sent := 0
	var began time.Time
	for ; ; sent++ {
		began = time.Now()
		if _, err := out.Send(a, 0); err == unix.EAGAIN {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(began); sent == 0 || took < standstill || took > 50*standstill {
		t.Errorf("gave up after %d datagrams and %v", sent, took)
	}
	const times = 20
	began = time.Now()
	for range times {
		if _, err := out.Send(a, 0); err != unix.EAGAIN {
			t.Fatal(err)
		}
	}
	if took := time.Since(began); took < times*glance || took > times*standstill/2 {
		t.Errorf("%d times more: %v", times, took)
	}
	in := NewReceiver(sent, 1000, 0)
	if n, err := in.Receive(b, Forever); n != sent || err != nil {
		t.Fatal(n, err)
	}
	if _, err := out.Send(a, 0); err != nil || out.stuck {
		t.Errorf("there is room again, and yet: %v", err)
	}
}

// TestRoomThatComesSlowly: as long as the buffer becomes emptier, nothing is lost.
func TestRoomThatComesSlowly(t *testing.T) {
	a, b, out := narrow(t)
	const total = 30
	done := make(chan error, 1)
	go func() {
		in := NewReceiver(1, 1000, 0)
		for range total {
			time.Sleep(standstill / 10)
			if _, err := in.Receive(b, Forever); err != nil {
				done <- err
				return
			}
			in.Done(1)
		}
		done <- nil
	}()
	for i := range total {
		out.waited = 0 // as in a new batch
		if _, err := out.Send(a, 0); err != nil {
			t.Fatalf("datagram %d: %v", i, err)
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// TestRoomThatComesForTooLong: nobody waits for one batch for ever, even if room
// comes and goes.
func TestRoomThatComesForTooLong(t *testing.T) {
	a, _, out := narrow(t)
	for {
		if _, err := out.Send(a, 0); err == unix.EAGAIN {
			break
		}
	}
	out.stuck, out.waited = false, longest
	began := time.Now()
	if _, err := out.Send(a, 0); err != unix.EAGAIN || time.Since(began) > standstill/2 {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}

package mmsg

import (
	"sync/atomic"
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

// least returns how long a batch takes at least that is sent in vain, after such waiting.
func least(t *testing.T, out *Batch, a *Socket, as Waiting) (took time.Duration) {
	t.Helper()
	took = time.Hour
	for range 20 { // a busy machine makes some longer, but not all
		out.waiting = as
		began := time.Now()
		if _, err := out.Send(a, 0); err != unix.EAGAIN {
			t.Fatal(err)
		}
		took = min(took, time.Since(began))
	}
	return took
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
	if !out.waiting.stuck {
		t.Error("it is not noted that it was in vain")
	}
	if took := least(t, out, a, Waiting{stuck: true}); took < glance || took > standstill/2 {
		t.Errorf("the next time: %v", took)
	}
	in := NewReceiver(sent, 1000, 0)
	if n, err := in.Receive(b, Forever); n != sent || err != nil {
		t.Fatal(n, err)
	}
	if _, err := out.Send(a, 0); err != nil || out.waiting.stuck {
		t.Errorf("there is room again, and yet: %v", err)
	}
}

// TestRoomThatComesSlowly: as long as the buffer becomes emptier, nothing is lost.
func TestRoomThatComesSlowly(t *testing.T) {
	a, b, out := narrow(t)
	const total = 30
	done := make(chan error, 1)
	start := time.Now()
	var emptied atomic.Int64 // when, since then
	go func() {
		in := NewReceiver(1, 1000, 0)
		for range total {
			time.Sleep(standstill / 10)
			if _, err := in.Receive(b, Forever); err != nil {
				done <- err
				return
			}
			emptied.Store(int64(time.Since(start)))
			in.Done(1)
		}
		done <- nil
	}()
	for sent := 0; sent < total; {
		out.waiting.waited, out.waiting.stuck = 0, false // as in a new batch
		began := time.Since(start)
		_, err := out.Send(a, 0)
		if err == nil {
			sent++
			continue
		}
		// On a busy machine it may have become no emptier for so long.
		over, at := time.Since(start), time.Duration(emptied.Load())
		if err != unix.EAGAIN || over-began < standstill || at > began+standstill/4 && at < over-standstill/4 {
			t.Fatalf("datagram %d: %v after %v; the buffer became emptier %v before that", sent, err, over-began, over-at)
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
	if took := least(t, out, a, Waiting{waited: longest}); took > standstill/2 {
		t.Errorf("waited for %v", took)
	}
}

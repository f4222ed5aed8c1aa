package mmsg

import (
	"time"

	"golang.org/x/sys/unix"
)

// Room is where frames wait that were sent: a socket's buffer, for one.
type Room interface {
	// Queued returns how much of it is in use: by what no device has sent yet.
	Queued() int
	// AwaitRoom waits, no longer than that time, and reports whether there is some.
	AwaitRoom(atMost time.Duration) (some bool, err error)
}

// Waiting is what is known about waiting for room, of a sender.
type Waiting struct {
	waited time.Duration // for this batch
	stuck  bool          // the last time it was in vain
}

// How long to wait for room. A device that sends makes room bit by bit, and who
// waits for it loses nothing. What nobody takes out of the buffer (datagrams to
// neighbours who do not answer, a device that was stopped) stays for seconds or
// for good, and whoever waits for it serves nobody meanwhile.
const (
	// glance is how often to look whether the buffer becomes emptier: the kernel
	// tells only when half of it is free.
	glance = time.Millisecond
	// standstill is how long it may stay as full as it is: a run of frames that a
	// device cuts up counts until its end has left, 52 ms for 64 KiB at 10 Mbit/s.
	standstill = 100 * time.Millisecond
	// longest is how long one batch may wait altogether, however much comes free.
	longest = time.Second
)

// Begin begins another batch.
func (w *Waiting) Begin() { w.waited = 0 }

// Went notes that there was room.
func (w *Waiting) Went() { w.stuck = false }

// For waits for some room. unix.EAGAIN: none comes.
func (w *Waiting) For(r Room) error {
	began := time.Now()
	patience := standstill
	if w.stuck {
		patience = glance // as last time; and who sends in a loop must not spin
	}
	full := r.Queued()
	for spent := time.Duration(0); spent < patience && w.waited+spent < longest; spent = time.Since(began) {
		some, err := r.AwaitRoom(glance)
		if err != nil {
			return err
		}
		if some || r.Queued() < full {
			w.waited += time.Since(began)
			return nil
		}
	}
	w.waited += time.Since(began)
	w.stuck = true
	return unix.EAGAIN
}

// AwaitRoom implements [Room]. Only within Hold.
func (s *Socket) AwaitRoom(atMost time.Duration) (some bool, err error) {
	return s.wait(unix.POLLOUT, atMost)
}

// Queued implements [Room]. Only within Hold.
func (s *Socket) Queued() int {
	n, err := unix.IoctlGetUint32(s.fd, unix.SIOCOUTQ)
	if err != nil {
		return 0
	}
	return int(n)
}

package emulator

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Router carries packets between two packet sockets until it is closed.
type Router struct {
	ports [2]*os.File
	fds   [2]int
	stop  [2]int // a pipe: closing its second end stops the thread
	done  chan struct{}
	start time.Time
	late  time.Duration // that packets may be

	mu   sync.Mutex // guards ways
	ways [2]*direction

	closing sync.Once
}

// Start carries packets between the ports, which are packet sockets of a device each. It owns
// them from now on, also if it fails.
func Start(cfg Config, ports [2]*os.File) (*Router, error) {
	r := &Router{ports: ports, done: make(chan struct{}), start: time.Now(), late: cfg.late()}
	var err error
	for i, p := range ports {
		r.fds[i] = int(p.Fd())
		err = errors.Join(err, os.NewSyscallError("setsockopt", unix.SetsockoptInt(r.fds[i], unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)))
		r.ways[i] = newDirection(&cfg, uint64(i))
	}
	if err == nil {
		err = os.NewSyscallError("pipe", unix.Pipe2(r.stop[:], unix.O_CLOEXEC))
	}
	if err != nil {
		for _, p := range ports {
			p.Close()
		}
		return nil, fmt.Errorf("emulate a path: %w", err)
	}
	go r.run()
	return r, nil
}

// Close ends the router and closes its ports. It may be called any number of times.
func (r *Router) Close() {
	r.closing.Do(func() {
		unix.Close(r.stop[1])
		<-r.done
		unix.Close(r.stop[0])
		for _, p := range r.ports {
			p.Close()
		}
	})
}

// Way returns how all fared that came from a port, 0 or 1.
func (r *Router) Way(from int) Direction {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ways[from].sum()
}

// Since returns how long the router has been running, which is the time of its changes and outages.
func (r *Router) Since() time.Duration { return time.Since(r.start) }

// run is the thread. It ends with the goroutine, since it has properties that no other is to have.
func (r *Router) run() {
	defer close(r.done)
	runtime.LockOSThread()
	hurry()
	buf, control := make([]byte, 1<<16), make([]byte, 128)
	for !r.waits() {
		r.mu.Lock()
		for from := range r.ways {
			r.take(from, buf, control)
		}
		now := r.Since()
		for from, d := range r.ways {
			for p := d.next(now); p != nil; p = d.next(now) {
				// What the kernel refuses is lost, as on any wire.
				_ = unix.Send(r.fds[1-from], p.frame, unix.MSG_DONTWAIT)
				d.recycle(p)
			}
		}
		r.mu.Unlock()
	}
}

// hurry has the kernel wake this thread when it is to be woken. Each step may be refused, which
// costs exactness where the machine is busy.
func hurry() {
	const least = 1 // nanosecond, and priority
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, least, 0, 0, 0)
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: least}, 0)
}

// waits sleeps until a packet comes or something is due, and a little longer, so that there is more of both. It reports whether the router is closed.
func (r *Router) waits() (closed bool) {
	r.mu.Lock()
	left := time.Duration(-1)
	for _, d := range r.ways {
		if at, ok := d.due(); ok {
			if after := max(0, at-r.Since()) + r.late; left < 0 || after < left {
				left = after
			}
		}
	}
	r.mu.Unlock()
	began := r.Since()
	polled := []unix.PollFd{{Fd: int32(r.stop[0])}, {Fd: int32(r.fds[0]), Events: unix.POLLIN}, {Fd: int32(r.fds[1]), Events: unix.POLLIN}}
	if sleep(polled, left) {
		return true
	}
	// A packet came: it is not due before half of a round trip.
	if rest := r.late - (r.Since() - began); rest > 0 {
		return sleep(polled[:1], rest)
	}
	return false
}

// sleep waits for the first of these, which is that the router is closed, and returns whether it is, or for the others, or so long; < 0: without end.
func sleep(polled []unix.PollFd, long time.Duration) (closed bool) {
	var timeout *unix.Timespec
	if long >= 0 {
		t := unix.NsecToTimespec(int64(long))
		timeout = &t
	}
	if _, err := unix.Ppoll(polled, timeout, nil); err != nil && err != unix.EINTR {
		return true
	}
	return polled[0].Revents != 0
}

// take takes what has come to a port. Guarded by mu.
func (r *Router) take(from int, buf, control []byte) {
	const atOnce = 1 << 14 // so that the other way has its turn; arbitrary
	for range atOnce {
		n, oob, _, _, err := unix.Recvmsg(r.fds[from], buf, control, unix.MSG_DONTWAIT)
		if err != nil {
			return // nothing more, or the cable was pulled, which the kernel says once
		}
		if !isCarried(buf[:n]) {
			_ = unix.Send(r.fds[1-from], buf[:n], unix.MSG_DONTWAIT)
			continue
		}
		r.ways[from].enter(r.cameAt(control[:oob]), buf[:n])
	}
}

// cameAt returns when the kernel received a packet: not after now.
func (r *Router) cameAt(control []byte) time.Duration {
	now := time.Now()
	since := now.Sub(r.start)
	header, data, _, err := unix.ParseOneSocketControlMessage(control)
	if err != nil || header.Type != unix.SO_TIMESTAMPNS || len(data) != 16 {
		return since
	}
	wall := int64(binary.NativeEndian.Uint64(data))*int64(time.Second) + int64(binary.NativeEndian.Uint64(data[8:]))
	return min(since, since-time.Duration(now.UnixNano()-wall))
}

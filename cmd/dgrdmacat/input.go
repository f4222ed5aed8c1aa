package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// input is what a command reads: a file, or standard input. A read ends with
// errInterrupted when it is interrupted, also where the system would wait.
type input struct {
	from io.Reader
	name string
	file string // the same, unless it is standard input
	size int64  // of what there is to read; negative: not known

	poll      *os.File // not nil: it may make who reads wait
	pipe      bool
	ready     bool // the next read does not wait
	ctx       context.Context
	stopped   atomic.Bool
	interrupt func()   // has reads end though ctx is not done
	wake      *os.File // what interrupt makes readable
	end       []func() // what Close does
}

// openInput opens a file, or standard input for "-", to be read until ctx is done.
func openInput(ctx context.Context, name string, stdin io.Reader) (*input, error) {
	switch name {
	case "-":
		return newInput(ctx, stdin, "standard input")
	case "":
		return nil, badUsage("the name of a file is empty; - is standard input")
	}
	// A FIFO is open at once, whether or not there is a writer.
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = &fs.PathError{Op: "read", Path: name, Err: unix.EISDIR}
	}
	var in *input
	if err == nil {
		in, err = newInput(ctx, f, name)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	in.file = name
	in.end = append(in.end, func() { f.Close() })
	return in, nil
}

// newInput makes an input of what is open already, and stays so.
func newInput(ctx context.Context, r io.Reader, name string) (*input, error) {
	in := &input{from: r, name: name, size: -1, ctx: ctx}
	in.interrupt = func() { in.stopped.Store(true) }
	if f, ok := r.(*os.File); ok {
		info, err := f.Stat()
		if err == nil && info.Mode().IsRegular() {
			// A shell may have read some of it.
			if at, err := f.Seek(0, io.SeekCurrent); err == nil && at <= info.Size() && isStored(f) {
				in.size = info.Size() - at
			}
		} else if err := in.prepareToWait(f); err != nil {
			return nil, err
		} else {
			in.pipe = info != nil && info.Mode()&fs.ModeNamedPipe != 0
		}
	}
	unwatch := context.AfterFunc(ctx, in.interrupt)
	in.end = append(in.end, func() { unwatch() })
	return in, nil
}

// isStored reports whether a regular file is on a file system that stores what it has, and
// has the size that it says: the kernel makes those of /proc and /sys when they are read.
func isStored(f *os.File) (stored bool) {
	onDescriptor(f, func(fd int) {
		var fs unix.Statfs_t
		stored = unix.Fstatfs(fd, &fs) == nil && fs.Blocks > 0
	})
	return stored
}

// prepareToWait makes interrupt wake who waits for a file.
func (in *input) prepareToWait(f *os.File) error {
	wake, waker, err := os.Pipe()
	if err != nil {
		return err
	}
	in.poll, in.wake = f, wake
	in.interrupt = func() {
		in.stopped.Store(true)
		waker.Close()
	}
	in.end = append(in.end, func() { waker.Close(); wake.Close() })
	return nil
}

// Close ends the watch for interrupts, and closes what was opened.
func (in *input) Close() error {
	for _, end := range in.end {
		end()
	}
	return nil
}

// Read implements [io.Reader].
func (in *input) Read(b []byte) (int, error) {
	if !in.ready {
		if err := in.wait(); err != nil {
			return 0, err
		}
	}
	in.ready = false
	return in.from.Read(b)
}

// Wait, More and String make it a source of streams.
func (in *input) Wait(ctx context.Context) error {
	if in.poll != nil {
		defer context.AfterFunc(ctx, in.interrupt)()
	}
	return in.wait()
}

// More reports whether a pipe has something at this moment. A terminal gives
// lines, and a file all that was asked for, or it is at its end.
func (in *input) More() bool {
	return in.pipe && in.pollFor(atOnce) == nil && in.ready
}

func (in *input) String() string { return in.name }

// wait waits until a read does not: a pipe or a terminal has something, or is at
// its end.
func (in *input) wait() error {
	in.ready = in.poll == nil
	if !in.ready {
		if err := in.pollFor(forEver); err != nil {
			return fmt.Errorf("wait for %s: %w", in.name, err)
		}
	}
	if in.stopped.Load() || in.ctx.Err() != nil {
		in.ready = false
		return errInterrupted
	}
	return nil
}

// Timeouts of poll.
const (
	forEver = -1
	atOnce  = 0
)

func (in *input) pollFor(timeout int) (err error) {
	onDescriptor(in.poll, func(from int) {
		onDescriptor(in.wake, func(wake int) {
			fds := []unix.PollFd{{Fd: int32(from), Events: unix.POLLIN}, {Fd: int32(wake), Events: unix.POLLIN}}
			for err = unix.EINTR; err == unix.EINTR; {
				_, err = unix.Poll(fds, timeout)
			}
			in.ready = fds[0].Revents != 0
		})
	})
	return err
}

package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// streamSource is what is sent: a file, or standard input.
type streamSource struct {
	io.Reader
	name string
	file string   // the same, unless it is standard input
	size int64    // negative: not known
	poll *os.File // not nil: it may make who reads wait
	wake *os.File
	ctx  context.Context

	pipe     bool
	readable bool // when poll was last asked
}

// openSource opens a file; "" and "-" are standard input.
func openSource(name string, stdin io.Reader) (*streamSource, error) {
	if name == "" || name == "-" {
		return newSource(stdin, "standard input"), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	s := newSource(f, name)
	s.file = name
	if info, err := f.Stat(); err == nil && info.IsDir() {
		f.Close()
		return nil, fmt.Errorf("%s is a directory: pack it, as in tar c %s | dgrdmacat send URL", name, name)
	}
	return s, nil
}

func newSource(r io.Reader, name string) *streamSource {
	s := &streamSource{Reader: r, name: name, size: -1}
	f, ok := r.(*os.File)
	if !ok {
		return s
	}
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() {
		// A shell may have read some of it.
		if at, err := f.Seek(0, io.SeekCurrent); err == nil && at <= info.Size() {
			s.size = info.Size() - at
		}
		return s
	}
	s.poll, s.pipe = f, err == nil && info.Mode()&fs.ModeNamedPipe != 0
	return s
}

// watch makes wait return when the context is done. It is called once.
func (s *streamSource) watch(ctx context.Context) (stop func(), err error) {
	s.ctx = ctx
	if s.poll == nil {
		return func() {}, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.wake = r
	unwatch := context.AfterFunc(ctx, func() { w.Close() })
	return func() {
		if unwatch() {
			w.Close()
		}
		r.Close()
	}, nil
}

// wait waits until a pipe or a terminal has something: Read would wait no matter
// what happens elsewhere.
func (s *streamSource) wait() error {
	if s.poll != nil {
		if err := s.pollFor(forEver); err != nil {
			return fmt.Errorf("wait for %s: %w", s.name, err)
		}
	}
	if s.ctx.Err() != nil {
		return errInterrupted
	}
	return nil
}

// more reports whether a pipe has something at this moment. A terminal gives
// lines, and a file all that was asked for, or it is at its end.
func (s *streamSource) more() bool {
	return s.pipe && s.pollFor(atOnce) == nil && s.readable
}

// Timeouts of poll.
const (
	forEver = -1
	atOnce  = 0
)

func (s *streamSource) pollFor(timeout int) (err error) {
	onDescriptor(s.poll, func(from int) {
		onDescriptor(s.wake, func(wake int) {
			fds := []unix.PollFd{{Fd: int32(from), Events: unix.POLLIN}, {Fd: int32(wake), Events: unix.POLLIN}}
			for err = unix.EINTR; err == unix.EINTR; {
				_, err = unix.Poll(fds, timeout)
			}
			s.readable = fds[0].Revents&unix.POLLIN != 0
		})
	})
	return err
}

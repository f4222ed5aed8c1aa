package main

import (
	"context"
	"os"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// terminalOf returns the file behind a reader or writer if it is a terminal.
func terminalOf(x any) (*os.File, bool) {
	f, ok := x.(*os.File)
	return f, ok && isTerminal(f)
}

// screen is a terminal that shows one page in place of what was there. Closing brings that
// back.
type screen struct {
	out    *os.File
	in     *os.File // nil: no keys
	before unix.Termios
	plain  bool // no colours

	keys    chan byte
	pressed *input // of in
	stopped chan struct{}
	reader  sync.WaitGroup
}

// Control sequences.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // the other page, without cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	homeCursor  = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
	resetStyle  = "\x1b[0m"
)

var styleCodes = [...]string{stylePlain: "", styleTitle: "\x1b[1m", styleWarn: "\x1b[33m", styleBad: "\x1b[31m"}

// openScreen takes the terminal. Keys are read if in is one.
func openScreen(out *os.File, in any) (*screen, error) {
	s := &screen{out: out, plain: !isColourful(), keys: make(chan byte), stopped: make(chan struct{})}
	if f, ok := terminalOf(in); ok {
		mode, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
		if err != nil {
			return nil, err
		}
		if s.pressed, err = newInput(context.Background(), f, "the terminal"); err != nil {
			return nil, err
		}
		s.in, s.before = f, *mode
		s.reader.Go(s.readKeys)
	}
	if err := s.enter(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// enter shows the page, and takes keys as they are pressed.
func (s *screen) enter() error {
	if s.in != nil {
		mode := s.before
		mode.Lflag &^= unix.ICANON | unix.ECHO // but ^C and ^Z stay signals
		mode.Lflag |= unix.NOFLSH              // which would throw away what gives the terminal back
		mode.Cc[unix.VMIN], mode.Cc[unix.VTIME] = 1, 0
		if err := unix.IoctlSetTermios(int(s.in.Fd()), unix.TCSETS, &mode); err != nil {
			return err
		}
	}
	_, err := s.out.WriteString(enterScreen)
	return err
}

// leave gives the terminal back as it was.
func (s *screen) leave() {
	s.out.WriteString(resetStyle + leaveScreen)
	if s.in != nil {
		unix.IoctlSetTermios(int(s.in.Fd()), unix.TCSETS, &s.before)
	}
}

// suspend stops the process, as ^Z asks for, until it is continued.
func (s *screen) suspend() error {
	s.leave()
	// By this very thread: another one might be stopped only when we have taken
	// the terminal back.
	runtime.LockOSThread()
	err := unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGSTOP)
	runtime.UnlockOSThread()
	if err != nil {
		return err
	}
	return s.enter()
}

func (s *screen) close() {
	s.leave()
	close(s.stopped)
	if s.in != nil {
		s.pressed.interrupt()
		s.reader.Wait()
		s.pressed.Close()
	}
}

// readKeys passes keys on until the terminal is gone or the screen is closed.
func (s *screen) readKeys() {
	var b [16]byte
	for {
		n, err := s.pressed.Read(b[:])
		if err != nil {
			return
		}
		for _, key := range b[:n] {
			select {
			case s.keys <- key:
			case <-s.stopped:
				return
			}
		}
	}
}

// size returns how many columns and lines there are. Some terminals do not know.
func (s *screen) size() (columns, lines int) {
	columns, lines, _ = windowOf(s.out)
	if columns == 0 || lines == 0 {
		return usualWidth, 24
	}
	return columns, lines
}

// show replaces what is on the page. Each line is cleared before it is written: a
// full one leaves the cursor on its last letter.
func (s *screen) show(lines []topLine) error {
	var b strings.Builder
	b.WriteString(homeCursor)
	for i, l := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(clearLine)
		if code := styleCodes[l.style]; code != "" && !s.plain {
			b.WriteString(code + l.text + resetStyle)
		} else {
			b.WriteString(l.text)
		}
	}
	if _, rows := s.size(); len(lines) < rows {
		b.WriteString("\r\n" + clearBelow)
	}
	_, err := s.out.WriteString(b.String())
	return err
}

package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// showProgress shows a line of progress on a terminal until stop is called. It writes
// nothing elsewhere, nor on a terminal that cannot clear a line.
func showProgress(w io.Writer, line func() string) (stop func()) {
	if !showsProgress(w) {
		return func() {}
	}
	show := func() { fmt.Fprintf(w, "\r%s\x1b[K", line()) }
	show()
	end := atTicks(progressTick, show)
	return func() { end(); fmt.Fprint(w, "\r\x1b[K") }
}

// showsProgress reports whether w shows a line that is written again and again.
func showsProgress(w io.Writer) bool { return isTerminal(w) && !isDumb() }

// atTicks calls do at each tick, on a goroutine of its own, until stop is called.
func atTicks(tick time.Duration, do func()) (stop func()) {
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		t := time.NewTicker(tick)
		defer t.Stop()
		for {
			select {
			case <-quit:
				return
			case <-t.C:
				do()
			}
		}
	}()
	return func() { close(quit); <-gone }
}

const (
	progressTick = 100 * time.Millisecond
	// lineTick is how often progress is a line of its own. Arbitrary: a person does not take the program for stuck, and a log
	// stays short.
	lineTick = 5 * time.Second
)

// isTerminal reports whether a person is at the other end of a reader or writer.
func isTerminal(x any) bool {
	_, _, ok := windowOf(x)
	return ok
}

// windowOf returns how many columns and lines a terminal has, if x is one. Some do
// not know, and say 0.
func windowOf(x any) (columns, lines int, ok bool) {
	f, ok := x.(*os.File)
	if !ok {
		return 0, 0, false
	}
	onDescriptor(f, func(fd int) {
		size, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
		if ok = err == nil; ok {
			columns, lines = int(size.Col), int(size.Row)
		}
	})
	return columns, lines, ok
}

// onDescriptor calls use with the descriptor of a file, which File.Fd might make
// a blocking one.
func onDescriptor(f *os.File, use func(fd int)) {
	if c, err := f.SyscallConn(); err == nil {
		c.Control(func(fd uintptr) { use(int(fd)) })
	}
}

// isDumb reports whether the terminal prints control sequences that others obey.
func isDumb() bool { return os.Getenv("TERM") == "dumb" }

// isColourful reports whether colours are wanted on a terminal.
func isColourful() bool { return os.Getenv("NO_COLOR") == "" && !isDumb() }

// meter counts the bytes of a transfer.
type meter struct {
	total int64 // negative: not known
	began time.Time
	moved atomic.Int64

	// Where it was at the latest ticks; only for the goroutine that shows it.
	ticks [rateTicks]meterTick
	n     int
}

type meterTick struct {
	at    time.Time
	moved int64
}

// rateTicks is of how many ticks a rate is the mean: long enough to be read, short
// enough to show a stall.
const rateTicks = 20

func newMeter(total int64) *meter { return &meter{total: total, began: time.Now()} }

// show shows the meter on a terminal, until stop is called.
func (m *meter) show(w io.Writer) (stop func()) { return m.showing(w, m.moved.Load) }

// tell is show, and writes lines where a terminal shows none, as to a log.
func (m *meter) tell(w io.Writer) (stop func()) {
	if showsProgress(w) {
		return m.show(w)
	}
	return atTicks(lineTick, func() { fmt.Fprintln(w, m.line(time.Now(), 1, false)) })
}

// showing is show of what somebody else counts.
func (m *meter) showing(w io.Writer, moved func() int64) (stop func()) {
	colour := isColourful()
	return showProgress(w, func() string {
		m.moved.Store(moved())
		width, _, _ := windowOf(w)
		return m.line(time.Now(), width, colour)
	})
}

const (
	usualWidth = 80 // of terminals that do not say
	leastBar   = 10
	mostBar    = 40
)

// line says how far it is, in less than width columns if it can.
func (m *meter) line(now time.Time, width int, colour bool) string {
	moved := m.moved.Load()
	oldest := meterTick{at: m.began}
	if m.n >= rateTicks {
		oldest = m.ticks[m.n%rateTicks]
	}
	m.ticks[m.n%rateTicks] = meterTick{now, moved}
	m.n++
	rate := perSecond(uint64(moved-oldest.moved), now.Sub(oldest.at))
	if m.total < 0 {
		return fmt.Sprintf("%s  %s  %s", amount(moved), rateText(rate), clock(now.Sub(m.began)))
	}
	share := 1.0
	if m.total > 0 {
		share = min(float64(moved)/float64(m.total), 1) // the file may have grown
	}
	left := "-:--"
	if rest := max(m.total-moved, 0); rest == 0 {
		left = clock(0)
	} else if rate > 0 {
		left = clock(time.Duration(min(float64(rest)/rate, 1e6) * float64(time.Second)))
	}
	head := fmt.Sprintf("%3.0f%% ", 100*share)
	tail := fmt.Sprintf("%s of %s  %s  ETA %s", amount(moved), amount(m.total), rateText(rate), left)
	if width == 0 {
		width = usualWidth
	}
	room := min(width-1-len(head)-len(tail)-len("[] "), mostBar)
	if room < leastBar {
		return head + tail
	}
	full := int(share * float64(room))
	bar := strings.Repeat("=", full)
	if full < room {
		bar += ">" + strings.Repeat(" ", room-full-1)
	}
	if colour {
		bar = "\x1b[32m" + bar + "\x1b[0m"
	}
	return head + "[" + bar + "] " + tail
}

// rateText is a rate in megabytes per second, in which links and other programs are measured, with
// three digits that count, as few as that: 94.1 MB/s.
func rateText(bytesPerSecond float64) string { return threeDigits(bytesPerSecond/1e6) + " MB/s" }

// threeDigits is a number with three digits that count, or as many as it has.
func threeDigits(n float64) string {
	digits := 0
	for least := 99.95; n > 0 && n < least && digits < mostDigits; digits++ {
		least /= 10
	}
	return strconv.FormatFloat(n, 'f', digits, 64)
}

// mostDigits is as many as show a byte per second.
const mostDigits = 6

// clock is how people write a duration: 1:05, 2:03:04.
func clock(d time.Duration) string {
	s := int64(d.Round(time.Second) / time.Second)
	if s < 3600 {
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}

// amount is a number of bytes with three digits or a few more, in the units of rates.
func amount(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	x, unit := float64(n)/1000, 0
	for ; x >= 999.5 && unit < len("kMGTPE")-1; unit++ {
		x /= 1000
	}
	digits := 2
	if x >= 99.95 {
		digits = 0
	} else if x >= 9.995 {
		digits = 1
	}
	return fmt.Sprintf("%.*f %cB", digits, x, "kMGTPE"[unit])
}

package inspect

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// count is a number of things in words: "1 frame", "12,345 frames".
func count(n int, one string) string {
	s := Grouped(int64(n)) + " " + one
	switch {
	case n == 1:
		return s
	case strings.HasSuffix(one, "y"):
		return s[:len(s)-1] + "ies"
	}
	return s + "s"
}

// Grouped writes a number with its thousands apart.
func Grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Span writes a time in three digits or so.
func Span(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + Span(-d)
	case d == 0:
		return "0 s"
	case d < time.Microsecond:
		return fmt.Sprintf("%d ns", d.Nanoseconds())
	case d < time.Millisecond:
		return digits(float64(d)/1e3) + " µs"
	case d < time.Second:
		return digits(float64(d)/1e6) + " ms"
	case d < 2*time.Minute:
		return digits(d.Seconds()) + " s"
	}
	return d.Round(time.Second).String()
}

// elapsed writes the time between two events of which the second came later,
// unless the clock was set back between them.
func elapsed(from, to time.Duration) string {
	if to < from {
		return "an unknown time"
	}
	return Span(to - from)
}

// Size writes a number of bytes.
func Size(n float64) string {
	for _, unit := range []string{"B", "KB", "MB", "GB"} {
		if n < 1000 {
			return digits(n) + " " + unit
		}
		n /= 1000
	}
	return digits(n) + " TB"
}

// digits writes a number with three digits, without zeros that say nothing.
func digits(v float64) string {
	switch {
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return trim(strconv.FormatFloat(v, 'f', 1, 64))
	}
	return trim(strconv.FormatFloat(v, 'f', 2, 64))
}

func trim(s string) string { return strings.TrimRight(strings.TrimRight(s, "0"), ".") }

func percent(part, of int) string {
	p := 100 * float64(part) / float64(max(of, 1))
	if part > 0 && p < 0.01 {
		return "less than 0.01 %"
	}
	return digits(p) + " %"
}

func wasWere(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

func itThey(n int) string {
	if n == 1 {
		return "it"
	}
	return "they"
}

func itThem(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}

func has(n int) string {
	if n == 1 {
		return "has"
	}
	return "have"
}

func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return Grouped(int64(n)) + " times"
}

package main

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// parseWord reads a number that fits a word of memory, or an address: decimal, or
// hexadecimal after 0x.
func parseWord(s string) (uint32, error) {
	n, err := parseNumber(s, math.MaxUint32)
	return uint32(n), err
}

func parseNumber(s string, most uint64) (uint64, error) {
	digits, base := s, 10
	if rest, isHex := strings.CutPrefix(strings.ToLower(s), "0x"); isHex {
		digits, base = rest, 16
	}
	n, err := strconv.ParseUint(digits, base, 64)
	if err != nil || n > most {
		return 0, fmt.Errorf("need a number from 0 to %d, decimal or after 0x", most)
	}
	return n, nil
}

// parseSize reads an amount of bytes with a suffix or without: 4096, 64k, 64KiB, 1M, 4G.
func parseSize(s string) (uint64, error) {
	digits, shift := s, 0
	short, of1024 := strings.CutSuffix(s, "iB")
	for i, suffixes := range []string{"kK", "mM", "gG"} {
		if short != "" && strings.ContainsRune(suffixes, rune(short[len(short)-1])) {
			digits, shift = short[:len(short)-1], 10*(i+1)
		}
	}
	n, err := parseNumber(digits, math.MaxUint64>>shift)
	if rest, bytes := strings.CutSuffix(s, "B"); bytes && !of1024 {
		if _, err := parseSize(rest); err == nil {
			return 0, fmt.Errorf("powers of ten, or of two? Here sizes have those of two: say %s", rest)
		}
	}
	if err != nil || of1024 && shift == 0 {
		return 0, fmt.Errorf("need a number of bytes such as 4096, 64k or 64KiB, 1M or 4G")
	}
	return n << shift, nil
}

// sizeInWords is an amount of bytes for people.
func sizeInWords(n uint64) string {
	for shift, unit := 30, 2; unit >= 0; shift, unit = shift-10, unit-1 {
		if n>>shift > 0 && n&(1<<shift-1) == 0 {
			return fmt.Sprintf("%d bytes (%d %ciB)", n, n>>shift, "KMG"[unit])
		}
	}
	return count(n, "byte")
}

// count is a number of things for people: "1 frame", "2 frames".
func count[N int | int64 | uint64](n N, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// perSecondText is how many things there are in a second, for people: 0.9, 1, 9.5, 20.
func perSecondText(rate float64) string {
	switch {
	case rate < 0.1:
		return threeDigits(rate)
	case rate < 9.95:
		return strconv.FormatFloat(math.Round(10*rate)/10, 'f', -1, 64)
	}
	return strconv.FormatFloat(rate, 'f', 0, 64)
}

// countPerSecond is a rate of things with their name: "1 message/s", "20 messages/s".
func countPerSecond(rate float64, one string) string {
	n := perSecondText(rate)
	if n != "1" {
		one += "s"
	}
	return n + " " + one + "/s"
}

// worded is a flag that package flag reads, and that says what it needs where that says
// no more than "parse error".
type worded struct {
	flag.Value
	name string // stands for the value in help
	need string
}

func (w *worded) valueName() string { return w.name }

// Set implements [flag.Value].
func (w *worded) Set(s string) error {
	if d, err := parseTime(s); err == nil && w.need == aTime {
		s = d.String()
	}
	if w.Value.Set(s) != nil {
		return errors.New("need " + w.need)
	}
	return nil
}

// wordErrors makes a flag that is a number or a time say what it needs.
func wordErrors(f *flag.Flag) {
	v, ok := f.Value.(flag.Getter)
	if !ok {
		return
	}
	need := ""
	switch v.Get().(type) {
	case int:
		need = "a whole number"
	case uint64:
		need = "a whole number from 0 on"
	case float64:
		need = "a number such as 0.5"
	case time.Duration:
		need = aTime
	default:
		return
	}
	name, _ := flag.UnquoteUsage(f)
	f.Value = &worded{f.Value, name, need}
}

const aTime = "seconds such as 10 or 0.5, or a time such as 500ms"

// parseTime reads a time with its unit, or seconds.
func parseTime(s string) (time.Duration, error) {
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		s += "s"
	}
	return time.ParseDuration(s)
}

// parseLimit reads how long something may take.
func parseLimit(s string) (time.Duration, error) {
	d, err := parseTime(s)
	if err != nil || d <= 0 {
		return 0, errors.New("need " + aTime + ", above 0")
	}
	return d, nil
}

// secondsFlag is a flag whose value is seconds, or a time with its unit.
type secondsFlag time.Duration

func (f *secondsFlag) String() string {
	return strconv.FormatFloat(time.Duration(*f).Seconds(), 'f', -1, 64)
}

// Set implements [flag.Value].
func (f *secondsFlag) Set(s string) error {
	d, err := parseTime(s)
	if err != nil {
		return errors.New("need " + aTime)
	}
	*f = secondsFlag(d)
	return nil
}

// wordFlag is a flag whose value is a number of 32 bits.
type wordFlag struct {
	value uint32
	given bool
}

func (f *wordFlag) String() string {
	if f.value == 0 {
		return ""
	}
	return fmt.Sprint(f.value)
}

func (f *wordFlag) Set(s string) (err error) {
	f.value, err = parseWord(s)
	f.given = true
	return err
}

// sizeFlag is a flag whose value is an amount of bytes.
type sizeFlag struct {
	value uint64
	given bool
}

func (f *sizeFlag) String() string {
	for i, suffix := range []string{"G", "M", "k"} {
		if shift := 30 - 10*i; f.value != 0 && f.value&(1<<shift-1) == 0 {
			return fmt.Sprintf("%d%s", f.value>>shift, suffix)
		}
	}
	return fmt.Sprint(f.value)
}

func (f *sizeFlag) Set(s string) (err error) {
	f.value, err = parseSize(s)
	f.given = true
	return err
}

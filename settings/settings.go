// Package settings is the table of what can be said about an endpoint. From it come the
// options of endpoint strings, the flags of dgrdmacat with their help, man pages and
// completion, the defaults and bounds of the configuration, and what documentation says
// of all of them.
package settings

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Setting is one thing that can be said about an endpoint.
type Setting struct {
	Option  string // its key in endpoint strings; empty: it has none
	Field   string // of dgrdma.Config; empty: it is the wire's
	Flag    string // of dgrdmacat; empty: it has none
	Value   string // stands for the value in documentation
	Means   string // in a few words
	Without string // what happens without it, where Default does not say it

	Kind        Kind
	Words       []string // a choice between these; for a number, beside numbers
	Choices     string   // what they mean, where they do not say it
	Bytes       bool     // a number counts bytes
	Least, Most int64    // of a number, or a time; Most 0: no bound
	Default     int64    // of a number, or a time
	Wire        Wire     // where it means something
}

// Wire is where a setting means something. The zero value is everywhere.
type Wire string

const (
	OverUDP   Wire = "UDP"
	OverEther Wire = "Ethernet"
)

// Kind is what a value looks like.
type Kind uint8

const (
	Number Kind = iota
	Hex         // a number that is written so
	Time
	Choice
	Path // of a file
)

// Value is what was said.
type Value struct {
	Word   string // of Words, or a path; empty: it is a number or a time
	Number int64  // a time in nanoseconds
}

// On reports whether a switch is on.
func (v Value) On() bool { return v.Word == On }

// The words of switches.
const (
	On   = "on"
	Off  = "off"
	Auto = "auto"
)

// OfOption returns the setting with that key in endpoint strings, or nil.
func OfOption(key string) *Setting {
	for _, s := range All {
		if s.Option == key && key != "" {
			return s
		}
	}
	return nil
}

// Parse reads a value as a person writes it.
func (s *Setting) Parse(text string) (Value, error) {
	for _, w := range s.Words {
		if text == w {
			return Value{Word: w}, nil
		}
	}
	var n int64
	err := error(strconv.ErrSyntax)
	switch s.Kind {
	case Path:
		if text != "" {
			return Value{Word: text}, nil
		}
	case Number, Hex:
		n, err = strconv.ParseInt(text, map[Kind]int{Number: 10, Hex: 0}[s.Kind], 64)
	case Time:
		var d time.Duration
		d, err = time.ParseDuration(text)
		n = int64(d)
	}
	if err != nil && s.Bytes {
		return Value{}, fmt.Errorf("need %s, a number without a unit", s.Allowed())
	}
	if err != nil || !s.within(n) {
		return Value{}, fmt.Errorf("need %s", s.Allowed())
	}
	return Value{Number: n}, nil
}

func (s *Setting) within(n int64) bool { return n >= s.Least && (s.Most == 0 || n <= s.Most) }

// Allowed says which values there are.
func (s *Setting) Allowed() string {
	last := len(s.Words) - 1
	switch {
	case s.Kind == Path:
		return "the path of a file"
	case s.Kind == Time && s.Least > 0:
		return "a time of " + s.Range() + ", such as 10s"
	case s.Kind == Time:
		return "a time such as 10s or 500us"
	case s.Kind == Choice:
		return strings.Join(s.Words[:last], ", ") + " or " + s.Words[last]
	case last >= 0:
		return strings.Join(s.Words, ", ") + ", or " + s.Range()
	}
	return s.Range()
}

// Range says which numbers there are.
func (s *Setting) Range() string {
	text := s.number(s.Least)
	if s.Most != 0 {
		text += " to " + s.number(s.Most)
	}
	if s.Bytes {
		text += " bytes"
	}
	if s.Most == 0 {
		text += " or more"
	}
	return text
}

func (s *Setting) number(n int64) string {
	switch s.Kind {
	case Time:
		return time.Duration(n).String()
	case Hex:
		return fmt.Sprintf("%#04x", n)
	}
	return strconv.FormatInt(n, 10)
}

// Otherwise says what is so without it.
func (s *Setting) Otherwise() string {
	const mebi = 1 << 20
	switch {
	case s.Without != "":
		return s.Without
	case s.Bytes && s.Default%mebi == 0:
		return fmt.Sprintf("%d MiB", s.Default/mebi)
	}
	return s.number(s.Default)
}

// Help is what it means, which values there are, and what is so without it.
func (s *Setting) Help() string {
	text := s.Means
	switch {
	case s.Choices != "" && s.Kind == Choice:
		text += ": " + s.Choices
	case s.Choices != "":
		text += ": " + s.Choices + " " + s.Range()
	case s.Kind == Choice:
		text += ": " + s.Allowed()
	case s.Kind == Path:
	case s.Kind != Time:
		text += ", " + s.Allowed()
	case s.Least > 0:
		text += ", " + s.Range()
	}
	return text + " (default " + s.Otherwise() + ")"
}

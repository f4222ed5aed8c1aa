package url

import (
	"fmt"
	"strconv"
)

// Error says where an endpoint string is wrong.
type Error struct {
	Input    string // the whole string given to Parse
	Offset   int    // of the first byte in Input that does not fit
	Expected string // what would have fitted there
}

// Error returns the input, the offset, what was expected, and what is there.
// Long texts are shortened.
func (e *Error) Error() string {
	return fmt.Sprintf("dgrdma: endpoint string %s: byte %d: expected %s, found %s",
		quoteShort(e.Input, 80), e.Offset, e.Expected, e.found())
}

func (e *Error) found() string {
	if e.Offset < 0 || e.Offset >= len(e.Input) {
		return "end of string"
	}
	return quoteShort(e.Input[e.Offset:], 24)
}

// FormatError says why an endpoint has no text in a dialect.
type FormatError struct {
	Dialect Dialect
	Reason  string
}

// Error returns the dialect and the reason.
func (e *FormatError) Error() string {
	return fmt.Sprintf("dgrdma: format endpoint string as %v: %s", e.Dialect, e.Reason)
}

func quoteShort(s string, limit int) string {
	if len(s) <= limit {
		return strconv.Quote(s)
	}
	return strconv.Quote(s[:limit]) + "..."
}

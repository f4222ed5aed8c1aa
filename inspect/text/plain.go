package text

import (
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Plain returns a string from a file, a file's name or a peer in one line that does nothing to a terminal. What is not printable is escaped as in Go: control characters,
// newlines, marks that change the direction of text, and bytes that are no UTF-8.
func Plain(s string) string {
	if isPlain(s) {
		return s
	}
	return string(appendPlain(nil, s))
}

// appendPlain appends what [Plain] returns.
func appendPlain(b []byte, s string) []byte {
	for s != "" {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			b = fmt.Appendf(b, `\x%02x`, s[0])
		case strconv.IsPrint(r):
			b = append(b, s[:n]...)
		default:
			at := len(b)
			b = strconv.AppendQuoteRune(b, r)
			b = append(b[:at], b[at+1:len(b)-1]...)
		}
		s = s[n:]
	}
	return b
}

// isPlain reports whether a string is its own Plain.
func isPlain(s string) bool {
	for _, r := range s {
		if !strconv.IsPrint(r) {
			return false
		}
	}
	return utf8.ValidString(s)
}

// appendJSON appends a string in JSON, with escapes for all that is not printable.
func appendJSON(b []byte, s string) []byte {
	quoted, _ := json.Marshal(s) // a string never fails
	for _, r := range string(quoted) {
		switch {
		case strconv.IsPrint(r):
			b = utf8.AppendRune(b, r)
		case r > 0xFFFF:
			r -= 0x10000
			b = fmt.Appendf(b, `\u%04x\u%04x`, 0xD800+r>>10, 0xDC00+r&0x3FF)
		default:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
	}
	return b
}

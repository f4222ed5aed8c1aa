package text

import (
	"strconv"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// Style is a form in which frames are printed.
type Style uint8

const (
	Line   Style = iota // one line
	Fields              // a line for each header, message and stretch of padding
	JSON                // one object in one line
)

// Printer turns frames into text. Its fields may change between frames.
type Printer struct {
	Style    Style
	Bytes    bool // all bytes too, with Fields and JSON
	Absolute bool // dates, with Line
	// Interfaces has Line say which interface a frame passed.
	Interfaces bool
	Start      time.Time // what other times are relative to
	// File is named with each frame, unless it is empty.
	File string

	named  stringOf
	second secondOf
	newest int // record of which something was printed, in its file
	of     string
	behind bool // what is printed stands behind a later record
}

// passes takes the record of what is printed next.
func (p *Printer) passes(record int) {
	if p.of != p.File {
		p.of, p.newest = p.File, 0
	}
	p.behind = record < p.newest
	p.newest = max(p.newest, record)
}

// stringOf is a string as lines have it, and as JSON has it, made once.
type stringOf struct {
	of            string
	plain, quoted []byte
}

// secondOf is a date and time in words, which many frames have in common.
type secondOf struct {
	unix int64
	text []byte
}

// Append appends the text for one frame, and a newline.
func (p *Printer) Append(b []byte, v *View) []byte {
	p.passes(v.Packet.Record)
	switch p.Style {
	case JSON:
		return p.json(b, v)
	case Fields:
		return p.fields(b, v)
	}
	return p.line(b, v)
}

// known reports whether a frame has a time, and one that can be written down.
func known(t time.Time) bool {
	const year1, year9999 = -62135596800, 253402300799
	unix := t.Unix()
	return unix > year1 && unix <= year9999
}

// date appends the time in UTC, to the nanosecond.
func (p *Printer) date(b []byte, t time.Time) []byte {
	if unix := t.Unix(); unix != p.second.unix || len(p.second.text) == 0 {
		p.second.unix = unix
		p.second.text = t.UTC().AppendFormat(p.second.text[:0], "2006-01-02T15:04:05.")
	}
	b = append(b, p.second.text...)
	return append(nineDigits(b, uint64(t.Nanosecond())), 'Z')
}

// since appends the time since the start in seconds.
func (p *Printer) since(b []byte, t time.Time) []byte {
	// A time.Duration ends after 292 years, which files can exceed.
	seconds, nanos := t.Unix()-p.Start.Unix(), t.Nanosecond()-p.Start.Nanosecond()
	if seconds < 0 || seconds == 0 && nanos < 0 {
		b = append(b, '-')
		seconds, nanos = -seconds, -nanos
	}
	if nanos < 0 {
		seconds, nanos = seconds-1, nanos+1e9
	}
	b = strconv.AppendInt(b, seconds, 10)
	return nineDigits(append(b, '.'), uint64(nanos))
}

func nineDigits(b []byte, n uint64) []byte {
	at := len(b)
	b = append(b, "000000000"...)
	for i := at + 8; n != 0; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
	return b
}

// file returns the name of the file.
func (p *Printer) file() *stringOf {
	if p.named.of != p.File {
		p.named = stringOf{p.File, appendPlain(nil, p.File), appendJSON(nil, p.File)}
	}
	return &p.named
}

// ends appends who sends to whom.
func ends(b []byte, v *View, before, between string) []byte {
	b = appendAddr(append(b, before...), v, false)
	return appendAddr(append(b, between...), v, true)
}

func appendAddr(b []byte, v *View, dst bool) []byte {
	a := &v.Packet.Src
	if dst {
		a = &v.Packet.Dst
	}
	if a.UDP.IsValid() {
		return a.UDP.AppendTo(b)
	}
	for i, x := range a.MAC {
		if i > 0 {
			b = append(b, ':')
		}
		b = hexByte(b, x)
	}
	return b
}

func wire(v *View) string {
	if v.Packet.Src.UDP.IsValid() {
		return "udp"
	}
	return "ether"
}

const hexDigits = "0123456789abcdef"

func hexByte(b []byte, x byte) []byte { return append(b, hexDigits[x>>4], hexDigits[x&15]) }

func hexBytes(b, data []byte) []byte {
	for _, x := range data {
		b = hexByte(b, x)
	}
	return b
}

// problem appends what is wrong with a frame: where, and why.
func problem(b []byte, e *frame.Error) []byte {
	b = number(b, "malformed at byte ", e.Off)
	b = number(b, " of ", e.Len)
	return append(append(b, ": "...), e.Reason.String()...)
}

func number(b []byte, before string, n int) []byte {
	return strconv.AppendInt(append(b, before...), int64(n), 10)
}

func hexadecimal(b []byte, before string, n uint32) []byte {
	return strconv.AppendUint(append(append(b, before...), "0x"...), uint64(n), 16)
}

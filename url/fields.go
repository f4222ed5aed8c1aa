package url

import (
	"net/netip"
	"strconv"
	"strings"
)

// parser reads input[pos:end] from left to right.
type parser struct {
	input    string
	pos, end int
}

func (p *parser) rest() string { return p.input[p.pos:p.end] }

func (p *parser) atEnd() bool { return p.pos == p.end }

// until returns the text before the next delimiter, without moving.
func (p *parser) until(delimiters string) string {
	rest := p.rest()
	if i := strings.IndexAny(rest, delimiters); i >= 0 {
		return rest[:i]
	}
	return rest
}

func (p *parser) accept(c byte) bool {
	if p.atEnd() || p.input[p.pos] != c {
		return false
	}
	p.pos++
	return true
}

func (p *parser) acceptFold(prefix string) bool {
	rest := p.rest()
	if len(rest) < len(prefix) || !strings.EqualFold(rest[:len(prefix)], prefix) {
		return false
	}
	p.pos += len(prefix)
	return true
}

func (p *parser) expected(what string) *Error { return p.expectedAt(p.pos, what) }

func (p *parser) expectedAt(offset int, what string) *Error {
	return &Error{Input: p.input, Offset: offset, Expected: what}
}

func (p *parser) number(what string, minimum, maximum uint64) (uint64, *Error) {
	digits := 0
	for digits < len(p.rest()) && isDigit(p.rest()[digits]) {
		digits++
	}
	text := p.rest()[:digits]
	if digits > 1 && text[0] == '0' {
		return 0, p.expected("a decimal number without leading zeros")
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n < minimum || n > maximum {
		return 0, p.expected(what)
	}
	p.pos += digits
	return n, nil
}

func (p *parser) mac() (MAC, *Error) {
	const fields = 6
	var octets [fields]byte
	for i := range octets {
		if i > 0 && !p.accept(':') {
			return MAC{}, p.expected("':' between the fields of a MAC address")
		}
		for range 2 {
			if p.atEnd() || !isHex(p.input[p.pos]) {
				return MAC{}, p.expected("a MAC address: six fields of two hexadecimal digits")
			}
			octets[i] = octets[i]<<4 | hexValue(p.input[p.pos])
			p.pos++
		}
	}
	return MACFrom6(octets), nil
}

// interfaceName checks name, which is at pos, and moves behind it.
func (p *parser) interfaceName(name string) *Error {
	if name == "" {
		return p.expected("an interface name")
	}
	for i := range len(name) {
		if !interfaceByte(name[i]) {
			return p.expectedAt(p.pos+i, "an interface name without control characters, space, '/', ':', ';' and '?'")
		}
	}
	p.pos += len(name)
	return nil
}

func interfaceByte(c byte) bool {
	return c > ' ' && c != 0x7f && !strings.ContainsRune("/:;?", rune(c))
}

// host reads an IP address, which it returns, or the name of a host, which e has then.
func (p *parser) host(e *Endpoint) (netip.Addr, *Error) {
	if p.accept('[') {
		return p.ip6()
	}
	text := p.until(":;")
	ip, err := netip.ParseAddr(text)
	if err == nil && ip.Is4() {
		p.pos += len(text)
		return ip, nil
	}
	// What has more than one colon is meant as an IPv6 address.
	if !hostName(text) || strings.Count(p.until(";"), ":") > 1 {
		return netip.Addr{}, p.expected("an IPv4 address, an IPv6 address in brackets, or the name of a host")
	}
	p.pos += len(text)
	e.Host = text
	return netip.Addr{}, nil
}

const (
	longestName  = 253 // of a host, without a dot at the end (RFC 1035, section 2.3.4)
	longestLabel = 63
)

// hostName reports whether s can be the name of a host (RFC 1123, section 2.1). Some have
// '_'. Whose last label is a number would be an IPv4 address that is wrong.
func hostName(s string) bool {
	s = strings.TrimSuffix(s, ".")
	if len(s) > longestName {
		return false
	}
	number := false
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > longestLabel || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		number = true
		for i := range len(label) {
			if c := label[i]; !isDigit(c) {
				if number = false; !isLetter(c) && c != '-' && c != '_' {
					return false
				}
			}
		}
	}
	return !number
}

func (p *parser) ip6() (netip.Addr, *Error) {
	text := p.until("]")
	ip, err := netip.ParseAddr(text)
	if err != nil || !ip.Is6() {
		return netip.Addr{}, p.expected("an IPv6 address and ']'")
	}
	if zone := ip.Zone(); zone != "" {
		p.pos += len(text) - len(zone)
		if wrong := p.interfaceName(zone); wrong != nil {
			return netip.Addr{}, wrong
		}
	} else {
		p.pos += len(text)
	}
	if !p.accept(']') {
		return netip.Addr{}, p.expected("']'")
	}
	return ip.Unmap(), nil
}

func (p *parser) uuid(e *Endpoint) *Error {
	const pattern = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
	start := p.pos
	for i := range len(pattern) {
		switch {
		case pattern[i] == '-' && p.accept('-'):
		case pattern[i] == 'x' && !p.atEnd() && isHex(p.input[p.pos]):
			p.pos++
		default:
			return p.expected("a uuid of 8-4-4-4-12 hexadecimal digits")
		}
	}
	e.UUID = p.input[start:p.pos]
	if !p.accept('.') {
		return p.expected("'.' and a size")
	}
	return nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isHex(c byte) bool {
	return isDigit(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func hexValue(c byte) byte {
	switch {
	case isDigit(c):
		return c - '0'
	case c >= 'a':
		return c - 'a' + 10
	}
	return c - 'A' + 10
}

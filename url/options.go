package url

import (
	"iter"
	"maps"
	"slices"
	"strings"
)

// Options are the key=value pairs behind the '?' of an endpoint string, each
// key once, sorted by key. The zero value has none. Options are comparable
// with == and never change: With and Without return others.
type Options struct {
	query string // key=value&key=value, escaped where needed and nowhere else
}

// OptionsFrom returns the options in m. It panics if m has an empty key.
func OptionsFrom(m map[string]string) Options {
	var query strings.Builder
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if key == "" {
			panic("BUG: dgrdma: option with an empty key")
		}
		if query.Len() > 0 {
			query.WriteByte('&')
		}
		escape(&query, key, isRawInKey)
		query.WriteByte('=')
		escape(&query, m[key], isRawInValue)
	}
	return Options{query: query.String()}
}

// Len returns the number of options.
func (o Options) Len() int {
	if o.query == "" {
		return 0
	}
	return 1 + strings.Count(o.query, "&")
}

// Get returns the value of key, and whether there is one.
func (o Options) Get(key string) (value string, ok bool) {
	for k, v := range o.All() {
		if k == key {
			return v, true
		}
	}
	return "", false
}

// With returns o with the value of key replaced or added. It panics if key is empty.
func (o Options) With(key, value string) Options {
	m := maps.Collect(o.All())
	m[key] = value
	return OptionsFrom(m)
}

// Without returns o without key.
func (o Options) Without(key string) Options {
	m := maps.Collect(o.All())
	delete(m, key)
	return OptionsFrom(m)
}

// All returns the keys and their values in ascending order of the keys' bytes.
func (o Options) All() iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) {
		if o.query == "" {
			return
		}
		for pair := range strings.SplitSeq(o.query, "&") {
			key, value, _ := strings.Cut(pair, "=")
			if !yield(unescape(key), unescape(value)) {
				return
			}
		}
	}
}

// String returns the options as they stand behind the '?', escaped.
func (o Options) String() string { return o.query }

func (p *parser) options() (Options, *Error) {
	m := make(map[string]string)
	for {
		keyPosition := p.pos
		key, wrong := p.escaped("=&", isRawInKey)
		if wrong != nil {
			return Options{}, wrong
		}
		if key == "" {
			return Options{}, p.expected("an option key=value")
		}
		if !p.accept('=') {
			return Options{}, p.expected("'=' and the value of the option")
		}
		if _, twice := m[key]; twice {
			return Options{}, p.expectedAt(keyPosition, "each option once")
		}
		if m[key], wrong = p.escaped("&", isRawInValue); wrong != nil {
			return Options{}, wrong
		}
		if !p.accept('&') {
			return OptionsFrom(m), nil
		}
	}
}

func (p *parser) escaped(delimiters string, isRaw func(byte) bool) (string, *Error) {
	text := p.until(delimiters)
	for i := 0; i < len(text); i++ {
		switch {
		case isRaw(text[i]):
		case text[i] != '%':
			return "", p.expectedAt(p.pos+i, "a printable ASCII character, or '%' and two hexadecimal digits")
		case i+2 >= len(text) || !isHex(text[i+1]) || !isHex(text[i+2]):
			return "", p.expectedAt(p.pos+i, "'%' and two hexadecimal digits")
		default:
			i += 2
		}
	}
	p.pos += len(text)
	return unescape(text), nil
}

func isRawInValue(c byte) bool { return ' ' < c && c < 0x7f && c != '%' && c != '&' }

func isRawInKey(c byte) bool { return isRawInValue(c) && c != '=' }

func escape(b *strings.Builder, s string, isRaw func(byte) bool) {
	const digits = "0123456789ABCDEF"
	for i := range len(s) {
		if c := s[i]; isRaw(c) {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
}

// unescape is for text whose escapes are known to be well formed.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		b.WriteByte(hexValue(s[i+1])<<4 | hexValue(s[i+2]))
		i += 2
	}
	return b.String()
}

package opencpi

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MarshalJSON returns d as an object with all fields. Kind and role are words.
// It fails if there is no word for them, or if the endpoint is not UTF-8 or is
// none that AppendBinary would write. The error is ErrDescriptor.
func (d Descriptor) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	separator := "{"
	for _, f := range d.fields() {
		value, expected := fieldJSON(f.value)
		if expected != "" {
			return nil, badDescriptor("%s is %.80q, expected %s", f.name, value, expected)
		}
		out.WriteString(separator + strconv.Quote(f.name) + ":")
		out.WriteString(value)
		separator = ","
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// fieldJSON returns the JSON text of a field, or its plain text and what was
// expected instead.
func fieldJSON(value any) (text, expected string) {
	switch v := value.(type) {
	case *Kind:
		return wordJSON(v.String(), kindWords)
	case *Role:
		return wordJSON(v.String(), roleWords)
	case *uint32:
		return strconv.FormatUint(uint64(*v), 10), ""
	case *uint64:
		return strconv.FormatUint(*v, 10), ""
	}
	s := *value.(*string)
	if reason := endpointMisfit(s); reason != "" {
		return s, reason
	}
	quoted, err := json.Marshal(s)
	if err != nil || !utf8.ValidString(s) {
		return s, "UTF-8"
	}
	return string(quoted), ""
}

func wordJSON(word string, words []string) (text, expected string) {
	if !slices.Contains(words, word) {
		return word, oneOf(words)
	}
	return strconv.Quote(word), ""
}

// oneOf lists the words a field can have.
func oneOf(words []string) string {
	var quoted []string
	for _, word := range words {
		if word != "" {
			quoted = append(quoted, strconv.Quote(word))
		}
	}
	return "one of " + strings.Join(quoted, ", ")
}

// UnmarshalJSON sets d to what the object in text says. Fields may come in any
// order and are zero if left out, but kind and role must be there. Unknown and
// repeated fields are errors. It leaves open whether the values make sense; see
// [Descriptor.Validate]. An error is ErrDescriptor and says which field is
// wrong, and what was expected; after one, d is as before.
func (d *Descriptor) UnmarshalJSON(text []byte) error {
	if !json.Valid(text) {
		return badDescriptor("expected a JSON object, found %#.80q", text)
	}
	in := json.NewDecoder(bytes.NewReader(text))
	if opening, err := in.Token(); err != nil || opening != json.Delim('{') {
		return badDescriptor("expected a JSON object, found %#.80q", text)
	}
	var parsed Descriptor
	fields := parsed.fields()
	seen := map[string]bool{}
	for in.More() {
		key, err := in.Token()
		if err != nil {
			return badDescriptor("%w", err)
		}
		name, _ := key.(string)
		var value json.RawMessage
		if err := in.Decode(&value); err != nil {
			return badDescriptor("%s: %w", name, err)
		}
		i := slices.IndexFunc(fields, func(f descriptorField) bool { return f.name == name })
		if i < 0 {
			return badDescriptor("unknown field %.80q, expected one of %s", name, fieldNames(fields))
		}
		if seen[name] {
			return badDescriptor("%s is there twice, expected once", name)
		}
		seen[name] = true
		if expected := setField(fields[i].value, value); expected != "" {
			return badDescriptor("%s is %#.80q, expected %s", name, []byte(value), expected)
		}
	}
	switch {
	case !seen["kind"]:
		return badDescriptor("kind is missing, expected %s", oneOf(kindWords))
	case !seen["role"]:
		return badDescriptor("role is missing, expected %s", oneOf(roleWords))
	}
	*d = parsed
	return nil
}

func fieldNames(fields []descriptorField) string {
	var names []string
	for _, f := range fields {
		names = append(names, f.name)
	}
	return strings.Join(names, ", ")
}

// setField returns "", or what was expected instead of text.
func setField(field any, text json.RawMessage) (expected string) {
	switch v := field.(type) {
	case *Kind:
		return setWord((*uint32)(v), kindWords, text)
	case *Role:
		return setWord((*uint32)(v), roleWords, text)
	case *uint32:
		n, expected := wholeNumber(text, 32)
		*v = uint32(n)
		return expected
	case *uint64:
		*v, expected = wholeNumber(text, 64)
		return expected
	}
	s, isString := jsonString(text)
	if !isString {
		return "a string in UTF-8"
	}
	*field.(*string) = s
	return endpointMisfit(s)
}

func setWord(v *uint32, words []string, text json.RawMessage) (expected string) {
	word, _ := jsonString(text)
	i := slices.Index(words, word)
	if word == "" || i < 0 {
		return oneOf(words)
	}
	*v = uint32(i)
	return ""
}

func wholeNumber(text json.RawMessage, size int) (n uint64, expected string) {
	n, err := strconv.ParseUint(string(text), 10, size)
	if err != nil {
		largest := uint64(math.MaxUint64) >> (64 - size)
		return 0, "a whole number from 0 to " + strconv.FormatUint(largest, 10)
	}
	return n, ""
}

// jsonString refuses null, which package json takes for any string, and bytes
// that it would replace.
func jsonString(text json.RawMessage) (s string, ok bool) {
	if len(text) == 0 || text[0] != '"' || !utf8.Valid(text) {
		return "", false
	}
	err := json.Unmarshal(text, &s)
	return s, err == nil
}

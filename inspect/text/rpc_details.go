package text

import (
	"strconv"
	"strings"

	"github.com/dgrdma/dgrdma/inspect/rpcrdma"
)

// detailWords appends a line with the items of an RPC message, if they are known.
func detailWords(b []byte, before string, d *rpcrdma.Details) []byte {
	if d == nil {
		return b
	}
	b = itemWords(append(b, before...), d.Fields)
	if d.Cut {
		if len(d.Fields) > 0 {
			b = append(b, "; "...)
		}
		b = append(b, "the rest is not known: not captured, too long to be kept, or malformed"...)
	}
	return append(b, '\n')
}

func itemWords(b []byte, all []rpcrdma.Field) []byte {
	for i := range all {
		if i > 0 {
			b = append(b, ", "...)
		}
		f := &all[i]
		if _, err := strconv.Atoi(f.Name); err != nil { // else it is an element of a list
			b = append(append(b, strings.ReplaceAll(f.Name, "_", " ")...), ' ')
		}
		switch f.Kind {
		case rpcrdma.NumberField:
			b = strconv.AppendUint(b, f.Number, 10)
		case rpcrdma.NameField:
			b = strconv.AppendQuoteToASCII(b, f.Text)
		case rpcrdma.GroupField:
			b = append(itemWords(append(b, '('), f.Fields), ')')
		default:
			b = append(b, f.Text...)
		}
	}
	return b
}

// detailJSON appends them as an object.
func detailJSON(b []byte, name string, d *rpcrdma.Details) []byte {
	if d == nil {
		return b
	}
	b = append(append(append(b, `,"`...), name...), `":`...)
	b = itemJSON(b, d.Fields)
	if d.Cut {
		b = append(append(append(b, `,"`...), name...), `_cut":true`...)
	}
	return b
}

// longest is the greatest number that programs which take numbers for floating ones read without loss.
const longest = 1 << 53

func itemJSON(b []byte, all []rpcrdma.Field) []byte {
	b = append(b, '{')
	for i := range all {
		f := &all[i]
		b = append(strconv.AppendQuote(comma(b, i), f.Name), ':')
		switch {
		case f.Kind == rpcrdma.NumberField && f.Number > longest:
			b = append(strconv.AppendUint(append(b, '"'), f.Number, 10), '"')
		case f.Kind == rpcrdma.NumberField:
			b = strconv.AppendUint(b, f.Number, 10)
		case f.Kind == rpcrdma.GroupField:
			b = itemJSON(b, f.Fields)
		default:
			b = jsonName(b, f.Text)
		}
	}
	return append(b, '}')
}

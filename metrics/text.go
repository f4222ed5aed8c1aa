package metrics

import (
	"bufio"
	"io"
	"iter"
	"strconv"
	"strings"
)

// labels are a sample's labels as the text format has them, without braces.
type labels string

// with adds a label. Values that are not UTF-8 are made so.
func (l labels) with(name, value string) labels {
	if l != "" {
		l += ","
	}
	return l + labels(name+`="`+escapeLabel.Replace(strings.ToValidUTF8(value, "\uFFFD"))+`"`)
}

var (
	escapeLabel = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
	escapeHelp  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
)

// kinds of metrics.
const (
	isCounter = "counter"
	isGauge   = "gauge"
)

// metric is one metric of things of a kind: how its samples are written.
type metric[T any] struct {
	name, kind, help string
	write            func(w *textWriter, l labels, of *T)
}

// textWriter writes Prometheus' text format. Errors come out at Flush.
type textWriter struct {
	*bufio.Writer
	name, kind, help string
	begun            bool // this metric has samples
	number           [32]byte
}

func newTextWriter(w io.Writer) *textWriter {
	return &textWriter{Writer: bufio.NewWriterSize(w, 1<<16)}
}

// writeMetrics writes all samples of one metric after the other, as the format
// asks for.
func writeMetrics[T any](w *textWriter, all []metric[T], each iter.Seq2[labels, *T]) {
	for i := range all {
		m := &all[i]
		w.name, w.kind, w.help, w.begun = m.name, m.kind, m.help, false
		for l, of := range each {
			m.write(w, l, of)
		}
	}
}

// count writes a sample that is a whole number.
func (w *textWriter) count(l labels, v uint64) {
	w.sample(l, strconv.AppendUint(w.number[:0], v, 10))
}

func (w *textWriter) gauge(l labels, v float64) {
	w.sample(l, strconv.AppendFloat(w.number[:0], v, 'g', -1, 64))
}

func (w *textWriter) sample(l labels, value []byte) {
	if !w.begun {
		w.begun = true
		w.WriteString("# HELP " + w.name + " " + escapeHelp.Replace(w.help) + "\n# TYPE " + w.name + " " + w.kind + "\n")
	}
	w.WriteString(w.name)
	w.WriteByte('{')
	w.WriteString(string(l))
	w.WriteString("} ")
	w.Write(value)
	w.WriteByte('\n')
}

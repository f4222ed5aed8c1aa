package page

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/dgrdma/dgrdma/inspect"
)

// mostDrawn is how many flows have pictures, unless one is chosen. Each takes up
// to 300 KB.
const mostDrawn = 4

// Options of a page.
type Options struct {
	Title string // the capture's name
	Flow  int    // the number of the one flow to draw; 0: those with most data
}

//go:embed page.html
var pageHTML string

//go:embed style.css
var styleCSS string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"style":     func() template.CSS { return template.CSS(styleCSS) },
	"grouped":   grouped,
	"size":      func(n int64) string { return inspect.Size(float64(n)) },
	"span":      inspect.Span,
	"sided":     func(s inspect.Side, reads int) sided { return sided{s, reads} },
	"lasts":     func(c inspect.Connection) time.Duration { return c.Last - c.First },
	"sealedFor": func(s inspect.Sealed) time.Duration { return s.Last - s.First },
	"reads": func(n int) string {
		if n < 0 {
			return "–"
		}
		return inspect.Grouped(int64(n))
	},
}).Parse(pageHTML))

// sided is a side of a connection, and how many Reads it may have under way.
type sided struct {
	inspect.Side
	Reads int
}

// Write writes the page of a report.
func Write(w io.Writer, r *inspect.Report, o Options) error {
	v := view{Title: o.Title, Report: r}
	if o.Flow < 0 || o.Flow > len(r.Flows) {
		return fmt.Errorf("there is no flow %d: the capture has %d", o.Flow, len(r.Flows))
	}
	for i := range r.Flows {
		if f := &r.Flows[i]; f.Number == o.Flow || o.Flow == 0 && len(v.Drawn) < mostDrawn && f.Firsts > 0 {
			v.Drawn = append(v.Drawn, draw(f))
		}
	}
	for i := range r.Flows {
		if r.Flows[i].Firsts > 0 {
			v.WithData++
		}
	}
	return page.Execute(w, &v)
}

// mostWhole is from where on a number may go on in the next line after a comma. Arbitrary: columns of smaller ones fit next to each other.
const mostWhole = 10_000_000

func grouped(n any) (template.HTML, error) {
	var of int64
	switch n := n.(type) {
	case int:
		of = int64(n)
	case int64:
		of = n
	default:
		return "", fmt.Errorf("%v is no number", n)
	}
	s := inspect.Grouped(of)
	if of >= mostWhole {
		s = strings.ReplaceAll(s, ",", ",<wbr>")
	}
	return template.HTML(s), nil
}

// Frames counts those of both protocols.
func (v *view) Frames() int { return v.Report.Capture.Frames + v.Report.Capture.FPDUs }

// DGRDMA reports whether the capture has frames of DG/RDMA.
func (v *view) DGRDMA() bool { return v.Report.Capture.Frames > 0 }

// Protocols names those of which the capture has frames.
func (v *view) Protocols() string {
	const dgrdma, iwarp = "DG/RDMA", "iWARP"
	switch has := v.Report.Capture.FPDUs > 0 || len(v.Report.Connections) > 0; {
	case v.DGRDMA() && has:
		return dgrdma + " and " + iwarp
	case v.DGRDMA():
		return dgrdma
	case has:
		return iwarp
	}
	return ""
}

// view is what the template sees.
type view struct {
	Title    string
	Report   *inspect.Report
	Drawn    []drawing
	WithData int // flows that could be drawn
}

// Anchor returns where a flow is on the page: its pictures, or its row.
func (v *view) Anchor(flow int) string {
	for i := range v.Drawn {
		if v.Drawn[i].Number == flow {
			return fmt.Sprint("flow", flow)
		}
	}
	return fmt.Sprint("row", flow)
}

// Sums adds up all flows.
func (v *view) Sums() (s struct {
	Data           int64
	Firsts, Resent int
	Transactions   int
}) {
	for i := range v.Report.Flows {
		f := &v.Report.Flows[i]
		s.Data += f.Data
		s.Firsts += f.Firsts
		s.Resent += f.Resent
		s.Transactions += f.Transactions.Completed
	}
	for i := range v.Report.Connections {
		for _, side := range v.Report.Connections[i].Sides {
			s.Data += side.Bytes
		}
	}
	return s
}

package main

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dgrdma/dgrdma/metrics"
)

// topTable is one of top's tables.
type topTable struct {
	columns []topColumn
	rows    []topRow
}

// topColumn is one of its columns. Where not all have room, those of the highest rank
// go first; that of rank 0 stays.
type topColumn struct {
	title string
	left  bool
	rank  int
}

type topRow struct {
	cells   []string
	traffic float64 // by which rows are sorted
	style   topStyle
}

// topLine is one line of the screen.
type topLine struct {
	text  string
	style topStyle
}

type topStyle uint8

const (
	stylePlain topStyle = iota
	styleTitle
	styleWarn
	styleBad
)

// without leaves out a column.
func (t topTable) without(title string) topTable {
	i := slices.IndexFunc(t.columns, func(c topColumn) bool { return c.title == title })
	return t.drop(i)
}

func (t topTable) drop(i int) topTable {
	less := topTable{columns: slices.Delete(slices.Clone(t.columns), i, i+1)}
	for _, r := range t.rows {
		r.cells = slices.Delete(slices.Clone(r.cells), i, i+1)
		less.rows = append(less.rows, r)
	}
	return less
}

// title is the first line of what is shown.
func (s *viewSource) title(v *metrics.View, trouble string) topLine {
	l := topLine{text: fmt.Sprintf("%s  pid %d  %s", s.host, v.PID, v.Time.Format("15:04:05")), style: styleTitle}
	if trouble != "" {
		l = topLine{text: trouble, style: styleBad}
	}
	return l
}

// topLayout makes lines of the tables that fit a screen; 0 columns or lines: without
// end.
func topLayout(title topLine, tables []topTable, columns, lines int) []topLine {
	out := []topLine{title}
	tables = slices.DeleteFunc(slices.Clone(tables), func(t topTable) bool { return len(t.rows) == 0 })
	if len(tables) == 0 {
		out = append(out, topLine{text: "no endpoint is open"})
	}
	for i, n := range topShares(tables, lines) {
		if n < leastShare {
			break
		}
		out = append(out, topLine{})
		out = append(out, tables[i].lines(columns, n-1)...)
	}
	for i := range out {
		out[i].text = cutTo(printableASCII(out[i].text), columns)
	}
	if lines > 0 {
		out = out[:min(len(out), lines)]
	}
	return out
}

// leastShare is an empty line, the titles, and one row.
const leastShare = 3

// topShares divides the lines below the first one among tables: the largest get fewer
// than they need.
func topShares(tables []topTable, lines int) []int {
	n := make([]int, len(tables))
	total := 0
	for i, t := range tables {
		n[i] = len(t.rows) + leastShare - 1
		if lines > 0 {
			n[i] = min(n[i], max(lines-1, 0))
		}
		total += n[i]
	}
	for ; lines > 0 && total > lines-1 && total > 0; total-- {
		largest := 0
		for i := range n {
			if n[i] >= n[largest] {
				largest = i // of equals the last
			}
		}
		if n[largest] <= leastShare {
			// There is not even room for the least of all: the last has none.
			last := len(n) - 1
			for n[last] == 0 {
				last--
			}
			total -= n[last] - 1
			n[last] = 0
			continue
		}
		n[largest]--
	}
	return n
}

// lines lays out a table.
func (t topTable) lines(columns, most int) []topLine {
	more := len(t.rows) - (most - 1)
	if more > 0 {
		if most < 3 {
			more = 0 // no line to say it
			t.rows = t.rows[:most-1]
		} else {
			more++
			t.rows = t.rows[:most-2]
		}
	}
	rows := make([]topRow, len(t.rows))
	for i, r := range t.rows {
		rows[i] = topRow{cells: make([]string, len(r.cells)), style: r.style}
		for j, s := range r.cells {
			rows[i].cells[j] = printableASCII(cutTo(s, longestCell))
		}
	}
	t.rows = rows
	widths := t.widths()
	for columns > 0 && len(t.columns) > 1 && totalWidth(widths) > columns {
		worst := 0
		for i, c := range t.columns {
			if c.rank >= t.columns[worst].rank {
				worst = i
			}
		}
		if t.columns[worst].rank <= 1 && widths[0] > shortestName {
			widths[0] = max(shortestName, widths[0]-(totalWidth(widths)-columns))
			if totalWidth(widths) <= columns {
				break
			}
		}
		t, widths = t.drop(worst), slices.Delete(widths, worst, worst+1)
	}
	titles := make([]string, len(t.columns))
	for i, c := range t.columns {
		titles[i] = c.title
	}
	all := []topLine{{t.join(titles, widths), styleTitle}}
	for _, r := range t.rows {
		all = append(all, topLine{t.join(r.cells, widths), r.style})
	}
	if more > 0 {
		all = append(all, topLine{text: fmt.Sprintf("... %d more", more)})
	}
	return all
}

// longestCell bounds how wide a column is that has names of the program that is watched. Arbitrary: more than an id and two
// addresses need.
const longestCell = 160

// shortestName is how far a name is cut before the last rates are left out.
const shortestName = 12

const columnGap = 2

func totalWidth(widths []int) int {
	n := columnGap * (len(widths) - 1)
	for _, w := range widths {
		n += w
	}
	return n
}

func (t topTable) widths() []int {
	w := make([]int, len(t.columns))
	for i, c := range t.columns {
		w[i] = len(c.title)
		for _, r := range t.rows {
			w[i] = max(w[i], len(r.cells[i]))
		}
	}
	return w
}

func (t topTable) join(cells []string, widths []int) string {
	var b strings.Builder
	for i, s := range cells {
		if i > 0 {
			b.WriteString(strings.Repeat(" ", columnGap))
		}
		s = cutTo(s, widths[i])
		space := strings.Repeat(" ", widths[i]-len(s))
		if t.columns[i].left {
			b.WriteString(s + space)
		} else {
			b.WriteString(space + s)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// cutTo shortens a text to that width, if that is not 0, and shows that it did.
func cutTo(s string, width int) string {
	if width <= 0 || len(s) <= width {
		return s
	}
	return s[:width-1] + "~"
}

// printableASCII replaces what could move the cursor, or be as wide as nobody knows:
// names of ports come from anywhere.
func printableASCII(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) < 0 {
		return s
	}
	b := make([]byte, 0, utf8.RuneCountInString(s))
	for _, r := range s {
		if r < ' ' || r > '~' {
			r = '?'
		}
		b = append(b, byte(r))
	}
	return string(b)
}

package pages

import (
	"fmt"
	"regexp"
	"strings"
)

// A page is a Markdown file. Its fenced blocks are of these kinds:
//
//	sh       commands; headings (see heading) say in which terminal
//	output   what the block before it prints
//	go       a program; its first line is a comment that names its file
//	console  commands that no test runs: withheld has each of them, and why
//	text     a picture
type page struct {
	name   string
	blocks []block
	spans  []span // code within sentences
	faults []string
}

type block struct {
	line   int
	kind   string
	lines  []string
	margin string // within a list
}

type span struct {
	line int
	text string
}

var (
	fence    = regexp.MustCompile("^(\\s*)```(.*)$")
	code     = regexp.MustCompile("`([^`]+)`")
	indented = regexp.MustCompile(`^(    |\t)\s*\S`)
	item     = regexp.MustCompile(`^\s*([-*]|\d+\.) `)
)

var kinds = map[string]bool{"sh": true, "output": true, "go": true, "console": true, "text": true}

func parse(name, text string) *page {
	p := &page{name: name}
	var open *block
	before, paragraph, inList := "", "", false
	for i, line := range strings.Split(text, "\n") {
		m := fence.FindStringSubmatch(line)
		switch {
		case m != nil && open != nil:
			p.blocks = append(p.blocks, *open)
			open = nil
		case m != nil:
			if open = (&block{line: i + 1, kind: m[2], margin: m[1]}); !kinds[m[2]] {
				p.fault(i+1, "a block of the kind %q: mark it sh, output, go, console or text", m[2])
			}
		case open != nil:
			open.lines = append(open.lines, strings.TrimPrefix(line, open.margin))
		default:
			if item.MatchString(line) {
				inList = true
			} else if line != "" && !strings.HasPrefix(line, " ") {
				inList = false
			}
			if indented.MatchString(line) && before == "" && !inList {
				p.fault(i+1, "an indented block: fence it, and say what it is")
			}
			if line == "" {
				p.addSpans(paragraph, i)
				paragraph = ""
			} else {
				paragraph += line + "\n"
			}
		}
		before = line
	}
	p.addSpans(paragraph, strings.Count(text, "\n"))
	if open != nil {
		p.fault(open.line, "this block does not end")
	}
	for i, b := range p.blocks {
		if b.kind == "output" && (i == 0 || p.blocks[i-1].kind != "sh") {
			p.fault(b.line, "output of what? No block of commands stands before it")
		}
	}
	return p
}

// addSpans finds the code in a paragraph that ends before a line.
func (p *page) addSpans(paragraph string, end int) {
	lines := strings.Count(paragraph, "\n")
	for _, m := range code.FindAllStringSubmatchIndex(paragraph, -1) {
		line := end - lines + 1 + strings.Count(paragraph[:m[0]], "\n")
		p.spans = append(p.spans, span{line, strings.Join(strings.Fields(paragraph[m[2]:m[3]]), " ")})
	}
}

func (p *page) fault(line int, format string, args ...any) {
	p.faults = append(p.faults, fmt.Sprintf("%s:%d: %s", p.name, line, fmt.Sprintf(format, args...)))
}

// A part is what of a block stands under one heading.
type part struct {
	place
	lines []string
}

// A place is where a part is typed.
type place struct {
	machine  int // 0: this one
	terminal int
	clone    bool // in the sources
	root     bool
}

func (p place) String() string { return fmt.Sprintf("machine %d, terminal %d", p.machine, p.terminal) }

// heading: "# terminal 2", "# machine 1", "# in the clone", "# as root", or several of these
// with commas between them.
var heading = regexp.MustCompile(`^# ((?:(?:terminal \d|machine \d|in the clone|as root)(?:, |$))+)$`)

// parts divides a block by its headings. What stands before the first is for terminal 1.
func (b *block) parts() (all []part) {
	for _, line := range b.lines {
		m := heading.FindStringSubmatch(line)
		if m == nil {
			if len(all) == 0 {
				all = append(all, part{place: place{terminal: 1}})
			}
			last := &all[len(all)-1]
			last.lines = append(last.lines, line)
			continue
		}
		at := place{terminal: 1}
		for word := range strings.SplitSeq(m[1], ", ") {
			switch {
			case word == "in the clone":
				at.clone = true
			case word == "as root":
				at.root = true
			case strings.HasPrefix(word, "machine "):
				at.machine = int(word[len(word)-1] - '0')
			default:
				at.terminal = int(word[len(word)-1] - '0')
			}
		}
		all = append(all, part{place: at})
	}
	return all
}

func (p part) script() string { return strings.Join(p.lines, "\n") }

// interrupted reports whether a comment of the commands says that ^C ends them.
func (p part) interrupted() bool { return untilInterrupt.MatchString(p.script()) }

var untilInterrupt = regexp.MustCompile(`(?m)[ \t]# .*\^C`)

package truth

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/captured"
	"github.com/dgrdma/dgrdma/inspect"
)

// judgement is what is true of a report, and what is not.
type judgement struct {
	plan    plan
	capture *made
	report  *inspect.Report
	flows   map[[2]int]*flow // from and to
	wrong   []string
	waited  [2]int
}

// flow is what a capture has of what one node sends to the other one.
type flow struct {
	from, to  int
	shots     []*shot
	copies    map[*content][]*shot // of contents with messages
	order     []*content           // of these
	shakes    []*shot              // WELCOMEs and CONFIRMs of both directions
	all       map[*content]bool    // of any kind, so far as something is visible
	acked     map[*content]*shot   // what acknowledges them first
	hidden    int
	bySession map[uint32][]*content // of sent, those that no cumulative acknowledgement in the capture has so far
	sent      []*content            // all with an id that its sender sent, in the order of their first sending
}

// sure reports whether all that the analyzer needs of a frame is visible.
func (s *shot) sure() bool { return s.visible == len(s.bytes) }

// hasHeader reports whether its header is, and the kind of a control frame.
func (s *shot) hasHeader() bool {
	if s.session == 0 {
		return s.visible >= frame.HeaderSize
	}
	return s.visible > frame.SessionHeaderSize
}

// after reports whether the frame's id comes after that of a content of the same series.
func (s *shot) after(c *content) bool {
	if c.session == 0 {
		return frame.Seq(s.id).Diff(frame.Seq(c.id)) > 0
	}
	return int32(s.id-c.id) > 0
}

func look(t *testing.T, seed uint64) *judgement {
	p := drawPlan(seed)
	l := run(t, p)
	j := &judgement{plan: p, capture: drawTaking(seed).take(seed, l), waited: l.waited}
	var err error
	if j.report, err = analyze(j.capture.file); err != nil && !j.capture.cut {
		j.falsely("the file: %v", err)
	}
	for _, what := range l.broken {
		j.falsely("the wire: %s", what)
	}
	j.index(l)
	for i := range j.report.Findings {
		j.judge(&j.report.Findings[i])
	}
	j.demand()
	return j
}

// analyze reads a capture as the command does.
func analyze(file []byte) (*inspect.Report, error) {
	f, err := capture.NewFile(bytes.NewReader(file))
	if err != nil {
		return inspect.New().Report(), err
	}
	a := inspect.New()
	r := captured.NewReader(f, captured.Options{})
	p, err := r.Next()
	for ; err == nil; p, err = r.Next() {
		a.Add(p)
	}
	a.Counted(r.Stats())
	a.Dropped(f.Dropped())
	if err != io.EOF {
		a.Damaged(err)
		return a.Report(), err
	}
	return a.Report(), nil
}

func (j *judgement) describe() string {
	s := j.plan.String() + "\n\t   " + j.capture.String() + fmt.Sprintf(": %d records, %d lost by it", j.capture.records, j.capture.dropped)
	for _, f := range j.report.Findings {
		s += fmt.Sprintf("\n\t   %s (%s): %s %v", f.Severity, f.Kind, f.Text, f.Records)
	}
	return s
}

func (j *judgement) falsely(format string, args ...any) {
	j.wrong = append(j.wrong, "FALSE: "+fmt.Sprintf(format, args...))
}

func (j *judgement) index(l *ledger) {
	j.flows = map[[2]int]*flow{}
	for from := range 2 {
		j.flows[[2]int{from, 1 - from}] = &flow{from: from, to: 1 - from, copies: map[*content][]*shot{}, all: map[*content]bool{}, acked: map[*content]*shot{}}
	}
	for _, s := range l.all {
		if s.nth == 0 && (s.numbered || s.sealed) {
			f := j.flows[[2]int{s.from, s.to}]
			f.sent = append(f.sent, s.content)
		}
	}
	for _, s := range j.capture.shots {
		f, back := j.flows[[2]int{s.from, s.to}], j.flows[[2]int{s.to, s.from}]
		f.shots = append(f.shots, s)
		if s.pair != [2]uint32{} && s.sure() {
			f.shakes, back.shakes = append(f.shakes, s), append(back.shakes, s)
		}
		if !s.hasHeader() || s.sealed {
			continue
		}
		if s.numbered {
			f.all[s.content] = true
		}
		if s.messages {
			if f.copies[s.content] == nil {
				f.order = append(f.order, s.content)
			}
			f.copies[s.content] = append(f.copies[s.content], s)
		}
		back.acknowledged(s)
	}
	for _, s := range j.capture.hidden {
		j.flows[[2]int{s.from, s.to}].hidden++
	}
}

// acknowledged notes what a frame of the other direction acknowledges, if nothing did before it.
func (f *flow) acknowledged(s *shot) {
	note := func(c *content) {
		if f.acked[c] == nil {
			f.acked[c] = s
		}
	}
	if !s.acked {
		for _, c := range s.acks {
			note(c)
		}
		return
	}
	if f.bySession == nil {
		f.bySession = map[uint32][]*content{}
		for _, c := range f.sent {
			f.bySession[c.session] = append(f.bySession[c.session], c)
		}
	}
	all := f.bySession[s.back] // ids count on
	for len(all) > 0 && int32(all[0].id-s.upTo) <= 0 {
		note(all[0])
		all = all[1:]
	}
	f.bySession[s.back] = all
	for i := 0; i < len(s.ranges) && s.sure(); i++ {
		for _, c := range all {
			if c.id-s.ranges[i].First < uint32(s.ranges[i].Count) {
				note(c)
			}
			if int32(c.id-s.ranges[i].First) >= int32(s.ranges[i].Count) {
				break
			}
		}
	}
}

// extra counts copies: those that the sender made, and those that the network made, or a capture at two places.
func (f *flow) extra() (again, doubled int) {
	for _, shots := range f.copies {
		sent := map[*sending]bool{}
		for i, s := range shots {
			switch {
			case i == 0:
			case sent[s.sending]:
				doubled++
			default:
				again++
			}
			sent[s.sending] = true
		}
	}
	return again, doubled
}

// introduced reports whether the handshake of the session of a frame is in the capture before it: then it is known which id is the first.
func (f *flow) introduced(s *shot) bool {
	for _, o := range f.shakes {
		if o.order > s.order {
			return false
		}
		if s.session != 0 && (o.pair[0] == s.session || o.pair[1] == s.session) {
			return true
		}
	}
	return false
}

// missing are the contents of which the capture has nothing, between the first and the last of which it has something, in each life.
func (f *flow) missing() (none []*content) {
	first, last := map[[2]uint32]int{}, map[[2]uint32]int{}
	place := map[*content]int{}
	for i, c := range f.sent {
		place[c] = i
	}
	for _, s := range f.shots {
		if !s.numbered && !s.sealed {
			continue
		}
		if _, known := first[s.series()]; !known {
			if first[s.series()] = place[s.content]; f.introduced(s) {
				first[s.series()] = -1
			}
		}
		last[s.series()] = max(last[s.series()], place[s.content])
	}
	for i, c := range f.sent {
		if from, known := first[c.series()]; known && i > from && i < last[c.series()] && !f.all[c] {
			none = append(none, c)
		}
	}
	return none
}

// at returns what is in a record from a node.
func (j *judgement) at(record, from int) (shots []*shot) {
	for _, s := range j.flows[[2]int{from, 1 - from}].shots {
		if s.record == record {
			shots = append(shots, s)
		}
	}
	return shots
}

// match takes a text apart: the numbers in the groups of a pattern.
func match(pattern, text string) ([]int, bool) {
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if m == nil {
		return nil, false
	}
	numbers := make([]int, len(m)-1)
	for i, s := range m[1:] {
		switch s {
		case "", "once", "a":
			numbers[i] = 1
		case "twice":
			numbers[i] = 2
		default:
			n, err := strconv.Atoi(strings.ReplaceAll(s, ",", ""))
			if err != nil {
				return nil, false
			}
			numbers[i] = n
		}
	}
	return numbers, true
}

// span reads a time as reports write it; the second one is by how much it may be rounded.
func span(s string) (at, rounded time.Duration) {
	s = strings.ReplaceAll(strings.ReplaceAll(s, " ", ""), "µ", "u")
	at, err := time.ParseDuration(s)
	if err != nil {
		return -1, 0
	}
	return at, at/100 + time.Second/2*time.Duration(boolean(at >= 2*time.Minute))
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// near reports whether a text's time is that one.
func near(text string, want time.Duration) bool {
	got, rounded := span(text)
	return (got - want).Abs() <= rounded+2*time.Microsecond
}

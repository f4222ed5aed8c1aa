package truth

import (
	"regexp"
	"slices"
	"strings"

	"github.com/dgrdma/dgrdma/inspect"
	"github.com/dgrdma/dgrdma/tests/worlds"
)

// judges have one for each kind of finding that can be of DG/RDMA. Kinds that no world has are false wherever they come.
var judges = map[string]func(j *judgement, f *inspect.Finding, about *flow) string{
	"capture incomplete": (*judgement).incomplete,
	"cut file": func(j *judgement, f *inspect.Finding, _ *flow) string {
		return unless(j.capture.cut, "the file is whole")
	},
	"no frames": func(j *judgement, f *inspect.Finding, _ *flow) string {
		return unless(len(j.capture.shots) == 0 || j.snapped(), "there are frames")
	},
	"behind snap length": (*judgement).behind,
	"cut":                (*judgement).cutFrames,
	"time": func(j *judgement, f *inspect.Finding, _ *flow) string {
		return unless(j.capture.clock < 0, "the clock was not set back")
	},
	"sent again":           (*judgement).sentAgain,
	"frame":                (*judgement).frame,
	"not acknowledged":     (*judgement).notAcknowledged,
	"gap":                  (*judgement).gap,
	"leap":                 (*judgement).leap,
	"transaction":          (*judgement).transaction,
	"duplicates":           (*judgement).duplicates,
	"twice in the capture": (*judgement).twice,
	"late":                 (*judgement).late,
	"never acknowledges":   (*judgement).neverAcknowledges,
	"one direction":        (*judgement).oneDirection,
	"restart":              (*judgement).restart,
	"stood still":          (*judgement).stoodStill,
	"window":               (*judgement).window,
	"no answer":            (*judgement).noAnswer,
	"stray":                (*judgement).stray,
	"sessions":             (*judgement).sessions,
	"RESET":                (*judgement).reset,
	"BYE":                  (*judgement).bye,
	"lost":                 (*judgement).lost,
	"in vain":              (*judgement).inVain,
	"transmissions before": (*judgement).unseen,
	"ended session":        (*judgement).endedSession,
	"unknown session":      (*judgement).unknownSession,
	"REJECT":               (*judgement).reject,
	"sealed":               (*judgement).sealedFrames,
	"sealed gap":           (*judgement).sealedGap,
	"sealed copies":        (*judgement).sealedCopies,
	"sealed late":          (*judgement).sealedLate,
	"sealed stray":         (*judgement).stray,
	"no challenge":         (*judgement).handshake,
	"challenge ignored":    (*judgement).handshake,
	"no second message":    (*judgement).handshake,
	"key unknown":          (*judgement).handshake,
}

func unless(ok bool, why string) string {
	if ok {
		return ""
	}
	return why
}

// judge looks at one finding.
func (j *judgement) judge(f *inspect.Finding) {
	judge := judges[f.Kind]
	if judge == nil {
		j.falsely("%q: no world has that: %s", f.Kind, f.Text)
		return
	}
	var about *flow
	if f.Flow > 0 {
		about = j.flows[[2]int{int(j.report.Flows[f.Flow-1].From.ID) - 1, int(j.report.Flows[f.Flow-1].To.ID) - 1}]
	}
	for _, r := range f.Records {
		if r < 1 || r > j.capture.records+boolean(j.capture.cut) {
			j.falsely("%q points to record %d of %d", f.Text, r, j.capture.records)
		}
	}
	if why := judge(j, f, about); why != "" {
		j.falsely("%q: %s", f.Text, why)
	}
}

// snapped reports whether counts are of what is visible, so that bounds must do.
func (j *judgement) snapped() bool { return j.capture.snap > 0 }

// unsteady reports whether more than what passed between two lives makes ids hard to tell apart.
func (j *judgement) restarts() bool { return j.plan.restart[0]+j.plan.restart[1] > 0 }

// sameLooks is what a finding has where the network may have made what the sender seems to have sent.
const sameLooks = "looks the same"

// uncounted is what a finding has where acknowledgements for a life that had ended are in the capture.
const uncounted = "for a life that had ended are not counted"

func (j *judgement) sentAgain(f *inspect.Finding, about *flow) string {
	n, ok := match(`^([\d,]+) of ([\d,]+) frames? from endpoint (\d) to endpoint (\d) (?:was|were) sent again, ([\d,]+) cop(?:y|ies) in all`, f.Text)
	if !ok {
		return "it cannot be read"
	}
	again, doubled := about.extra()
	most := again
	if strings.Contains(f.Text, sameLooks) {
		most += doubled
	}
	switch {
	case n[2] != about.from+1 || n[3] != about.to+1:
		return "it is of another flow"
	case !j.snapped() && (n[1] > len(about.order) || n[1] < len(about.order)-j.flowOf(about).Strays-j.unfollowed(j.flowOf(about))):
		return "there are so many frames: " + itoa(len(about.order))
	case n[4] > most:
		return "at most so many copies are in the capture: " + itoa(most)
	case n[0] > n[4]:
		return "more frames than copies"
	}
	for _, s := range j.at(f.Records[0], about.from) {
		if shots := about.copies[s.content]; len(shots) > 0 && shots[0] != s {
			return ""
		}
	}
	return "no copy is in that record"
}

func (j *judgement) frame(f *inspect.Finding, about *flow) string {
	n, ok := match(`^Frame (\d+) of endpoint (\d) is in the capture (twice|[\d,]+ times) within`, strings.ReplaceAll(f.Text, " times within", " times within"))
	if !ok {
		n, ok = match(`^Frame (\d+) of endpoint (\d) is in the capture ([\d,]+) times within`, f.Text)
	}
	if !ok {
		return "it cannot be read"
	}
	first, last := f.Records[0], f.Records[len(f.Records)-1]
	for _, s := range j.at(first, about.from) {
		shots := about.copies[s.content]
		if int(s.id) != n[0] || len(shots) == 0 || shots[0] != s {
			continue
		}
		here := false
		for _, l := range shots {
			here = here || l.record == last
		}
		ack := about.acked[s.content]
		switch {
		case len(shots) < n[2]:
			return "it is there " + itoa(len(shots)) + " times"
		case !here:
			return "it is not in record " + itoa(last)
		case strings.Contains(f.Text, "no acknowledgement of it is") && ack != nil && !strings.Contains(f.Text, "before its sender began") && !j.restarts():
			return "record " + itoa(ack.record) + " acknowledges it"
		case strings.Contains(f.Text, "in the capture before it") && (ack == nil || ack.order > shots[0].order):
			return "its first acknowledgement is not before it"
		case strings.Contains(f.Text, "after the first time, and came again") && !j.acknowledges(f.Records[1], s.content):
			return "that record does not acknowledge it"
		case strings.Contains(f.Text, "first acknowledgement in the capture came") && (ack == nil || ack.order < shots[0].order && !j.capture.disorder):
			return "none came"
		case strings.Contains(f.Text, "the life that it was sent to ended") && j.plan.restart[about.to] == 0:
			return "its receiver did not restart"
		}
		return ""
	}
	return "it is not in record " + itoa(first)
}

// acknowledges reports whether something in a record does so.
func (j *judgement) acknowledges(record int, c *content) bool {
	for _, s := range j.at(record, c.to) {
		if s.acknowledges(c, s.sure()) {
			return true
		}
	}
	return false
}

func (j *judgement) notAcknowledged(f *inspect.Finding, about *flow) string {
	n, ok := match(`^([\d,]+) frames? from endpoint \d`, f.Text)
	id, ok2 := match(`the first is frame (\d+)`, f.Text)
	if !ok || !ok2 {
		return "it cannot be read"
	}
	if strings.Contains(f.Text, "a life of") && j.plan.restart[about.to] == 0 {
		return "its receiver did not restart"
	}
	stale := strings.Contains(f.Text, uncounted)
	none := 0
	for _, c := range about.order {
		none += boolean(about.acked[c] == nil || stale)
	}
	if n[0] > none {
		return "there are at most " + itoa(none)
	}
	for _, s := range j.at(f.Records[0], about.from) {
		if int(s.id) == id[0] && (about.acked[s.content] == nil || stale) {
			return ""
		}
	}
	return "that frame is not in this record, or acknowledged"
}

func (j *judgement) gap(f *inspect.Finding, about *flow) string {
	n, ok := match(`^([\d,]+) frame ids? of endpoint \d (?:is|are) not in the capture, nor acknowledged (?:in it|after its first frames); the first is (\d+), before this record`, f.Text)
	if !ok {
		return "it cannot be read"
	}
	vague := strings.Contains(f.Text, uncounted) || strings.Contains(f.Text, "sent before it began")
	var none []*content
	missing := about.missing()
	if vague {
		missing = slices.DeleteFunc(slices.Clone(about.sent), func(c *content) bool { return about.all[c] })
	}
	for _, c := range missing {
		if about.acked[c] == nil || vague {
			none = append(none, c)
		}
	}
	if strings.Contains(f.Text, "no frame had them") && n[0] > len(none) {
		return "" // these are not in the truth
	}
	if n[0] > len(none) {
		return "there are at most " + itoa(len(none))
	}
	first := none[0]
	for _, c := range none {
		if vague && int(c.id) == n[1] {
			first = c
		}
	}
	if strings.Contains(f.Text, "no frame had them") && int(first.id) != n[1] {
		return ""
	}
	if int(first.id) != n[1] {
		return "the first is " + itoa(int(first.id))
	}
	for _, s := range j.at(f.Records[0], about.from) {
		if s.numbered && s.series() == first.series() && s.after(first) {
			return ""
		}
	}
	return "nothing behind it is in that record"
}

func (j *judgement) leap(f *inspect.Finding, about *flow) string {
	return unless(strings.Contains(f.Text, "sent before it began") && j.capture.begins > 0 || j.plan.restart[about.from] > 0 && (j.capture.dropped > 0 || j.snapped() || j.plan.kind != worlds.Native), "neither is anything missing in the capture, nor did it restart")
}

func (j *judgement) transaction(f *inspect.Finding, about *flow) string {
	text := strings.Replace(f.Text, ", frames of ended or unknown sessions not counted;", ";", 1)
	n, ok := match(`^Of ([\d,]+) transactions? from endpoint \d to endpoint \d not all messages are in the capture; of transaction (\d+), which begins in this record, ([\d,]+) of ([\d,]+) messages?`, text)
	if !ok {
		return "it cannot be read"
	}
	apart := map[*content]bool{}
	if text != f.Text {
		if apart = about.apart(); len(apart) == 0 {
			return "all frames are of the session at that time"
		}
	}
	// Those of frames that may not be counted may be missing.
	parts, least := map[uint32]map[uint16]bool{}, map[uint32]map[uint16]bool{}
	of := map[uint32]int{}
	for _, c := range about.order {
		for _, m := range messagesOf(c) {
			if parts[m.Txn] == nil {
				parts[m.Txn], least[m.Txn] = map[uint16]bool{}, map[uint16]bool{}
			}
			parts[m.Txn][m.Index] = true
			if !apart[c] {
				least[m.Txn][m.Index] = true
			}
			of[m.Txn] = max(int(m.Count), 1)
		}
	}
	never := 0
	for txn, p := range least {
		never += boolean(len(p) < of[txn])
	}
	txn := uint32(n[1])
	switch {
	case n[0] > never:
		return "there are at most " + itoa(never)
	case n[2] > len(parts[txn]) || n[2] < len(least[txn]) || of[txn] != n[3]:
		return "there are " + itoa(len(parts[txn])) + " of " + itoa(of[txn])
	}
	for _, s := range j.at(f.Records[0], about.from) {
		for _, m := range messagesOf(s.content) {
			if m.Txn == txn {
				return ""
			}
		}
	}
	return "it is not in that record"
}

func (j *judgement) duplicates(f *inspect.Finding, about *flow) string {
	n, ok := match(`^([\d,]+) frames? from endpoint \d to endpoint \d`, f.Text)
	if !ok {
		return "it cannot be read"
	}
	again, doubled := about.extra()
	switch {
	case n[0] > again+doubled:
		return "at most so many copies are in the capture: " + itoa(again+doubled)
	case j.capture.point == about.from && !j.capture.twice && !strings.Contains(f.Text, "is not in the capture before"):
		return "the network did not do it before the frames reached it"
	}
	for _, s := range j.at(f.Records[0], about.from) {
		if len(about.copies[s.content]) > 1 {
			return ""
		}
	}
	return "no copy is in that record"
}

func (j *judgement) twice(f *inspect.Finding, about *flow) string {
	if about == nil {
		return j.sealedCopies(f, nil)
	}
	n, ok := match(`^([\d,]+) of ([\d,]+) frames? from endpoint \d to endpoint \d (?:is|are) in the capture twice`, f.Text)
	if !ok {
		return "it cannot be read"
	}
	again, doubled := about.extra()
	if n[0] > again+doubled || !j.snapped() && (n[1] > len(about.order) || n[1] < len(about.order)-j.flowOf(about).Strays-j.unfollowed(j.flowOf(about))) {
		return "there are " + itoa(again+doubled) + " of " + itoa(len(about.order))
	}
	return unless(j.capture.twice || doubled > 0, "the sender sent them again")
}

func (j *judgement) late(f *inspect.Finding, about *flow) string {
	n, ok := match(`^([\d,]+) frames? from endpoint \d to endpoint \d came after later ones`, f.Text)
	if !ok {
		return "it cannot be read"
	}
	late, reordered := 0, 0
	newest := map[[2]uint32]int{}
	place := map[*content]int{}
	for i, c := range about.sent {
		place[c] = i
	}
	there := map[*content]bool{}
	for _, s := range about.shots {
		if !s.hasHeader() || !s.numbered || there[s.content] {
			continue
		}
		there[s.content] = true
		if at := place[s.content]; at < newest[s.series()] && s.messages {
			late++
			reordered += boolean(s.nth == 0)
		} else {
			newest[s.series()] = max(at, newest[s.series()])
		}
	}
	if n[0] > late {
		return "there are at most " + itoa(late)
	}
	if j.capture.point == about.from && !j.capture.disorder && !strings.Contains(f.Text, "the capture lost") && !strings.Contains(f.Text, "not in the capture") {
		return "nothing changed their order before they reached the capture"
	}
	return ""
}

func (j *judgement) neverAcknowledges(f *inspect.Finding, about *flow) string {
	for _, c := range about.order {
		if s := about.acked[c]; s != nil && !strings.Contains(f.Text, uncounted) {
			return "record " + itoa(s.record) + " does"
		}
	}
	if strings.Contains(f.Text, "Nothing of it is in the capture") && len(j.flows[[2]int{about.to, about.from}].shots) > 0 {
		return "something is"
	}
	return unless(strings.Contains(f.Text, "in this capture") || strings.Contains(f.Text, "before the snap length"), "it does, outside of this capture")
}

func (j *judgement) oneDirection(f *inspect.Finding, about *flow) string {
	if about == nil { // of sealed ones
		return unless(len(j.flows[[2]int{0, 1}].shots) == 0 || len(j.flows[[2]int{1, 0}].shots) == 0, "both are there")
	}
	return unless(len(j.flows[[2]int{about.to, about.from}].shots) == 0, "both are there")
}

func (j *judgement) restart(f *inspect.Finding, about *flow) string {
	if strings.Contains(f.Text, " in all.") {
		return "each restarts once at most"
	}
	m := regexp.MustCompile(`restarted after ([^,:]+)(?:, with nothing of it in the capture for ([^,:]+) before)?:`).FindStringSubmatch(f.Text)
	if m == nil {
		return "it cannot be read"
	}
	shots := j.at(f.Records[0], about.from)
	if len(shots) == 0 || j.plan.restart[about.from] == 0 {
		return "it did not restart"
	}
	s := shots[0]
	if s.life == 0 {
		return "that is of the life before"
	}
	if j.capture.clock < 0 {
		return "" // times are as captured, and a finding says that they go backwards
	}
	if !near(m[1], s.at-j.capture.shots[0].at) {
		return "it was at " + (s.at - j.capture.shots[0].at).String()
	}
	if m[2] == "" {
		return ""
	}
	var before *shot
	for _, o := range about.shots {
		if o.order < s.order {
			before = o
		}
	}
	return unless(before == nil || near(m[2], s.at-before.at) || j.snapped(), "it was there before")
}

func (j *judgement) stoodStill(f *inspect.Finding, about *flow) string {
	m := regexp.MustCompile(`^Nothing of endpoint (\d) is in the capture for ([^,]+), from ([^,]+) on, while ([\d,]+) frames? (?:was|were) sent to it`).FindStringSubmatch(f.Text)
	if m == nil {
		return "it cannot be read"
	}
	from, until := f.Records[0], f.Records[1]
	there := 0
	for _, s := range j.capture.shots {
		if s.record >= from && s.record < until {
			if s.from == about.from && s.record > from && !s.hello {
				return "something of it is in record " + itoa(s.record)
			}
			there += boolean(s.from == about.to && (s.messages || s.sealed))
		}
	}
	n, _ := match(`([\d,]+)`, m[4])
	return unless(there >= n[0], "there are "+itoa(there))
}

func (j *judgement) window(f *inspect.Finding, about *flow) string {
	n, ok := match(`^A window of ([\d,]+) seems to hold throughput from endpoint \d to endpoint \d`, f.Text)
	if !ok {
		return "it cannot be read"
	}
	if l := j.plan.loads[about.from]; l.every > 0 && j.waited[about.from] <= n[0] && j.plan.links[0].Jitter+j.plan.links[1].Jitter > 0 { // else its pace may be in step with acknowledgements
		return "its sender was held by its own pace"
	}
	return unless(n[0] > 1, "one is none")
}

func (j *judgement) noAnswer(f *inspect.Finding, about *flow) string {
	return unless(about == nil || len(j.flows[[2]int{about.to, about.from}].shots) == 0, "something is in the capture")
}

func (j *judgement) stray(f *inspect.Finding, about *flow) string {
	l := &j.plan.links
	held := l[0].HoldBack+l[1].HoldBack+l[0].Reorder+l[1].Reorder > 0
	if about == nil { // of sealed ones
		return unless(held || j.restarts() || j.capture.dropped > 0, "the network held nothing back, and keys stayed")
	}
	again, _ := about.extra()
	return unless(held || j.restarts() || again > 0 || j.capture.begins > 0, "the network held nothing back, and nothing was sent again")
}

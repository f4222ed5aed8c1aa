package truth

import (
	"maps"
	"regexp"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/inspect"
)

// one returns what a finding's record has of a node, if it is of that kind.
func (j *judgement) one(record, from int, is func(s *shot) bool) *shot {
	for _, s := range j.at(record, from) {
		if is(s) {
			return s
		}
	}
	return nil
}

func isControl(kind frame.Control) func(s *shot) bool {
	return func(s *shot) bool { return s.session != 0 && s.control == kind }
}

func (j *judgement) sessions(f *inspect.Finding, about *flow) string {
	n, ok := match(`^Frames from endpoint \d to endpoint \d are of ([\d,]+) sessions; the second begins in this record\. `, f.Text)
	if !ok {
		return "it cannot be read"
	}
	var tags []uint32
	known := map[uint32]bool{}
	for _, s := range about.shots {
		if s.session != 0 && !known[s.session] {
			known[s.session] = true
			tags = append(tags, s.session)
		}
	}
	first := j.one(f.Records[0], about.from, func(s *shot) bool { return s.session != 0 && s.session != tags[0] })
	switch {
	case n[0] > len(tags):
		return "there are " + itoa(len(tags))
	case first == nil:
		return "that record has none of another session"
	}
	m := regexp.MustCompile(`Endpoint (\d) ended the first one with BYE; `).FindStringSubmatch(f.Text)
	if m == nil {
		return ""
	}
	by := int(m[1][0] - '1')
	for _, s := range j.flows[[2]int{by, 1 - by}].shots {
		if isControl(frame.ControlBye)(s) && (s.session == tags[0] || s.back == tags[0]) {
			return ""
		}
	}
	return "it said no BYE"
}

func (j *judgement) bye(f *inspect.Finding, about *flow) string {
	s := j.one(f.Records[0], about.from, isControl(frame.ControlBye))
	return unless(s != nil, "there is none in that record")
}

func (j *judgement) reset(f *inspect.Finding, about *flow) string {
	n, ok := match(`^Endpoint \d answered ([\d,]+) frames? of endpoint \d with RESET`, f.Text)
	if !ok {
		return "it cannot be read"
	}
	there := 0
	for _, s := range j.flows[[2]int{about.to, about.from}].shots {
		there += boolean(isControl(frame.ControlReset)(s))
	}
	record := f.Records[len(f.Records)-1]
	s := j.one(record, about.to, isControl(frame.ControlReset))
	switch {
	case n[0] > there:
		return "there are " + itoa(there)
	case s == nil:
		return "there is none in record " + itoa(record)
	}
	id, ok := match(`the first to frame (\d+)`, f.Text)
	if !ok {
		return ""
	}
	quoted := j.one(f.Records[0], about.from, func(q *shot) bool { return q.numbered && int(q.id) == id[0] && q.session == s.session })
	return unless(quoted != nil && int(s.id) == id[0], "it quotes another frame")
}

// lost bounds the transmissions that arrived after a later one of their frame, or never, or where the session may not have been there yet.
func (j *judgement) lost(f *inspect.Finding, about *flow) string {
	n, _ := match(`^([\d,]+) transmissions?`, f.Text)
	most := 0
	for _, c := range about.sent {
		for i, s := range c.sends {
			for _, later := range c.sends[i+1:] {
				if later.came > 0 && (s.came == 0 || s.came > later.came || s.early) {
					most++
					break
				}
			}
		}
	}
	return unless(len(n) == 1 && n[0] <= most, "there are at most "+itoa(most))
}

func (j *judgement) inVain(f *inspect.Finding, about *flow) string {
	n, _ := match(`^([\d,]+) retransmissions?`, f.Text)
	most := 0
	for _, c := range about.sent {
		for i, s := range c.sends {
			if i > 0 && s.times > 1 { // the network doubled it
				most++
				continue
			}
			for k, o := range c.sends {
				if i > 0 && k != i && s.came > 0 && o.came > 0 && o.came < s.came {
					most++
					break
				}
			}
		}
	}
	return unless(len(n) == 1 && n[0] <= most, "there are at most "+itoa(most))
}

// unseen bounds the transmissions of frames of which the capture has a later one.
func (j *judgement) unseen(f *inspect.Finding, about *flow) string {
	n, _ := match(`^([\d,]+) transmissions?`, f.Text)
	most := 0
	for _, c := range about.order {
		there := map[*sending]bool{}
		for _, s := range about.copies[c] {
			there[s.sending] = true
		}
		most += len(c.sends) - len(there)
	}
	return unless(len(n) == 1 && n[0] <= most, "there are at most "+itoa(most))
}

// endedSession bounds the frames that came after some of a session that began later.
func (j *judgement) endedSession(f *inspect.Finding, about *flow) string {
	return j.otherSession(f, about, ofEnded)
}

// unknownSession bounds the frames of a session of which none came just before.
func (j *judgement) unknownSession(f *inspect.Finding, about *flow) string {
	return j.otherSession(f, about, ofUnknown)
}

// ofEnded reports whether some frames of the session, and some of another one, came before a frame.
func ofEnded(s *shot, before []*shot) bool {
	own, later := false, false
	for _, o := range before {
		own = own || o.session == s.session
		later = later || o.session != s.session
	}
	return own && later
}

// ofUnknown reports whether the frame just before is of another session.
func ofUnknown(s *shot, before []*shot) bool {
	return len(before) > 0 && before[len(before)-1].session != s.session
}

// apart returns those with messages of which each copy may be one of an ended or unknown session.
func (f *flow) apart() map[*content]bool {
	all := map[*content]bool{}
	var before []*shot
	for _, s := range f.shots {
		if s.session == 0 || s.control == frame.ControlReset {
			continue
		}
		may, seen := all[s.content]
		all[s.content] = (may || !seen) && (ofEnded(s, before) || ofUnknown(s, before))
		before = append(before, s)
	}
	maps.DeleteFunc(all, func(_ *content, apart bool) bool { return !apart })
	return all
}

func (j *judgement) otherSession(f *inspect.Finding, about *flow, is func(s *shot, before []*shot) bool) string {
	n, ok := match(`^([\d,]+) frames?`, f.Text)
	if !ok {
		return "it cannot be read"
	}
	most, here := 0, false
	var before []*shot
	for _, s := range about.shots {
		if s.session == 0 || s.control == frame.ControlReset {
			continue
		}
		if is(s, before) {
			most++
			here = here || s.record == f.Records[0]
		}
		before = append(before, s)
	}
	if n[0] > most {
		return "there are at most " + itoa(most)
	}
	return unless(here, "there is none in that record")
}

func (j *judgement) reject(f *inspect.Finding, about *flow) string {
	s := j.one(f.Records[0], about.from, func(s *shot) bool { return s.hello })
	return unless(s != nil && j.plan.restart[about.from] > 0, "it did not restart, and knows what it told")
}

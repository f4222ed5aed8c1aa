package truth

import (
	"regexp"

	"github.com/dgrdma/dgrdma/inspect"
)

var (
	said   = regexp.MustCompile(`its file says that ([\d,]+) packets? (?:was|were) dropped`)
	absent = regexp.MustCompile(`endpoint (\d) acknowledges ([\d,]+) frames? of endpoint \d that (?:is|are) not in it(?:, the first is (\d+), before record ([\d,]+))?`)
)

func (j *judgement) incomplete(f *inspect.Finding, _ *flow) string {
	for i := range j.report.Findings {
		if o := &j.report.Findings[i]; o == f {
			break
		} else if o.Kind != "behind snap length" {
			return "it is not the first"
		}
	}
	if m := said.FindStringSubmatch(f.Text); m != nil {
		if n, _ := match(`([\d,]+)`, m[1]); !j.capture.tells || n[0] != j.capture.dropped {
			return "the file says something else"
		}
	}
	for _, m := range absent.FindAllStringSubmatch(f.Text, -1) {
		n, _ := match(`(\d+) ([\d,]+)`, m[1]+" "+m[2])
		about := j.flows[[2]int{2 - n[0], n[0] - 1}]
		none := map[*content]bool{}
		for c := range about.acked {
			if !about.all[c] {
				none[c] = true
			}
		}
		if n[1] > len(none) {
			return "of these " + m[2] + " only so many are missing: " + itoa(len(none))
		}
		if m[3] == "" {
			continue
		}
		id, _ := match(`(\d+)`, m[3])
		record, _ := match(`([\d,]+)`, m[4])
		found := false
		for c := range none {
			found = found || int(c.id) == id[0]
		}
		if !found {
			return "frame " + m[3] + " is in the capture, or nothing acknowledges it"
		}
		if len(j.at(record[0], about.from)) == 0 {
			return "nothing of that sender is in the record " + m[4]
		}
	}
	return ""
}

func (j *judgement) behind(f *inspect.Finding, _ *flow) string {
	if n, ok := match(`: at least ([\d,]+) frames? (?:is|are) behind it`, f.Text); ok {
		return unless(n[0] <= len(j.capture.hidden), "there are "+itoa(len(j.capture.hidden)))
	}
	if n, ok := match(`^A snap length cut ([\d,]+) records? within what may be`, f.Text); ok {
		short := 0
		for _, s := range j.capture.shots {
			short += boolean(!s.sure())
		}
		return unless(n[0] <= short, "there are at most "+itoa(short))
	}
	n, ok := match(`^A snap length cut ([\d,]+) frames? within their headers`, f.Text)
	if !ok {
		return "it cannot be read"
	}
	short := 0
	for _, s := range j.capture.shots {
		if !s.sure() && s.visible < 40 {
			short++
		}
	}
	return unless(n[0] <= short, "there are at most "+itoa(short))
}

func (j *judgement) cutFrames(f *inspect.Finding, _ *flow) string {
	n, _ := match(`^([\d,]+) frames?`, f.Text)
	cut := 0
	for _, s := range j.capture.shots {
		cut += boolean(!s.sure())
	}
	return unless(n[0] <= cut, "there are "+itoa(cut))
}

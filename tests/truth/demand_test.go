package truth

import (
	"strconv"
	"strings"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/inspect"
)

func itoa(n int) string { return strconv.Itoa(n) }

func messagesOf(c *content) (all []frame.Message) {
	f, err := frame.Parse(c.sends[0].bytes)
	if err != nil || !c.messages {
		return nil
	}
	for cursor := f.Cursor(); cursor.Next(); {
		all = append(all, cursor.Msg)
	}
	return all
}

// demand looks for what can be seen and has to be said.
func (j *judgement) demand() {
	if j.plan.sealed || j.snapped() || j.capture.cut {
		return
	}
	for _, k := range []*flow{j.flows[[2]int{0, 1}], j.flows[[2]int{1, 0}]} {
		r := j.flowOf(k)
		if r == nil {
			continue
		}
		again, doubled := k.extra()
		j.equal(k, "frames with messages, and copies", r.Firsts+r.Resent+r.Duplicates+r.Conflicts+r.Strays, len(k.order)+again+doubled, j.restarts())
		if short := len(k.order) - r.Firsts; short < 0 || short > r.Strays {
			j.equal(k, "frames with messages", r.Firsts, len(k.order), j.restarts())
		}
		if j.plan.kind.Native() && !j.capture.twice && j.capture.point == k.from && j.capture.dropped == 0 && j.capture.oneWay < 0 && !j.capture.disorder && j.capture.clock == 0 {
			j.equal(k, "copies that the sender made", r.Resent, again, j.restarts())
		}
		absent := 0
		for c := range k.acked {
			absent += boolean(!k.all[c] && k.between(c))
		}
		if !j.restarts() && j.capture.begins == 0 && !strings.Contains(allSaid(j.report), "go on elsewhere") {
			j.equal(k, "frames that are acknowledged and not in the capture", r.MissingAcked, absent, false)
		}
		j.restartsTold(k, r)
	}
	if j.capture.tells && j.capture.dropped > 0 && !j.snapped() && (len(j.report.Findings) == 0 || j.report.Findings[0].Kind != "capture incomplete") {
		j.falsely("that the capture lost frames is not told first")
	}
}

// between reports whether what is first in the capture, of the same life, was sent before that.
func (k *flow) between(c *content) bool {
	for _, s := range k.shots {
		if s.life == c.life {
			return s.sends[0].number < c.sends[0].number
		}
	}
	return false
}

func (j *judgement) flowOf(k *flow) *inspect.Flow {
	for i := range j.report.Flows {
		if r := &j.report.Flows[i]; int(r.From.ID) == k.from+1 {
			return r
		}
	}
	return nil
}

func (j *judgement) equal(k *flow, what string, got, want int, roughly bool) {
	if got != want && !(roughly && (got-want)*(got-want) <= 4) {
		j.falsely("from endpoint %d: %d %s, want %d", k.from+1, got, what, want)
	}
}

func allSaid(r *inspect.Report) (all string) {
	for _, f := range r.Findings {
		all += f.Text + "\n"
	}
	return all
}

// restartsTold demands that a restart is told of which the introduction is in the capture.
func (j *judgement) restartsTold(k *flow, r *inspect.Flow) {
	before, visible := false, false
	for _, s := range k.shots {
		before = before || s.life == 0 && !s.hello
		f, err := frame.Parse(s.bytes)
		visible = visible || before && s.life > 0 && s.hello && err == nil && f.HelloID() != 0
	}
	leaps := false
	for _, f := range j.report.Findings {
		leaps = leaps || f.Kind == "leap" && f.Flow == r.Number
	}
	if visible && len(r.Restarts) == 0 && !leaps {
		j.falsely("endpoint %d restarted, and that is not told", k.from+1)
	}
	told := false
	for _, f := range j.report.Findings {
		told = told || f.Kind == "restart" && strings.HasPrefix(f.Text, "Endpoint "+itoa(k.from+1)+" ")
	}
	if len(r.Restarts) > 0 && !told {
		j.falsely("a restart of endpoint %d is counted, and not told", k.from+1)
	}
}

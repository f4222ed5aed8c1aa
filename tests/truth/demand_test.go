package truth

import (
	"slices"
	"strconv"
	"strings"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/inspect"
)

func itoa(n int) string { return strconv.Itoa(n) }

func messagesOf(c *content) (all []frame.Message) {
	if !c.messages {
		return nil
	}
	var cursor frame.Cursor
	if whole, _ := frame.SplitChecksum(c.sends[0].bytes); c.session != 0 {
		f, err := frame.ParseSession(whole)
		if err != nil {
			return nil
		}
		cursor = f.Cursor()
	} else {
		f, err := frame.Parse(whole)
		if err != nil {
			return nil
		}
		cursor = f.Cursor()
	}
	for cursor.Next() {
		if cursor.Msg.Type != frame.TypeServices {
			all = append(all, cursor.Msg)
		}
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
		j.equal(k, "frames with messages, and copies", r.Firsts+r.Resent+r.Duplicates+r.Conflicts+r.Strays+j.unfollowed(r), len(k.order)+again+doubled, j.restarts())
		if short := len(k.order) - r.Firsts; short < 0 || short > r.Strays+j.unfollowed(r) {
			j.equal(k, "frames with messages", r.Firsts, len(k.order), j.restarts())
		}
		if j.plan.kind.Native() && !j.restarts() && !j.capture.twice && k.mostSent() <= frame.MostCopies {
			// Copies have numbers: wherever the capture was taken, whatever it lost.
			j.equal(k, "copies that the sender made", r.Resent, again, false)
			j.equal(k, "copies that the network made", r.Duplicates, doubled, false)
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

// between reports whether what is first in the capture, of the same numbering, was sent before that, or it is known where that begins.
func (k *flow) between(c *content) bool {
	for _, s := range k.shots {
		if s.numbered && s.hasHeader() && s.series() == c.series() {
			return k.introduced(s) || s.sends[0].number < c.sends[0].number
		}
	}
	return false
}

// mostSent returns how often the frame was sent that was sent most often.
func (k *flow) mostSent() (n int) {
	for _, c := range k.order {
		n = max(n, len(c.sends))
	}
	return n
}

// unfollowed returns how many frames are counted as of a session that the report does not follow.
func (j *judgement) unfollowed(r *inspect.Flow) (n int) {
	for _, f := range j.report.Findings {
		if count, ok := match(`^([\d,]+) frames?`, f.Text); ok && f.Flow == r.Number && (f.Kind == "ended session" || f.Kind == "unknown session") {
			n += count[0]
		}
	}
	return n
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

// restartsTold demands that a restart of a peer without sessions that is counted is told, and, of sessions, that another one is told whose
// handshake is in the capture.
func (j *judgement) restartsTold(k *flow, r *inspect.Flow) {
	told := func(kind, begins string) bool {
		for _, f := range j.report.Findings {
			if f.Kind == kind && strings.HasPrefix(f.Text, begins) {
				return true
			}
		}
		return false
	}
	if len(r.Restarts) > 0 && !told("restart", "Endpoint "+itoa(k.from+1)+" ") {
		j.falsely("a restart of endpoint %d is counted, and not told", k.from+1)
	}
	var seen []uint32
	for _, s := range k.shots {
		if s.numbered && s.nth == 0 && !slices.Contains(seen, s.session) && k.introduced(s) {
			seen = append(seen, s.session)
		}
	}
	if len(seen) > 1 && (len(r.Sessions) < 2 || !told("sessions", "Frames from endpoint ")) {
		j.falsely("endpoint %d sent in %d sessions, and %d are told", k.from+1, len(seen), len(r.Sessions))
	}
}

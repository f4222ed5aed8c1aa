package inspect

import (
	"fmt"
	"math"
	"strings"
)

// losesFrames reports whether the capture itself lost frames: its file says so, or what it has shows it. Then frames that are missing
// may have been there, and acknowledgements too.
func (a *Analyzer) losesFrames() bool {
	if a.capture.Dropped > 0 {
		return true
	}
	for _, f := range a.order {
		if f.missingAcked > 0 || f.jumps > 0 {
			return true
		}
	}
	return false
}

// aboutLosses tells what the capture itself lost, of all flows at once: much else may follow from that.
func (a *Analyzer) aboutLosses(c *findings) {
	var parts []string
	var where []int
	n, cut := 0, false
	if d := a.capture.Dropped; d > 0 {
		n = d
		parts = append(parts, fmt.Sprintf("its file says that %s %s dropped, for which the host that captured had no room", count(d, "packet"), wasWere(d)))
	}
	told, more, moreFlows := 0, 0, 0
	for _, f := range a.order {
		m := f.missingAcked
		if m == 0 || f.jumps > 0 { // how many are missing where ids leap cannot be told
			continue
		}
		n += m
		cut = cut || f.cuts > 0
		if told++; told > mostOfAKind {
			more += m
			moreFlows++
			continue
		}
		from, to := c.names(f.key)
		text := fmt.Sprintf("%s acknowledges %s of %s that %s not in it", to, count(m, "frame"), from, isAre(m))
		if first := &f.firstMissingAcked; first.record != 0 {
			text += fmt.Sprintf(", the first is %d, before record %s", f.shown(first.id), Grouped(int64(first.record)))
			where = append(where, first.record)
		}
		parts = append(parts, text)
	}
	if more > 0 {
		parts = append(parts, fmt.Sprintf("so %s of %s", isAre(more), count(more, "frame")+" of "+count(moreFlows, "other flow")))
	}
	if len(parts) == 0 {
		return
	}
	why := "The capture itself lost frames"
	if cut && a.capture.Dropped == 0 { // what follows a frame whose end is not known may be one more
		why += ", or its snap length hides them"
	}
	c.add(Warning, "capture incomplete", min(n, math.MaxInt32), where, "%s: %s. What this report says of frames that are missing, or not acknowledged, may follow from that.", why, strings.Join(parts, "; "))
	c.first()
}

package inspect

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/captured"
)

// joinedRecord is a record of several datagrams. Its packets come one after the other, and those that lie behind
// the snap length do not come.
type joinedRecord struct {
	number int
	left   int  // datagrams behind the last one that came
	cut    bool // that one was
	behind int  // datagrams behind the last one that could be read

	// That one was a frame of a flow, or a sealed one.
	flow  *flow
	seq   frame.Seq
	way   *sealedWay
	index byte // of its key
	count uint64
	salt  uint32
}

// opens takes a packet before it is looked at.
func (a *Analyzer) opens(p *captured.Packet) {
	if p.Segment <= 1 {
		a.hides()
	}
	a.offload = a.offload || p.Segments > 1
	a.joined.number, a.joined.left, a.joined.cut, a.joined.behind = p.Record, max(0, p.Segments-p.Segment), p.Cut(), 0
}

// reads takes a frame of a record.
func (a *Analyzer) reads(f *flow, p *captured.Packet, s *seen) {
	j := &a.joined
	switch {
	case p.Segment < p.Segments:
		f.joinedSize = p.Length
	case p.Segments == 0 && s.cut && f.joinedSize > 0 && p.Length > f.joinedSize && len(s.messages) > 0 && s.messages[len(s.messages)-1].More:
		// Where it ends lies behind the snap length, too, so that it looks like one frame.
		a.unsplit.add(1, p.Record)
		j.behind = (p.Length - 1) / (f.joinedSize + frame.PrefixSize)
	}
	j.flow, j.way, j.seq = f, nil, s.Seq
	j.behind = max(j.behind, j.left)
}

// hides draws the conclusion of a record that no more packets come from. A sender numbers one datagram after the other.
func (a *Analyzer) hides() {
	j := a.joined
	a.joined = joinedRecord{}
	if j.left > 0 {
		a.hiddenIn++
		a.capture.Hidden += j.left
		if a.firstHidden == 0 {
			a.firstHidden = j.number
		}
	}
	switch {
	case j.left == 0 && !j.cut, j.behind == 0:
	case j.flow != nil:
		j.flow.hide(&j)
	case j.way != nil:
		j.way.hide(&j)
	}
}

// hide notes that frames of a record, which its header counts, are not in the capture.
func (f *flow) hide(j *joinedRecord) {
	f.hidden += j.behind
	at := f.ids.newest.Near(j.seq)
	if f.ids.known(at) == nil {
		return // a stray one
	}
	f.hideIDs(at, min(j.behind, maxJump), j.number)
}

// headless notes that a frame was cut between its header and its first message.
func (f *flow) headless(s *seen) {
	if f == nil || !f.ids.begun {
		return
	}
	f.hidden++
	f.ids.earn()
	if w := f.ids.newest.Near(s.Seq); abs(w.Diff(f.ids.newest)) <= maxJump {
		f.hideIDs(w-1, 1, s.record)
	}
}

// hideIDs notes that so many ids behind at are of frames that cannot be seen.
func (f *flow) hideIDs(at ack.Wide, n, record int) {
	last := at + ack.Wide(n)
	cost := max(n, last.Diff(f.ids.newest))
	if cost > f.ids.jump {
		return // too many to be told apart: they are counted alone
	}
	f.ids.jump -= cost
	if last.Diff(f.ids.newest) > 0 {
		f.advance(last, &seen{record: record, at: f.last})
	}
	for w := at + 1; w.Diff(last) <= 0; w++ {
		f.ids.looked++
		if x := f.ids.known(w); x != nil && x.state == slotMissing {
			x.state = slotHidden
			f.hiddenPlaced++
		}
	}
}

// explain takes from what is missing what can lie behind the snap length: frames that are sent again stand among new ones.
func (f *flow) explain() {
	n := min(f.hidden-f.hiddenPlaced, f.missing)
	f.missing -= n
	f.missingAcked -= min(n, f.missingAcked)
}

// hide notes that sealed frames of a record are not in the capture. All have counters of their own.
func (w *sealedWay) hide(j *joinedRecord) {
	c := w.under[j.index]
	if c == nil || !c.begun || c.top < j.count {
		return
	}
	c.hide(j.count, j.count+uint64(min(j.behind, counterLeap)), j.salt, j.number, &w.sealedCounts)
}

// hide notes that the counters after one, up to another one, are of frames that cannot be seen. Only those that have room are looked at.
func (c *counting) hide(from, to uint64, salt uint32, record int, k *sealedCounts) {
	seen := counterSlot{salt: salt, seen: true}
	for n := max(from, c.top-min(c.top, counterWindow)) + 1; n <= min(to, c.top); n++ {
		if s := c.at(n); !s.seen {
			*s = seen
		}
	}
	if to > c.top+counterWindow {
		c.settle(k)
		c.first = to - counterWindow + 1
		c.top = c.first - 1
	}
	for c.top < to {
		c.advance(c.top+1, record, k)
		*c.at(c.top) = seen
	}
}

package ack

import (
	"testing"

	"github.com/dgrdma/dgrdma/frame"
)

// receiverModel is what a Receiver should know, in maps. Places count ids
// without wrapping.
type receiverModel struct {
	t        testing.TB
	r        Receiver
	cfg      ReceiverConfig
	active   bool
	newest   int64
	far      frame.Seq          // the last one that was too far ahead
	isFar    bool               // and nothing moved the window since
	tags     map[int64]uint16   // of the frames accepted since the history began
	applied  map[frame.Seq]bool // accepted at any time since the last reset
	due      map[frame.Seq]bool // accepted or come again since it was last taken
	fresh    int
	urgent   bool
	nextTag  uint16
	appended []Range
}

func (m *receiverModel) reset() {
	m.active, m.fresh, m.urgent, m.isFar = false, 0, false, false
	m.tags, m.due, m.applied = make(map[int64]uint16), make(map[frame.Seq]bool), make(map[frame.Seq]bool)
}

// place returns where an id lies, and what should be said about it.
func (m *receiverModel) place(q frame.Seq) (int64, Verdict) {
	if !m.active {
		return int64(q), New
	}
	d := int64(q.Diff(frame.Seq(m.newest)))
	p := m.newest + d
	if near := int64(m.cfg.Ahead); near > 0 && d > near {
		if apart := int64(q.Diff(m.far)); !m.isFar || max(apart, -apart) > near {
			return p, Far
		}
	}
	if d <= -int64(m.cfg.History) {
		return p, Old
	}
	if _, ok := m.tags[p]; ok {
		return p, Duplicate
	}
	return p, New
}

func (m *receiverModel) check(q frame.Seq) (int64, Verdict) {
	p, want := m.place(q)
	if got := m.r.Check(q); got != want {
		m.t.Fatalf("id %d is %v, want %v; newest is %d", q, got, want, frame.Seq(m.newest))
	}
	tag, known := m.tags[p]
	known = known && p > m.newest-int64(m.cfg.History)
	if m.r.Carried(q, m.nextTag) {
		m.t.Fatalf("id %d was carried with a tag that no frame had", q)
	}
	if m.r.Carried(q, tag) != known {
		m.t.Fatalf("id %d carried with tag %d is %v, want %v", q, tag, !known, known)
	}
	return p, want
}

func (m *receiverModel) receive(q frame.Seq) {
	p, v := m.check(q)
	if v == Far {
		m.r.Sight(q)
		m.far, m.isFar = q, true
		m.check(q)
		return
	}
	if v != New {
		m.r.Again(q)
		m.urgent = true
		m.due[q] = true
		return
	}
	m.r.Accept(q, m.nextTag)
	if !m.active {
		m.tags = make(map[int64]uint16)
	} else if p > m.newest+1 {
		m.urgent = true
	}
	if !m.active || p > m.newest {
		m.active, m.newest, m.isFar = true, p, false
	}
	m.tags[p] = m.nextTag
	m.nextTag++
	if m.nextTag == 0 {
		m.nextTag = 2
	}
	m.applied[q], m.due[q] = true, true
	m.fresh++
	if _, v := m.check(q); v != Duplicate {
		m.t.Fatal("BUG: the model forgot a frame")
	}
}

func (m *receiverModel) ackOnly(q frame.Seq) {
	p, v := m.check(q)
	m.r.AckOnly(q)
	switch {
	case v == Far:
		m.far, m.isFar = q, true
	case m.active && p > m.newest:
		m.newest, m.isFar = p, false
	}
	m.check(q)
}

func (m *receiverModel) takeDue() {
	if fresh, urgent := m.r.pending(); fresh != m.fresh || urgent != m.urgent {
		m.t.Fatalf("%d frames fresh, urgent %v; want %d, %v", fresh, urgent, m.fresh, m.urgent)
	}
	m.fresh, m.urgent = 0, false
	m.appended = allDue(&m.r)
	covered := make(map[frame.Seq]bool)
	for _, run := range m.appended {
		if run.Count == 0 {
			m.t.Fatal("an empty run")
		}
		if m.cfg.SplitAtWrap && int(run.Start)+int(run.Count) > 1<<16 {
			m.t.Fatalf("run %v lies across the wrap", run)
		}
		for i := range int(run.Count) {
			q := run.Start.Add(i)
			covered[q] = true
			if m.due[q] {
				continue
			}
			if !m.cfg.Repeat {
				m.t.Fatalf("run %v: nothing asked for id %d", run, q)
			}
			if _, v := m.place(q); v != Duplicate || !m.applied[q] {
				m.t.Fatalf("run %v acknowledges id %d, which is %v", run, q, v)
			}
		}
	}
	for q := range m.due {
		if !covered[q] && len(m.due) <= mostPendingAcks { // else the oldest may be forgotten
			m.t.Fatalf("id %d is not acknowledged by %v", q, m.appended)
		}
	}
	clear(m.due)
}

func (m *receiverModel) verifyNewest() {
	if s := m.r.Newest(); m.active && s != frame.Seq(m.newest) {
		m.t.Fatalf("newest id %d, want %d", s, frame.Seq(m.newest))
	}
}

// runReceiver runs a script: ids near the newest one, ids anywhere, frames
// without messages, and what an owner may do.
func runReceiver(t testing.TB, b []byte) {
	s := &script{b}
	kind := s.byte()
	m := &receiverModel{t: t, nextTag: 2, cfg: ReceiverConfig{
		History:     []int{1, 2, 16, 256, 1024, MaxHistory}[kind%6],
		Repeat:      kind&8 != 0,
		SplitAtWrap: kind&16 != 0,
	}}
	if kind&32 != 0 {
		m.cfg.Ahead = max(1, m.cfg.History/2)
	}
	m.r.Init(m.cfg)
	m.reset()
	m.check(0)
	base := frame.Seq(s.uint16()) // where the script is
	for s.more() {
		op := s.byte()
		arg := op >> 4
		newest := frame.Seq(m.newest)
		if !m.active {
			newest = base
		}
		switch op & 15 {
		case 0, 1, 2: // in order
			for range arg + 1 {
				newest++
				m.receive(newest)
			}
		case 3: // with a gap
			m.receive(newest.Add(arg + 2))
		case 4: // late, or a duplicate
			m.receive(newest.Add(-arg))
		case 5:
			m.receive(newest.Add(-s.byte() * (arg + 1)))
		case 6: // about the end of the history
			m.receive(newest.Add(-m.cfg.History + 8 - arg))
		case 7: // about half the id space away
			m.receive(newest.Add(1<<15 + 8 - arg))
		case 8:
			m.receive(frame.Seq(s.uint16()))
		case 9:
			m.receive(newest.Add(s.byte() * (arg + 1)))
		case 10:
			m.ackOnly(newest.Add(8 - arg))
		case 11: // about as far as it may move the window
			m.ackOnly(newest.Add(1024 + 8 - arg))
		case 12:
			m.ackOnly(frame.Seq(s.uint16()))
		case 13:
			m.takeDue()
		case 14, 15:
			switch {
			case arg == 0:
				m.r.Reset()
				m.reset()
			case arg < 4:
				m.r.DropPending()
				m.fresh, m.urgent = 0, false
				clear(m.due)
			default: // in reverse
				for i := range arg {
					m.receive(newest.Add(arg - i))
				}
			}
		}
		m.verifyNewest()
	}
	m.takeDue()
	// What was accepted stays known: another lap of the window finds nothing new.
	for p := range m.tags {
		m.check(frame.Seq(p))
	}
}

func FuzzReceiver(f *testing.F) {
	for _, b := range [][]byte{
		{},
		{3 | 8, 0, 0, 0xf0, 13, 0x43, 0x00, 13, 0x14, 0x04, 13},
		{5 | 8 | 16, 0xf8, 0xff, 0xf0, 0xf0, 13, 0x35, 9, 13, 0x86, 0x76, 13},
		{3 | 3<<6, 1, 0, 0xf0, 0x7b, 0x8b, 0x9b, 0xf0, 0x77, 0x87, 0x97, 0xf0, 13},
		{1 | 2<<6, 0xff, 0xff, 0x00, 0x3a, 0xfa, 0x03, 0x0e, 0x4e, 13, 0x0f, 0x10, 0xff, 13},
		{0, 0, 0x80, 0x20, 0x14, 0x04, 0xf8, 1, 2, 0xd8, 1, 2, 13},
		{4 | 8 | 1<<6, 0xf0, 0xff, 0x33, 0x33, 0x33, 0x24, 0x44, 0xb4, 13, 0x9f, 0x24, 13, 0x2f},
	} {
		f.Add(b)
		if len(b) > 0 {
			f.Add(append([]byte{b[0] ^ 32}, b[1:]...))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 2000 {
			runReceiver(t, b)
		}
	})
}

func TestReceiverRandomScripts(t *testing.T) {
	randomScripts(t, 4000, 300, runReceiver)
}

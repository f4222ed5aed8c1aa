package endpoint

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// nativeReceiving is what is received from a peer of our own kind. It belongs to who has
// the turn to receive.
type nativeReceiving struct {
	*receiving
	both    greeter
	late    ack.Lateness
	theirs  incarnation // unknown: not introduced yet
	mine    incarnation // our life, to which that one speaks
	paired  bool        // and which it believes
	checks  bool        // its frames have a checksum
	taken   bool        // something was applied in that life
	doubted doubt
	other   frame.Identity // who is in the peer's place, as was said in this batch
	asked   incarnation    // to that life of ours
	nativeLedger
}

var (
	_ receivingKind = (*nativeReceiving)(nil)
	_ ledger        = (*nativeLedger)(nil)
)

func (n *nativeReceiving) introduced() bool { return n.theirs != unknown }

// forget implements receivingKind.
func (n *nativeReceiving) forget() {
	n.late = ack.Lateness{}
	n.theirs, n.paired, n.taken, n.checks = unknown, false, false, false
	n.asked, n.other = unknown, frame.Identity{}
	n.doubted = doubt{}
}

// begin starts a life of the peer, whose frame ids go on near at.
func (n *nativeReceiving) begin(theirs, mine incarnation, at ack.Wide) {
	n.clear()
	n.recv.ResetAt(at)
	n.theirs, n.mine = theirs, mine
	n.told = true // its owner tells
	n.closed.begin(uint32(theirs))
}

// judge implements receivingKind.
func (n *nativeReceiving) judge(now ack.Instant, f *frame.Frame, first *frame.Message) (kinship, Reason) {
	switch h, ok := first.Hello(); {
	case ok && h.Checks && !n.checked():
		return settled, n.refused(RefusedChecksum, first.Txn, nil)
	case ok:
		return settled, n.both.hello(now, f, h)
	case n.unchecked():
		return settled, n.refused(RefusedChecksum, first.Txn, nil)
	}
	if n.theirs == unknown {
		n.reminds = true
		return settled, n.drop(RefusedNoSession)
	}
	if n.down.Load() {
		return settled, n.ignored(n.recv.Check(f.Seq) != ack.Far)
	}
	verdict, why := n.check(f.Seq, first.Txn)
	switch {
	case why != RefusedNone:
		return settled, why
	case verdict == ack.New:
		return fresh, RefusedNone
	case n.recv.Carried(f.Seq, tagOf(first)):
		return sameAgain, RefusedNone
	case verdict == ack.Duplicate && !n.recv.Tagged(f.Seq) && n.applied(f):
		// Too far back to be sure that this is not another one with the same
		// id, whose acknowledgements may be old. But that one came, too.
		n.counters.Duplicates++
		n.recv.Again(f.Seq)
		return settled, RefusedNone
	case !n.doubted.believes(now, f.Seq, tagOf(first)):
		n.reminds = true
		return settled, n.drop(RefusedForeign)
	}
	return fresh, RefusedNone
}

// applied reports whether all messages of a frame were applied.
func (n *nativeReceiving) applied(f *frame.Frame) bool {
	for cur := f.Cursor(); cur.Next(); {
		if n.closed.age(cur.Msg.Txn) == ageClosed {
			continue
		}
		in := n.open.find(cur.Msg.Txn)
		if in == nil {
			return false
		}
		if seen, _ := in.indexes.look(cur.Msg.Index); !seen {
			return false
		}
	}
	return true
}

// believable is how far behind the next id an acknowledgement may begin: the
// ids in flight, and a run around the oldest of them.
const believable = ack.MaxHistory + ack.MaxRun

// lifeSpan is how far the frame ids of a life of the peer may be from the newest that we
// heard. Each life begins at a random one of 2^32, so it tells them apart but once in 2048
// times, where a stamp does not say whose it is. Arbitrary: more than a peer sends that is
// not heard for minutes.
const lifeSpan = 1 << 20

// alone implements receivingKind. A frame that the network held back must not fall on a
// later use of the ids that it names, be it after a wrap or in the receiver's next life:
// so its stamp says which life of the receiver it speaks to, and has its ids whole.
func (n *nativeReceiving) alone(now ack.Instant, f *frame.Frame) Reason {
	if n.theirs == unknown {
		return n.drop(RefusedNoSession)
	}
	s, ok := f.Stamp()
	if n.down.Load() {
		return n.ignored(ok && incarnation(s.Life) == n.mine)
	}
	if n.unchecked() {
		return n.refused(RefusedChecksum, 0, nil)
	}
	if !ok {
		return n.drop(RefusedNoSession)
	}
	if incarnation(s.Life) != n.mine {
		n.reminds = true
		return n.drop(RefusedForeign)
	}
	d := ack.Wide(s.ID).Diff(n.recv.Newest())
	if d > lifeSpan || d < -lifeSpan {
		n.reminds = true // another life of the peer believes ours: it has to say so
		return n.drop(RefusedForeign)
	}
	ours := ack.Wide(n.nextID.Load())
	if far := n.profile.Ahead; d <= far || far == 0 { // one that is forged would make late all that comes
		n.late.Late(ack.Wide(s.ID), ours)
	}
	n.recv.AckOnly(ack.Wide(s.ID))
	n.paired, n.livedAt = true, now
	if f.AckCount == 0 {
		return RefusedNone
	}
	switch age := ours.Diff(ack.Wide(s.Start)); {
	case age < int(f.AckCount):
		n.reminds = true // it may have lost count of our ids
		return n.drop(RefusedAckOfUnsent)
	case age > believable:
		n.reminds = true
		return n.drop(RefusedAckTooOld)
	}
	n.acks = append(n.acks, ack.Range{Start: f.AckStart, Count: f.AckCount})
	return RefusedNone
}

// ignored drops a frame of a peer that was given up. If it is of the life that we knew, that has
// to be told so.
func (n *nativeReceiving) ignored(known bool) Reason {
	n.reminds = n.reminds || known
	return n.drop(RefusedDown)
}

// acksOf implements receivingKind.
func (n *nativeReceiving) acksOf(f *frame.Frame) {
	switch late := n.late.Late(n.recv.Wide(f.Seq), ack.Wide(n.nextID.Load())); {
	case f.AckCount == 0 || !n.paired:
	case late:
		n.counters.Refused[RefusedAckTooOld]++
	default:
		n.acks = append(n.acks, ack.Range{Start: f.AckStart, Count: f.AckCount})
	}
}

// took implements receivingKind.
func (n *nativeReceiving) took(now ack.Instant, f *frame.Frame, _ uint32) {
	n.acksOf(f)
	n.taken, n.livedAt = true, now
}

// tookRun implements receivingKind. Of frames in order, none of which is late, the first
// makes the mark and the last is the newest.
func (n *nativeReceiving) tookRun(_ ack.Instant, count int, _ uint32) {
	before, ours := n.recv.Newest(), ack.Wide(n.nextID.Load())
	n.late.Late(before+1, ours)
	n.late.Late(before+ack.Wide(count), ours)
}

func (n *nativeReceiving) copied(now ack.Instant, _ frame.Seq, _ uint32) bool {
	n.livedAt = now
	return true
}

// nativeLedger tells by the ids of transactions and the indexes of messages what was
// applied: neither repeats within a life.
type nativeLedger struct {
	closed closedSet
}

// fits implements ledger.
func (l *nativeLedger) fits(m *frame.Message, before *placement) Reason {
	switch l.closed.age(m.Txn) {
	case ageClosed:
		return RefusedStale
	case ageForeign:
		return RefusedForeign
	}
	if m.Count > 0 && (m.Index == 0 || m.Index > m.Count) {
		return RefusedInconsistent
	}
	if before == nil {
		return RefusedNone
	}
	switch d := int32(m.Txn - before.msg.Txn); {
	case d < 0:
		// In order, so that a look at the message before finds all of a
		// transaction that this frame opens.
		return RefusedInconsistent
	case d == 0 && (m.Count == 0 || m.Index <= before.msg.Index):
		return RefusedInconsistent
	}
	return RefusedNone
}

// marked implements ledger.
func (l *nativeLedger) marked(in *incoming, m *frame.Message) (seen, free bool) {
	return in.indexes.look(m.Index)
}

func (l *nativeLedger) begins(m *frame.Message, _ frame.Seq) { l.closed.see(m.Txn) }

// mark implements ledger.
func (l *nativeLedger) mark(in *incoming, m *frame.Message, _ frame.Seq) {
	in.indexes.add(m.Index, m.Count, l.closed.held)
}

// ahead implements ledger.
func (l *nativeLedger) ahead(in *incoming, m *frame.Message) int {
	return min(in.indexes.ahead(m.Index), int(m.Count-m.Index))
}

// markRun implements ledger.
func (l *nativeLedger) markRun(in *incoming, m *frame.Message, n int) {
	in.indexes.addRun(m.Index, n)
}

func (l *nativeLedger) over(txn uint32) { l.closed.close(txn) }

func (l *nativeLedger) sweep() {}

func (l *nativeLedger) release() { l.closed.reset() }

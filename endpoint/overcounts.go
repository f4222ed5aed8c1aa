package endpoint

import "github.com/dgrdma/dgrdma/frame"

// foreignLedger tells by the number of messages alone when a transaction is over. Of
// peers that may announce one too many (quirk F16) it keeps what tells that by the ids of
// frames.
type foreignLedger struct {
	*receiving
	newest   uint32 // youngest transaction id
	newestAt frame.Seq
	known    bool // newest is set
}

func (l *foreignLedger) fits(*frame.Message, *placement) Reason { return RefusedNone }

func (l *foreignLedger) marked(*incoming, *frame.Message) (seen, free bool) { return false, true }

// begins implements ledger.
func (l *foreignLedger) begins(m *frame.Message, seq frame.Seq) {
	if l.known && int32(m.Txn-l.newest) <= 0 {
		return
	}
	if l.profile.OverCounts {
		l.overtake(seq)
	}
	l.newest, l.newestAt, l.known = m.Txn, seq, true
}

// overtake notes that a younger transaction began. Of those that are open only the
// youngest was not overtaken before.
func (l *foreignLedger) overtake(seq frame.Seq) {
	if in := l.open.find(l.newest); in != nil {
		in.overtaken, in.later = true, seq
	}
}

// mark implements ledger.
func (l *foreignLedger) mark(in *incoming, m *frame.Message, seq frame.Seq) {
	if in.got == 0 {
		in.overtaken, in.later = int32(l.newest-m.Txn) > 0, l.newestAt
	}
	if m.Index == 1 {
		in.begun, in.first = true, seq
	}
}

// ahead implements ledger: indexes say nothing, but for 1, which mark notes. They wrap.
func (l *foreignLedger) ahead(_ *incoming, m *frame.Message) int { return int(-m.Index) }

func (l *foreignLedger) markRun(*incoming, *frame.Message, int) {}

func (l *foreignLedger) over(uint32) {}

func (l *foreignLedger) release() {}

// sweep completes transactions of which one message too many was announced: all frames
// from the first message to a younger transaction are there, one message is missing, and
// the data has no hole.
func (l *foreignLedger) sweep() {
	if !l.profile.OverCounts {
		return
	}
	var from, to frame.Seq // these came, but for the last
	for in := l.open.oldest; in != nil; {
		next := in.younger
		if in.begun && in.overtaken && in.got == in.msg.Count-1 && in.high-in.low == in.bytes {
			// No frame is looked at twice, neither for this nor for others.
			if in.first.Before(from) || !in.first.Before(to) {
				from, to = in.first, in.first
			}
			var waits bool
			if to, waits = l.recv.Missing(to, in.later); waits {
				in.first = to
			} else {
				to = in.later.Add(1)
				l.end(in)
			}
		}
		in = next
	}
}

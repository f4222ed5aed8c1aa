package dgrdma

import "github.com/dgrdma/dgrdma/transport"

// mark returns the mark with which frames of the session leave.
func (s *sending) mark() transport.ECN {
	if s.unacked.Marking() {
		return transport.ECT0
	}
	return transport.NotECT
}

// noteMarks notes with which mark frames arrived that were applied, of which the frame at hand is one.
func (n *sessionReceiving) noteMarks(frames int) {
	switch n.scratch.mark {
	case transport.ECT0:
		n.frames.Marked(frames, false)
	case transport.CE:
		n.frames.Marked(frames, true)
		n.counters.MarksReceived += uint64(frames)
	}
}

// noteMarks counts what the peer has told of marks.
func (n *sessionSending) noteMarks() {
	news := n.sent.TakeMarks()
	n.counters.MarksEchoed += uint64(news.Marked)
	if news.Failed {
		n.counters.MarksFailed++
	}
}

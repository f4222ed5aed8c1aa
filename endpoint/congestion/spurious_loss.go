package congestion

import "github.com/dgrdma/dgrdma/ack"

// beforeLosses are the bounds of before the losses of a round, to which they return if all of these frames only came late (section 5.5.11).
type beforeLosses struct {
	round               int64 // its end, by which it is known
	bandwidth           float64
	longTerm, shortTerm int64
	lost, late          int // frames of the round that were taken for lost, and that came
	done                bool
}

// noteLoss keeps the bounds at the first loss of a round (NoteLoss, SaveStateUponLoss).
func (b *BBR) noteLoss() {
	s := &b.loss.before
	if s.lost == 0 || s.round != b.loss.roundEnd {
		*s = beforeLosses{round: b.loss.roundEnd, bandwidth: b.bandwidth.low, longTerm: b.loss.longTerm, shortTerm: b.loss.shortTerm}
	}
	s.lost++
}

// OnSpurious notes that a frame that was taken for lost arrived. When all of a round did, what bounds were made of them is taken back, once, to
// what was before: a frame that was really lost keeps them, as in RFC 4015 and in the document.
func (b *BBR) OnSpurious(ack.Instant) {
	s := &b.loss.before
	if s.late++; s.done || s.late < s.lost || s.lost == 0 {
		return
	}
	s.done = true
	b.bandwidth.low = max(b.bandwidth.low, s.bandwidth)
	b.loss.longTerm = max(b.loss.longTerm, s.longTerm)
	b.loss.shortTerm = max(b.loss.shortTerm, s.shortTerm)
}

package ack

import (
	mathbits "math/bits"

	"github.com/dgrdma/dgrdma/frame"
)

// Missing returns the first id from first to last that did not come, in whatever
// frame; not ok: there is none.
func (r *Receiver) Missing(first, last frame.Seq) (q frame.Seq, ok bool) {
	if last.Before(first) {
		return 0, false
	}
	if !r.known(first) {
		return first, true
	}
	end := last.Add(1)
	if newest := r.newest; newest.Before(last) {
		end = newest.Add(1) // what lies behind it in the bitmaps is older
	}
	size := min(64, r.cfg.History)
	for q = first; q.Before(end); {
		i := int(q) & (r.cfg.History - 1)
		came := mathbits.TrailingZeros64(^((r.got[i/64] | r.alone[i/64]) >> (i % 64)))
		whole := size - i%64
		if q = q.Add(min(came, whole)); came < whole && q.Before(end) {
			return q, true
		}
	}
	return end, !last.Before(end)
}

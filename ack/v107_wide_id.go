package ack

import "github.com/dgrdma/dgrdma/frame"

// Wide is a frame id counted in 32 bits, of which a frame header has the lower
// 16: at five million frames a second those come again after 13 ms, these after
// a quarter of an hour.
type Wide uint32

// Seq returns the id as frame headers have it.
func (w Wide) Seq() frame.Seq { return frame.Seq(w) }

// Near returns the id nearest to w that headers have as s.
func (w Wide) Near(s frame.Seq) Wide { return w + Wide(int32(s.Diff(w.Seq()))) }

// Diff returns how far w is ahead of v.
func (w Wide) Diff(v Wide) int { return int(int32(w - v)) }

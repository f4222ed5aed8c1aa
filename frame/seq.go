package frame

// Seq is a frame id: a 16-bit serial number that wraps through 0 (DGRDMA-013).
// Two ids are comparable while they are less than 32768 apart.
type Seq uint16

// Add returns the id n places after s; n may be negative.
func (s Seq) Add(n int) Seq { return s + Seq(n) }

// Diff returns the signed distance s-t, from -32768 to 32767.
func (s Seq) Diff(t Seq) int { return int(int16(s - t)) }

// Before reports whether s comes before t.
func (s Seq) Before(t Seq) bool { return int16(s-t) < 0 }

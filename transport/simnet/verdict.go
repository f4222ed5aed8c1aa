package simnet

import "time"

// Verdict is what a Script decides about a datagram. The zero Verdict delivers
// it; fields may be combined, except that Refuse and Drop end its journey.
type Verdict struct {
	Refuse  bool          // not even sent: counted in the sender's Stats
	Drop    bool          // lost on the way; a held copy still arrives
	Corrupt bool          // one bit is wrong, or it is dropped, as with Link.Corrupt
	Copies  int           // additional ones that arrive right after it
	Delay   time.Duration // arrives that much later; does not hold up later ones
	Hold    time.Duration // if not 0, a copy arrives that long after sending
}

// Deliver lets the datagram pass.
func Deliver() Verdict { return Verdict{} }

// Refuse has the sender's system refuse the datagram for a passing reason.
func Refuse() Verdict { return Verdict{Refuse: true} }

// Drop loses the datagram.
func Drop() Verdict { return Verdict{Drop: true} }

// Duplicate delivers the datagram twice.
func Duplicate() Verdict { return Verdict{Copies: 1} }

// Delay delivers the datagram later than its link would; others may overtake.
func Delay(d time.Duration) Verdict { return Verdict{Delay: d} }

// Corrupt flips one random bit.
func Corrupt() Verdict { return Verdict{Corrupt: true} }

// Hold delivers the datagram, and a copy of it when d has passed.
func Hold(d time.Duration) Verdict { return Verdict{Hold: d} }

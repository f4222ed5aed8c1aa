package ack

import "time"

// ControllerState is what a Controller says of what it does, in the words of draft-ietf-ccwg-bbr. What it has not, or does not know yet, is 0 or empty.
type ControllerState struct {
	Controller string        // its name; empty: it is the program's own, and says nothing
	Why        string        // it was chosen, where it was not asked for by name
	State      string        // as Startup or ProbeBW_UP; empty: it has none
	Bandwidth  float64       // bytes per second that the path delivers
	PacingRate float64       // bytes per second at which frames leave; 0: nothing is paced
	MinRTT     time.Duration // of the path without queues
	// InflightLongTerm and InflightShortTerm bound the bytes in flight after congestion: until more is found to be possible, and until the next
	// probe for bandwidth. 0: nothing bounds them.
	InflightLongTerm, InflightShortTerm int
}

// Inspected is a Controller that says what it does. It is asked when somebody looks, not for each frame.
type Inspected interface{ Inspect() ControllerState }

// Inspect implements [Inspected].
func (f *FixedWindow) Inspect() ControllerState { return ControllerState{Controller: "fixed"} }

// Inspect implements [Inspected].
func (p *Pacer) Inspect() ControllerState {
	return ControllerState{Controller: "paced", PacingRate: float64(p.drain)}
}

// Inspect implements [Inspected]: the cap after heavy loss is its bound.
func (a *Adaptive) Inspect() ControllerState {
	return ControllerState{Controller: "adaptive", Bandwidth: a.Rate(), MinRTT: a.MinRTT(), InflightLongTerm: a.Cap()}
}

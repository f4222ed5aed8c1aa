// Package patience decides how long a goroutine that waits for the network spins before it sleeps, and whether it receives
// for others.
package patience

import "time"

const (
	// spinTime is how long a receiver spins before it sleeps, if that paid of late: about as long as a goroutine takes to
	// wake on another, idle processor of a virtual machine. A quarter of it halves what a window of 32 frames carries.
	spinTime = 40 * time.Microsecond
	// tryAgain is after how many waits a receiver that does not spin tries whether it pays now.
	tryAgain = 32
)

// Patience decides whether a receiver spins before it sleeps. The receiver calls Begin before its first look, Again after
// each look in vain, and Found when there was something.
type Patience struct {
	several bool // processors
	score   int  // how often spinning paid of late
	waits   int
	state   state
	until   time.Time
}

// state is how far a wait is.
type state uint8

const (
	begun state = iota
	spinning
	sleeping
)

// New returns the Patience of a receiver that found nothing yet, on a machine with so many processors. With a single one it
// never spins: no other goroutine could send in that time.
func New(processors int) Patience { return Patience{several: processors > 1} }

// Begin begins to wait.
func (p *Patience) Begin() { p.state = begun }

// Again reports whether to look again at once. If not, the receiver is to sleep.
func (p *Patience) Again() bool {
	switch p.state {
	case begun:
		p.waits++
		if !p.several || p.score == 0 && p.waits%tryAgain != 0 {
			p.state = sleeping
			return false
		}
		p.state, p.until = spinning, time.Now().Add(spinTime)
		return true
	case spinning:
		if time.Now().Before(p.until) {
			return true
		}
		p.score = max(p.score-2, 0)
		p.state = sleeping
	}
	return false
}

// Found ends the wait.
func (p *Patience) Found() {
	if p.state == spinning {
		p.score = min(p.score+1, MaxScore)
	}
}

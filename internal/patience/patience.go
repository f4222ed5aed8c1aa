// Package patience says how long who waits for the network looks before it sleeps.
package patience

import "time"

const (
	// looking is for how long a receiver looks again before it sleeps, if that paid of
	// late: about as long as it takes to be woken on another, idle processor of a virtual
	// machine. A quarter of it halves what a window of 32 frames carries.
	looking = 40 * time.Microsecond
	// tryAgain is every how many waits it is tried whether it would pay now.
	tryAgain = 32
)

// Patience says whether who receives looks again before it sleeps. Begin comes before the
// first look, Again after each in vain, and Found when there was something.
type Patience struct {
	several bool // processors
	luck    int  // how often looking again paid, of late
	waits   int
	step    step
	until   time.Time
}

type step uint8

const (
	fresh step = iota
	looks
	sleeps
)

// New returns that of one who has found nothing yet, on a machine with so many processors: with
// a single one nobody can send what is looked for.
func New(processors int) Patience { return Patience{several: processors > 1} }

// Begin begins to wait.
func (p *Patience) Begin() { p.step = fresh }

// Again reports whether to look again at once; if not, it is time to sleep.
func (p *Patience) Again() bool {
	switch p.step {
	case fresh:
		p.waits++
		if !p.several || p.luck == 0 && p.waits%tryAgain != 0 {
			p.step = sleeps
			return false
		}
		p.step, p.until = looks, time.Now().Add(looking)
		return true
	case looks:
		if time.Now().Before(p.until) {
			return true
		}
		p.luck = max(p.luck-2, 0)
		p.step = sleeps
	}
	return false
}

// Found ends the wait.
func (p *Patience) Found() {
	if p.step == looks {
		p.luck = min(p.luck+1, MostLuck)
	}
}

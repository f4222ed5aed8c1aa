package endpoint

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

// rhythm is when hellos of one kind leave, as long as they are due.
type rhythm struct {
	tries int         // since it mattered
	last  ack.Instant // when one left
	at    ack.Instant // when the next one does
}

// left notes that one left, and says when the next one does: after a pause that doubles
// with each, up to most.
func (r *rhythm) left(now ack.Instant, most time.Duration) {
	r.last, r.at = now, now.Add(min(helloFirst<<min(r.tries, 10), most))
	r.tries++
}

// soon makes one due as soon as it may follow the last.
func (r *rhythm) soon(now ack.Instant) {
	r.at = min(r.at, max(now, r.last.Add(helloFirst)))
}

// answerTime is how long an answer is under way at most, and mostAnswers how many are.
// Arbitrary: as long as hellos may be apart while something waits for them, and more than
// leave meanwhile.
const (
	answerTime  = helloMost
	mostAnswers = 8
)

// underway are the answers that may be on their way to what was asked. Nothing in an answer says what
// it is to, but each question has one at most.
type underway struct {
	n  int
	at ack.Instant // when the last question left
}

// count returns how many there are.
func (u *underway) count(now ack.Instant) int {
	if now.Sub(u.at) > answerTime {
		return 0
	}
	return u.n
}

func (u *underway) asked(now ack.Instant) {
	*u = underway{min(u.count(now)+1, mostAnswers), now}
}

func (u *underway) answered() { u.n = max(u.n-1, 0) }

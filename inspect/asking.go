package inspect

// asked is who at an address was asked who is there, and by whom: by a HELLO to the endpoint 0.
type asked struct {
	key   flowKey
	times counted
	told  bool
}

func (q *asked) direction() flowKey { return q.key }

// asks takes a frame of a handshake to the endpoint 0, which asks who is at an address, or of it, which answers.
func (a *Analyzer) asks(k flowKey, record int) {
	if k.dstID != 0 {
		if q := opposite(a.questions, a.questionOrder, k); q != nil {
			q.told = true
		}
		return
	}
	q := a.questions[k]
	if q == nil {
		if len(a.questionOrder) == mostFlows {
			a.unfollow(record)
			return
		}
		q = &asked{key: k}
		a.questions[k] = q
		a.questionOrder = append(a.questionOrder, q)
	}
	q.times.add(1, record)
}

const unanswered = "nothing of an answer is in the capture: unless only this direction was captured, nobody is there, or nobody who takes it for a peer, " +
	"or it has a key and takes nothing without."

// aboutQuestions tells of those that nobody answered. One alone may be answered behind the end of the capture.
func (a *Analyzer) aboutQuestions(c *findings) {
	for _, q := range a.questionOrder {
		if n := q.times.n; n > 1 && !q.told {
			c.add(Problem, "no answer", n, []int{q.times.first}, "Endpoint %d (%v) asked %s who is at %v, and "+unanswered, q.key.srcID, q.key.src, times(n), q.key.dst)
		}
	}
}

// aboutHandshake tells of an endpoint that asked for a session, and was never answered, and sent nothing else that could have been answered.
func (f *flow) aboutHandshake(c *findings, from, to string) {
	if n := f.shaken; n > 1 && f.reverse == nil && f.dataFirst == 0 && f.acksSent == 0 && !f.session.met {
		c.add(Problem, "no answer", n, []int{f.firstRecord}, "%s asked %s for a session %s, and "+unanswered, capital(from), to, times(n))
	}
}

package link

// Letter implements [dgrdma.Handler].
func (p *peer) Letter(b []byte) {
	p.sendsLetters.Store(true)
	p.takeLetter(parseLetter(b))
}

// takeLetter acts on a letter. It runs on the receive goroutine.
func (p *peer) takeLetter(l letter, err error) {
	life := p.conn.Life() // what is applied is of the present life
	if err != nil {
		switch x := p.link(l.to); {
		case l.kind == letterOpen:
			p.refuse(life, &l, err.Error())
		case l.kind == letterRefuse && x != nil && x.attempt == l.attempt:
			x.deliverAnswer(err)
		}
		return // noise: a Dial that waits for an answer has a deadline
	}
	switch l.kind {
	case letterOpen:
		p.takeOpen(life, &l)
	case letterAccept, letterRefuse:
		x := p.link(l.to)
		if x != nil && x.attempt == l.attempt && (x.takeAnswer(&l) || l.kind == letterRefuse) {
			return
		}
		if l.kind == letterRefuse {
			p.confirmed(l.to, l.attempt)
			return
		}
		// No Dial waits any more, and the other side does not know this side's number.
		p.send(life, letter{kind: letterClose, to: l.from, attempt: l.attempt})
	case letterGrow, letterGrown:
		if x := p.link(l.to); x != nil && x.attempt == l.attempt {
			x.takeGrowth(&l)
		}
	case letterClose:
		x := p.link(l.to)
		if l.to == 0 {
			x = p.byAttempt(l.attempt)
		}
		switch {
		case x != nil && x.attempt == l.attempt:
			x.takeClose(l.text, l.hadAll)
		case p.confirmed(l.to, l.attempt):
		case l.to == 0: // the dialer gave up before it knew a number of this side
			p.cancelDial(l.attempt)
		}
	}
}

package link

import (
	"bytes"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// addressed is a letter and the life of the connection that it is meant for.
type addressed struct {
	letter
	life uint32
	done func(error) // if not nil, called when it has arrived, or can never arrive
}

// isOptional reports whether a letter may be left out: it answers one that may be an attack.
func (l *letter) isOptional() bool {
	return l.kind == letterRefuse || l.kind == letterClose && l.from == 0
}

// send posts a letter when those before it have arrived.
func (p *peer) send(life uint32, l letter) {
	p.post(addressed{letter: l, life: life})
}

func (p *peer) post(l addressed) {
	if l.isOptional() && !p.mayReply() {
		return
	}
	var b [boxSize]byte
	n := l.put(b[:])
	p.channel.Mail(dgrdma.Letter{Life: l.life, Bytes: bytes.Clone(b[:n]), Settled: func(err error) { p.letterDone(&l, err) }})
}

// mayReply reports whether one more optional letter may wait, and counts it.
func (p *peer) mayReply() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.replies >= mostReplies-int(p.host.replies.Load()) {
		p.host.counters.letters.Add(1)
		return false
	}
	p.replies++
	p.host.replies.Add(1)
	return true
}

func (p *peer) letterDone(l *addressed, err error) {
	if l.isOptional() {
		p.mu.Lock()
		p.replies--
		p.mu.Unlock()
		p.host.replies.Add(-1)
	}
	if err != nil {
		p.undelivered(&l.letter, err)
	}
	if l.done != nil {
		l.done(err)
	}
}

// refuse answers a letter that asks for a link.
func (p *peer) refuse(life uint32, a *letter, why string) { p.refuseFor(0, life, a, why) }

// refuseFor is refuse with a code for the dialer's program.
func (p *peer) refuseFor(code refusal, life uint32, a *letter, why string) {
	p.send(life, letter{kind: letterRefuse, to: a.from, attempt: a.attempt, refusal: code, text: bounded(why)})
}

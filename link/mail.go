package link

import (
	"bytes"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// addressed is a letter and the life of the connection that it is meant for.
type addressed struct {
	letter
	life    uint32
	settled func(error) // if not nil, called when it has arrived, or never will
}

// mostReplies is how many letters of all peers may wait that answer to nothing of
// ours; of one peer no more than there are places left for others. What comes then is
// not answered: it asks faster than it reads. Arbitrary.
const mostReplies = 4 * backlog

// reply reports whether a letter answers one that may ask for nothing good.
func (l *letter) reply() bool { return l.kind == letterRefuse || l.kind == letterClose && l.from == 0 }

// Letter implements [dgrdma.Handler].
func (p *peer) Letter(b []byte) {
	p.writes.Store(true)
	p.read(parseLetter(b))
}

// send posts a letter when those before it have arrived.
func (p *peer) send(life uint32, l letter) {
	p.post(addressed{letter: l, life: life})
}

func (p *peer) post(l addressed) {
	if l.reply() && !p.mayReply() {
		return
	}
	var b [boxSize]byte
	n := l.put(b[:])
	p.channel.Mail(dgrdma.Letter{Life: l.life, Bytes: bytes.Clone(b[:n]), Settled: func(err error) { p.settle(&l, err) }})
}

// mayReply reports whether one more reply may wait, which does from then on.
func (p *peer) mayReply() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.replies >= mostReplies-int(p.host.replies.Load()) {
		p.host.full.letters.Add(1)
		return false
	}
	p.replies++
	p.host.replies.Add(1)
	return true
}

func (p *peer) settle(l *addressed, err error) {
	if l.reply() {
		p.mu.Lock()
		p.replies--
		p.mu.Unlock()
		p.host.replies.Add(-1)
	}
	if err != nil {
		p.undelivered(&l.letter, err)
	}
	if l.settled != nil {
		l.settled(err)
	}
}

package link

import (
	"errors"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// mail is the letters of one connection. One is under way at a time, so that they
// are read in the order in which they were written: transactions have none.
type mail struct {
	in [boxSize]byte // the peer's writes

	mu      sync.Mutex
	queue   []addressed
	replies int    // of them
	posted  bool   // queue[0] is under way
	out     []byte // its bytes
	segment [1]dgrdma.Segment
	t       dgrdma.Transaction
}

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

// waiting returns how many letters have not arrived.
func (m *mail) waiting() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.queue)
}

// letterAt admits a write into the box.
func (p *peer) letterAt(at, n uint64) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	if at < letterBox || at+n > letterBox+boxSize {
		return nil, errNotGranted
	}
	return p.mail.in[at-letterBox:][:n:n], nil
}

// letterCame reads the letter whose length the completion word tells.
func (p *peer) letterCame(length uint32) {
	p.writes.Store(true)
	if length > boxSize {
		return // noise
	}
	p.read(parseLetter(p.mail.in[:length]))
}

// send posts a letter when those before it have arrived.
func (p *peer) send(life uint32, l letter) {
	p.post(addressed{letter: l, life: life})
}

func (p *peer) post(l addressed) {
	m := &p.mail
	m.mu.Lock()
	if l.reply() {
		if m.replies >= mostReplies-int(p.host.replies.Load()) {
			m.mu.Unlock()
			return
		}
		m.replies++
		p.host.replies.Add(1)
	}
	m.queue = append(m.queue, l)
	m.mu.Unlock()
	p.deliver()
}

// fullAgain is after how long a letter is tried again for which the connection's
// queue had no room. Arbitrary.
const fullAgain = 10 * time.Millisecond

func (p *peer) deliver() {
	m := &p.mail
	for {
		m.mu.Lock()
		if m.posted || len(m.queue) == 0 {
			m.mu.Unlock()
			return
		}
		m.posted = true
		if m.out == nil {
			m.out = make([]byte, boxSize)
		}
		n := m.queue[0].put(m.out)
		m.segment[0] = dgrdma.Segment{Addr: letterBox, Bytes: m.out[:n]}
		m.t = dgrdma.Transaction{Segments: m.segment[:], Completion: dgrdma.Word(letterBell, uint32(n)), Done: p.delivered}
		life := m.queue[0].life
		m.mu.Unlock()
		switch err := p.conn.PostTo(life, &m.t); {
		case err == nil:
			return
		case errors.Is(err, dgrdma.ErrQueueFull):
			m.mu.Lock()
			m.posted = false
			m.mu.Unlock()
			time.AfterFunc(fullAgain, p.deliver)
			return
		default:
			p.settle(err)
		}
	}
}

// delivered is called when a letter has arrived, or never will.
func (p *peer) delivered(_ *dgrdma.Transaction, err error) {
	p.settle(err)
	p.deliver()
}

func (p *peer) settle(err error) {
	m := &p.mail
	m.mu.Lock()
	l := m.queue[0]
	m.queue[0] = addressed{}
	m.queue, m.posted = m.queue[1:], false
	if l.reply() {
		m.replies--
		p.host.replies.Add(-1)
	}
	m.mu.Unlock()
	if err != nil {
		p.undelivered(&l.letter, err)
	}
	if l.settled != nil {
		l.settled(err)
	}
}

package dgrdma

import (
	"errors"
	"fmt"
	"sync"

	"github.com/dgrdma/dgrdma/frame"
)

// Mail carries letters from service to service: ordinary transactions into a box at the
// start of the service's window, of which every peer has its own. The completion word
// rings the bell and tells the length. A letter is read when the bell rings, so the box
// is free again when the transaction is acknowledged.
const (
	mailBell = 16
	mailBox  = 64
	// MaxLetter is how long a letter may be.
	MaxLetter = 1 << 10
	// MailSize is what mail takes of a service's window, from its beginning.
	MailSize = 2 << 10
	// mostLetters bounds those of a channel that wait. Arbitrary: more than links, which
	// have bounds of their own, ever send.
	mostLetters = 1 << 16
)

// mail is the letters of one channel. One is under way at a time, so that they are read
// in the order in which they were written: transactions have none.
type mail struct {
	ch   *Channel
	in   [MaxLetter]byte // the peer's writes
	flow *Flow

	mu      sync.Mutex
	queue   []Letter
	posted  bool // queue[0] is under way
	segment [1]Segment
	t       Transaction
}

// Letter is what a service sends to that of the same name at a peer.
type Letter struct {
	Life  uint32 // of the connection, for which it is meant: see [Conn.PostTo]
	Bytes []byte // belongs to the library until it is settled
	// Settled, if not nil, is called once when the letter has arrived, or never will: in
	// Mail, if that is known already. It must not block, and may send others.
	Settled func(error)
}

func (m *mail) init(ch *Channel) { m.ch, m.flow = ch, ch.Flow() }

// isMail reports whether a message is part of a letter to us. One that completes nothing is
// none: no bell is at an address of all ones, see windowUnit.
func (ch *Channel) isMail(m *frame.Message) bool {
	return uint64(m.CompletionAddr) == ch.service.base+mailBell
}

// errNoMail makes a message vanish, as noise.
var errNoMail = Swallow(errors.New("dgrdma: a letter outside its box"))

// admit says where a part of a letter goes.
func (m *mail) admit(x *frame.Message) ([]byte, error) {
	if x.Len == 0 {
		return nil, nil
	}
	box := m.ch.service.base + mailBox
	at, n := uint64(x.Addr), uint64(x.Len)
	if at < box || at+n > box+MaxLetter {
		return nil, errNoMail
	}
	return m.in[at-box:][:n:n], nil
}

// came is called when the bell rings.
func (m *mail) came(length uint32) {
	if length <= MaxLetter { // or it is noise
		m.ch.handler.Letter(m.in[:length])
	}
}

// Mail sends a letter, after those that were sent before. The peer need not have answered
// yet: its life is [Conn.Life] from the connection's beginning. A letter that is too long,
// or to a peer that has no such service, or of another life, or after 65536 others, is settled
// with the error, and so is one to a peer that says that it takes no session, unless for lack of room.
func (ch *Channel) Mail(l Letter) {
	err := ch.Conn().letter(len(l.Bytes))
	if err != nil {
		if l.Settled != nil {
			l.Settled(err)
		}
		return
	}
	m := &ch.mail
	if !m.put(l) {
		ch.Conn().letterRefused()
		if l.Settled != nil {
			l.Settled(ErrQueueFull)
		}
		return
	}
	m.deliver()
}

// put has a letter wait, if there is room.
func (m *mail) put(l Letter) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.queue) == mostLetters {
		return false
	}
	m.queue = append(m.queue, l)
	return true
}

// letter counts a letter that is sent, or says why it cannot be: after Shutdown, which waits
// for those before it, none is.
func (c *Conn) letter(length int) error {
	if length > MaxLetter {
		return &inWords{fmt.Sprintf("dgrdma: a letter of %d bytes, at most %d", length, MaxLetter), ErrTooLarge}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ep.draining.Load() {
		return ErrClosed
	}
	c.tx.letters++
	return nil
}

// letterRefused takes back that a letter is sent, for which there is no room.
func (c *Conn) letterRefused() {
	c.mu.Lock()
	c.tx.counters.QueueFull++
	c.mu.Unlock()
	c.letterSettled()
}

// letterSettled counts it no more.
func (c *Conn) letterSettled() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tx.letters--
	c.tx.roomMade()
}

// Waiting returns how many letters have not arrived.
func (ch *Channel) Waiting() int {
	ch.mail.mu.Lock()
	defer ch.mail.mu.Unlock()
	return len(ch.mail.queue)
}

func (m *mail) deliver() {
	for {
		m.mu.Lock()
		if m.posted || len(m.queue) == 0 {
			m.mu.Unlock()
			return
		}
		m.posted = true
		l := &m.queue[0]
		life := l.Life
		m.t = Transaction{
			Segments: m.segment[:], Completion: Word(mailBell, uint32(len(l.Bytes))), Urgent: true, Done: m.delivered,
		}
		m.segment[0] = Segment{mailBox, l.Bytes}
		m.mu.Unlock()
		err := m.flow.post(&m.t, posting{to: in(life), letter: true})
		if err == nil {
			return
		}
		m.settle(err)
	}
}

// delivered is called when a letter has arrived, or never will.
func (m *mail) delivered(_ *Transaction, err error) {
	m.settle(err)
	m.deliver()
}

// settle settles the letter that was posted; if the peer takes no session, those after it, too: they would wait for a refusal
// each, and the peer would read them if it took a session later.
func (m *mail) settle(err error) {
	n := 1
	m.mu.Lock()
	if errors.Is(err, ErrRefused) {
		n = len(m.queue)
	}
	settled := m.queue[:n]
	m.queue, m.posted = m.queue[n:], false
	m.mu.Unlock()
	for i, l := range settled {
		settled[i] = Letter{}
		if l.Settled != nil {
			l.Settled(err)
		}
		m.ch.conn.letterSettled()
	}
}

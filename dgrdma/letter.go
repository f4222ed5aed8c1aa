package dgrdma

import (
	"errors"
	"fmt"

	"github.com/dgrdma/dgrdma/frame"
)

// Mail carries letters from service to service: ordinary transactions into a box at the start of the
// service's window, of which every peer has its own. The completion word rings a bell and tells the
// length.
//
// A box has room for many letters, so that they need not wait for each other on a far path. They lie
// one after the other in the order in which they begin, each at a multiple of mailUnit, and the first
// of a session at the beginning. A letter begins in one of the mailUnits; the last one may end after
// them, and the next begins at the beginning again. Each unit has a bell, and a letter rings that of the unit
// where it begins. The reader knows where the next one begins, and reads them in order, in whatever
// order they come. A letter is read when it and all before it have come. Its place is free when all
// of these are acknowledged.
const (
	mailBells = 64
	mailBox   = 1 << 10
	mailUnit  = 64
	mailUnits = 128
	// MaxLetter is how long a letter may be.
	MaxLetter = 1 << 10
	// MailSize is what mail takes of a service's window, from its beginning.
	MailSize = 10 << 10
	// mostLetters bounds those of a channel that wait. Arbitrary: more than links, which
	// have bounds of their own, ever send.
	mostLetters = 1 << 16
)

// mailLength is how long a box is: the longest letter may begin in its last unit.
const mailLength = (mailUnits-1)*mailUnit + MaxLetter

const (
	_ = uint(mailBox - mailBells - 4*mailUnits)
	_ = uint(MailSize - mailBox - mailLength)
)

// unitsOf returns how many units a letter of n bytes takes.
func unitsOf(n int) int { return max(1, (n+mailUnit-1)/mailUnit) }

// unitAfter returns where the letter begins that follows one of n bytes.
func unitAfter(unit, n int) int {
	if unit += unitsOf(n); unit < mailUnits {
		return unit
	}
	return 0
}

// mail is the letters of one channel.
type mail struct {
	in  inbox
	out outbox
}

// Letter is what a service sends to that of the same name at a peer.
type Letter struct {
	Life  uint32 // of the connection, for which it is meant: see [Conn.PostTo]
	Bytes []byte // belongs to the library until it is settled
	// Settled, if not nil, is called once when the letter was read, or never will be: in
	// Mail, if that is known already. It must not block, and may send others.
	Settled func(error)
}

// Mail sends a letter. The peer reads it after those that were sent before, of which up to 8 KiB are
// under way at a time. The peer need not have answered yet: its life is [Conn.Life] from the connection's
// beginning. A letter that is too long, or to a peer that has no such service, or of another life, or
// after 65536 others, is settled with the error, and so is one to a peer that says that it takes no
// session, unless for lack of room.
func (ch *Channel) Mail(l Letter) {
	err := ch.Conn().letter(len(l.Bytes))
	if err != nil {
		if l.Settled != nil {
			l.Settled(err)
		}
		return
	}
	out := &ch.mail.out
	if !out.put(l) {
		ch.Conn().letterRefused()
		if l.Settled != nil {
			l.Settled(ErrQueueFull)
		}
		return
	}
	out.deliver()
}

// Waiting returns how many letters were not read, as far as is known.
func (ch *Channel) Waiting() int { return ch.mail.out.len() }

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

// errNoMail makes a message vanish, as noise.
var errNoMail = Swallow(errors.New("dgrdma: a letter outside its box"))

// letterAt returns which letter to us a message is part of: where it begins. -1: none. One that
// completes nothing is none: no bell is at an address of all ones, see windowUnit.
func (ch *Channel) letterAt(m *frame.Message) int {
	off := uint64(m.CompletionAddr) - ch.service.base - mailBells
	if off >= 4*mailUnits || off%4 != 0 {
		return -1
	}
	return int(off / 4)
}

package dgrdma

import (
	"errors"
	"sync"
)

// outbox is the letters that one channel sends. As many are under way as have room in the peer's box.
type outbox struct {
	flow *Flow

	mu       sync.Mutex
	queue    []Letter     // not posted
	underWay []*outLetter // posted, and not settled; the oldest first
	units    int          // that these take
	posting  bool         // a goroutine posts: letters are posted one after the other
	settling bool         // a goroutine settles: they are settled one after the other
	lost     lostLetters

	at   int       // where the next letter begins; guarded by the connection's mutex
	life connEpoch // of that; the same
}

// lostLetters is the life of which a letter was lost that had begun. Those after it are not read,
// although they may be acknowledged.
type lostLetters struct {
	life uint32
	err  error
}

// outLetter is a letter that was posted.
type outLetter struct {
	Letter
	t       Transaction
	segment [1]Segment
	begun   bool // it has a place in the box
	done    bool // it is acknowledged, or will never be; guarded by the outbox's mu
	err     error
}

func (o *outbox) init(ch *Channel) {
	o.flow = ch.Flow()
	o.flow.letters = o
}

func (o *outbox) len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.queue) + len(o.underWay)
}

// put has a letter wait, if there is room.
func (o *outbox) put(l Letter) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue)+len(o.underWay) >= mostLetters {
		return false
	}
	o.queue = append(o.queue, l)
	return true
}

// deliver posts the letters for which there is room.
func (o *outbox) deliver() {
	for {
		x := o.nextToPost()
		if x == nil {
			return
		}
		err := o.flow.post(&x.t, posting{to: in(x.Life)})
		o.mu.Lock()
		o.posting = false
		o.mu.Unlock()
		if err != nil {
			o.settle(x, err)
		}
	}
}

// nextToPost makes the transaction of the next letter; nil: there is none, or no room, or another
// goroutine posts, which calls it again.
func (o *outbox) nextToPost() *outLetter {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.posting || len(o.queue) == 0 {
		return nil
	}
	units := unitsOf(len(o.queue[0].Bytes))
	if o.units+units > mailUnits {
		return nil
	}
	x := &outLetter{Letter: o.queue[0]}
	o.queue[0] = Letter{}
	o.queue = o.queue[1:]
	o.underWay, o.units, o.posting = append(o.underWay, x), o.units+units, true
	x.segment[0].Bytes = x.Bytes
	x.t = Transaction{Segments: x.segment[:], Urgent: true, Done: o.delivered, Cookie: x}
	return x
}

// begin gives a letter its place: those of a flow begin in the order in which they were posted. Guarded
// by the connection's mutex.
func (o *outbox) begin(t *Transaction, life connEpoch) {
	if o.life != life {
		o.life, o.at = life, 0
	}
	x := t.Cookie.(*outLetter)
	x.begun = true
	x.segment[0].Addr = uint32(mailBox + o.at*mailUnit)
	t.Completion = Word(uint32(mailBells+4*o.at), uint32(len(x.Bytes)))
	o.at = unitAfter(o.at, len(x.Bytes))
}

// delivered is called when a letter is acknowledged, or will never be.
func (o *outbox) delivered(t *Transaction, err error) {
	o.settle(t.Cookie.(*outLetter), err)
	o.deliver()
}

// settle settles a letter when those before it are settled, and those after it that waited for that.
func (o *outbox) settle(x *outLetter, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	x.done, x.err = true, err
	if errors.Is(err, ErrRefused) {
		// The peer takes no session. Those after it would wait for a refusal each, and the peer would read them if it took one
		// later.
		for _, l := range o.queue {
			o.underWay = append(o.underWay, &outLetter{Letter: l, done: true, err: err})
			o.units += unitsOf(len(l.Bytes))
		}
		o.queue = nil
	}
	if o.settling {
		return // that goroutine goes on with this one
	}
	o.settling = true
	for len(o.underWay) > 0 && o.underWay[0].done {
		x := o.underWay[0]
		o.underWay[0] = nil
		o.underWay, o.units = o.underWay[1:], o.units-unitsOf(len(x.Bytes))
		switch {
		case x.err != nil && x.begun:
			o.lost = lostLetters{x.Life, x.err}
		case x.err == nil && o.lost.err != nil && o.lost.life == x.Life:
			x.err = o.lost.err
		}
		o.mu.Unlock()
		if x.Settled != nil {
			x.Settled(x.err)
		}
		o.flow.conn.letterSettled()
		o.mu.Lock()
	}
	o.settling = false
}

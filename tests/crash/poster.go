package main

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/tests/worlds"
)

// poster posts one transaction after the other to the peer, as a program does that begins anew whenever it has to.
type poster struct {
	s    *side
	dice worlds.Dice
	free chan int
	slot [slots]posted

	conn   *dgrdma.Conn
	era    uint32 // number of the connection's life
	life   uint32
	failed atomic.Bool // something did, since the connection was looked at
}

// posted is a slot's transaction.
type posted struct {
	dgrdma.Transaction
	name   name
	failed bool
	bytes  [mostData]byte
}

func newPoster(s *side) *poster {
	p := &poster{s: s, dice: worlds.NewDice(s.Seed, uint64(s.Life)<<1|uint64(s.Side)), free: make(chan int, slots)}
	for i := range p.slot {
		t := &p.slot[i]
		t.Cookie, t.Done = i, p.done
		p.free <- i
	}
	return p
}

func (p *poster) run() error {
	for number := uint32(1); ; number++ {
		for p.s.journal.full() > 0.9 {
			time.Sleep(time.Millisecond)
		}
		i := <-p.free
		for !p.reach() {
			time.Sleep(p.dice.Span(100*time.Microsecond, 5*time.Millisecond))
		}
		if t := &p.slot[i]; p.s.repeats && t.failed {
			t.failed = false
			p.repost(i)
			continue
		}
		p.post(i, name{uint16(p.s.Life), number})
		if p.dice.Chance(0.1) {
			time.Sleep(p.dice.Span(50*time.Microsecond, 5*time.Millisecond))
		}
	}
}

// reach sees to a connection by which something can be posted. Not ok: not now.
func (p *poster) reach() (ok bool) {
	m := p.s.Manner
	if p.conn != nil {
		err := p.conn.Err()
		switch failed := p.failed.Swap(false); {
		case err != nil && !says(err):
			p.s.wrong(saysNothing, name{}, err)
		case failed && m.Renews && !m.Accepts:
			p.conn.Close()
			p.conn = nil
		case errors.Is(err, dgrdma.ErrClosed):
			p.conn = nil // it made room for another one
		case err != nil && m.Accepts && m.Waits:
			return false
		case err != nil:
			if err := p.conn.Reset(0); err != nil && !errors.Is(err, dgrdma.ErrClosed) {
				p.s.wrong(saysNothing, name{}, err)
			}
		}
	}
	if p.conn == nil {
		if p.conn = p.connect(); p.conn == nil {
			return false
		}
		p.era, p.life = p.era+1, p.conn.Life()
	}
	if life := p.conn.Life(); life != p.life {
		p.era, p.life = p.era+1, life
	}
	return true
}

// connect makes a connection, or finds one that the peer made; nil: there is none yet.
func (p *poster) connect() *dgrdma.Conn {
	if !p.s.Manner.Accepts {
		c, err := p.s.ep.Dial(p.s.peerURL())
		if err == nil {
			return c
		}
		if !errors.Is(err, dgrdma.ErrPeerExists) {
			p.s.wrong(saysNothing, name{}, err)
		}
	}
	for _, c := range p.s.ep.Conns() {
		if c.Name().ID == idOf(1-p.s.Side) {
			return c
		}
	}
	return nil
}

// post posts a transaction into a slot, for the life of the connection that was looked at.
func (p *poster) post(i int, n name) {
	t := &p.slot[i]
	t.name = n
	data := t.bytes[:n.size()]
	n.put(data, 0)
	at := uint32(i*stride + dataAt)
	cut := p.dice.IntN(len(data)/wordSize+1) * wordSize
	t.Segments = append(t.Segments[:0], dgrdma.Segment{Addr: at, Bytes: data[:cut]}, dgrdma.Segment{Addr: at + uint32(cut), Bytes: data[cut:]})
	t.Completion = dgrdma.Word(uint32(i*stride+16), n.completion())
	p.repost(i)
}

// repost posts what is in a slot.
func (p *poster) repost(i int) {
	t := &p.slot[i]
	p.s.report(record{kind: isPosted, life: t.name.life, number: t.name.number, extra: p.era<<8 | uint32(i)})
	err := p.conn.PostTo(p.life, &t.Transaction)
	if err == nil {
		return
	}
	p.s.report(record{kind: isWithdrawn, life: t.name.life, number: t.name.number})
	if !says(err) {
		p.s.wrong(saysNothing, t.name, err)
	}
	p.release(i, err)
}

// done is Done of all.
func (p *poster) done(x *dgrdma.Transaction, err error) {
	i := x.Cookie.(int)
	t := &p.slot[i]
	r := record{kind: isDone, life: t.name.life, number: t.name.number}
	if err == nil {
		p.s.reached(beforeDone)
	} else {
		r.kind = isFailed
		if !says(err) {
			p.s.wrong(saysNothing, t.name, err)
		}
	}
	p.s.report(r)
	if err == nil {
		p.s.reached(behindDone)
	}
	p.release(i, err)
}

// release gives a slot back that is done.
func (p *poster) release(i int, err error) {
	if err != nil {
		p.slot[i].failed = true
		if !errors.Is(err, dgrdma.ErrClosed) { // else it closed the connection itself
			p.failed.Store(true)
		}
	}
	p.free <- i
}

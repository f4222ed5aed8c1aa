package round

import (
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/tests/worlds"
)

// letters is a service by which nodes tell each other numbers: each arrives once, in order,
// and in the life that it was meant for.
type letters struct {
	n *node

	mu    sync.Mutex
	boxes map[dgrdma.EndpointID]*box
}

// box is what came from one peer.
type box struct {
	life   uint64 // of the peer
	last   uint64 // number of the latest letter in it
	recent [256]uint64
}

func newLetters(n *node) *letters {
	return &letters{n: n, boxes: make(map[dgrdma.EndpointID]*box)}
}

// Name implements [dgrdma.Service].
func (*letters) Name() string { return "letters" }

// Size implements [dgrdma.Service].
func (*letters) Size() uint64 { return dgrdma.MailSize + 64 }

// Meet implements [dgrdma.Service].
func (s *letters) Meet(ch *dgrdma.Channel) dgrdma.Handler { return reader{s, ch} }

// reader takes the letters of one connection.
type reader struct {
	s  *letters
	ch *dgrdma.Channel
}

// Admit implements [dgrdma.Memory]: nothing is written behind the mail.
func (r reader) Admit(src dgrdma.EndpointID, m *dgrdma.Message) ([]byte, error) {
	if !guest(src) {
		r.s.n.w.violatef("node %d: %d writes into the window of letters: %+v", r.s.n.index, src, *m)
	}
	return nil, errors.New("nothing is written here")
}

// Complete implements [dgrdma.Memory].
func (reader) Complete(dgrdma.EndpointID, *dgrdma.Message) {}

// Event implements [dgrdma.Handler].
func (reader) Event(dgrdma.Event) {}

const letterHeader = 16

// Letter implements [dgrdma.Handler].
func (r reader) Letter(b []byte) {
	s, src := r.s, r.ch.Conn().Name().ID
	if len(b) < letterHeader || guest(src) {
		s.n.w.violatef("node %d: a letter of %d bytes from %d", s.n.index, len(b), src)
		return
	}
	life, number := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	if string(b[letterHeader:]) != string(filling(number)) {
		s.n.w.violatef("node %d: letter %d from %d has %d bytes, or others", s.n.index, number, src, len(b))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.boxes[src]
	if x == nil {
		x = &box{}
		s.boxes[src] = x
	}
	switch {
	case life < x.life:
		s.n.w.violatef("node %d: letter %d from %d of life %#x, behind one of life %#x", s.n.index, number, src, life, x.life)
	case life == x.life && number <= x.last:
		s.n.w.violatef("node %d: letter %d from %d behind letter %d", s.n.index, number, src, x.last)
	}
	if life > x.life {
		x.recent = [256]uint64{}
	}
	x.life, x.last = life, number
	x.recent[number%uint64(len(x.recent))] = number
}

// has reports whether a letter came, if it is one of the last, and the peer's life goes on.
func (s *letters) has(src dgrdma.EndpointID, life, number uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.boxes[src]
	return x != nil && (x.life > life || x.life == life && x.recent[number%uint64(len(x.recent))] == number)
}

// filling is what a letter holds behind its header.
func filling(number uint64) []byte {
	n := int(number * 131 % (dgrdma.MaxLetter - letterHeader))
	return worlds.Table[number%1000:][:n]
}

// underWay is how many letters are on their way at a time.
const underWay = 8

// write sends letters until the round is over.
func (w *world) write(way Way) {
	from, to := w.nodes[way.From], w.nodes[way.To]
	room := make(chan struct{}, underWay)
	pause := 500 * time.Microsecond
	if !w.plan.Wire.Real() {
		pause = max(pause, w.plan.Duration/100)
	}
	for number := uint64(1); w.over.Err() == nil; number++ {
		w.sleep(pause)
		c, ok := from.conn(to)
		if !ok {
			continue
		}
		select {
		case room <- struct{}{}:
		case <-w.over.Done():
			return
		}
		to.mu.Lock()
		theirs := to.letters
		to.mu.Unlock()
		conn := c.Life()
		life := c.epoch<<32 | uint64(conn)
		b := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, life), number)
		settled := false
		c.Channel("letters").Mail(dgrdma.Letter{Life: conn, Bytes: append(b, filling(number)...), Settled: func(err error) {
			switch {
			case settled:
				w.violatef("letter %d from %d to %d is settled twice", number, way.From, way.To)
				return
			case err == nil && !theirs.has(idOf(way.From), life, number) && to.hasLetters(theirs):
				w.violatef("letter %d from %d to %d is said to have arrived, and did not", number, way.From, way.To)
			case err == nil:
				w.counts.Letters.Add(1)
			case !w.plan.MayFail && !errors.Is(err, dgrdma.ErrNoService) && w.over.Err() == nil:
				w.violatef("letter %d from %d to %d failed: %v", number, way.From, way.To, err)
			case !worlds.Excused(err) && !errors.Is(err, dgrdma.ErrNoService):
				w.violatef("letter %d from %d to %d failed for no known reason: %v", number, way.From, way.To, err)
			}
			settled = true
			<-room
		}})
	}
}

// hasLetters reports whether that is still the service of the node's life.
func (n *node) hasLetters(s *letters) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.up && n.letters == s
}

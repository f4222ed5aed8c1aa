package dgrdma

import (
	"bytes"
	"encoding/binary"

	"github.com/dgrdma/dgrdma/frame"
)

// parcelFlow is a queue of one side to a box of the other.
type parcelFlow struct {
	side   *flowsSide
	flow   *Flow // nil: what is posted on the connection
	to     int   // which box
	base   uint32
	posted []*parcel // guarded by the world's mu
}

// parcel is a transaction that writes where no other does, and a completion word of its
// own.
type parcel struct {
	x    Transaction
	flow *parcelFlow
	want []byte
	at   int // in the box
	id   uint32
	life uint64 // 0: whatever it is then

	// Guarded by the world's mu.
	answers   int
	err       error
	cancelled bool // nothing of it was sent
	seen      bool
	complete  bool
	txn       uint32
	box       *parcelBox // which got it
}

// pack makes a parcel for a flow.
func (w *flowsWorld) pack(f *parcelFlow) *parcel {
	n := w.r.IntN([]int{1, 100, 2000, 8000, 50_000}[w.r.IntN(5)])
	p := &parcel{flow: f, want: make([]byte, n)}
	for i := range p.want {
		p.want[i] = byte(w.r.Uint32())
	}
	used := &f.side.other.used[f.to]
	if *used+n > boxSize-boxWords {
		p.want, n = nil, 0
	}
	at := *used
	*used += n
	p.at = at
	mine := bytes.Clone(p.want)
	for off := 0; off < n || off == 0 && w.r.IntN(2) == 0; {
		take := n - off
		if w.r.IntN(3) > 0 {
			take = w.r.IntN(take + 1)
		}
		p.x.Segments = append(p.x.Segments, Segment{f.base + boxWords + uint32(at+off), mine[off : off+take]})
		if off += take; n == 0 {
			break
		}
	}
	p.x.Completion = Word(f.base+MailSize+4*uint32(w.r.IntN(100)), 0)
	p.x.Urgent, p.x.Fence = w.r.IntN(6) == 0, w.r.IntN(8) == 0
	if w.r.IntN(2) == 0 {
		p.x.Copied = func(*Transaction) { scribble(mine) }
	}
	p.x.Cookie = mine
	return p
}

func scribble(b []byte) {
	for i := range b {
		b[i] = 0xEE
	}
}

// done is Done.
func (p *parcel) done(_ *Transaction, err error) {
	w := p.flow.side.w
	w.mu.Lock()
	defer w.mu.Unlock()
	p.over(err)
}

// over notes how it went. The bytes are its owner's again.
func (p *parcel) over(err error) {
	w := p.flow.side.w
	if p.answers++; p.answers > 1 {
		w.errorf("%v is done again: %v, after %v", p, err, p.err)
	}
	if p.err = err; err == nil && !p.complete {
		w.errorf("%v is done and did not arrive", p)
	}
	scribble(p.x.Cookie.([]byte))
}

// whole reports whether all of it is where it belongs.
func (p *parcel) whole() bool { return bytes.Equal(p.box.bytes[p.at:][:len(p.want)], p.want) }

// parcelBox is memory, or a service, that holds what comes against what was promised.
type parcelBox struct {
	w     *flowsWorld
	side  *flowsSide
	at    int
	base  uint32
	bytes []byte
	gone  bool // its side started again
	ch    *Channel
	read  uint32 // the last letter
	life  uint64 // the latest that something came of
}

func (b *parcelBox) Name() string { return boxNames[b.at] }
func (b *parcelBox) Size() uint64 { return boxSize }

func (b *parcelBox) Meet(ch *Channel) Handler {
	b.ch = ch
	return b
}

func (b *parcelBox) Event(Event) {}

func (b *parcelBox) Admit(_ frame.EndpointID, m *frame.Message) ([]byte, error) {
	if m.Len == 0 {
		return nil, nil
	}
	at := int64(m.Addr) - int64(b.base) - boxWords
	if at < 0 || at+int64(m.Len) > int64(len(b.bytes)) {
		return nil, ErrBounds
	}
	return b.bytes[at:][:m.Len:m.Len], nil
}

func (b *parcelBox) Placed(_ frame.EndpointID, m *frame.Message) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	b.came(m)
}

func (b *parcelBox) Complete(_ frame.EndpointID, m *frame.Message) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	p := b.came(m)
	switch {
	case p == nil:
	case p.complete:
		b.w.errorf("%v is complete again", p)
	case !p.whole():
		b.w.errorf("%v is complete without all of it", p)
	default:
		p.complete = true
	}
}

// came is told of each message, and finds the parcel that it belongs to.
func (b *parcelBox) came(m *frame.Message) *parcel {
	w := b.w
	if m.CompletionValue == 0 || int(m.CompletionValue) > len(w.all) {
		w.errorf("a message of nobody: %+v", m)
		return nil
	}
	p := w.all[m.CompletionValue-1]
	switch {
	case p.flow.to != b.at || p.flow.side == b.side:
		w.errorf("%v came to side %d, %s", p, b.side.i, boxNames[b.at])
	case p.cancelled:
		w.errorf("%v was cancelled, and came", p)
	case p.complete:
		w.errorf("a message of %v after its end", p)
	case p.box != nil && p.box != b:
		w.errorf("%v came to two lives", p)
	case p.seen && p.txn != m.Txn:
		w.errorf("%v came as two transactions", p)
	}
	if !p.seen {
		p.seen, p.box, p.txn = true, b, m.Txn
		p.inOrder()
	}
	if p.life != 0 {
		if p.life < b.life {
			w.errorf("%v came after something of life %#x", p, b.life)
		}
		b.life = p.life
	}
	return p
}

// inOrder holds the first message of a parcel against those posted before.
func (p *parcel) inOrder() {
	w := p.flow.side.w
	urgent := p.x.Urgent && !p.x.Fence
	if p.life == 0 {
		return
	}
	for _, x := range p.flow.posted {
		if x == p {
			return
		}
		if x.life != p.life || urgent != (x.x.Urgent && !x.x.Fence) {
			continue
		}
		switch {
		case x.seen && int32(x.txn-p.txn) > 0:
			w.errorf("%v began before %v", p, x)
		case p.x.Fence && !x.cancelled && !x.complete && x.answers == 0:
			w.errorf("%v passed %v", p, x)
		}
	}
}

// parcelLetter is a letter.
type parcelLetter struct {
	w       *flowsWorld
	from    *flowsSide
	to      int
	answers int
	came    int
	err     error
}

func (l *parcelLetter) settled(err error) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	l.answers++
	l.err = err
}

func (b *parcelBox) Letter(letter []byte) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	n := binary.LittleEndian.Uint32(letter)
	if n <= b.read {
		b.w.errorf("letter %d after letter %d", n, b.read)
	}
	b.read = n
	l := b.w.mails[n-1]
	if l.came++; l.to != b.at || l.from == b.side {
		b.w.errorf("letter %d went astray", n)
	}
}

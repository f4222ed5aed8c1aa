package round

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/tests/worlds"
)

// linkRecord is what is known of one direction of a link: what its producer was told, and
// what its consumer got.
type linkRecord struct {
	number   uint64 // in every message
	consumer *node
	life     int         // of the consumer's node when it was accepted
	back     *linkRecord // the other direction; nil: there is none

	mu       sync.Mutex
	sent     uint64 // messages, at most: Dial may have it accepted twice, and begin anew
	total    uint64 // of them, when its producer is through
	arrived  uint64 // of them, as Flush or Close says
	closed   bool   // Close of the producer says that all have arrived
	aborted  bool
	void     bool // by the consumer's own side, and views of messages with it
	received uint64
}

func (r *linkRecord) String() string { return fmt.Sprintf("link %d", r.number) }

// content is what message k of a link holds.
func content(number, k uint64, size int) []byte {
	x := number*0x9e3779b97f4a7c15 + k*0xbf58476d1ce4e5b9
	n := int(x>>33) % (size + 1)
	if n < 16 {
		n = min(16, size)
	}
	b := make([]byte, n)
	copy(b, worlds.Table[x>>40%uint64(len(worlds.Table)-n):])
	if n >= 16 {
		binary.LittleEndian.PutUint64(b, number)
		binary.LittleEndian.PutUint64(b[8:], k)
	}
	return b
}

const portName = "soak"

// record begins the record of one direction.
func (w *world) record(consumer *node) *linkRecord {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := &linkRecord{number: uint64(len(w.links) + 1), consumer: consumer, life: consumer.lives()}
	w.links[r.number] = r
	return r
}

func (w *world) recordOf(number uint64) *linkRecord {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.links[number]
}

// dialLinks makes one link after the other until the round is over.
func (w *world) dialLinks(index int, p *Link) {
	d := worlds.NewDice(w.plan.Seed, uint64(rollLink+1000*index)<<20)
	from, to := w.nodes[p.From], w.nodes[p.To]
	for made := 0; w.over.Err() == nil && (p.Most == 0 || made < p.Most); {
		if _, ok := from.conn(to); !ok {
			w.sleep(d.Span(time.Millisecond, 20*time.Millisecond))
			continue
		}
		out := w.record(to)
		private := binary.LittleEndian.AppendUint64(nil, out.number)
		directions := link.Send
		var back *linkRecord
		if p.Both {
			back, directions = w.record(from), link.Both
			out.back, back.back = back, out
			private = binary.LittleEndian.AppendUint64(private, back.number)
		}
		from.mu.Lock()
		host := from.host
		from.mu.Unlock()
		ctx, cancel := context.WithTimeout(w.over, w.plan.GiveUp+10*time.Second)
		l, err := host.Dial(ctx, url(w.g, to.index), portName, &link.Options{Directions: directions, Buffers: p.Buffers, Size: p.Size, Private: private})
		cancel()
		if err != nil {
			out.abort() // it may have been accepted
			if !w.plan.MayFail && w.over.Err() == nil && !errors.Is(err, dgrdma.ErrNoService) {
				w.violatef("dial from %d to %d: %v", p.From, p.To, err)
			}
			w.sleep(d.Span(time.Millisecond, 100*time.Millisecond))
			continue
		}
		made++
		w.counts.Links.Add(1)
		var both sync.WaitGroup
		if back != nil {
			seed := d.Uint64()
			both.Go(func() { w.consume(l, back, seed, p.Pause) })
		}
		w.produce(l, out, worlds.NewDice(d.Uint64(), 1), p)
		both.Wait()
		l.Close()
	}
}

// listen accepts links until the host is closed.
func (n *node) listen(host *link.Host) {
	w := n.w
	port, err := host.Listen(portName, &link.Options{Directions: link.Both})
	if err != nil {
		w.violatef("node %d: listen: %v", n.index, err)
		return
	}
	w.takers.Go(func() {
		for {
			l, err := port.Accept(context.Background())
			if err != nil {
				if n.isUp(host) {
					w.violatef("node %d: accept: %v", n.index, err)
				}
				return
			}
			w.takers.Go(func() { w.accepted(l) })
		}
	})
}

// isUp reports whether the node's present life has that host.
func (n *node) isUp(host *link.Host) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.up && n.host == host
}

// accepted serves a link that was dialed.
func (w *world) accepted(l *link.Link) {
	defer l.Close()
	private := l.Private()
	if len(private) < 8 {
		w.violatef("a link with %d private bytes", len(private))
		return
	}
	in := w.recordOf(binary.LittleEndian.Uint64(private))
	if in == nil {
		w.violatef("a link that nobody dials, or twice: %v", private)
		return
	}
	var both sync.WaitGroup
	if len(private) == 16 {
		if out := w.recordOf(binary.LittleEndian.Uint64(private[8:])); out != nil && l.Out != nil {
			d := worlds.NewDice(out.number, 2)
			both.Go(func() { w.produce(l, out, d, &Link{Messages: 50}) })
		}
	}
	w.consume(l, in, in.number, time.Millisecond)
	both.Wait()
}

// produce sends messages, some in place, and ends in one of the ways that there are.
func (w *world) produce(l *link.Link, r *linkRecord, d worlds.Dice, p *Link) {
	_, size := l.Out.Buffers()
	ctx := context.Background()
	n := uint64(d.Between(1, p.Messages))
	for k := uint64(0); k < n && w.over.Err() == nil; k++ {
		if p.Pause > 0 && d.Chance(0.05) {
			w.sleep(time.Duration(d.Int64N(int64(p.Pause))))
		}
		b := content(r.number, k, size)
		r.mu.Lock()
		r.sent, r.total = max(r.sent, k+1), k+1
		r.mu.Unlock()
		var err error
		if d.Chance(0.5) {
			err = l.Out.Send(ctx, uint8(k), b)
		} else {
			var buf link.Buffer
			if buf, err = l.Out.Acquire(ctx); err == nil {
				copy(buf.Bytes, b)
				err = l.Out.Commit(buf, uint8(k), len(b))
			}
		}
		if err == nil && d.Chance(0.02) {
			if err = l.Out.Flush(ctx); err == nil {
				r.hasArrived(k + 1)
			}
		}
		if err != nil {
			w.linkFailed(r, "send", err)
			return
		}
	}
	if d.Chance(0.05) {
		r.abort()
		if r.back != nil {
			r.back.voids()
		}
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		l.Abort(ctx, "that is how it goes")
		return
	}
	if err := l.Out.Close(); err != nil {
		w.linkFailed(r, "close", err)
		return
	}
	r.mu.Lock()
	r.closed = true
	all := r.total
	r.mu.Unlock()
	r.hasArrived(all)
}

// abort notes that a link is ended early, with both directions.
func (r *linkRecord) abort() {
	for _, x := range []*linkRecord{r, r.back} {
		if x != nil {
			x.mu.Lock()
			x.aborted = true
			x.mu.Unlock()
		}
	}
}

// voids notes that a consumer's own side ends the link early.
func (r *linkRecord) voids() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.void = true
}

func (r *linkRecord) isVoid() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.void
}

func (r *linkRecord) hasArrived(n uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.arrived = n
}

// linkFailed judges the failure of a link.
func (w *world) linkFailed(r *linkRecord, what string, err error) {
	r.mu.Lock()
	excused := r.aborted || w.plan.MayFail
	r.mu.Unlock()
	var e *link.Error
	if !excused || !errors.As(err, &e) {
		w.violatef("%v: %s: %v", r, what, err)
	}
}

// consume checks messages as they come, and once more before they are given back.
func (w *world) consume(l *link.Link, r *linkRecord, seed uint64, pause time.Duration) {
	d := worlds.NewDice(seed, 3)
	n, size := l.In.Buffers()
	type held struct {
		m    link.Message
		want []byte
	}
	var holds []held
	let := func() bool {
		h := holds[0]
		holds = holds[1:]
		if !bytes.Equal(h.m.Bytes, h.want) && !r.isVoid() {
			w.violatef("%v: a message of %d bytes changed before it was given back", r, len(h.want))
			return false
		}
		return l.In.Release(h.m) == nil
	}
	for k := uint64(0); ; {
		m, err := l.In.Recv(context.Background())
		if err != nil {
			w.consumed(r, k, err)
			return
		}
		want := content(r.number, k, size)
		if m.Opcode != uint8(k) || !bytes.Equal(m.Bytes, want) {
			w.violatef("%v: message %d has opcode %d and %d bytes, want %d, or others", r, k, m.Opcode, len(m.Bytes), len(want))
			l.Close()
			return
		}
		k++
		w.counts.Messages.Add(1)
		r.mu.Lock()
		if r.received = k; k > r.sent {
			r.mu.Unlock()
			w.violatef("%v: message %d came and was not sent", r, k)
			return
		}
		r.mu.Unlock()
		holds = append(holds, held{m, want})
		if pause > 0 && d.Chance(0.05) {
			w.sleep(time.Duration(d.Int64N(int64(pause))))
		}
		for len(holds) == n || len(holds) > 0 && d.Chance(0.5) {
			if !let() {
				w.consumed(r, k, l.Err())
				return
			}
		}
	}
}

// consumed judges how a consumer ended.
func (w *world) consumed(r *linkRecord, k uint64, err error) {
	r.mu.Lock()
	total, arrived, aborted := r.total, r.arrived, r.aborted
	r.mu.Unlock()
	restarted := r.consumer.lives() != r.life || r.consumer.down()
	var e *link.Error
	switch {
	case errors.Is(err, io.EOF) && k != total:
		w.violatef("%v: end of file after %d messages of %d", r, k, total)
	case errors.Is(err, io.EOF):
	case !aborted && !w.plan.MayFail || !errors.As(err, &e):
		w.violatef("%v: receive: %v", r, err)
	case !aborted && !restarted && k < arrived:
		w.violatef("%v: %d messages of %d that arrived, and then %v", r, k, arrived, err)
	}
}

func (n *node) down() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.up
}

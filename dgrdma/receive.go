package dgrdma

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/foreign"
	"github.com/dgrdma/dgrdma/endpoint/reassembly"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// receiving is the half of a connection that receives: which frames came, and the
// transactions that are incomplete. All of it belongs to the holder of the receive lock.
type receiving struct {
	*terms
	kind    receivingKind
	ledger  *foreign.Ledger // of a peer without sessions; nil: each message comes once
	scratch *receiveScratch
	events  observer
	own     view // of the endpoint's memory; does not change once the peer is heard

	open     reassembly.Table
	held     reassembly.Holding // for that, and for what the kind keeps
	counters Counters
	followed int32       // resets that were followed
	told     bool        // of the peer, since the last reset: see up
	touched  bool        // in the endpoint's list for this batch
	departs  bool        // it was said that the peer is gone, or never was there: see gone
	lastAt   ack.Instant // when the last frame came
	livedAt  ack.Instant // when the peer last showed that it is there, in the way of its kind
}

// observer is told what happens to the peer.
type observer interface{ event(Event) }

// receiveScratch is where the frame at hand is looked at. It belongs to the goroutine that has the turn to
// receive.
type receiveScratch struct {
	frame         frame.Frame // not on the stack: what a trace or a memory is shown, escapes
	session       frame.SessionFrame
	cursor        frame.Cursor
	pendingWrites []pendingWrite
	following
	checksum bool          // the frame at hand had one, which was right
	length   int           // of its datagram
	mark     transport.ECN // with which that arrived
	looked   uint32        // counts the frames that admit looked at
	pool     reassembly.Pool
}

// nextWrite returns room for another pending write. Those before it may move.
func (d *receiveScratch) nextWrite() *pendingWrite {
	n := len(d.pendingWrites)
	if n == cap(d.pendingWrites) {
		d.pendingWrites = append(d.pendingWrites, pendingWrite{})
	}
	d.pendingWrites = d.pendingWrites[:n+1]
	return &d.pendingWrites[n]
}

// mostLeft is how many incomplete transactions a peer may have that leaves some for good:
// they are only in the way, and looked at after each batch.
const mostLeft = 256

func (r *receiving) init(t *terms, d *receiveScratch, o observer) {
	*r = receiving{terms: t, scratch: d, events: o}
	p := &r.profile
	limit := r.cfg.OpenIncoming
	if p.NeverRetransmits || p.OverCounts {
		limit = min(limit, mostLeft)
	}
	r.held.Init(&d.pool)
	r.open.Init(limit, &r.held)
}

// look takes the peer's view of the memory. Connections that are made and not used
// have none.
func (r *receiving) look(m Memory, c *Conn) {
	if each, ok := m.(PerConn); ok {
		if m = each.For(c); m == nil {
			m = noMemory{}
		}
	}
	r.own = viewOf(m)
}

// view is memory as a peer sees it.
type view struct {
	Memory
	placed Placed // if it wants to know; or nil
}

func viewOf(m Memory) view {
	placed, _ := m.(Placed)
	return view{m, placed}
}

// clear forgets the peer.
func (r *receiving) clear() {
	r.release()
	r.kind.forget()
	r.told = false
}

// letGo gives back what is kept for a connection that failed or was reset, unless it
// began again since.
func (r *receiving) letGo() {
	if r.down.Load() || r.resets.Load() != r.followed {
		r.release()
	}
}

// release gives back what is kept for incomplete transactions, and for letters.
func (r *receiving) release() {
	r.open.Reset()
	for _, ch := range r.channels.all() {
		ch.mail.in.reset()
	}
}

// begin counts a frame of the peer, and follows a Reset.
func (r *receiving) begin(now ack.Instant) {
	r.counters.FramesReceived++
	r.lastAt = now
	if n := r.resets.Load(); n != r.followed {
		r.followed = n
		r.clear()
	}
}

// handshakeOf returns what a frame of the handshake says.
func (r *receiving) handshakeOf(f *frame.Frame) (h frame.Handshake, ok bool) {
	d := r.scratch
	d.cursor.Begin(f)
	d.pendingWrites = d.pendingWrites[:0]
	m := &d.nextWrite().msg
	d.cursor.Into(m)
	return frame.HandshakeOf(f, m)
}

// up reports a peer that was silent so far.
func (r *receiving) up() {
	if !r.told {
		r.told = true
		r.events.event(Event{Kind: PeerUp})
	}
}

func (r *receiving) drop(why Reason) Reason {
	r.counters.Refused[why]++
	return why
}

// refused drops a frame and says so.
func (r *receiving) refused(why Reason, txn uint32, err error) Reason {
	r.drop(why)
	r.events.event(Event{Kind: FrameRefused, Reason: why, Txn: txn, Err: err})
	return why
}

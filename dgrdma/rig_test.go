package dgrdma

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/foreign"
	"github.com/dgrdma/dgrdma/frame"
)

// come has the peer come, with a session if it is one that has sessions, and begins to count.
func (r *halfRig) come(epoch uint32) {
	r.t.Helper()
	r.serve()
	r.answers(epoch)
	r.serve()
	for r.c.session != nil && len(r.flying) > 0 { // which tells of services, where the handshake has no room for that
		r.acknowledges(0)
	}
	r.c.tx.counters, r.c.rx.counters, r.c.tx.heard.counters = Counters{}, Counters{}, Counters{}
	r.flying = nil
}

// foreign returns the receiving half of a peer without sessions; nil: it has them.
func (r *halfRig) foreign() *foreign.Receiver {
	if o, ok := r.c.rx.kind.(*foreignReceiving); ok {
		return &o.v107
	}
	return nil
}

// cameNew has the frame with that id come of a peer without sessions, with a message that changes nothing.
func (r *halfRig) cameNew(q frame.Seq) {
	f, m := frame.Frame{Header: frame.Header{Seq: q}}, frame.Message{Txn: 1}
	if v := r.foreign().Judge(r.now, &f, &m, false); v != foreign.New {
		r.t.Fatalf("frame %d is %v", q, v)
	}
	r.foreign().Applied(r.now, &f)
}

// comesAgain has it come once more.
func (r *halfRig) comesAgain(q frame.Seq) {
	r.foreign().Again(r.now, &frame.Frame{Header: frame.Header{Seq: q}})
}

// enqueues has transactions of that many bytes posted.
func (r *halfRig) enqueues(sizes ...int) {
	r.t.Helper()
	for _, n := range sizes {
		x := write(64, make([]byte, n), 0, 1)
		if _, _, err := r.c.enqueue(x, r.answered, nil, posting{to: anyEpoch, flow: &r.c.plain}); err != nil {
			r.t.Fatal(err)
		}
	}
}

// posts has them sent, too.
func (r *halfRig) posts(sizes ...int) {
	r.t.Helper()
	r.enqueues(sizes...)
	r.serve()
}

// comes has frames of the peer come that are to be acknowledged, and sends what is due.
func (r *halfRig) comes(n int) {
	r.t.Helper()
	for range n {
		r.heard++
		if s := r.c.session; s != nil {
			s.rx.arrives(r.now, uint32(s.tx.m.Remote)+uint32(r.heard))
		} else {
			r.cameNew(r.heard)
		}
	}
	r.batch()
	r.serve()
}

// arrives has a frame with that id come, with a message that changes nothing.
func (n *sessionReceiving) arrives(now ack.Instant, id uint32) {
	n.frames.Arrived(now, &frame.SessionFrame{SessionHeader: frame.SessionHeader{ID: id}})
}

// acknowledges has the peer acknowledge a frame of those in flight.
func (r *halfRig) acknowledges(i int) {
	r.t.Helper()
	q := r.flying[i]
	r.flying = append(r.flying[:i], r.flying[i+1:]...)
	r.batch(ack.Range{Start: q, Count: 1})
	r.serve()
}

// waits has time pass until the next deadline, and sends what is due.
func (r *halfRig) waits() {
	r.t.Helper()
	r.now = max(r.now, r.diary.at)
	r.expire()
	r.serve()
}

// hellos has the peer send a HELLO.
func (r *halfRig) hellos(epoch uint32) {
	r.t.Helper()
	b := make([]byte, frame.ListedSize)
	h := frame.Handshake{Kind: frame.HandshakeHello, Sender: epoch}
	h.Put(b, 2, 1)
	var f frame.Frame
	if err := f.Decode(b); err != nil {
		r.t.Fatal(err)
	}
	r.c.rx.kind.receive(r.now, &f)
	r.batch()
}

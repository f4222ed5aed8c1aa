package endpoint

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// mostFollow bounds how many frames are applied as one run. Arbitrary: more than the kernel
// hands over as one.
const mostFollow = 128

// following is what is known of a run at hand.
type following struct {
	before frame.Message // of the frame that the run follows
	run    frame.Run
	tags   [mostFollow]uint16 // of its frames
}

// follow applies the frames that go on where f ended, which was applied just now, and returns
// how many. They are in the midst of a transaction, and their headers are as the one before
// lets expect: so what receive asks of each frame is answered already, and what it notes is
// noted once for all of them. Whatever is not so is left to receive: the end of a transaction,
// a frame of another length, one that acknowledges something or came already, what the memory
// does not take.
func (r *receiving) follow(now ack.Instant, f *frame.Frame, rest []transport.Datagram, from *transport.Addr) (n int) {
	d := r.desk
	m := &d.placements[0].msg
	in := r.open.find(m.Txn)
	if len(d.placements) > 1 || in == nil || m.Len == 0 || r.recv.Newest().Seq() != f.Seq {
		return 0
	}
	d.before = *m
	most := min(r.ledger.ahead(in, m), int(m.Count-in.got)-1, len(rest), mostFollow)
	if most <= 0 {
		return 0
	}
	h := f.Header
	h.AckCount, h.Flags = 0, frame.FlagMessages
	if d.checksum {
		h.Flags |= frame.FlagChecksum
	}
	d.run.Begin(&h, m)
	for all := r.owner(); n < most && r.resets.Load() == r.followed && !r.down.Load(); n++ {
		d.run.Next(m)
		b := rest[n].Data
		if d.checksum {
			b = b[:max(len(b)-frame.ChecksumSize, 0)]
		}
		data, ok := d.run.Data(b)
		if !ok || rest[n].From != *from {
			break
		}
		if d.checksum {
			if _, right := frame.CutChecksum(rest[n].Data); !right {
				break
			}
		}
		owner := all
		if owner == nil {
			owner = r.ownerOf(m)
		}
		dst, err := owner.Admit(r.peer.ID, m)
		if err != nil || len(dst) != len(data) {
			break // receive asks again, and acts on the answer
		}
		place(dst, data)
		if owner.placed != nil {
			owner.placed.Placed(r.peer.ID, m)
		}
		d.tags[n] = tagOf(m)
	}
	if n > 0 {
		r.tookRun(now, in, n)
	}
	return n
}

// tookRun notes that n frames were applied as a run.
func (r *receiving) tookRun(now ack.Instant, in *incoming, n int) {
	c, m := &r.counters, &r.desk.before
	c.FramesReceived += uint64(n)
	c.BytesReceived += uint64(n) * uint64(r.desk.length)
	c.MessagesPlaced += uint64(n)
	c.DataPlaced += uint64(n) * uint64(m.Len)
	r.ledger.markRun(in, m, n)
	in.countRun(m, n)
	r.kind.tookRun(now, n, m.Txn)
	r.recv.AcceptRun(r.desk.tags[:n])
}

package dgrdma

import (
	"github.com/dgrdma/dgrdma/endpoint/reassembly"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// mostFollow bounds how many frames are applied as one run. Arbitrary: more than the kernel
// hands over as one.
const mostFollow = 128

// following is what is known of a run at hand.
type following struct {
	before     frame.Message // of the frame that the run follows
	run        frame.Run
	sessionRun frame.SessionRun
}

// followable is what the headers of a frame are that goes on where the one before ended.
type followable interface {
	Next(m *frame.Message)
	Data(b []byte) (data []byte, ok bool)
}

// followRun applies the frames of a run, at most so many, the first of which goes on where m ended.
func (r *receiving) followRun(run followable, m *frame.Message, rest []transport.Datagram, from *transport.Addr, most int) (n int) {
	d := r.scratch
	d.before = *m
	most = min(most, len(rest), mostFollow)
	for all := r.owner(); n < most && r.resets.Load() == r.followed && !r.down.Load(); n++ {
		run.Next(m)
		b := rest[n].Data
		if d.checksum {
			b = b[:max(len(b)-frame.ChecksumSize, 0)]
		}
		data, ok := run.Data(b)
		if !ok || rest[n].From != *from || rest[n].ECN != d.mark {
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
	}
	return n
}

// countFollowed counts n frames that were applied as a run.
func (r *receiving) countFollowed(in *reassembly.Transaction, n int) {
	c, m := &r.counters, &r.scratch.before
	c.FramesReceived += uint64(n)
	c.BytesReceived += uint64(n) * uint64(r.scratch.length)
	c.MessagesPlaced += uint64(n)
	c.DataPlaced += uint64(n) * uint64(m.Len)
	in.CountRun(m, n)
}

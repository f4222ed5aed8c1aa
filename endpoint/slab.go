package endpoint

import (
	"sync"
	"sync/atomic"
)

// slab is memory for frames. They lie side by side in the order in
// which they were made, so that the transport can give many of them to the kernel
// as one piece of memory. A slab belongs to the batch, whose frames are made again if they
// are lost, or to one connection, and goes back to where all take theirs from when the batch
// was sent, or its last frame is acknowledged: what is used next was used a moment ago, by
// whomever, and a connection at rest has none.
type slab struct {
	mem  []byte
	used int // bytes of mem that hold frames
	held int // frames that may be sent again
}

// slabSize is what the kernel cuts into datagrams at most at once.
const slabSize = 1 << 16

var slabs = sync.Pool{New: func() any { return &slab{mem: make([]byte, slabSize)} }}

// outFrame is a frame in flight: where its bytes are, and whose messages it
// holds. The transactions of a frame are neighbours in lanes.begun. There are as
// many as the window is long, so they are small.
type outFrame struct {
	slab   *slab // nil: its bytes are made again of the transaction's, see part
	first  *Transaction
	length uint32
	at     uint16 // in a slab that holds several
	n      uint16
	part
}

// part is a message that fills a frame, from the midst of a segment.
type part struct {
	segment, offset uint32
	index           uint16
}

func (o *outFrame) buf() []byte {
	return o.slab.mem[o.at : int(o.at)+int(o.length)] // and room for a checksum
}

// flight holds the frames in flight of a connection, and where the next one goes.
type flight struct {
	full        int            // length of the buffer of a full frame, with room for its checksum
	more, least int            // room for a checksum of one that is kept: what it is longer by, and how long it is at least
	batches     *atomic.Uint64 // the number of the batch that is being sent
	out         []outFrame     // by frame id modulo its length
	slab        *slab          // where the next frame goes; nil: into a new one
	leaving     []*slab        // of frames to be dropped, once for each, when batched was sent
	batched     uint64         // the batch in which frames of ours are
}

// buffer returns room for a full frame with the transport's headroom. It is
// taken when the frame is kept.
func (f *flight) buffer() []byte {
	size := f.full
	mem := f.slab
	if mem == nil || len(mem.mem)-mem.used < size {
		if size > slabSize {
			mem = &slab{mem: make([]byte, size)}
		} else {
			mem = slabs.Get().(*slab)
		}
		f.slab = mem
	}
	return mem.mem[mem.used : mem.used+size : mem.used+size]
}

// keep remembers a frame in flight: its bytes, which are the beginning of what
// buffer returned, and whose messages it holds.
func (f *flight) keep(s outstanding, id uint32, buf []byte, first *Transaction, n int) {
	f.follow(s)
	mem := f.slab
	// Set in place: a literal is built in small pieces and moved in large ones, for which
	// the processor waits until the small ones are written, behind the bytes of the frame.
	o := f.at(id)
	o.slab, o.first, o.length, o.at, o.n = mem, first, uint32(len(buf)), uint16(mem.used), uint16(n)
	mem.used += max(len(buf)+f.more, f.least)
	mem.held++
}

// remakes reports whether frames are made again if they are lost: those that do not fit a
// slab are kept.
func (f *flight) remakes() bool { return f.full <= slabSize }

// note remembers a frame in flight that is made again if it is lost.
func (f *flight) note(s outstanding, id uint32, t *Transaction, p *part, length int) {
	f.follow(s)
	o := f.at(id)
	o.first, o.length, o.n = t, uint32(length), 1
	o.segment, o.offset, o.index = p.segment, p.offset, p.index
}

// discard forgets a frame that is not in flight any more. If it may be being sent at
// this moment, its memory must wait. The number of the batch tells: the sender raises it
// when the transport has taken the batch, and this connection's frames come into a batch
// only under its mutex, which the caller holds.
func (f *flight) discard(o *outFrame) {
	if o.slab == nil {
		// Nothing of it is kept.
	} else if f.batched == f.batches.Load() {
		f.leaving = append(f.leaving, o.slab)
	} else {
		f.release(o.slab)
	}
	*o = outFrame{}
}

// releaseSent releases what was being sent, if it was sent meanwhile.
func (f *flight) releaseSent() {
	if f.batched == f.batches.Load() {
		return
	}
	for i, mem := range f.leaving {
		f.release(mem)
		f.leaving[i] = nil
	}
	f.leaving = f.leaving[:0]
}

func (f *flight) release(mem *slab) {
	if mem.held--; mem.held > 0 {
		return
	}
	if f.slab == mem {
		f.slab = nil
	}
	if mem.used = 0; len(mem.mem) == slabSize {
		slabs.Put(mem)
	}
}

// follow keeps the frames where the places of their ids are.
func (f *flight) follow(s outstanding) {
	if n := s.Capacity(); n != len(f.out) {
		old := f.out
		f.out = make([]outFrame, n)
		// The newest is the one to be kept: where there were none, nothing is older. Ids
		// without messages may have made the distance longer than old: a frame is moved by
		// its own id, which comes first, and no other.
		for id := s.Oldest(); id != s.Next()-1; id++ {
			o := &old[int(id)&(len(old)-1)]
			f.out[int(id)&(n-1)] = *o
			*o = outFrame{}
		}
	}
}

// at returns the frame with that id.
func (f *flight) at(id uint32) *outFrame { return &f.out[int(id)&(len(f.out)-1)] }

// clear forgets all frames.
func (f *flight) clear() {
	for i := range f.out {
		if f.out[i].length > 0 {
			f.discard(&f.out[i])
		}
	}
}

// rest gives back all memory.
func (f *flight) rest() { f.out, f.slab, f.leaving = nil, nil, nil }

// longest returns the length of the longest buffer in it.
func (f *flight) longest() (n int) {
	for i := range f.out {
		n = max(n, int(f.out[i].length))
	}
	return n
}

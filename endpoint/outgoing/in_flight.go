package outgoing

// Frame is a frame in flight: where its bytes are, and the transactions that it has messages of: First
// and those after it, N in all. There are as many as the window is long, so they are small.
type Frame[T any] struct {
	slab   *slab // nil: its bytes are made again of the transaction's, see Part
	First  *T
	Length uint32 // of its buffer, with the headroom; 0: there is no such frame
	at     uint16 // in a slab that holds several
	N      uint16
	Part
}

// Part is a message that fills a frame, from the middle of a segment.
type Part struct {
	Segment, Offset uint32
	Index           uint16 // of the message
}

// IsKept reports whether the bytes of the frame are kept; else they are made again, of its Part.
func (o *Frame[T]) IsKept() bool { return o.slab != nil }

// Bytes returns the buffer of a frame that is kept. There is room for a checksum after it.
func (o *Frame[T]) Bytes() []byte {
	return o.slab.mem[o.at : int(o.at)+int(o.Length)]
}

// Window says which frames wait for acknowledgement: ids from Oldest up to Next, no more than
// Capacity, which is a power of two.
type Window interface {
	Oldest() uint32
	Next() uint32
	Capacity() int
}

// Lengths are how long buffers of frames are.
type Lengths struct {
	Full  int // of a full frame, with headroom, and with room for its checksum
	Spare int // room for a checksum: a frame that is kept takes that much more
	Least int // what a frame that is kept takes at least
}

// InFlight holds the frames in flight of a connection, and where the next one goes. T is a transaction. It is guarded
// by the connection's lock.
type InFlight[T any] struct {
	window  Window
	lengths Lengths
	batch   *Batch     // in which the frames leave
	frames  []Frame[T] // by frame id modulo its length
	slab    *slab      // where the next frame goes; nil: into another one
	leaving []*slab    // of frames to be dropped, once for each, when batched was sent
	batched uint64     // the number of the batch that has frames of the connection
}

// Init prepares the frames in flight of a connection, whose frames leave in that batch.
func (f *InFlight[T]) Init(l Lengths, b *Batch) { f.lengths, f.batch = l, b }

// Follow has the frames be those that wait in that window.
func (f *InFlight[T]) Follow(w Window) { f.window = w }

// FullLength returns the length of the buffer of a full frame.
func (f *InFlight[T]) FullLength() int { return f.lengths.Full }

// Buffer returns room for a full frame with the transport's headroom. It is
// taken when the frame is kept.
func (f *InFlight[T]) Buffer() []byte {
	size := f.lengths.Full
	mem := f.slab
	if mem == nil || !mem.has(size) {
		mem = takeSlab(size)
		f.slab = mem
	}
	return mem.mem[mem.used : mem.used+size : mem.used+size]
}

// Little returns room for a short frame with the transport's headroom, which is taken when the frame is kept. Where no frame is in flight
// it is no larger than that: such frames leave by themselves, to peers that may never acknowledge them.
func (f *InFlight[T]) Little(size int) []byte {
	room := f.takes(size)
	if f.slab == nil || !f.slab.has(room) {
		f.slab = &slab{mem: make([]byte, room)}
	}
	mem := f.slab
	return mem.mem[mem.used : mem.used+size : mem.used+room]
}

// takes returns how many bytes of a slab a frame of that length takes.
func (f *InFlight[T]) takes(size int) int { return max(size+f.lengths.Spare, f.lengths.Least) }

// Keep remembers a frame in flight: its bytes, which are the beginning of what
// Buffer or Little returned, and whose messages it holds.
func (f *InFlight[T]) Keep(id uint32, buf []byte, first *T, n int) {
	f.resize()
	mem := f.slab
	// Set in place: a literal is built in small pieces and moved in large ones, for which
	// the processor waits until the small ones are written, after the bytes of the frame.
	o := f.At(id)
	o.slab, o.First, o.Length, o.at, o.N = mem, first, uint32(len(buf)), uint16(mem.used), uint16(n)
	mem.used += f.takes(len(buf))
	mem.held++
}

// MayRemake reports whether frames may be made again if they are lost: those that do not fit a
// slab are kept.
func (f *InFlight[T]) MayRemake() bool { return f.lengths.Full <= slabSize }

// Note remembers a frame in flight that is made again if it is lost: which part of which transaction it has.
func (f *InFlight[T]) Note(id uint32, t *T, p *Part, length int) {
	f.resize()
	o := f.At(id)
	o.First, o.Length, o.N = t, uint32(length), 1
	o.Segment, o.Offset, o.Index = p.Segment, p.Offset, p.Index
}

// NoteRun is Note of n frames in a row, which have the parts of a segment in a row, of so many bytes each. p is the first of them.
func (f *InFlight[T]) NoteRun(id uint32, n int, t *T, p Part, bytes, length int) {
	f.resize()
	for i := range uint32(n) {
		o := f.At(id + i)
		o.First, o.Length, o.N = t, uint32(length), 1
		o.Segment, o.Offset, o.Index = p.Segment, p.Offset, p.Index
		p.Offset += uint32(bytes)
		p.Index++
	}
}

// Batched notes that a frame of the connection is in the batch.
func (f *InFlight[T]) Batched() { f.batched = f.batch.Number() }

// Discard forgets a frame that is not in flight any more. If it may be being sent at
// this moment, its memory must wait. The number of the batch tells: the sender raises it
// when the transport has taken the batch, and this connection's frames come into a batch
// only under its lock, which the caller holds.
func (f *InFlight[T]) Discard(o *Frame[T]) {
	if o.slab == nil {
		// Nothing of it is kept.
	} else if f.batched == f.batch.Number() {
		f.leaving = append(f.leaving, o.slab)
	} else {
		f.release(o.slab)
	}
	*o = Frame[T]{}
}

// ReleaseSent releases what was being sent, if it was sent in that time.
func (f *InFlight[T]) ReleaseSent() {
	if f.batched == f.batch.Number() {
		return
	}
	for i, mem := range f.leaving {
		f.release(mem)
		f.leaving[i] = nil
	}
	f.leaving = f.leaving[:0]
}

func (f *InFlight[T]) release(mem *slab) {
	if mem.held--; mem.held > 0 {
		return
	}
	if f.slab == mem {
		f.slab = nil
	}
	mem.giveBack()
}

// resize keeps the frames where the places of their ids are.
func (f *InFlight[T]) resize() {
	if n := f.window.Capacity(); n != len(f.frames) {
		old := f.frames
		f.frames = make([]Frame[T], n)
		// The newest is the one to be kept: where there were none, nothing is older. Ids
		// without messages may have made the distance longer than old: a frame is moved by
		// its own id, which comes first, and no other.
		for id := f.window.Oldest(); id != f.window.Next()-1; id++ {
			o := &old[int(id)&(len(old)-1)]
			f.frames[int(id)&(n-1)] = *o
			*o = Frame[T]{}
		}
	}
}

// At returns the frame with that id.
func (f *InFlight[T]) At(id uint32) *Frame[T] { return &f.frames[int(id)&(len(f.frames)-1)] }

// Clear forgets all frames.
func (f *InFlight[T]) Clear() {
	for i := range f.frames {
		f.Discard(&f.frames[i])
	}
}

// Rest gives back all memory, also the places of the frames. None is in flight.
func (f *InFlight[T]) Rest() { f.frames, f.slab, f.leaving = nil, nil, nil }

// Places returns for how many frames there is a place; none after Rest.
func (f *InFlight[T]) Places() int { return len(f.frames) }

// Longest returns the length of the longest buffer of a frame in flight.
func (f *InFlight[T]) Longest() (n int) {
	for i := range f.frames {
		n = max(n, int(f.frames[i].Length))
	}
	return n
}

// Memory returns how many bytes of memory hold frames, or are about to.
func (f *InFlight[T]) Memory() (n int) {
	seen := make(map[*slab]bool)
	add := func(s *slab) {
		if s != nil && !seen[s] {
			seen[s] = true
			n += len(s.mem)
		}
	}
	add(f.slab)
	for _, s := range f.leaving {
		add(s)
	}
	for i := range f.frames {
		add(f.frames[i].slab)
	}
	return n
}

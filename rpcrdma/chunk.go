package rpcrdma

// Lengths of what lists are made of.
const (
	wordSize        = 4
	segmentSize     = 16
	readSegmentSize = wordSize + segmentSize // with its Position
)

// Segment is a piece of the Requester's memory. One of length 0 is empty.
type Segment struct {
	Handle, Length uint32
	Offset         uint64
}

// Chunk is the segments of one item, in the order of its octets.
type Chunk []Segment

// Length returns the sum of the segments' lengths.
func (c Chunk) Length() (n uint64) {
	for i := range c {
		n += uint64(c[i].Length)
	}
	return n
}

// has reports whether a segment of the chunk has the handle.
func (c Chunk) has(handle uint32) bool {
	for i := range c {
		if c[i].Handle == handle {
			return true
		}
	}
	return false
}

// ReadChunk is an item that the Responder fetches: the neighbours in the Read list whose Position is equal.
type ReadChunk struct {
	// Position is the offset of the item in the unreduced message, a multiple of 4.
	Position uint32
	Segments Chunk
}

// Length returns the length of the item. In version 1 its roundup may be included.
func (r *ReadChunk) Length() uint64 { return r.Segments.Length() }

// end returns the first Position that the next Read chunk may have.
func (r *ReadChunk) end() uint64 {
	if r.Position == 0 {
		return wordSize // the message itself, in which the other Positions are
	}
	return uint64(r.Position) + roundup(r.Length())
}

// roundup returns the length with its pad.
func roundup(n uint64) uint64 { return (n + wordSize - 1) &^ (wordSize - 1) }

// Unreduced returns the length of the RPC message when all Read chunks are inserted in it, each with its
// roundup. Inline is the length of its payload; with a Read chunk at Position 0, the length of that
// chunk counts instead. The message is not ok if a Position is beyond what there is.
func (h *Header) Unreduced(inline int) (length uint64, ok bool) {
	length = uint64(inline)
	for i := range h.Reads {
		r := &h.Reads[i]
		if r.Position == 0 {
			length = r.Length()
			continue
		}
		// All items before this one are inserted: length is that of the message so far.
		if uint64(r.Position) > length {
			return 0, false
		}
		length += roundup(r.Length())
	}
	return length, true
}

// hasHandle reports whether a segment of the lists has the handle.
func (h *Header) hasHandle(handle uint32) bool {
	for i := range h.Reads {
		if h.Reads[i].Segments.has(handle) {
			return true
		}
	}
	for _, w := range h.Writes {
		if w.has(handle) {
			return true
		}
	}
	return h.Reply.has(handle)
}

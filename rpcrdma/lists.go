package rpcrdma

const (
	endsEarly = "the message ends within its lists"
	badWord   = "a word that says whether something follows is neither 0 nor 1"
)

// lists reads the chunk lists.
func (d *Decoder) lists(m *message) *Fault {
	if m.shape.invHandle {
		v, ok := m.word()
		if !ok {
			return m.malformed(endsEarly)
		}
		m.h.InvHandle = v
	}
	if f := d.readList(m); f != nil {
		return f
	}
	if f := d.writeList(m); f != nil {
		return f
	}
	has, f := m.follows()
	if !has {
		return f
	}
	m.h.HasReply = true
	m.h.Reply, f = d.chunk(m)
	return f
}

// follows reads the word that says whether optional data follow; none do where the word is a fault.
func (m *message) follows() (bool, *Fault) {
	v, ok := m.word()
	switch {
	case !ok:
		return false, m.malformed(endsEarly)
	case v > 1:
		m.at -= wordSize
		return false, m.malformed(badWord)
	}
	return v == 1, nil
}

// readList reads the Read list. Segments of one Position are one chunk and are neighbours; Positions ascend, and
// none is inside the item before (RPC2-035).
func (d *Decoder) readList(m *message) *Fault {
	limit := within(d.Limits.Segments, MaxSegments)
	chunks := within(d.Limits.ReadChunks, MaxReadChunks)
	n, first := 0, 0
	for {
		has, f := m.follows()
		if !has {
			return f
		}
		if m.left() < readSegmentSize {
			return m.malformed(endsEarly)
		}
		position := m.next()
		if n == 0 || d.reads[n-1].Position != position {
			m.at -= wordSize
			switch {
			case position%wordSize != 0:
				return m.malformed("a Position is not a multiple of 4")
			case n > 0 && uint64(position) < d.reads[n-1].end():
				return m.malformed("a Position is not after the item before")
			case n >= chunks:
				return m.beyond(CodeReadChunks, chunks, "more Read chunks than the limit")
			}
			m.at += wordSize
			d.reads[n] = ReadChunk{Position: position}
			first = m.used
			n++
		}
		if m.used >= limit {
			return m.beyond(CodeSegments, limit, "more segments than the limit")
		}
		m.segment(&d.segments[m.used])
		m.used++
		d.reads[n-1].Segments = d.segments[first:m.used:m.used]
		m.h.Reads = d.reads[:n:n]
	}
}

// writeList reads the Write list.
func (d *Decoder) writeList(m *message) *Fault {
	chunks := within(d.Limits.WriteChunks, MaxWriteChunks)
	for n := 0; ; n++ {
		has, f := m.follows()
		if !has {
			return f
		}
		if n >= chunks {
			return m.beyond(CodeWriteChunks, chunks, "more Write chunks than the limit")
		}
		if d.writes[n], f = d.chunk(m); f != nil {
			return f
		}
		m.h.Writes = d.writes[: n+1 : n+1]
	}
}

// chunk reads a counted array of segments. The count is held against the message, in 64 bits, and against the limit
// before anything is done with it.
func (d *Decoder) chunk(m *message) (Chunk, *Fault) {
	n, ok := m.word()
	if !ok {
		return nil, m.malformed(endsEarly)
	}
	limit := within(d.Limits.Segments, MaxSegments)
	switch {
	case uint64(n)*segmentSize > uint64(m.left()):
		m.at -= wordSize
		return nil, m.malformed("a count is above what the message has room for")
	case uint64(n) > uint64(limit-m.used):
		m.at -= wordSize
		return nil, m.beyond(CodeSegments, limit, "more segments than the limit")
	}
	first := m.used
	for range n {
		m.segment(&d.segments[m.used])
		m.used++
	}
	return d.segments[first:m.used:m.used], nil
}

// checkLists holds the lists against the type and the direction of the message.
func (m *message) checkLists() *Fault {
	h := m.h
	whole := len(h.Reads) > 0 && h.Reads[0].Position == 0 // a Call in a Read chunk
	response := h.Flags&FlagResponse != 0                 // version 1 does not say
	switch {
	case response && len(h.Reads) > 0:
		return m.malformed("a Reply has a Read list")
	case !response && h.InvHandle != 0 && !h.hasHandle(h.InvHandle):
		return m.malformed("the handle that may be invalidated is in no list")
	case h.Type == TypeMsg && whole:
		return m.malformed("a Read chunk at Position 0 is in a message with payload")
	case h.Type != TypeNoMsg || whole || h.IsRefresh():
		return nil
	case h.noLists():
		return m.malformed("neither payload nor lists are there")
	case len(h.Reads) > 0 || h.Version == Version2 && !response:
		return m.malformed("a Call without payload has no Read chunk at Position 0")
	case !h.HasReply:
		return m.malformed("a Reply without payload has no Reply chunk")
	}
	return nil
}

package rpcrdma

// lend registers the memory of a Call, just before the header that tells the peer of it goes (RPC2-095). It reports false if the pool
// has no buffer.
func (m *Machine) lend(o *call) (ok bool, err error) {
	if o.lent {
		return true, nil
	}
	if o.hasReply {
		if o.reply = m.get(o.replySize); o.reply == nil {
			return false, nil
		}
	}
	n := o.reads + o.writes
	if o.hasReply {
		n++
	}
	for cap(o.leases) < n {
		o.leases = append(o.leases[:cap(o.leases)], Lease{})
	}
	o.leases = o.leases[:n]
	o.lent = true
	for i := range o.leases {
		b, write := o.reply, i >= o.reads
		var memory []byte
		switch {
		case i < o.reads && o.chunks[i].item == wholeMessage:
			memory = o.head
		case i < o.reads:
			memory = o.of.Items[o.chunks[i].item].Data
		case i < o.reads+o.writes:
			memory = o.of.Into[i-o.reads]
		default:
			memory = b.B[:o.replySize]
		}
		// The offset begins with the XID, as Linux's does: captures are easier to read.
		if err := m.register(&o.leases[i], memory, write, uint64(o.xid)<<32); err != nil {
			m.withdrawAll(o)
			return true, err
		}
	}
	return true, nil
}

// callHeader makes the header of a Call whose memory is lent.
func (m *Machine) callHeader(o *call) (h Header) {
	l := &m.req.lists
	used := 0
	chunk := func(i int) Chunk {
		first := used
		used += m.split(l.segments[used:], o.leases[i].Segment)
		return l.segments[first:used:used]
	}
	h = Header{XID: o.xid, Version: m.version, Type: TypeMsg}
	if o.special {
		h.Type = TypeNoMsg
	}
	for i := range o.chunks[:o.reads] {
		l.reads[i] = ReadChunk{o.chunks[i].position, chunk(i)}
	}
	for i := range o.writes {
		l.writes[i] = chunk(o.reads + i)
	}
	h.Reads, h.Writes = l.reads[:o.reads], l.writes[:o.writes]
	if h.HasReply = o.hasReply; o.hasReply {
		h.Reply = chunk(o.reads + o.writes)
	}
	if m.version == Version2 && len(o.leases) > 0 {
		h.InvHandle = o.leases[0].Handle
	}
	return h
}

// split writes the segments of a run of memory, and returns how many they are.
func (m *Machine) split(list []Segment, s Segment) (n int) {
	for s.Length > 0 {
		piece := min(s.Length, m.segmentSize())
		list[n] = Segment{s.Handle, piece, s.Offset}
		s.Length -= piece
		s.Offset += uint64(piece)
		n++
	}
	return n
}

// register makes a lease.
func (m *Machine) register(l *Lease, b []byte, write bool, base uint64) error {
	if err := m.memory.Register(l, b, write, base); err != nil {
		return err
	}
	l.Live = true
	return nil
}

// withdraw ends a lease, if it is one.
func (m *Machine) withdraw(l *Lease) {
	if l.Live {
		m.memory.Withdraw(l)
		l.Live = false
	}
}

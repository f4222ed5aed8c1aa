package simnet

// LinkStats counts the datagrams of one direction since its first use. At any
// time Sent + Duplicated + Held = Delivered + Dropped() + InFlight.
type LinkStats struct {
	Sent      uint64 // given to the link by Send
	Delivered uint64 // put into a receive queue, copies included

	// Copies made by the link.
	Duplicated uint64
	Held       uint64

	// What happened to some on the way.
	Corrupted uint64 // with a wrong bit, dropped or not
	Damaged   uint64 // see Link.Damage
	Reordered uint64 // delivered after one that was sent later
	Marked    uint64 // by the bottleneck, of which the datagram has CE

	// Reasons why datagrams did not arrive.
	Refused        uint64 // by the sender's system, on a Script's verdict
	Down           uint64 // sent during a blackout
	TailDropped    uint64 // the queue of the link or of its bottleneck was full
	Controlled     uint64 // by CoDel of the bottleneck
	Lost           uint64 // by Loss or a Script's verdict
	CorruptDropped uint64 // corrupted and noticed
	Unattached     uint64 // nobody was there when they arrived
	Overrun        uint64 // the receive queue was full, or its MTU smaller

	InFlight uint64 // under way now
}

// Dropped returns how many datagrams did not and will not arrive.
func (s LinkStats) Dropped() uint64 {
	return s.Refused + s.Down + s.TailDropped + s.Controlled + s.Lost + s.CorruptDropped + s.Unattached + s.Overrun
}

func (s *LinkStats) add(o *LinkStats) {
	s.Sent += o.Sent
	s.Delivered += o.Delivered
	s.Duplicated += o.Duplicated
	s.Held += o.Held
	s.Corrupted += o.Corrupted
	s.Damaged += o.Damaged
	s.Reordered += o.Reordered
	s.Marked += o.Marked
	s.Refused += o.Refused
	s.Down += o.Down
	s.TailDropped += o.TailDropped
	s.Controlled += o.Controlled
	s.Lost += o.Lost
	s.CorruptDropped += o.CorruptDropped
	s.Unattached += o.Unattached
	s.Overrun += o.Overrun
	s.InFlight += o.InFlight
}

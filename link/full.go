package link

import "sync/atomic"

// Full says how often a bound of a host was reached.
type Full struct {
	Backlog uint64 // links refused, because as many waited at the port as may
	Links   uint64 // likewise, because the peer had as many, or as many letters waited for it
	Memory  uint64 // links of either side not made, because the host had no memory left for them
	Letters uint64 // letters not answered, because as many answers waited
	Ended   uint64 // links refused, because the peer's host left the ends of too many unanswered
	Sending uint64 // waits for memory of messages to be sent: see Config.Memory
}

// full counts it.
type full struct{ backlog, links, memory, letters, ended atomic.Uint64 }

func (f *full) read() Full {
	return Full{Backlog: f.backlog.Load(), Links: f.links.Load(), Memory: f.memory.Load(), Letters: f.letters.Load(), Ended: f.ended.Load()}
}

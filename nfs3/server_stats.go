package nfs3

import "sync/atomic"

// ServerStats counts what a [Server] has done since it began.
type ServerStats struct {
	// Calls are those of NFS and MOUNT that were carried out, by their status. Statuses that did not occur are left out.
	Calls map[Status]uint64
	// Read and Written are bytes that READ and WRITE have moved.
	Read, Written uint64
}

// firstOwn is the first of the statuses that are none of UNIX's.
const firstOwn = ErrBadHandle

type serverCounters struct {
	errnos        [128]atomic.Uint64 // below firstOwn
	own           [16]atomic.Uint64
	read, written atomic.Uint64
}

// carried counts a call by its status.
func (c *serverCounters) carried(s Status) {
	if n := int(s); n < len(c.errnos) {
		c.errnos[n].Add(1)
	} else if n -= int(firstOwn); n >= 0 && n < len(c.own) {
		c.own[n].Add(1)
	}
}

// Stats returns what the server has counted.
func (s *Server) Stats() ServerStats {
	stats := ServerStats{Calls: make(map[Status]uint64), Read: s.counters.read.Load(), Written: s.counters.written.Load()}
	note := func(counters []atomic.Uint64, first Status) {
		for i := range counters {
			if n := counters[i].Load(); n > 0 {
				stats.Calls[first+Status(i)] = n
			}
		}
	}
	note(s.counters.errnos[:], OK)
	note(s.counters.own[:], firstOwn)
	return stats
}

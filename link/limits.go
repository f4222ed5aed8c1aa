package link

import (
	"sync"
	"sync/atomic"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// Full says how often a bound of a host was reached.
type Full struct {
	Backlog uint64 // links refused: as many waited at the port as may
	Links   uint64 // links refused: the peer had as many as it may, or as many letters waited for it
	Memory  uint64 // links of either side not made: the host had no memory left for them
	Letters uint64 // letters not answered: as many answers waited as may
	Ended   uint64 // links refused: the peer's host left the ends of too many unanswered
	Sending uint64 // waits for memory of messages to be sent: see Config.Memory
}

// boundCounters counts for Full.
type boundCounters struct{ backlog, links, memory, letters, ended atomic.Uint64 }

func (f *boundCounters) read() Full {
	return Full{Backlog: f.backlog.Load(), Links: f.links.Load(), Memory: f.memory.Load(), Letters: f.letters.Load(), Ended: f.ended.Load()}
}

const (
	// backlog is how many links may wait to be accepted at a port: of one peer no more
	// than there are places left for others. Arbitrary, like that of a socket.
	backlog = 2048
	// mostLinks is how many links a peer may dial to all ports. It is also how many letters may wait for a
	// peer when it dials another link. Arbitrary; the host's memory bounds the links of all peers.
	mostLinks = 4096
)

// mostEnded is how many ended links there may be, of all peers. A host that has as many as it leaves
// for others is refused when it dials. Arbitrary.
const mostEnded = 4 * mostLinks

// mostReplies is how many optional letters of all peers may wait; of one peer no more than it leaves
// for others. What comes then is not answered: it asks faster than it reads. Arbitrary.
const mostReplies = 4 * backlog

// endedLinks counts the ended links of all peers.
type endedLinks struct {
	mu     sync.Mutex
	n      int
	byHost map[dgrdma.PeerName]int // by the host's address; the rest of the name is empty
}

func (s *endedLinks) count(at dgrdma.PeerName, change int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byHost == nil {
		s.byHost = make(map[dgrdma.PeerName]int)
	}
	s.n += change
	if s.byHost[at] += change; s.byHost[at] == 0 {
		delete(s.byHost, at)
	}
}

// full reports whether the host of peers has as many as it leaves for others.
func (s *endedLinks) full(at dgrdma.PeerName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.byHost[at]
	return n > 0 && n >= mostEnded-s.n
}

func (s *endedLinks) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

package endpoint

import (
	"time"

	"github.com/dgrdma/dgrdma/transport"
)

// Counters are everything that is counted, per connection and per endpoint.
type Counters struct {
	FramesSent       uint64 // with retransmissions and acknowledgement-only frames
	FramesReceived   uint64 // from this peer, whatever became of them
	BytesSent        uint64 // of frames
	BytesReceived    uint64
	MessagesPlaced   uint64
	DataPlaced       uint64 // bytes
	Completions      uint64 // incoming transactions completed
	TransactionsDone uint64 // posted and acknowledged
	TransactionsLost uint64 // posted and failed
	RetransmitsFast  uint64 // frames sent again because later ones were acknowledged
	RetransmitsTimed uint64 // frames sent again because nothing was heard
	Probes           uint64 // frames sent only to make the peer speak
	Duplicates       uint64 // frames received again, and acknowledged again
	Swallowed        uint64 // messages the memory swallowed
	AcksAlone        uint64 // acknowledgement-only frames sent
	AcksCarried      uint64 // acknowledgements that rode on frames with messages
	AcksReceived     uint64 // frames of ours acknowledged
	AcksHeld         uint64 // acknowledgements that found no id to travel under
	OpenEvicted      uint64 // incomplete incoming transactions given up
	Restarts         uint64 // new lives of the peer
	WindowFull       uint64 // times the frame window stopped us
	Congested        uint64 // times the controller did
	Refused          [numReasons]uint64
}

// RefusedBy returns how many frames were not applied for that reason.
func (c Counters) RefusedBy(r Reason) uint64 { return c.Refused[r] }

// Add adds o to c.
func (c *Counters) Add(o *Counters) {
	dst, src := c.words(), o.words()
	for i, p := range dst {
		*p += *src[i]
	}
}

func (c *Counters) words() []*uint64 {
	w := []*uint64{
		&c.FramesSent, &c.FramesReceived, &c.BytesSent, &c.BytesReceived, &c.MessagesPlaced, &c.DataPlaced,
		&c.Completions, &c.TransactionsDone, &c.TransactionsLost, &c.RetransmitsFast, &c.RetransmitsTimed, &c.Probes,
		&c.Duplicates, &c.Swallowed, &c.AcksAlone, &c.AcksCarried, &c.AcksReceived, &c.AcksHeld, &c.OpenEvicted,
		&c.Restarts, &c.WindowFull, &c.Congested,
	}
	for i := range c.Refused {
		w = append(w, &c.Refused[i])
	}
	return w
}

// ConnStats is a snapshot of one connection.
type ConnStats struct {
	Counters
	Peer        PeerName
	RTT, MinRTT time.Duration
	Window      int // bytes the controller allows in flight
	InFlight    int // frames waiting for acknowledgement
	Queued      int // transactions posted and not done
	Open        int // incoming transactions that are incomplete
	Down        bool
}

// Stats is a snapshot of an endpoint.
type Stats struct {
	Counters  // of all connections, closed ones included, and of frames that belong to none
	Peers     int
	Transport transport.Stats
}

package metrics

import "time"

// Format is the value of [View.Format]. It changes when a key changes its meaning or
// vanishes.
const Format = 1

// View is the object that ViewHandler answers with: snapshots of all sources. Times are in
// seconds.
type View struct {
	Format    int        `json:"dgrdma"` // Format
	PID       int        `json:"pid"`
	Time      time.Time  `json:"time"`
	Elapsed   float64    `json:"elapsed_s"` // since the collector was made, by the monotonic clock
	Endpoints []Endpoint `json:"endpoints"`
	RDMA      []RDMA     `json:"rdma"`
	RPC       []RPC      `json:"rpc"`
}

// Endpoint is one endpoint.
type Endpoint struct {
	Name      string            `json:"name"` // id@address
	ID        uint16            `json:"id"`
	Address   string            `json:"address"`
	URL       string            `json:"url,omitempty"` // what peers are told, if it was opened by a string
	Age       float64           `json:"age_s"`
	Memory    uint64            `json:"memory_bytes"` // addresses that peers may write to; 0: none, or not known
	GiveUp    float64           `json:"give_up_s"`
	Error     string            `json:"error,omitempty"`   // why its wire failed
	Counters  map[string]uint64 `json:"counters"`          // of all connections, closed ones included
	Refused   map[string]uint64 `json:"refused,omitempty"` // frames that were not applied, by reason
	Transport map[string]uint64 `json:"transport"`         // of its wire
	Peers     []Peer            `json:"peers"`
	Host      *Host             `json:"host,omitempty"` // its links; none: it is not a host's

	// Of all connections, closed ones included: how long transactions took from their first
	// frame to their acknowledgement, and frames that were sent once to theirs.
	Completion Histogram `json:"completion"`
	RoundTrip  Histogram `json:"round_trip"`
}

// Histogram counts how long something took.
type Histogram struct {
	Bounds []float64 `json:"up_to_s"`
	Counts []uint64  `json:"counts"` // up to each bound and above the one before; the last: above all
	Sum    float64   `json:"sum_s"`
}

// The states of peers.
const (
	StateUp      = "up"      // data can flow
	StateUnheard = "unheard" // likewise, but nothing came yet
	StateAsking  = "asking"  // there is no session yet
	StateDown    = "down"    // given up, or closed
)

// Peer is one connection of an endpoint.
type Peer struct {
	Name         string            `json:"name"` // id@address, and our id if it is not the endpoint's, and our address if two differ in that alone
	ID           uint16            `json:"id"`
	As           uint16            `json:"as"` // our id towards it
	Address      string            `json:"address"`
	Local        string            `json:"local,omitempty"` // which address of ours it has; none: that of the endpoint
	Profile      string            `json:"profile"`         // what kind of peer it is taken for
	State        string            `json:"state"`
	Error        string            `json:"error,omitempty"`        // why it is down
	Learned      bool              `json:"learned"`                // from what it sent, and not connected since
	Memory       uint64            `json:"memory_bytes,omitempty"` // of the peer; none: not known
	FrameBytes   int               `json:"frame_bytes"`            // of a full frame
	Life         uint32            `json:"life"`                   // begins with 1, and grows when what was posted is given up
	OurEpoch     uint32            `json:"our_epoch,omitempty"`    // of the session; none: there is none
	TheirEpoch   uint32            `json:"their_epoch,omitempty"`  // the same, of the peer
	RTT          float64           `json:"rtt_s,omitempty"`
	RTTMin       float64           `json:"rtt_min_s,omitempty"`
	RTTLatest    float64           `json:"rtt_latest_s,omitempty"`
	WindowFrames int               `json:"window_frames"`          // that may wait for acknowledgement
	WindowBytes  int               `json:"window_bytes,omitempty"` // that the controller allows in flight; none: no limit
	InFlight     int               `json:"in_flight_frames"`       // that wait for acknowledgement
	Lost         int               `json:"lost_frames"`            // of those, will be sent again
	OnWire       int               `json:"in_flight_bytes"`        // of frames in flight that are not lost
	ECN          string            `json:"ecn,omitempty"`          // marks of congestion: testing, on, paused, failed; none: there are none
	Congestion   *Congestion       `json:"congestion,omitempty"`   // what its control does; none: it does not say
	Queued       int               `json:"queued_transactions"`    // posted and not done
	Open         int               `json:"open_transactions"`      // incoming, incomplete
	Silent       *float64          `json:"silent_s,omitempty"`     // since its last frame; none: it sent none
	Counters     map[string]uint64 `json:"counters"`
	Refused      map[string]uint64 `json:"refused,omitempty"`
}

// Congestion is what the congestion control of a connection does. What it has not, or does not know yet, is left out.
type Congestion struct {
	Controller string  `json:"controller"`
	Why        string  `json:"why,omitempty"`   // it was chosen, where it was not asked for by name
	State      string  `json:"state,omitempty"` // as ProbeBW_UP
	Bandwidth  float64 `json:"bandwidth_bytes_per_s,omitempty"`
	Pacing     float64 `json:"pacing_bytes_per_s,omitempty"`
	MinRTT     float64 `json:"min_rtt_s,omitempty"`                // of the path without queues
	LongTerm   int     `json:"inflight_longterm_bytes,omitempty"`  // bound on what is in flight
	ShortTerm  int     `json:"inflight_shortterm_bytes,omitempty"` // the same, until the next probe for bandwidth
}

// Host is the links of an endpoint.
type Host struct {
	Memory   uint64  `json:"memory_bytes"`  // for links to receive into
	Free     uint64  `json:"free_bytes"`    // of that
	Sending  uint64  `json:"sending_bytes"` // of messages that were not acknowledged
	Ports    []Port  `json:"ports"`
	Ended    int     `json:"ended_links"` // over here, and not answered by their peers
	Made     uint64  `json:"links_made"`
	Sent     Traffic `json:"sent"`     // of all links, those that are over included
	Received Traffic `json:"received"` // likewise
	Links    []Link  `json:"links"`

	Full map[string]uint64 `json:"full"` // how often its bounds were reached, by which
}

// Port is a port that is listened on.
type Port struct {
	Name    string `json:"name"`
	Waiting int    `json:"waiting"` // links asked for and not accepted yet
}

// Traffic counts what went through a link in one direction.
type Traffic struct {
	Messages uint64 `json:"messages"` // end of file counts as one
	Bytes    uint64 `json:"bytes"`    // of received messages, those that were given back
}

// The states of links.
const (
	LinkDialing = "dialing" // the other side has not answered yet
	LinkOpen    = "open"
	LinkClosing = "closing" // the application called Close
	LinkFailed  = "failed"  // see Error
)

// Link is one link.
type Link struct {
	Number uint32  `json:"number"` // unique in its host
	Port   string  `json:"port"`   // empty: it was made of descriptors
	Peer   string  `json:"peer"`   // as Peer.Name
	State  string  `json:"state"`
	Error  string  `json:"error,omitempty"`
	Age    float64 `json:"age_s"`
	Out    *Out    `json:"out,omitempty"` // none: it sends nothing
	In     *In     `json:"in,omitempty"`
}

// Out is the half of a link that sends. Each of the other side's buffers is free,
// acquired, or filled.
type Out struct {
	Traffic
	Buffers        int  `json:"buffers"`
	BufferBytes    int  `json:"buffer_bytes"`
	Free           int  `json:"free"`           // credits
	Acquired       int  `json:"acquired"`       // handed out, and not committed
	Filled         int  `json:"filled"`         // committed, and not given back
	Unacknowledged int  `json:"unacknowledged"` // messages that may not have arrived yet
	Lost           bool `json:"lost,omitempty"` // some of them never will
}

// In is the half of a link that receives. Each of its buffers is free, waiting, or
// held.
type In struct {
	Traffic
	Buffers     int  `json:"buffers"`
	BufferBytes int  `json:"buffer_bytes"`
	Free        int  `json:"free"`    // that the producer may fill
	Waiting     int  `json:"waiting"` // filled, and not received yet
	Held        int  `json:"held"`    // received, and not released
	Owed        int  `json:"owed"`    // credits that the producer was not told of yet
	EndOfFile   bool `json:"end_of_file,omitempty"`
}

package metrics

import "github.com/dgrdma/dgrdma/dgrdma"

// counter is one of an endpoint's or a connection's counters: its name in both
// forms, what it counts, and where it is.
type counter struct {
	name, help string
	of         func(*dgrdma.Counters) uint64
}

var counters = []counter{
	{"frames_sent", "Frames sent, with retransmissions and acknowledgement-only frames.", func(c *dgrdma.Counters) uint64 { return c.FramesSent }},
	{"frames_received", "Frames received, whatever became of them.", func(c *dgrdma.Counters) uint64 { return c.FramesReceived }},
	{"bytes_sent", "Bytes of frames sent.", func(c *dgrdma.Counters) uint64 { return c.BytesSent }},
	{"bytes_received", "Bytes of frames received.", func(c *dgrdma.Counters) uint64 { return c.BytesReceived }},
	{"messages_placed", "Messages whose data was placed in memory.", func(c *dgrdma.Counters) uint64 { return c.MessagesPlaced }},
	{"bytes_placed", "Bytes of data placed in memory.", func(c *dgrdma.Counters) uint64 { return c.DataPlaced }},
	{"completions", "Incoming transactions completed.", func(c *dgrdma.Counters) uint64 { return c.Completions }},
	{"transactions_done", "Transactions posted and acknowledged.", func(c *dgrdma.Counters) uint64 { return c.TransactionsDone }},
	{"transactions_lost", "Transactions posted and failed.", func(c *dgrdma.Counters) uint64 { return c.TransactionsLost }},
	{"retransmits_fast", "Frames sent again because later ones were acknowledged.", func(c *dgrdma.Counters) uint64 { return c.RetransmitsFast }},
	{"retransmits_timed", "Frames sent again because nothing was heard.", func(c *dgrdma.Counters) uint64 { return c.RetransmitsTimed }},
	{"probes", "Frames sent only to make the peer speak.", func(c *dgrdma.Counters) uint64 { return c.Probes }},
	{"duplicates", "Frames received again, and acknowledged again.", func(c *dgrdma.Counters) uint64 { return c.Duplicates }},
	{"messages_swallowed", "Messages that the memory swallowed.", func(c *dgrdma.Counters) uint64 { return c.Swallowed }},
	{"acks_alone", "Acknowledgement-only frames sent.", func(c *dgrdma.Counters) uint64 { return c.AcksAlone }},
	{"acks_carried", "Acknowledgements that rode on frames with messages.", func(c *dgrdma.Counters) uint64 { return c.AcksCarried }},
	{"acks_received", "Frames of ours that were acknowledged.", func(c *dgrdma.Counters) uint64 { return c.AcksReceived }},
	{"acks_held", "Acknowledgements that found no frame id to travel under.", func(c *dgrdma.Counters) uint64 { return c.AcksHeld }},
	{"open_evicted", "Incomplete incoming transactions given up.", func(c *dgrdma.Counters) uint64 { return c.OpenEvicted }},
	{"frames_missed", "Frames that never came, of peers that never send again.", func(c *dgrdma.Counters) uint64 { return c.FramesMissed }},
	{"restarts", "New lives of the peer.", func(c *dgrdma.Counters) uint64 { return c.Restarts }},
	{"window_full", "Times the frame window stopped sending.", func(c *dgrdma.Counters) uint64 { return c.WindowFull }},
	{"congested", "Times the congestion controller stopped sending.", func(c *dgrdma.Counters) uint64 { return c.Congested }},
	{"challenges", "Frames of strangers that were answered, and of which nothing was kept.", func(c *dgrdma.Counters) uint64 { return c.Challenges }},
}

// The counters of a wire.
var wireCounters = []struct {
	name, help string
	of         func(*dgrdma.Stats) uint64
}{
	{"send_drops", "Datagrams that the system refused for a passing reason.", func(s *dgrdma.Stats) uint64 { return s.Transport.SendDrops }},
	{"kernel_drops", "Datagrams that the system dropped because they were received too slowly.", func(s *dgrdma.Stats) uint64 { return s.Transport.KernelDrops }},
	{"truncated", "Datagrams longer than the frame size agreed on.", func(s *dgrdma.Stats) uint64 { return s.Transport.Truncated }},
	{"foreign", "Datagrams that are no frames of this protocol.", func(s *dgrdma.Stats) uint64 { return s.Transport.Foreign }},
}

// refusals calls yield with every reason for refusing frames and its count.
func refusals(c *dgrdma.Counters, yield func(reason string, n uint64)) {
	for i, n := range c.Refused {
		if i > 0 { // the first is none
			yield(dgrdma.Reason(i).String(), n)
		}
	}
}

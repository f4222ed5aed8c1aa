package metrics

// counter is one of an endpoint's, a connection's or a wire's counters: its name in both
// forms, and what it counts.
type counter struct{ name, help string }

var counters = []counter{
	{"frames_sent", "Frames sent, with retransmissions and acknowledgement-only frames."},
	{"frames_received", "Frames received, whatever became of them."},
	{"bytes_sent", "Bytes of frames sent."},
	{"bytes_received", "Bytes of frames received."},
	{"messages_placed", "Messages whose data was placed in memory."},
	{"bytes_placed", "Bytes of data placed in memory."},
	{"completions", "Incoming transactions completed."},
	{"transactions_done", "Transactions posted and acknowledged."},
	{"transactions_lost", "Transactions posted and failed."},
	{"retransmits_fast", "Frames sent again because later ones were acknowledged."},
	{"retransmits_timed", "Frames sent again because nothing was heard."},
	{"probes", "Frames sent only to make the peer speak."},
	{"duplicates", "Frames received again, and acknowledged again."},
	{"messages_swallowed", "Messages that the memory swallowed."},
	{"acks_alone", "Acknowledgement-only frames sent."},
	{"acks_carried", "Acknowledgements that rode on frames with messages."},
	{"acks_received", "Frames of ours that were acknowledged."},
	{"acks_held", "Acknowledgements that found no frame id to travel under."},
	{"open_evicted", "Incomplete incoming transactions given up."},
	{"frames_missed", "Frames that never came, of peers that never send again."},
	{"restarts", "New lives of the peer."},
	{"window_full", "Times the frame window stopped sending."},
	{"congested", "Times the congestion controller stopped sending."},
	{"challenges", "Frames of strangers that were answered, and of which nothing was kept."},
}

// The counters of a wire.
var wireCounters = []counter{
	{"send_drops", "Datagrams that the system refused for a passing reason."},
	{"kernel_drops", "Datagrams that the system dropped because they were received too slowly."},
	{"truncated", "Datagrams longer than the frame size agreed on."},
	{"foreign", "Datagrams that are no frames of this protocol."},
}

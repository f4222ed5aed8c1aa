package dgrdma

// Counters are everything that is counted, per connection and per endpoint. The tags are
// the table of counters: the name of each in metrics, and what it counts.
type Counters struct {
	FramesSent       uint64 `count:"frames_sent" help:"Frames sent, with retransmissions and acknowledgement-only frames."`
	FramesReceived   uint64 `count:"frames_received" help:"Frames received, whatever became of them."`
	BytesSent        uint64 `count:"bytes_sent" help:"Bytes of frames sent."`
	BytesReceived    uint64 `count:"bytes_received" help:"Bytes of frames received."`
	MessagesPlaced   uint64 `count:"messages_placed" help:"Messages whose data was placed in memory."`
	DataPlaced       uint64 `count:"bytes_placed" help:"Bytes of data placed in memory."`
	Completions      uint64 `count:"completions" help:"Incoming transactions completed."`
	TransactionsDone uint64 `count:"transactions_done" help:"Transactions posted and acknowledged."`
	TransactionsLost uint64 `count:"transactions_lost" help:"Transactions posted and failed."`
	RetransmitsFast  uint64 `count:"retransmits_fast" help:"Frames sent again because later ones were acknowledged."`
	RetransmitsTimed uint64 `count:"retransmits_timed" help:"Frames sent again because nothing was heard."`
	Probes           uint64 `count:"probes" help:"Frames sent only to make the peer speak."`
	SizeProbes       uint64 `count:"size_probes" help:"Frames sent only to find out how long ones arrive."`
	Duplicates       uint64 `count:"duplicates" help:"Frames received again: they are acknowledged or answered, and not applied."`
	Swallowed        uint64 `count:"messages_swallowed" help:"Messages that the memory swallowed."`
	AcksAlone        uint64 `count:"acks_alone" help:"Acknowledgement-only frames sent."`
	AcksCarried      uint64 `count:"acks_carried" help:"Acknowledgements that rode on frames with messages."`
	AcksReceived     uint64 `count:"acks_received" help:"Frames of ours that were acknowledged."`
	AcksHeld         uint64 `count:"acks_held" help:"Acknowledgements that found no frame id to travel under."`
	OpenEvicted      uint64 `count:"open_evicted" help:"Incomplete incoming transactions given up."`
	FramesMissed     uint64 `count:"frames_missed" help:"Frames that never came, of peers that never send again."`
	Restarts         uint64 `count:"restarts" help:"New lives of the peer."`
	WindowFull       uint64 `count:"window_full" help:"Times the frame window stopped sending."`
	Congested        uint64 `count:"congested" help:"Times the congestion controller stopped sending."`
	MarksReceived    uint64 `count:"marks_received" help:"Frames received with the mark of congestion, CE of ECN."`
	MarksEchoed      uint64 `count:"marks_echoed" help:"Frames of ours that arrived with it, as the peer says."`
	MarksFailed      uint64 `count:"marks_failed" help:"Times ECN was given up towards a peer: marks or frames that can carry them do not get through, or the peer counts what was not sent."`
	Challenges       uint64 `count:"challenges" help:"Frames of strangers that were answered, and of which nothing was kept."`
	Unanswered       uint64 `count:"strangers_unanswered" help:"Frames of strangers that were not answered, because as many others were in one batch as are."`
	ChallengesFull   uint64 `count:"challenges_full" help:"Times challenges for keys became worthless that were not answered yet, because as many had been answered within 30 s as are remembered."`
	Dismissed        uint64 `count:"peers_dismissed" help:"Learned peers that gave their place to another one."`
	KeysEvicted      uint64 `count:"keys_evicted" help:"Keys shared with a peer that had no connection, and which were forgotten for those of another peer."`
	QueueFull        uint64 `count:"queue_full" help:"Times a transaction or letter found its queue full."`

	// Refused are the frames that were not applied, by reason.
	Refused [numReasons]uint64
}

// RefusedBy returns how many frames were not applied for that reason.
func (c Counters) RefusedBy(r Reason) uint64 { return c.Refused[r] }

// Add adds o to c. Each field is written out: a sum over thousands of connections by reflection takes longer than what they send.
func (c *Counters) Add(o *Counters) {
	c.FramesSent += o.FramesSent
	c.FramesReceived += o.FramesReceived
	c.BytesSent += o.BytesSent
	c.BytesReceived += o.BytesReceived
	c.MessagesPlaced += o.MessagesPlaced
	c.DataPlaced += o.DataPlaced
	c.Completions += o.Completions
	c.TransactionsDone += o.TransactionsDone
	c.TransactionsLost += o.TransactionsLost
	c.RetransmitsFast += o.RetransmitsFast
	c.RetransmitsTimed += o.RetransmitsTimed
	c.Probes += o.Probes
	c.SizeProbes += o.SizeProbes
	c.Duplicates += o.Duplicates
	c.Swallowed += o.Swallowed
	c.AcksAlone += o.AcksAlone
	c.AcksCarried += o.AcksCarried
	c.AcksReceived += o.AcksReceived
	c.AcksHeld += o.AcksHeld
	c.OpenEvicted += o.OpenEvicted
	c.FramesMissed += o.FramesMissed
	c.Restarts += o.Restarts
	c.WindowFull += o.WindowFull
	c.Congested += o.Congested
	c.MarksReceived += o.MarksReceived
	c.MarksEchoed += o.MarksEchoed
	c.MarksFailed += o.MarksFailed
	c.Challenges += o.Challenges
	c.Unanswered += o.Unanswered
	c.ChallengesFull += o.ChallengesFull
	c.Dismissed += o.Dismissed
	c.KeysEvicted += o.KeysEvicted
	c.QueueFull += o.QueueFull
	for why, n := range o.Refused {
		c.Refused[why] += n
	}
}

// RefusedReasons returns Refused by name, without reasons that did not occur; nil
// if none did.
func (c *Counters) RefusedReasons() (m map[string]uint64) {
	for why, n := range c.Refused {
		if n == 0 {
			continue
		}
		if m == nil {
			m = make(map[string]uint64)
		}
		m[Reason(why).String()] = n
	}
	return m
}

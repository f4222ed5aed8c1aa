package watch

import "github.com/dgrdma/dgrdma/dgrdma"

// counts are an endpoint's or a connection's counters under the names of package metrics.
func counts(c *dgrdma.Counters) map[string]uint64 {
	return map[string]uint64{
		"frames_sent":        c.FramesSent,
		"frames_received":    c.FramesReceived,
		"bytes_sent":         c.BytesSent,
		"bytes_received":     c.BytesReceived,
		"messages_placed":    c.MessagesPlaced,
		"bytes_placed":       c.DataPlaced,
		"completions":        c.Completions,
		"transactions_done":  c.TransactionsDone,
		"transactions_lost":  c.TransactionsLost,
		"retransmits_fast":   c.RetransmitsFast,
		"retransmits_timed":  c.RetransmitsTimed,
		"probes":             c.Probes,
		"duplicates":         c.Duplicates,
		"messages_swallowed": c.Swallowed,
		"acks_alone":         c.AcksAlone,
		"acks_carried":       c.AcksCarried,
		"acks_received":      c.AcksReceived,
		"acks_held":          c.AcksHeld,
		"open_evicted":       c.OpenEvicted,
		"frames_missed":      c.FramesMissed,
		"restarts":           c.Restarts,
		"window_full":        c.WindowFull,
		"congested":          c.Congested,
		"challenges":         c.Challenges,
	}
}

// wireCounts are those of its wire.
func wireCounts(s *dgrdma.Stats) map[string]uint64 {
	return map[string]uint64{
		"send_drops":   s.Transport.SendDrops,
		"kernel_drops": s.Transport.KernelDrops,
		"truncated":    s.Transport.Truncated,
		"foreign":      s.Transport.Foreign,
	}
}

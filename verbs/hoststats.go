package verbs

import (
	"errors"
	"sync/atomic"
)

// HostStats are what a host has done so far, by all its queue pairs, ended ones included. Tags name the counters for package metrics.
type HostStats struct {
	// How connections came about, or did not.
	Dialed     uint64 `count:"connections_dialed" help:"Connections that this side has opened."`
	Accepted   uint64 `count:"connections_accepted" help:"Connections that peers have opened, and this side has accepted."`
	Rejected   uint64 `count:"connections_rejected" help:"Requests for a connection that this side has rejected."`
	SetUpFails uint64 `count:"set_up_failures" help:"Connections that did not come about for another reason: nobody there, no iWARP, what does not fit, time that is over."`

	// Bounds that were reached. What the first two closed is a failure of setting up, too.
	Crowded  uint64 `count:"crowded_out" help:"Connections without a request that were closed for newcomers, because as many were there as have a place."`
	Dropped  uint64 `count:"requests_dropped" help:"Requests that were closed, because as many waited to be accepted as may."`
	CutShort uint64 `count:"rejections_cut_short" help:"Connections that were closed behind a rejection, because as many others were waited for as may be."`
	Full     uint64 `count:"queue_full" help:"Times a request or a receive found its queue full."`

	// How they ended. What is none of these was closed by either side, or lost by the network.
	TerminatesSent     uint64 `count:"terminates_sent" help:"Connections that this side has ended for a fault of the peer."`
	TerminatesReceived uint64 `count:"terminates_received" help:"Connections that peers have ended for a fault of this side."`
	CRCErrors          uint64 `count:"crc_errors" help:"Connections that ended because a frame of the peer was damaged."`
	Silent             uint64 `count:"silent_peers" help:"Connections that ended because the peer did nothing of what it had to."`

	// What was done: see [Stats].
	Sent          uint64 `count:"sent" help:"Sends, Writes and immediate data of this side that are done."`
	SentBytes     uint64 `count:"sent_bytes" help:"Bytes of Sends, Writes and immediate data of this side."`
	Asked         uint64 `count:"asked" help:"Reads, atomics, Flushes, Verifies and Atomic Writes that peers have answered."`
	ReadBytes     uint64 `count:"read_bytes" help:"Bytes that Reads of this side have brought."`
	Received      uint64 `count:"received" help:"Messages of peers that took a receive."`
	ReceivedBytes uint64 `count:"received_bytes" help:"Bytes of messages of peers."`
	Written       uint64 `count:"written" help:"Writes of peers that were placed in memory."`
	WrittenBytes  uint64 `count:"written_bytes" help:"Bytes of Writes of peers that were placed in memory."`
	Answered      uint64 `count:"answered" help:"Reads, atomics, Flushes, Verifies and Atomic Writes of peers that this side has answered."`
	FetchedBytes  uint64 `count:"fetched_bytes" help:"Bytes that Reads of peers have fetched."`

	// Done counts the operations of this side among those, by what they are, and Served those of peers.
	Done, Served [OpInvalidate]uint64

	// QueuePairs are those that are open.
	QueuePairs int
	// Closed says that the host is.
	Closed bool
}

// setUps counts connections as they come about, or do not. Nothing of it is touched for a frame.
type setUps struct{ dialed, accepted, rejected, failed atomic.Uint64 }

// bounds counts how often each was reached.
type bounds struct{ crowded, dropped, cutShort, full atomic.Uint64 }

// fail counts one that did not come about, unless it may still.
func (s *setUps) fail(err error) {
	if !errors.Is(err, ErrOption) {
		s.failed.Add(1)
	}
}

// add adds what a queue pair has done.
func (t *HostStats) add(s Stats) {
	t.Sent += s.Sent
	t.SentBytes += s.SentBytes
	t.Asked += s.Asked
	t.ReadBytes += s.ReadBytes
	t.Received += s.Received
	t.ReceivedBytes += s.ReceivedBytes
	t.Written += s.Written
	t.WrittenBytes += s.WrittenBytes
	t.Answered += s.Answered
	t.FetchedBytes += s.FetchedBytes
	for op := range s.Done {
		t.Done[op] += s.Done[op]
		t.Served[op] += s.Served[op]
	}
}

// ended counts how a queue pair has ended.
func (t *HostStats) ended(why error) {
	var terminated *TerminateError
	switch {
	case errors.As(why, &terminated) && terminated.Remote:
		t.TerminatesReceived++
	case terminated != nil:
		t.TerminatesSent++
		if terminated.Fault == FaultChecksum {
			t.CRCErrors++
		}
	case errors.Is(why, ErrSilent):
		t.Silent++
	}
}

// Stats says what the host has done. Queue pairs count for themselves: a snapshot asks each.
func (h *Host) Stats() HostStats {
	h.mu.Lock()
	t := h.past
	t.Closed = h.closed
	pairs := make([]*QueuePair, 0, len(h.pairs))
	for q := range h.pairs {
		pairs = append(pairs, q)
	}
	h.mu.Unlock()
	// What ends meanwhile is not in past, as it was copied.
	for _, q := range pairs {
		t.add(q.Stats())
	}
	t.QueuePairs = len(pairs)
	t.Dialed, t.Accepted = h.setUps.dialed.Load(), h.setUps.accepted.Load()
	t.Rejected, t.SetUpFails = h.setUps.rejected.Load(), h.setUps.failed.Load()
	b := &h.bounds
	t.Crowded, t.Dropped, t.CutShort, t.Full = b.crowded.Load(), b.dropped.Load(), b.cutShort.Load(), b.full.Load()
	return t
}

package verbs

// Stats are what a stream has done so far, and what it has to do.
type Stats struct {
	// Sent and SentBytes count Sends, Writes and immediate data of this side that are done: with TCP, or the
	// network, and not necessarily with the peer.
	Sent, SentBytes uint64
	// Asked counts requests that the peer has answered; ReadBytes is what Reads brought.
	Asked, ReadBytes uint64
	// Received and ReceivedBytes count messages of the peer that took a receive.
	Received, ReceivedBytes uint64
	// Written and WrittenBytes count the peer's Writes.
	Written, WrittenBytes uint64
	// Answered counts requests of the peer whose answers are sent, FetchedBytes is what it has read.
	Answered, FetchedBytes uint64
	// Done counts the operations of this side among those, by what they are, and Served the peer's.
	Done, Served [OpInvalidate]uint64

	// Queued is how many work requests are posted and not done; Unanswered of them wait for the peer's
	// answer, ORD at most.
	Queued, Unanswered int
	// Receives is how many receives are posted and not taken.
	Receives int
	// Unserved is how many requests of the peer wait for this side's answer, IRD at most.
	Unserved int
}

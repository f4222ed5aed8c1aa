// Package inspect finds out what happened on a link from a capture of it: per
// flow what was sent, sent again, doubled, missed and acknowledged, and says in
// words what somebody should look at.
//
//	a := inspect.New()
//	for p, err := range captured.ReadFile("trace.pcap", captured.Options{}) {
//		if err != nil {
//			a.Damaged(err)
//			break
//		}
//		a.Add(p)
//	}
//	for _, f := range a.Report().Findings {
//		fmt.Println(f.Severity, f.Text, f.Records)
//	}
//
// # Model
//
// A flow is what one endpoint sends to another one: source address and id,
// destination address and id. Acknowledgements of a flow are in the flow of the
// other direction. All that is known comes from the point of capture: a frame
// that was lost before it looks like a gap, one that was lost behind it like one
// that nobody acknowledged; the time to an acknowledgement is a round trip only
// if the capture was taken at the sender.
//
// Frame ids are followed over their wrap. The fields of a frame's first message
// tell a frame that is sent again from another one under the same id. A copy
// came at once, and is called a duplicate, if it repeats the acknowledgement too,
// and comes before its sender can have had a reason: sooner than any timeout, and
// before anything that was sent after the copy before it was
// acknowledged. The network made it, or held the one before back, unless the sender is OpenCPI's first C++
// driver, which repeats some frames too early. All other copies count as sent again; if their acknowledgement is
// the same, a network that doubles and holds back may have made them, and findings say so. So was a copy that has the transaction id of a later frame and writes to
// the same place: that driver sends again what its request says by then.
//
// A restart of a peer without sessions is seen by ids that begin again with other content. What was sent to
// an endpoint before that, and not acknowledged, was for the program that ended.
//
// An endpoint paused of which nothing was captured for a second at least while copies were sent to it, and which then
// went on without a restart.
//
// The capture lost frames itself if its file says so, or if something is acknowledged that is not in it. That is told before all else, and
// nothing is a problem that may follow from it.
//
// Of a record of several datagrams a snap length may leave only the first. Its sender numbers one after the other, so that the ids of
// the others are known. What they held is not, and nothing is said of what it may explain.
//
// # Sessions
//
// Frames of a session say more, and nothing of the above is guessed of them: their ids have 32 bits, a copy number tells what was sent again from what the network
// doubled, up to the seventh copy, and an ACK names the transmission that came last. So round trips are known for copies, too, without how long the receiver waited, and which
// retransmissions were in vain. The tag tells which session a frame is of. A tag that no handshake in the capture has is believed when two frames in sequence
// have it. A RESET quotes the frame that it answers.
//
// # Endpoints with keys
//
// What is sealed makes no flow: acknowledgements and messages are encrypted. Counters of sealed frames go up by one under
// each key, so they tell what is missing, late or there twice; a frame under a counter that was there, with another salt, is under
// another key. Handshakes are followed by their nonce, the last one of each side.
//
// # Connections of iWARP
//
// Events of package inspect/iwarp come in by [Analyzer.Event], beside the frames. Of each connection is kept what was set up, how
// often each operation was sent and how long its answers took, and what was wrong, with the records to look at.
//
// # What did not arrive
//
// Connections of TCP that came to nothing come in by [Analyzer.Attempt], and what ICMP and ARP say by a [Tap] on the records of the capture. What of that is of
// DG/RDMA or iWARP is decided at the end, when it is known who speaks these; in a capture of nothing else all is told.
//
// # Rules
//
// Memory does not grow with the capture: ids are remembered as long as a sender
// may repeat them; series over time keep a fixed number of bins, which merge in
// pairs; points, marks and transactions are kept as an even choice of all.
// Counters count all. At most 128 flows are followed, and 128 directions between endpoints with keys; what others send is only
// counted. Of connections of iWARP 256 are told of, and of who failed to reach whom 1024 pairs, by TCP and by ICMP and ARP each. Concurrency: an Analyzer belongs to one goroutine. Errors: there are
// none; what is wrong with the capture is a finding.
package inspect

package rpcrdma

import "fmt"

// Fault is what is wrong with a message that came, and what the specification wants as the answer.
type Fault struct {
	XID    uint32
	Type   Type
	Reason string
	At     int // offset of what is wrong in the message
	// Limit says that the message is well-formed, and beyond [Limits]: a peer cannot know these.
	Limit bool

	// Version is that of the answer's layout, and Report is what it says. A Code of 0 has the
	// message dropped without an answer.
	Version uint32
	Report  Report
}

// Dropped reports whether the message is dropped without an answer, whichever side received it.
func (f *Fault) Dropped() bool { return f.Report.Code == 0 }

// EitherSide reports whether either side sends the answer. Other answers are sent by Responders, and a
// Requester drops the message (RPC2-090).
func (f *Fault) EitherSide() bool {
	return reportShapes[f.Version][f.Report.Code].eitherSide
}

// Answer returns the header of the answer, if there is one.
func (f *Fault) Answer(credit uint32) (h Header, is bool) {
	if f.Dropped() {
		return h, false
	}
	h = Header{XID: f.XID, Version: f.Version, Credit: credit, Type: TypeError, Report: f.Report}
	if f.Version == Version2 {
		h.Flags = FlagResponse
	}
	return h, true
}

func (f *Fault) Error() string {
	answer := "dropped"
	if !f.Dropped() {
		answer = f.Report.Code.Name(f.Version)
	}
	return fmt.Sprintf("cannot use the RPC-over-RDMA message with xid %#x: %s at octet %d (%s)", f.XID, f.Reason, f.At, answer)
}

package transport

// ECN is the mark of a datagram for explicit congestion notification (RFC 3168, section 5): the last two bits of the traffic class.
type ECN uint8

// The marks.
const (
	NotECT ECN = iota // the sender does not heed marks
	ECT1              // it does, as RFC 9331 has it: nothing here sends it
	ECT0              // it does
	CE                // it does, and a queue was getting full
)

var ecnNames = [...]string{"not-ECT", "ECT(1)", "ECT(0)", "CE"}

func (e ECN) String() string { return ecnNames[e&3] }

package reassembly

import "github.com/dgrdma/dgrdma/frame"

// Transaction is an incoming transaction of which messages are missing.
type Transaction struct {
	Message frame.Message // its fields that all messages share
	Got     uint16        // messages that came
	Lost    bool          // it never completes, because one of its messages was discarded

	older, younger *Transaction // by the last message that came

	Low, High, Bytes uint32 // extent of the data and its amount

	// Of the frame at hand, while it is checked.
	Checked uint32 // number of the frame whose check found the transaction
	Here    uint16 // messages of it in that frame

	Overcount Overcount
}

// Overcount is by which frames a transaction began and ended, for a peer that may announce one message too many
// (quirk F16).
type Overcount struct {
	First, Later     frame.Seq // frames with its first message, and with a younger transaction
	Begun, Overtaken bool      // First is set; Later is
}

// Younger returns the transaction whose last message came next after that of t; nil: there is none.
func (t *Transaction) Younger() *Transaction { return t.younger }

// Count counts a message.
func (t *Transaction) Count(m *frame.Message) {
	t.Got++
	if t.Got == 1 {
		t.Low, t.High = m.Addr, m.Addr
	}
	t.Low, t.High = min(t.Low, m.Addr), max(t.High, m.Addr+uint32(m.Len))
	t.Bytes += uint32(m.Len)
}

// CountRun counts the n messages that follow m.
func (t *Transaction) CountRun(m *frame.Message, n int) {
	bytes := uint32(n) * uint32(m.Len)
	t.Got += uint16(n)
	t.High = max(t.High, m.Addr+uint32(m.Len)+bytes)
	t.Bytes += bytes
}

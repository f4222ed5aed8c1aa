package rpcrdma

import (
	"time"

	"github.com/dgrdma/dgrdma/xdr"
)

// Incoming is one Call of the peer. It is the machine's, but for two times: from ActPlace until Place, Reply or Fail, and from
// ActDeliver until Reply or Fail.
type Incoming struct {
	XID     uint32
	Version uint32
	// Message is the Call without Items. It is valid until Reply or Fail.
	Message []byte
	// Items are those that were fetched.
	Items []xdr.Item
	// Gone says that the connection is lost: a Reply is still taken, and goes nowhere.
	Gone bool
}

// Answer is the Reply to an Incoming. It is the machine's until ActAnswered.
type Answer struct {
	Head  []byte
	Items []xdr.Item
	Done  func() // called once: the answer was sent, or the connection is lost
}

// responder answers the peer's Calls.
type responder struct{}

func (r *responder) open(m *Machine)                                                          {}
func (r *responder) received(m *Machine, now time.Time, h *Header, payload []byte, b *Buffer) {}
func (r *responder) refused(m *Machine, now time.Time, f *Fault, h *Header, b *Buffer)        {}
func (r *responder) completed(m *Machine, now time.Time, w work)                              { _ = w.read }
func (r *responder) nextRead(m *Machine, room int, a *Action) bool                            { return false }
func (r *responder) next(m *Machine, room int, in *Incoming, a *Action) (posted, done bool) {
	return false, true
}
func (r *responder) tick(m *Machine, now time.Time) (next time.Time) { return next }
func (r *responder) lost(m *Machine, err error)                      {}

// Reply answers a Call.
func (m *Machine) Reply(now time.Time, in *Incoming, a Answer) { m.sendReply(in) }

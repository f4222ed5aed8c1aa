package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// written sums up what was written. It is the object that --json prints.
type written struct {
	builtFrom
	To           string  `json:"to"`
	From         string  `json:"from"`
	Profile      string  `json:"profile"`
	Times        uint64  `json:"times"`
	Transactions uint64  `json:"transactions"`
	Bytes        uint64  `json:"bytes"`
	Acknowledged bool    `json:"acknowledged"`                 // false: it failed, or the peer never acknowledges
	Standstill   float64 `json:"standstill_seconds,omitempty"` // of a peer that never acknowledges, for which nothing is lost
	SentAgain    uint64  `json:"frames_sent_again"`
	Seconds      float64 `json:"seconds"`
	FlagAddr     *uint32 `json:"flag_addr,omitempty"`
	Flag         *uint32 `json:"flag,omitempty"` // as last written
	Error        string  `json:"error,omitempty"`

	peer string
}

func (w *writer) result(took time.Duration) *written {
	s := w.conn.Stats()
	r := &written{
		Profile: w.profile.Name, Times: w.times.Load(), Transactions: w.transactions.Load(), Bytes: uint64(w.meter.moved.Load()),
		Acknowledged: !w.profile.NoAcks, SentAgain: s.RetransmitsFast + s.RetransmitsTimed, Seconds: took.Seconds(), peer: s.Peer.String(),
	}
	if w.profile.NoAcks {
		r.Standstill = w.profile.Standstill().Seconds()
	}
	if w.o.flagAddr.given && r.Times > 0 {
		r.FlagAddr, r.Flag = &w.o.flagAddr.value, &w.flag
	}
	return r
}

func (r *written) print(w io.Writer, asJSON bool) error {
	if asJSON {
		r.builtFrom = thisBuild()
		return json.NewEncoder(w).Encode(r)
	}
	how := fmt.Sprintf("acknowledged by %s, %s sent again", r.peer, count(r.SentAgain, "frame"))
	switch {
	case !r.Acknowledged && r.Error != "":
		how = fmt.Sprintf("to %s, then it failed; %s sent again", r.peer, count(r.SentAgain, "frame"))
	case !r.Acknowledged:
		how = fmt.Sprintf("sent to %s, which never acknowledges: whether it arrived is not known, and what came while it stood still for longer than %v is lost", r.peer, time.Duration(r.Standstill*float64(time.Second)).Round(time.Millisecond))
	}
	flag := ""
	if r.Flag != nil {
		flag = fmt.Sprintf("; flag at %#x = %#x (%d)", *r.FlagAddr, *r.Flag, *r.Flag)
	}
	_, err := fmt.Fprintf(w, "%s in %s in %.3f s (%s), %s%s\n",
		count(r.Bytes, "byte"), count(r.Transactions, "transaction"), r.Seconds, rateText(float64(r.Bytes)/r.Seconds), how, flag)
	return err
}

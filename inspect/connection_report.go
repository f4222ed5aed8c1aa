package inspect

import (
	"time"

	"github.com/dgrdma/dgrdma/capture/tcp"
	"github.com/dgrdma/dgrdma/rdmap"
	"github.com/dgrdma/dgrdma/rdmap/mpa"
)

// Connection is one of iWARP. Who began it is the first of both sides, if that is known.
type Connection struct {
	Number int    `json:"number"` // from 1
	From   string `json:"from"`   // the initiator
	To     string `json:"to"`
	Known  bool   `json:"known"` // which one is the initiator

	First       time.Duration `json:"first_ns"`
	Last        time.Duration `json:"last_ns"`
	FirstRecord int           `json:"first_record"`
	LastRecord  int           `json:"last_record"`

	State    string `json:"state"` // of the set-up: "agreed", "rejected", "no reply", "no request", "not iWARP", "not captured"
	Revision int    `json:"revision,omitempty"`
	CRC      string `json:"crc"` // "on", "off", "unknown"
	// Reads are how many may be under way, of the initiator and of the responder; -1: not negotiated.
	Reads      [2]int  `json:"reads"`
	PeerToPeer bool    `json:"peer_to_peer"`
	Sides      [2]Side `json:"sides"`

	RPC *RPC `json:"rpc_over_rdma,omitempty"` // nil: it carries something else
}

// Side is what one side of a connection sent.
type Side struct {
	Address    string      `json:"address"`
	Frames     int         `json:"frames"`
	Messages   int         `json:"messages"`
	Bytes      int64       `json:"bytes"` // of payload
	Operations []Operation `json:"operations"`
	BadCRC     int         `json:"bad_crc"`
	Missing    int         `json:"missing_bytes"`
	Segments   int         `json:"segments"` // of TCP, with payload
	Resent     int         `json:"resent_segments"`
	Late       int         `json:"late_segments"`
}

// Operation is what was done how often. Requests have round trips: until their answer was complete.
type Operation struct {
	Name      string     `json:"name"`
	Messages  int        `json:"messages"`
	Bytes     int64      `json:"bytes"`
	RoundTrip *Histogram `json:"round_trip,omitempty"`
}

func (k *connection) report(number int) Connection {
	i := k.initiator()
	r := Connection{
		Number: number, From: k.name(i), To: k.name(1 - i), Known: k.of.Known, First: k.first, Last: k.last, FirstRecord: k.firstRecord, LastRecord: k.record,
		State: "not captured", CRC: "unknown", Reads: [2]int{-1, -1},
	}
	if on, known := k.of.CRC(); known && on {
		r.CRC = "on"
	} else if known {
		r.CRC = "off"
	}
	request, reply := k.of.Request, k.of.Reply
	switch {
	case reply != nil && reply.Reject && k.ways[0].frames+k.ways[1].frames == 0:
		r.State = "rejected"
	case reply != nil && request != nil:
		r.State = "agreed"
	case k.strange():
		r.State = "not iWARP"
	case request != nil && k.ways[1-i].frames == 0:
		r.State = "no reply"
	case k.unrequested():
		r.State = "no request"
	}
	if request != nil {
		r.Revision, r.PeerToPeer = int(request.Rev), request.PeerToPeer
	}
	if request != nil && reply != nil && request.Enhanced && reply.Enhanced {
		r.Reads = [2]int{reads(request.ORD, reply.IRD), reads(reply.ORD, request.IRD)}
	}
	r.RPC = k.rpcReport()
	for side := range r.Sides {
		r.Sides[side] = k.side(i ^ side)
	}
	return r
}

// reads is how many may be under way of a side with that ORD, towards one with that IRD.
func reads(ord, ird uint16) int {
	if ord == mpa.NotNegotiated || ird == mpa.NotNegotiated {
		return -1
	}
	return int(min(ord, ird))
}

func (k *connection) side(w int) Side {
	d := &k.ways[w]
	h := &k.of.TCP.Halves[tcp.Way(w)]
	s := Side{Address: k.name(w), Frames: d.frames, BadCRC: d.bad.n, Missing: d.missing.n, Segments: h.Segments, Resent: h.Resent, Late: h.Late, Operations: []Operation{}}
	for op := range opcodes {
		if d.messages[op] == 0 && d.bytes[op] == 0 {
			continue
		}
		o := Operation{Name: rdmap.Opcode(op).String(), Messages: d.messages[op], Bytes: d.bytes[op]}
		if d.trips[op] != nil {
			t := d.trips[op].report()
			o.RoundTrip = &t
		}
		s.Operations = append(s.Operations, o)
		s.Messages += o.Messages
		s.Bytes += o.Bytes
	}
	return s
}

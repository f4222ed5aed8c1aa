package inspect

import (
	"encoding/binary"
	"time"

	"github.com/dgrdma/dgrdma/frame/captured"
	"github.com/dgrdma/dgrdma/seal/datagram"
)

// sealedWay is all that can be known of what one endpoint sends to another one where they have keys.
type sealedWay struct {
	key    flowKey
	number int

	first, last             time.Duration
	firstRecord, lastRecord int
	frames, inside, wire    int64
	steps                   [datagram.Second + 1]int // of handshakes
	unasked, unsealed       counted

	under   [datagram.Indexes]*counting
	offload *bool // the capture has records of several frames
	latest  byte
	sealedCounts

	asking                    shake // the handshake that this end began last
	ended                     int   // handshakes that this end began, and got a key from
	unanswered, deaf, keyless vain
}

// vain is the handshakes that ended in one way, and no key came of.
type vain struct {
	counted
	asked, challenged, answered int // times, in datagrams
}

func (v *vain) add(s *shake, record int) {
	v.counted.add(1, record)
	v.asked += s.asked
	v.challenged += s.challenged
	v.answered += s.firsts
}

// shake is a handshake.
type shake struct {
	nonce             [datagram.NonceSize]byte
	begun             bool
	ended             bool
	asked, challenged int // times
	firsts            int
	record, first     int // where it began, and its first message
}

// sealed takes a sealed frame, or a datagram of a handshake.
func (a *Analyzer) sealed(p *captured.Packet, kind datagram.Kind, at time.Duration) {
	h, _ := p.Header()
	k := flowKey{p.Src, p.Dst, h.Src, h.Dst}
	w := a.wayOf(k, at, p.Record)
	if w == nil {
		return
	}
	w.wire += int64(p.Length)
	if kind == datagram.Sealed {
		a.capture.Sealed++
		w.frame(p)
		if j := &a.joined; len(p.Data) >= datagram.HeadSize {
			j.flow, j.way, j.index, j.behind = nil, w, w.latest, j.left
			j.count, j.salt = datagram.Counter(p.Data), binary.LittleEndian.Uint32(datagram.Salt(p.Data))
		}
		return
	}
	a.capture.Handshakes++
	w.steps[kind]++
	if len(p.Data) < datagram.HandshakeHead+datagram.NonceSize {
		return
	}
	nonce := datagram.Nonce(p.Data)
	other := a.back(k)
	switch {
	case kind == datagram.Question, kind == datagram.First:
		w.asks(nonce, kind, p.Record)
	case kind == datagram.Challenge && datagram.Unasked(p.Data):
		w.unasked.add(1, p.Record)
	case other == nil || !other.asking.begun || other.asking.nonce != nonce:
	case kind == datagram.Challenge:
		other.asking.challenged++
	case !other.asking.ended:
		other.asking.ended = true
		other.ended++
		w.forget()
		other.forget()
	}
}

// wayOf returns that way, on which something passes, or nil if there are too many.
func (a *Analyzer) wayOf(k flowKey, at time.Duration, record int) *sealedWay {
	w := a.ways[k]
	if w == nil {
		if len(a.wayOrder) == mostFlows {
			a.unfollow(record)
			return nil
		}
		w = &sealedWay{key: k, number: len(a.wayOrder) + 1, first: at, firstRecord: record, last: at, offload: &a.offload}
		a.ways[k] = w
		a.wayOrder = append(a.wayOrder, w)
	}
	w.last, w.lastRecord = max(w.last, at), record
	return w
}

// back returns the other way, nil if there is none.
func (a *Analyzer) back(k flowKey) *sealedWay { return opposite(a.ways, a.wayOrder, k) }

func (w *sealedWay) direction() flowKey { return w.key }

// unsealed takes a frame that is not sealed. Where its receiver, or its sender, was seen with keys, it is refused.
func (a *Analyzer) unsealed(k flowKey, s *seen) {
	if len(a.wayOrder) == 0 || a.ways[k] == nil && a.back(k) == nil {
		return
	}
	if w := a.wayOf(k, s.at, s.record); w != nil {
		w.unsealed.add(1, s.record)
	}
}

// frame takes a sealed frame.
func (w *sealedWay) frame(p *captured.Packet) {
	w.frames++
	w.inside += int64(p.Length - datagram.Overhead)
	w.latest = datagram.Index(p.Data)
	if len(p.Data) < datagram.HeadSize {
		return // cut: nothing tells a copy from another frame
	}
	c := w.under[w.latest]
	if c == nil {
		c = new(counting)
		w.under[w.latest] = c
	}
	n := datagram.Counter(p.Data)
	c.add(n, binary.LittleEndian.Uint32(datagram.Salt(p.Data)), p.Record, &w.sealedCounts)
	if p.Segments == 0 && p.Cut() {
		// The length of a sealed frame is not in it: what looks like one may be several, of which the others lie behind the snap length.
		c.behind = n + uint64((p.Length-len(p.Data))/datagram.Overhead)
	}
}

// forget ends what was under keys that are followed by another one: their indexes are used again.
func (w *sealedWay) forget() {
	for i, c := range w.under {
		if c != nil && byte(i) != w.latest {
			c.settle(&w.sealedCounts)
			*c = counting{}
		}
	}
}

// asks takes a question, or a first message.
func (w *sealedWay) asks(nonce [datagram.NonceSize]byte, kind datagram.Kind, record int) {
	s := &w.asking
	if !s.begun || s.nonce != nonce {
		w.settle()
		*s = shake{nonce: nonce, begun: true, record: record}
	}
	if kind == datagram.Question {
		s.asked++
		return
	}
	if s.firsts++; s.first == 0 {
		s.first = record
	}
}

// settle draws the conclusion of a handshake.
func (w *sealedWay) settle() {
	switch s := &w.asking; {
	case !s.begun || s.ended:
	case s.firsts > 0:
		w.keyless.add(s, s.first)
	case s.challenged > 0:
		w.deaf.add(s, s.record)
	default:
		w.unanswered.add(s, s.record)
	}
}

// finish ends the analysis. A handshake that was tried once may be under way.
func (w *sealedWay) finish() {
	if w.asking.asked > 1 || w.asking.firsts > 1 {
		w.settle()
	}
	for _, c := range w.under {
		if c != nil {
			c.settle(&w.sealedCounts)
		}
	}
}

// Sealed is what one endpoint sent to another one where both, or one of them, have keys.
type Sealed struct {
	Number int `json:"number"` // from 1
	From   End `json:"from"`
	To     End `json:"to"`

	First       time.Duration `json:"first_ns"`
	Last        time.Duration `json:"last_ns"`
	FirstRecord int           `json:"first_record"`
	LastRecord  int           `json:"last_record"`

	Frames int64 `json:"frames"` // sealed
	Inside int64 `json:"inside_bytes"`
	Bytes  int64 `json:"bytes"` // of all of these datagrams
	Keys   int   `json:"keys"`  // under which frames are, as far as that can be told

	Missing int `json:"missing"` // by the counters
	Late    int `json:"late"`
	Copies  int `json:"copies"`
	Strays  int `json:"strays"` // counters far from all others

	Questions  int `json:"questions"`
	Challenges int `json:"challenges"`
	Unasked    int `json:"unasked"` // of the challenges: for frames under an unknown key
	Firsts     int `json:"firsts"`
	Seconds    int `json:"seconds"`
	Ended      int `json:"handshakes_ended"`       // that this end began
	Unended    int `json:"handshakes_never_ended"` // likewise

	Unsealed int `json:"unsealed_frames"` // since something sealed passed
}

func (w *sealedWay) report() Sealed {
	return Sealed{
		Number: w.number, From: End{w.key.src.String(), w.key.srcID}, To: End{w.key.dst.String(), w.key.dstID},
		First: w.first, Last: w.last, FirstRecord: w.firstRecord, LastRecord: w.lastRecord,
		Frames: w.frames, Inside: w.inside, Bytes: w.wire, Keys: w.keys,
		Missing: w.missed(), Late: w.late, Copies: w.copies, Strays: w.odd(),
		Questions: w.steps[datagram.Question], Challenges: w.steps[datagram.Challenge], Unasked: w.unasked.n,
		Firsts: w.steps[datagram.First], Seconds: w.steps[datagram.Second],
		Ended: w.ended, Unended: w.unanswered.n + w.deaf.n + w.keyless.n, Unsealed: w.unsealed.n,
	}
}

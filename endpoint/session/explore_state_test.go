package session

import "fmt"

// The explorer has two endpoints, each with a Machine and a program that writes, and a network. The network keeps each
// message that was ever sent and may deliver it at any time, in any order, any number of times, or never.

// Sizes of the model.
const (
	txns   = 3  // transactions, of two messages each, in two frames; the last is for the check that all heals
	ids    = 8  // frame ids of a session
	lives  = 3  // processes of an endpoint, one after the other
	onWire = 40 // messages that the network holds
)

// generations is how many an endpoint has, one after the other. A variant may have fewer, so that an endless exchange is found sooner.
var generations = uint8(8)

// token is an epoch: it says which process computed it, in which generation and slot.
func token(life, generation, slot uint8, drawn bool) Epoch {
	if generation >= generations || slot > 3 {
		panic("more generations or slots than the model has")
	}
	t := Epoch(life)<<6 | Epoch(generation)<<3 | Epoch(slot)<<1
	if drawn {
		t |= 1
	}
	return t + 1
}

func lifeOf(e Epoch) uint8       { return uint8((e - 1) >> 6) }
func generationOf(e Epoch) uint8 { return uint8((e - 1) >> 3 & 7) }
func isDrawn(e Epoch) bool       { return e > 0 && (e-1)&1 == 1 }

// side is one endpoint.
type side struct {
	Machine                Machine
	Frames                 [ids]uint8  // what a frame holds; 0: nothing; otherwise 1 + 2*transaction + message
	Counts                 [txns]uint8 // messages that arrived of open transactions, in this session
	Life, Generation, Slot uint8
	Sent                   uint8 // frames of this session; the id of the last one is Local + Sent
	Acked, Got             uint8 // sets of frames
	Newest                 uint8 // for the invariants: 1 + the newest process of the peer that was in a session here
	Rung                   uint8 // bells of this session: the model has few ids
	Takes                  bool
}

const (
	absent uint8 = iota
	queued
	sent
	done
	failed
	crashed // with its program
)

type txn struct{ Owner, State, Part uint8 }

// world is a state of all.
type world struct {
	Wire                                [onWire]uint32 // in order; N of them
	Sides                               [2]side
	Txns                                [txns]txn
	Applied                             [txns][lives][2]uint8 // for the invariants: how often a message was applied in one process
	Completed                           [txns][lives]uint8
	N                                   uint8
	Crash, Reset, Close, GiveUp, Expire uint8 // how often that may still happen
	Post, Bump, Toggle, Find            uint8
	Full                                bool // the wire was full: the world is not explored further
}

// Kinds of messages in addition to those of package session.
const (
	dataKind = kinds + iota
	ackKind  // of data
)

// message is on the wire. A and B are the epochs that it names, as in Frame: in RESET those of the frame that it quotes.
type message struct {
	kind     Kind
	from     uint8
	a, b     Epoch
	id       uint8
	load     uint8 // of data
	received uint8 // of ackKind: a set of frames
}

func (m message) code() uint32 {
	return uint32(m.kind)<<28 | uint32(m.from)<<27 | uint32(m.a)<<19 | uint32(m.b)<<11 | uint32(m.id)<<8 | uint32(m.load|m.received)
}

func decode(c uint32) message {
	m := message{kind: Kind(c >> 28), from: uint8(c >> 27 & 1), a: Epoch(c >> 19 & 255), b: Epoch(c >> 11 & 255), id: uint8(c >> 8 & 7)}
	if m.kind == ackKind {
		m.received = uint8(c)
	} else {
		m.load = uint8(c)
	}
	return m
}

func (m message) String() string {
	switch m.kind {
	case dataKind:
		return fmt.Sprintf("DATA(%s>%s id %d holds %d)", name(m.a), name(m.b), m.id, m.load)
	case ackKind:
		return fmt.Sprintf("ACK(%s>%s %b)", name(m.a), name(m.b), m.received)
	}
	return fmt.Sprintf("%v(%s>%s id %d)", m.kind, name(m.a), name(m.b), m.id)
}

func name(e Epoch) string {
	if e == 0 {
		return "-"
	}
	return fmt.Sprintf("%d.%d.%d", lifeOf(e), generationOf(e), (e-1)&7)
}

func (s *side) String() string {
	return fmt.Sprintf("process %d generation %d: %v %s>%s", s.Life, s.Generation, s.Machine.State, name(s.Machine.Local), name(s.Machine.Remote))
}

// put gives a message to the network.
func (w *world) put(m message) {
	c := m.code()
	i := 0
	for ; i < int(w.N) && w.Wire[i] <= c; i++ {
		if w.Wire[i] == c {
			return
		}
	}
	if w.N == onWire {
		w.Full = true
		return
	}
	copy(w.Wire[i+1:w.N+1], w.Wire[i:w.N])
	w.Wire[i] = c
	w.N++
}

// alive reports whether an epoch is, or may yet be, one of the endpoint's.
func (s *side) alive(x Epoch) bool {
	return s.Machine.State >= Asking && s.Machine.Local == x || lifeOf(x) == s.Life && generationOf(x) >= s.Generation
}

// prune drops messages on which no endpoint acts any more, whatever happens: so worlds that differ in nothing else are one.
func (w *world) prune(v *variant) {
	n := uint8(0)
	for i := range w.N {
		m := decode(w.Wire[i])
		from, to := &w.Sides[m.from], &w.Sides[1-m.from]
		keep := true
		switch m.kind {
		case Hello:
			keep = from.alive(m.a)
		case Welcome, Bye, ackKind:
			keep = to.alive(m.b) || m.kind == ackKind && v.tag == noEpoch
		case Confirm:
			keep = to.alive(m.b) || from.alive(m.a)
		case dataKind:
			keep = to.alive(m.b) || from.alive(m.a) || v.tag == noEpoch
		case Reset, Reject:
			keep = to.alive(m.a)
		}
		if keep {
			w.Wire[n] = w.Wire[i]
			n++
		}
	}
	clear(w.Wire[n:w.N])
	w.N = n
}

// tokens are the Epochs of a side.
type tokens struct {
	s *side
	v *variant
}

func (t tokens) at(generation, slot uint8) Epoch { return token(t.s.Life, generation, slot, false) }

func (t tokens) Told() Epoch { return t.at(t.s.Generation, t.s.Slot) }

func (t tokens) Next() Epoch {
	if t.v.sticky {
		return t.Told()
	}
	return t.at(t.s.Generation+1, t.s.Slot)
}

func (t tokens) either(e Epoch, generation uint8) bool {
	return e == t.at(generation, t.s.Slot) || t.s.Slot > 0 && e == t.at(generation, t.s.Slot-1)
}

func (t tokens) IsTold(e Epoch) bool { return t.either(e, t.s.Generation) }

func (t tokens) IsNext(e Epoch) bool {
	if t.v.sticky {
		return t.IsTold(e)
	}
	return t.either(e, t.s.Generation+1)
}

func (t tokens) End() {
	if !t.v.sticky && !(t.v.early && t.s.Machine.State == Asking) {
		t.s.Generation++
	}
}

func (tokens) Check(responder, initiator Epoch) uint32 { return 0 } // no endpoint guesses in the model

// at is what the Machine of a side is told of its surroundings.
func (w *world) at(x int) At {
	s := &w.Sides[x]
	return At{Next: uint32(s.Machine.Local) + 1 + uint32(s.Sent), Takes: s.Takes}
}

// does carries out what the Machine of a side says, and returns what is wrong.
func (w *world) does(x int, o Output, v *variant) (bad string) {
	s := &w.Sides[x]
	if o.Ended != NotEnded || o.Begins {
		for i := range w.Txns {
			if t := &w.Txns[i]; t.Owner == uint8(x) && (t.State == queued || t.State == sent) {
				if o.Ended == NotEnded || v.move {
					t.State, t.Part = queued, 0
				} else {
					t.State = failed
				}
			}
		}
		s.Frames, s.Counts = [ids]uint8{}, [txns]uint8{}
		s.Sent, s.Acked, s.Got, s.Rung = 0, 0, 0, 0
	}
	if v.drawn && o.Reply.Kind == Hello {
		if local := &s.Machine.Local; !isDrawn(*local) {
			*local++
		}
		o.Reply.Sender = s.Machine.Local
	}
	if o.Rises {
		life := lifeOf(s.Machine.Remote)
		if life+1 < s.Newest {
			bad = "I5: an older process of the peer came back after a newer one"
		}
		s.Newest = max(s.Newest, life+1)
	}
	if f := o.Reply; f.Kind == Ack {
		w.put(message{kind: ackKind, from: uint8(x), a: f.Sender, b: f.Receiver, received: s.Got})
	} else if f.Kind != NoFrame && f.Kind != Refused { // REFUSED changes what an error says, and nothing else
		w.put(message{kind: f.Kind, from: uint8(x), a: f.Sender, b: f.Receiver})
	}
	if o.Bell && s.quiet() && s.Rung < 1 && s.Sent+1 < ids {
		s.Rung++
		w.frame(x, 0)
	}
	s.Machine.retry, s.Machine.check = retry{}, 0 // time stands still, and each repetition may come at any time
	if v.again {
		s.Machine.rejected = rejectedPairs{}
	}
	return bad
}

// quiet reports whether no frame is under way that left in state Up.
func (s *side) quiet() bool {
	for i := uint8(1); i <= s.Sent; i++ {
		if uint32(s.Machine.Local)+uint32(i) >= s.Machine.UpID && s.Acked&(1<<i) == 0 {
			return false
		}
	}
	return true
}

func (s *side) open() bool { return s.Machine.open() }

// has reports whether a frame is one of the session, by what it names.
func (s *side) has(m message, v *variant) bool {
	switch v.tag {
	case bothEpochs:
		return s.Machine.Has(Tag(m.b, m.a))
	case receiversEpoch:
		return s.open() && m.b == s.Machine.Local
	}
	return s.open()
}

// frame sends a frame.
func (w *world) frame(x int, load uint8) {
	s := &w.Sides[x]
	s.Sent++
	s.Frames[s.Sent] = load
	w.put(message{kind: dataKind, from: uint8(x), a: s.Machine.Local, b: s.Machine.Remote, id: s.Sent, load: load})
}

// push sends the next message of a transaction.
func (w *world) push(x, i int) {
	t := &w.Txns[i]
	w.frame(x, 1+uint8(i)*2+t.Part)
	t.State = sent
	t.Part++
}

// pairs reports whether the peer has the session that a side has.
func (w *world) pairs(x int) bool {
	m, p := &w.Sides[x].Machine, &w.Sides[1-x].Machine
	return m.open() && p.open() && p.Local == m.Remote && p.Remote == m.Local
}

// receive gives a message to the endpoint that it is for, and returns what is wrong.
func (w *world) receive(m message, v *variant) (bad string) {
	x := 1 - int(m.from)
	s := &w.Sides[x]
	switch m.kind {
	case dataKind:
		if !s.has(m, v) {
			if !v.silent && m.id > 0 {
				w.put(message{kind: Reset, from: uint8(x), a: m.a, b: m.b, id: m.id})
			}
			return ""
		}
		bad = w.does(x, s.Machine.Arrived(w.at(x)), v)
		if bit := uint8(1) << m.id; s.Got&bit == 0 {
			s.Got |= bit
			if b := w.apply(x, m); b != "" {
				bad = b
			}
		}
		w.put(message{kind: ackKind, from: uint8(x), a: s.Machine.Local, b: s.Machine.Remote, received: s.Got})
		return bad
	case ackKind:
		if !s.has(m, v) {
			return ""
		}
		bad = w.does(x, s.Machine.Arrived(w.at(x)), v)
		s.Acked |= m.received
		if b := w.settle(x); b != "" {
			bad = b
		}
		return bad
	}
	f := Frame{Kind: m.kind, Sender: m.a, Receiver: m.b}
	if m.kind == Reset {
		f = Frame{Kind: Reset, QuotedTag: Tag(m.b, m.a), ID: uint32(m.a) + uint32(m.id)}
	}
	state, paired := s.Machine.State, w.pairs(x)
	e := tokens{s, v}
	var o Output
	if state == None {
		var machine Machine
		var takes bool
		machine, o, takes = Answer(w.at(x), e, &f, NoUnknown)
		if takes {
			s.Machine = machine
		}
		if v.hasty && m.kind == Confirm && o.Reply.Kind == Refused {
			o.Reply = f.rejection()
		}
	} else {
		o = s.Machine.Receive(w.at(x), e, &f)
	}
	if o.Ended == PeerRestarted && paired && (m.kind == Reset || m.kind == Reject) {
		bad = "I6: a session ended that the peer has"
	}
	if b := w.does(x, o, v); b != "" {
		bad = b
	}
	return bad
}

// apply places the message of a frame, and completes its transaction with the last one, by counting.
func (w *world) apply(x int, m message) (bad string) {
	if m.load == 0 {
		return ""
	}
	s := &w.Sides[x]
	t, part := (m.load-1)/2, (m.load-1)%2
	n := &w.Applied[t][s.Life][part]
	if *n++; *n > 1 {
		*n, bad = 2, "I1: a message was applied twice in one process"
	}
	if m.a != s.Machine.Remote {
		bad = "I4: a frame of another session was applied"
	}
	if s.Counts[t]++; s.Counts[t] == 2 {
		s.Counts[t] = 0
		c := &w.Completed[t][s.Life]
		if *c++; *c > 1 {
			*c, bad = 2, "I2: a transaction completed twice in one process"
		}
		if w.Applied[t][s.Life][0] == 0 || w.Applied[t][s.Life][1] == 0 {
			bad = "I2: a transaction completed without all its messages"
		}
	}
	return bad
}

// settle finds what is done.
func (w *world) settle(x int) (bad string) {
	s := &w.Sides[x]
	for i := range w.Txns {
		t := &w.Txns[i]
		if t.Owner != uint8(x) || t.State != sent || t.Part < 2 {
			continue
		}
		n := 0
		for f := uint8(1); f <= s.Sent; f++ {
			if l := s.Frames[f]; l > 0 && int(l-1)/2 == i && s.Acked&(1<<f) != 0 {
				n++
			}
		}
		if n == 2 {
			t.State = done
			if w.Completed[i][lifeOf(s.Machine.Remote)] == 0 {
				bad = "I3: a write was reported done that never completed in that process of the peer"
			}
		}
	}
	return bad
}

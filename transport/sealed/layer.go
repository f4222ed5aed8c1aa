package sealed

import (
	"crypto/rand"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/seal"
	"github.com/dgrdma/dgrdma/transport"
)

const (
	// mostAttempt is how long a question, or a first message, is tried before another handshake begins: the longest round trip over
	// which two agree on a key, unless the peer is given up after less than twice that.
	mostAttempt = 5 * time.Second
	// mostUnheard is how long frames are sent, and nothing authentic comes, until there is a handshake for new keys: the peer
	// may have lost its own, or a machine was resumed as it was before.
	mostUnheard = time.Second
	// askFirst and askMost bound the time between two datagrams that ask for a key, see Layer.patience. Arbitrary.
	askFirst = 20 * time.Millisecond
	askMost  = time.Second
	// leastAsk is the shortest such time, however short GiveUp is. Arbitrary.
	leastAsk = time.Millisecond
)

// Pair is two endpoints: this one's id, the peer's, and where that is.
type Pair struct {
	Local, Remote frame.EndpointID
	Addr          transport.Addr
}

// between reports whether frames between two ids are of the pair.
func (p *Pair) between(local, remote frame.EndpointID) bool {
	return p.Local == local && p.Remote == remote
}

// Owner is the endpoint whose datagrams are sealed. Its methods are called by the goroutine that receives.
type Owner interface {
	// HasPeer reports whether there is a connection to a peer. It is also called by the goroutine that sends.
	HasPeer(p Pair) bool
	// Accepts reports whether anything would be taken from a peer.
	Accepts(p Pair) bool
	// Refused is told of a datagram that is no frame of a peer's.
	Refused(why Refusal, from transport.Addr, b []byte)
	// Keyed is told that there is a key for a peer now.
	Keyed(now ack.Instant, p Pair)
}

// Refusal is why a datagram is no frame of a peer's.
type Refusal uint8

const (
	NotRefused    Refusal = iota
	BadSeal               // it is sealed under no key of the peer's, or there is no key for the peer
	NotSealed             // it is in the clear
	UnknownSource         // nothing is taken from that peer
	NotAsked              // it answers nothing of ours, or is too late
)

// Config is what a layer is to know.
type Config struct {
	Keys         *seal.Ring
	Headroom     int           // bytes before each frame that the transport needs
	GiveUp       time.Duration // after which silence a peer is given up
	Peers        int           // most of those without a connection of which keys are kept
	PeersPerHost int
	Answers      int // most datagrams that are answered after a batch
}

// Counts are what happened since they were taken last.
type Counts struct {
	Challenges     uint64 // that were sent
	Unanswered     uint64 // datagrams, because too many others were answered
	ChallengesFull uint64
	KeysEvicted    uint64 // of peers without a connection, for others
}

// Layer seals what leaves, and opens what comes. It neither waits nor has a timer: while there is
// no key, a datagram of the handshake leaves in the place of frames, so that whatever repeats them repeats it.
type Layer struct {
	cfg   Config
	ring  *seal.Ring
	own   seal.Instance
	owner Owner

	mu      sync.Mutex
	table   map[Pair]*association
	passing passing // those of table that have no connection

	// Owned by the sender.
	room []byte // the sealed frames of a batch
	out  []transport.Outgoing
	to   *association    // of the frame before
	addr *transport.Addr // where that went
	salt seal.Salt

	// Owned by the receiver.
	from       *association // of the datagram before
	challenger seal.Challenger
	owed       []owed // what is answered at the end of the batch; read by the goroutine that may receive and send
	counts     Counts // of this batch
}

// owed is an answer of a handshake.
type owed struct {
	to  transport.Addr
	buf []byte
}

// New returns the layer of an endpoint.
func New(cfg Config, owner Owner) *Layer {
	l := &Layer{cfg: cfg, ring: copyOf(cfg.Keys), own: seal.NewInstance(), owner: owner, table: make(map[Pair]*association)}
	l.passing.init(&cfg)
	return l
}

// copyOf returns a ring that shares nothing with that: configurations are read once, and keys wiped.
func copyOf(r *seal.Ring) *seal.Ring {
	c := &seal.Ring{Own: make(map[uint16]*seal.Key, len(r.Own))}
	if r.All != nil {
		c.All = new(*r.All)
	}
	for id, k := range r.Own {
		if k != nil {
			c.Own[id] = new(*k)
		}
	}
	return c
}

// HasKeyFor reports whether there is a key for peers with that id; 0: for those whose id is not known.
func (l *Layer) HasKeyFor(id frame.EndpointID) bool { return l.ring.Of(uint16(id)) != nil }

func (l *Layer) find(p Pair) *association {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.table[p]
}

// associate returns the association with a peer, which is made if there is a key for it. Guarded by mu.
func (l *Layer) associate(now ack.Instant, p Pair) *association {
	a := l.table[p]
	if a == nil {
		psk := l.ring.Of(uint16(p.Remote))
		if psk == nil {
			return nil
		}
		a = &association{pair: p, psk: psk}
		a.heard.Store(int64(now))
		l.table[p] = a
		l.settle(a)
	}
	return a
}

// Settle is told that the owner has a connection to a peer now, or has it not any more.
func (l *Layer) Settle(p Pair) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.table[p]; a != nil {
		l.settle(a)
	}
}

// settle has an association be among the passing ones exactly if it has no connection. Guarded by mu.
func (l *Layer) settle(a *association) {
	switch passes := !l.owner.HasPeer(a.pair); {
	case passes == (a.passing != nil):
	case passes:
		if evicted := l.passing.add(a); evicted != nil {
			evicted.gone.Store(true)
			delete(l.table, evicted.pair)
		}
	default:
		l.passing.remove(a)
	}
}

// Seal returns the sealed frames of a batch, side by side as those are. In place of those for which there is no key yet, a
// datagram of the handshake may be there. It belongs to the sender.
func (l *Layer) Seal(now ack.Instant, frames []transport.Outgoing) []transport.Outgoing {
	need := 0
	for i := range frames {
		need += l.cfg.Headroom + seal.SealedSize(frames[i].Len()-l.cfg.Headroom)
	}
	if need > len(l.room) {
		l.room = make([]byte, need)
	}
	room := l.room
	rand.Read(l.salt[:]) // never fails
	l.out = l.out[:0]
	for i := range frames {
		o := &frames[i]
		plain := o.Buf[l.cfg.Headroom:]
		dst, src := frame.IDsOf(plain)
		a := l.to
		if a == nil || l.addr != o.To || !a.pair.between(src, dst) || a.gone.Load() {
			l.mu.Lock()
			a = l.associate(now, Pair{src, dst, *o.To})
			l.mu.Unlock()
			if l.to, l.addr = a, o.To; a == nil {
				continue
			}
		}
		s := a.sealing.Load()
		if s == nil || s.Worn() || l.doubts(now, a) {
			if b := l.ask(now, a, [4]byte(plain)); b != nil {
				l.add(o.To, b, transport.NotECT)
			}
		}
		if s == nil || s.Spent() {
			continue // as if it had been lost
		}
		n := l.cfg.Headroom + len(s.Seal(room[l.cfg.Headroom:l.cfg.Headroom], plain, o.Rest, &l.salt))
		l.add(o.To, room[:n:n], o.ECN)
		room = room[n:]
	}
	return l.out
}

func (l *Layer) add(to *transport.Addr, buf []byte, mark transport.ECN) {
	l.out = append(l.out, transport.Outgoing{})
	o := &l.out[len(l.out)-1]
	o.To, o.Buf, o.ECN = to, buf, mark // in place: a literal is built elsewhere, and moved
}

// patience returns the time after the first datagram that asks for a key, and for how long a peer may be silent that seems to have none: where a peer
// is given up soon, there have to be several questions before.
func (l *Layer) patience() time.Duration {
	return min(askFirst, max(l.cfg.GiveUp/10, leastAsk))
}

// doubts reports whether the peer may not have our key any more.
func (l *Layer) doubts(now ack.Instant, a *association) bool {
	rest := min(mostUnheard, l.cfg.GiveUp/4)
	unheard := a.unheard(now, rest)
	if unheard < l.patience() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return unheard >= rest || a.hinted
}

// ask returns the datagram of a handshake that is to be answered, behind headroom, or nil: one left just now.
func (l *Layer) ask(now ack.Instant, a *association, between [4]byte) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case a.asking == nil || now.Sub(a.begun) > min(l.cfg.GiveUp/2, mostAttempt):
		a.asking, a.begun, a.asks = seal.Ask(a.psk, l.own, a.draw()), now, 0
	case now.Sub(a.askedAt) < min(l.patience()<<min(a.asks-1, 10), askMost):
		return nil
	}
	a.asks++
	a.askedAt = now
	return a.asking.Again(make([]byte, l.cfg.Headroom, l.cfg.Headroom+seal.MostHandshake), between)
}

// Open opens datagrams where they are. What is none of a peer's frames is empty afterwards. It belongs to the receiver.
func (l *Layer) Open(now ack.Instant, in []transport.Datagram) {
	for i := range in {
		d := &in[i]
		b := d.Data
		d.Data = nil
		switch kind := seal.KindOf(b); kind {
		case seal.Sealed:
			a := l.from
			if a == nil || a.pair != fromWhom(b, d.From) || a.gone.Load() {
				p := fromWhom(b, d.From)
				if a = l.find(p); a == nil {
					l.owner.Refused(BadSeal, d.From, b)
					l.challenge(now, p, b)
					continue
				}
				l.from = a
			}
			plain, known := a.opens(now, b)
			switch {
			case !known:
				l.owner.Refused(BadSeal, d.From, b)
				l.challenge(now, a.pair, b)
			case plain == nil:
				l.owner.Refused(BadSeal, d.From, b)
			default:
				d.Data = plain
			}
		case seal.Plain:
			l.owner.Refused(NotSealed, d.From, b)
		default:
			if why := l.shake(now, fromWhom(b, d.From), kind, b); why != NotRefused {
				l.owner.Refused(why, d.From, b)
			}
		}
	}
}

// fromWhom returns whose a datagram says to be.
func fromWhom(b []byte, from transport.Addr) Pair {
	local, remote := frame.IDsOf(b)
	return Pair{local, remote, from}
}

// owe has a peer answered at the end of the batch, unless too many others are.
func (l *Layer) owe(to transport.Addr, put func([]byte) []byte) (answered bool) {
	if len(l.owed) == l.cfg.Answers {
		l.counts.Unanswered++
		return false
	}
	l.owed = append(l.owed, owed{to, put(make([]byte, l.cfg.Headroom, l.cfg.Headroom+seal.MostHandshake))})
	return true
}

// TakeCounts returns what was counted since it was called last. It belongs to the receiver.
func (l *Layer) TakeCounts() Counts {
	c := l.counts
	c.ChallengesFull = l.challenger.Full
	l.counts, l.challenger.Full = Counts{}, 0
	if l.passing.evicted.Load() > 0 { // to look is cheaper than to swap
		c.KeysEvicted = l.passing.evicted.Swap(0)
	}
	return c
}

// Owes reports whether answers are to be sent at the end of the batch.
func (l *Layer) Owes() bool { return len(l.owed) > 0 }

// TakeAnswers returns the answers that are to be sent, once. It belongs to the goroutine that may receive and send.
func (l *Layer) TakeAnswers() []transport.Outgoing {
	l.out = l.out[:0]
	for i := range l.owed {
		to := l.owed[i].to // what To points to never changes, and these will
		l.add(&to, l.owed[i].buf, transport.NotECT)
	}
	clear(l.owed)
	l.owed = l.owed[:0]
	return l.out
}

// Lack is why there is no key for a peer.
type Lack uint8

const (
	NoLack    Lack = iota // there is one
	NoKeyHere             // this side has none for the peer
	NoAnswer              // no endpoint answers the question for a key
	OtherKey              // the peer is there, and does not accept the key
)

// Lacks returns why there is no key for a peer; silent: the peer is given up.
func (l *Layer) Lacks(p Pair, silent bool) Lack {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch a := l.table[p]; {
	case a == nil && l.ring.Of(uint16(p.Remote)) == nil:
		return NoKeyHere
	case a != nil && a.sealing.Load() != nil && (!silent || int64(a.daredAt) <= a.heard.Load()):
		return NoLack
	case a != nil && a.answered:
		return OtherKey
	}
	return NoAnswer
}

// Pairs returns of how many pairs something is kept, and to how many of these the owner has no connection.
func (l *Layer) Pairs() (all, passing int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.table), l.passing.len
}

package endpoint

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
	// which two agree on a key, unless GiveUp is shorter than twice that.
	mostAttempt = 5 * time.Second
	// mostUnheard is how long frames are sent, and nothing authentic comes, until there is a handshake for new keys: the peer
	// may have lost its own, or a machine was resumed as it was before.
	mostUnheard = time.Second
)

// vault seals what leaves, and opens what comes, where an endpoint has keys. It neither waits nor has a timer: while there is
// no key, a datagram of the handshake leaves in the place of frames, so that whatever repeats them repeats it.
type vault struct {
	ring     *seal.Ring
	own      seal.Instance
	headroom int
	giveUp   time.Duration
	peers    *peerTable

	mu      sync.Mutex
	table   map[peerKey]*association
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
	owed       []owed // what is answered at the end of the batch; read by who has both turns
	unanswered uint64 // in this batch, because that was too much
}

// owed is an answer of a handshake.
type owed struct {
	to  transport.Addr
	buf []byte
}

func newVault(cfg *Config, headroom int, peers *peerTable) *vault {
	v := &vault{
		ring: copyOf(cfg.Keys), own: seal.NewInstance(), headroom: headroom, giveUp: cfg.GiveUp, peers: peers,
		table: make(map[peerKey]*association),
	}
	v.passing.init(cfg)
	return v
}

func (v *vault) find(k peerKey) *association {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.table[k]
}

// associate returns the association with a peer, which is made if there is a key for it. Guarded by mu.
func (v *vault) associate(now ack.Instant, k peerKey) *association {
	a := v.table[k]
	if a == nil {
		psk := v.ring.Of(uint16(k.theirs))
		if psk == nil {
			return nil
		}
		a = &association{key: k, psk: psk}
		a.heard.Store(int64(now))
		v.table[k] = a
		v.settle(a)
	}
	return a
}

// settleKeys is called after a connection came into the table of peers, or left it.
func (e *Endpoint) settleKeys(c *Conn) {
	v := e.vault
	if v == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if a := v.table[c.key()]; a != nil {
		v.settle(a)
	}
}

// settle has an association be among the passing ones exactly if it has no connection. Guarded by mu.
func (v *vault) settle(a *association) {
	switch passes := v.peers.find(a.key) == nil; {
	case passes == (a.passing != nil):
	case passes:
		if evicted := v.passing.add(a); evicted != nil {
			evicted.gone.Store(true)
			delete(v.table, evicted.key)
		}
	default:
		v.passing.remove(a)
	}
}

// seal returns the sealed frames of a batch, side by side as those are. Of those for whom there is no key yet, a datagram of
// the handshake may be there instead.
func (v *vault) seal(now ack.Instant, frames []transport.Outgoing) []transport.Outgoing {
	need := 0
	for i := range frames {
		need += v.headroom + seal.SealedSize(frames[i].Len()-v.headroom)
	}
	if need > len(v.room) {
		v.room = make([]byte, need)
	}
	room := v.room
	rand.Read(v.salt[:]) // never fails
	v.out = v.out[:0]
	for i := range frames {
		o := &frames[i]
		plain := o.Buf[v.headroom:]
		dst, src := frame.IDsOf(plain)
		a := v.to
		if a == nil || v.addr != o.To || a.key.ids != (ids{src, dst}) || a.gone.Load() {
			v.mu.Lock()
			a = v.associate(now, peerKey{ids{src, dst}, *o.To})
			v.mu.Unlock()
			if v.to, v.addr = a, o.To; a == nil {
				continue
			}
		}
		s := a.sealing.Load()
		if s == nil || s.Worn() || v.doubts(now, a) {
			if b := v.ask(now, a, [4]byte(plain)); b != nil {
				v.add(o.To, b)
			}
		}
		if s == nil || s.Spent() {
			continue // as if it had been lost
		}
		n := v.headroom + len(s.Seal(room[v.headroom:v.headroom], plain, o.Rest, &v.salt))
		v.add(o.To, room[:n:n])
		room = room[n:]
	}
	return v.out
}

func (v *vault) add(to *transport.Addr, buf []byte) {
	v.out = append(v.out, transport.Outgoing{})
	o := &v.out[len(v.out)-1]
	o.To, o.Buf = to, buf // in place: a literal is built elsewhere, and moved
}

// doubts reports whether the peer may not have our key any more.
func (v *vault) doubts(now ack.Instant, a *association) bool {
	rest := min(mostUnheard, v.giveUp/4)
	unheard := a.unheard(now, rest)
	if unheard < helloFirst {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return unheard >= rest || a.hinted
}

// ask returns the datagram of a handshake that is to be answered, behind headroom, or nil: one left just now.
func (v *vault) ask(now ack.Instant, a *association, between [4]byte) []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case a.asking == nil || now.Sub(a.begun) > min(v.giveUp/2, mostAttempt):
		a.asking, a.begun, a.asks = seal.Ask(a.psk, v.own, a.draw()), now, 0
	case now.Sub(a.askedAt) < min(helloFirst<<min(a.asks-1, 10), helloMost):
		return nil
	}
	a.asks++
	a.askedAt = now
	return a.asking.Again(make([]byte, v.headroom, v.headroom+seal.MostHandshake), between)
}

// unseal opens datagrams where they are. What is none of a peer's frames is empty afterwards.
func (e *Endpoint) unseal(now ack.Instant, in []transport.Datagram) {
	v := e.vault
	for i := range in {
		d := &in[i]
		b := d.Data
		d.Data = nil
		switch kind := seal.KindOf(b); kind {
		case seal.Sealed:
			a := v.from
			if a == nil || a.key.ids != idsIn(b) || a.key.addr != d.From || a.gone.Load() {
				k := fromWhom(b, d.From)
				if a = v.find(k); a == nil {
					e.dare(now, k, b, RefusedSeal)
					continue
				}
				v.from = a
			}
			plain, known := a.opens(now, b)
			switch {
			case !known:
				e.dare(now, a.key, b, RefusedSeal)
			case plain == nil:
				e.unopened(RefusedSeal, d.From, b)
			default:
				d.Data = plain
			}
		case seal.Plain:
			e.unopened(RefusedUnsealed, d.From, b)
		default:
			if why := e.shake(now, fromWhom(b, d.From), kind, b); why != RefusedNone {
				e.unopened(why, d.From, b)
			}
		}
	}
}

// fromWhom returns whose a datagram says to be.
func fromWhom(b []byte, from transport.Addr) peerKey { return peerKey{idsIn(b), from} }

func idsIn(b []byte) ids {
	ours, theirs := frame.IDsOf(b)
	return ids{ours, theirs}
}

// unopened counts a datagram that is no frame of a peer's.
func (e *Endpoint) unopened(why Reason, from transport.Addr, b []byte) {
	e.stray(&transport.Datagram{Data: b})
	who := PeerName{Addr: from}
	if len(b) >= frame.HeaderSize {
		_, who.ID = frame.IDsOf(b)
	}
	e.stranger(why, who)
}

// wants reports whether anything would be taken from who says to be that peer. Who asks which id we have may be one, too.
func (e *Endpoint) wants(k peerKey) bool {
	return k.theirs != 0 && e.vault.ring.Of(uint16(k.theirs)) != nil &&
		(e.accepting.Load() || e.peers.find(k) != nil || e.peers.find(peerKey{ids{e.cfg.ID, k.theirs}, k.addr}) != nil)
}

// owe has a peer answered at the end of the batch, unless too many others are.
func (v *vault) owe(to transport.Addr, put func([]byte) []byte) (answered bool) {
	if len(v.owed) == mostReplies {
		v.unanswered++
		return false
	}
	v.owed = append(v.owed, owed{to, put(make([]byte, v.headroom, v.headroom+seal.MostHandshake))})
	return true
}

// count adds what was counted in a batch.
func (v *vault) count(to *Counters) {
	to.Unanswered += v.unanswered
	to.CookiesFull += v.challenger.Full
	v.unanswered, v.challenger.Full = 0, 0
	if v.passing.evicted.Load() > 0 { // to look is cheaper than to swap
		to.KeysEvicted += v.passing.evicted.Swap(0)
	}
}

// takeOwed returns what is owed, once.
func (v *vault) takeOwed() []transport.Outgoing {
	v.out = v.out[:0]
	for i := range v.owed {
		to := v.owed[i].to // what To points to never changes, and these will
		v.add(&to, v.owed[i].buf)
	}
	clear(v.owed)
	v.owed = v.owed[:0]
	return v.out
}

package session

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

// Epochs computes the epochs that an endpoint tells one peer.
type Epochs interface {
	// Told returns what the peer is told while no session with it is up.
	Told() Epoch
	// Next returns what the peer is told while a session with it is up: Told, as it will be when that has ended.
	Next() Epoch
	// IsTold reports whether the peer was told e, and no attempt or session has ended since.
	IsTold(e Epoch) bool
	// IsNext reports the same of what Next returns.
	IsNext(e Epoch) bool
	// End makes all that was told and taken name no session any more.
	End()
	// Check returns what a WELCOME of responder to initiator has, and the CONFIRM that answers it. Only
	// a peer that saw the WELCOME knows it.
	Check(responder, initiator Epoch) uint32
}

const (
	// slot is after what time the epoch that a peer is told changes; the one before counts, too. It is long
	// compared with the time in which a CONFIRM comes back, all repetitions included.
	slot = ack.Instant(30 * time.Second)
	// EpochCounts is how long an epoch counts, at most, after it was told.
	EpochCounts = 2 * time.Duration(slot)
	// buckets bounds the memory of generations: peers share them. A session that ends makes
	// handshakes of the other peers of its bucket, which are under way, repeat a round trip. Arbitrary.
	buckets = 1 << 12
)

// Generations computes the epochs of all peers of an endpoint. The caller serializes its methods. The zero value is
// ready for use.
type Generations struct {
	mac hash.Hash
	buf []byte
	// ended counts by bucket how many attempts and sessions have ended; nil: none has. 32 bits, so that no count
	// comes again within the two slots in which an epoch counts.
	ended []uint32
}

// init draws the secret: a process that starts again tells other epochs.
func (g *Generations) init() {
	secret := make([]byte, sha256.Size)
	rand.Read(secret) // never fails
	g.mac = hmac.New(sha256.New, secret)
}

// sum computes a keyed hash. A label keeps the kinds of input apart.
func (g *Generations) sum(label byte, n, o uint64, peer []byte) []byte {
	if g.mac == nil {
		g.init()
	}
	le := binary.LittleEndian
	b := append(g.buf[:0], label)
	b = le.AppendUint64(b, n)
	b = le.AppendUint64(b, o)
	g.buf = append(b, peer...) // last, because its length varies
	g.mac.Reset()
	g.mac.Write(g.buf)
	return g.mac.Sum(g.buf[:0])
}

func (g *Generations) bucket(peer []byte) uint16 {
	return binary.LittleEndian.Uint16(g.sum('b', 0, 0, peer)) % buckets
}

func (g *Generations) generation(peer []byte) uint32 {
	if g.ended == nil {
		return 0
	}
	return g.ended[g.bucket(peer)]
}

func (g *Generations) epoch(at ack.Instant, generation uint32, peer []byte) Epoch {
	e := Epoch(binary.LittleEndian.Uint32(g.sum('e', uint64(at), uint64(generation), peer)))
	if e == 0 {
		e++
	}
	return e
}

// Of returns the epochs of a peer, which is both ids and an address, as bytes. They are for
// use at that time.
func (g *Generations) Of(peer []byte, now ack.Instant) Epochs {
	return &peerEpochs{g, peer, now / slot}
}

type peerEpochs struct {
	all  *Generations
	peer []byte
	slot ack.Instant // in units of slot
}

func (p *peerEpochs) Told() Epoch { return p.all.epoch(p.slot, p.all.generation(p.peer), p.peer) }
func (p *peerEpochs) Next() Epoch { return p.all.epoch(p.slot, p.all.generation(p.peer)+1, p.peer) }

func (p *peerEpochs) IsTold(e Epoch) bool { return p.is(e, p.all.generation(p.peer)) }
func (p *peerEpochs) IsNext(e Epoch) bool { return p.is(e, p.all.generation(p.peer)+1) }

func (p *peerEpochs) is(e Epoch, generation uint32) bool {
	return e == p.all.epoch(p.slot, generation, p.peer) || e == p.all.epoch(p.slot-1, generation, p.peer)
}

func (p *peerEpochs) End() {
	if p.all.ended == nil {
		p.all.ended = make([]uint32, buckets)
	}
	p.all.ended[p.all.bucket(p.peer)]++
}

func (p *peerEpochs) Check(responder, initiator Epoch) uint32 {
	return binary.LittleEndian.Uint32(p.all.sum('c', uint64(responder), uint64(initiator), p.peer))
}

package sealed

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/seal"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// side is an endpoint that has a layer and a list of peers, and nothing else.
type side struct {
	t       *testing.T
	id      frame.EndpointID
	at      transport.Addr
	layer   *Layer
	peers   map[Pair]bool
	accepts bool
	refused []Refusal
	keyed   []Pair
	frames  [][]byte // that came
	now     ack.Instant
}

func (s *side) HasPeer(p Pair) bool                             { return s.peers[p] }
func (s *side) Accepts(p Pair) bool                             { return s.accepts || s.peers[p] }
func (s *side) Refused(why Refusal, _ transport.Addr, _ []byte) { s.refused = append(s.refused, why) }
func (s *side) Keyed(_ ack.Instant, p Pair)                     { s.keyed = append(s.keyed, p) }
func (s *side) pair(there *side) Pair                           { return Pair{s.id, there.id, there.at} }
func (s *side) connects(there *side)                            { s.peers[s.pair(there)] = true; s.layer.Settle(s.pair(there)) }
func ringOf(b byte) *seal.Ring                                  { return &seal.Ring{All: &seal.Key{b}} }
func (s *side) loses(there *side)                               { delete(s.peers, s.pair(there)); s.layer.Settle(s.pair(there)) }
func config(r *seal.Ring) Config {
	return Config{Keys: r, Headroom: 6, GiveUp: 10 * time.Second, Peers: 8, PeersPerHost: 2, Answers: 4}
}

func newSide(t *testing.T, id frame.EndpointID, cfg Config) *side {
	s := &side{t: t, id: id, at: simnet.Addr(uint32(id)), peers: map[Pair]bool{}, accepts: true, now: 1}
	s.layer = New(cfg, s)
	return s
}

// frame returns a frame of this side to another one.
func (s *side) frame(there *side, n int) []byte {
	b := make([]byte, frame.HeaderSize+n)
	h := frame.Header{Dst: there.id, Src: s.id, Seq: 7}
	h.Put(b)
	for i := range n {
		b[frame.HeaderSize+i] = byte(i)
	}
	return b
}

// seals returns the datagrams in place of frames to another side.
func (s *side) seals(there *side, frames ...[]byte) (out [][]byte) {
	var batch []transport.Outgoing
	for _, f := range frames {
		batch = append(batch, transport.Outgoing{To: &there.at, Buf: append(make([]byte, s.layer.cfg.Headroom), f...)})
	}
	return s.bare(s.layer.Seal(s.now, batch))
}

func (s *side) bare(out []transport.Outgoing) (all [][]byte) {
	for _, o := range out {
		all = append(all, bytes.Clone(o.Buf[s.layer.cfg.Headroom:]))
	}
	return all
}

// opens takes datagrams of another side, and returns the answers.
func (s *side) opens(from transport.Addr, datagrams ...[]byte) (answers [][]byte) {
	in := make([]transport.Datagram, len(datagrams))
	for i, b := range datagrams {
		in[i] = transport.Datagram{From: from, Data: bytes.Clone(b)}
	}
	s.layer.Open(s.now, in)
	for _, d := range in {
		if len(d.Data) > 0 {
			s.frames = append(s.frames, bytes.Clone(d.Data))
		}
	}
	return s.bare(s.layer.TakeAnswers())
}

// agrees has s ask there for a key, and seal a frame under it.
func (s *side) agrees(there *side) {
	s.t.Helper()
	out := s.seals(there, s.frame(there, 40))
	for from, to := s, there; len(out) > 0; from, to = to, from {
		out = to.opens(from.at, out...)
	}
	if s.layer.Lacks(s.pair(there), false) != NoLack {
		s.t.Fatalf("endpoint %d has no key for %d", s.id, there.id)
	}
	there.opens(s.at, s.seals(there, s.frame(there, 40))...) // which shows that this side has the key
}

// TestLayers checks that the first frame has a key asked for in its place, that four datagrams make a key, and that frames arrive as they were
// afterwards, and no one more than once.
func TestLayers(t *testing.T) {
	a, b := newSide(t, 1, config(ringOf(1))), newSide(t, 2, config(ringOf(1)))
	a.connects(b)
	out := a.seals(b, a.frame(b, 40))
	var kinds []seal.Kind
	for from, to := a, b; len(out) > 0; from, to = to, from {
		if len(out) != 1 {
			t.Fatalf("%d datagrams", len(out))
		}
		kinds = append(kinds, seal.KindOf(out[0]))
		out = to.opens(from.at, out...)
	}
	if want := []seal.Kind{seal.Question, seal.Challenge, seal.First, seal.Second}; !slices.Equal(kinds, want) {
		t.Errorf("kinds %v, want %v", kinds, want)
	}
	if !slices.Equal(a.keyed, []Pair{a.pair(b)}) || len(b.keyed) != 0 {
		t.Errorf("told of keys: %v, %v", a.keyed, b.keyed)
	}
	for _, x := range [][2]*side{{a, b}, {b, a}} {
		from, to := x[0], x[1]
		sent := [][]byte{from.frame(to, 40), from.frame(to, 100), from.frame(to, 1400)}
		sealed := from.seals(to, sent...)
		to.opens(from.at, sealed...)
		if !slices.EqualFunc(to.frames, sent, bytes.Equal) {
			t.Errorf("%d to %d: %d frames arrived", from.id, to.id, len(to.frames))
		}
		to.opens(from.at, sealed...)
		if len(to.frames) != len(sent) {
			t.Errorf("%d to %d: copies were opened again", from.id, to.id)
		}
	}
}

// TestRefusals checks why a datagram is no frame of a peer's, and that none is answered but by a datagram that is no longer.
func TestRefusals(t *testing.T) {
	a, b := newSide(t, 1, config(ringOf(1))), newSide(t, 2, config(ringOf(1)))
	a.agrees(b)
	damaged := a.seals(b, a.frame(b, 40))[0]
	damaged[len(damaged)-1] ^= 1
	other := newSide(t, 1, config(ringOf(2)))
	outsider, late := newSide(t, 9, config(ringOf(1))), newSide(t, 8, config(ringOf(1)))
	closed := newSide(t, 2, config(ringOf(1)))
	closed.accepts = false
	for _, x := range []struct {
		name string
		to   *side
		from transport.Addr
		b    []byte
		why  Refusal
	}{
		{"in the clear", b, a.at, a.frame(b, 40), NotSealed},
		{"damaged", b, a.at, damaged, BadSeal},
		{"of another address", b, outsider.at, a.seals(b, a.frame(b, 40))[0], BadSeal},
		{"question under another key", b, a.at, other.seals(b, other.frame(b, 40))[0], BadSeal},
		{"question to one that takes none", closed, outsider.at, outsider.seals(closed, outsider.frame(closed, 40))[0], UnknownSource},
		{"challenge that was not asked for", newSide(t, 1, config(ringOf(1))), b.at, b.opens(late.at, late.seals(b, late.frame(b, 1400))...)[0], NotAsked},
	} {
		x.to.refused = nil
		for _, answer := range x.to.opens(x.from, x.b) {
			if len(answer) > len(x.b) {
				t.Errorf("%s: %d bytes are answered with %d", x.name, len(x.b), len(answer))
			}
		}
		if !slices.Equal(x.to.refused, []Refusal{x.why}) {
			t.Errorf("%s: refused %v, want %v", x.name, x.to.refused, x.why)
		}
	}
}

// TestLacks checks what is said of a peer for which there is no key.
func TestLacks(t *testing.T) {
	b := newSide(t, 2, config(ringOf(1)))
	none := newSide(t, 1, config(&seal.Ring{Own: map[uint16]*seal.Key{7: {1}}}))
	if got := none.layer.Lacks(none.pair(b), true); got != NoKeyHere || none.layer.HasKeyFor(2) || !none.layer.HasKeyFor(7) {
		t.Errorf("%v, want %v", got, NoKeyHere)
	}
	silent := newSide(t, 1, config(ringOf(1)))
	silent.seals(b, silent.frame(b, 40))
	if got := silent.layer.Lacks(silent.pair(b), true); got != NoAnswer {
		t.Errorf("%v, want %v", got, NoAnswer)
	}
	other := newSide(t, 1, config(ringOf(2)))
	other.opens(b.at, b.opens(other.at, other.seals(b, other.frame(b, 40))...)...)
	if got := other.layer.Lacks(other.pair(b), true); got != OtherKey {
		t.Errorf("%v, want %v", got, OtherKey)
	}
	has := newSide(t, 1, config(ringOf(1)))
	has.agrees(b)
	if got := has.layer.Lacks(has.pair(b), true); got != NoLack {
		t.Errorf("%v, want %v", got, NoLack)
	}
}

// TestKeysOfMany checks that keys of pairs without a connection are bounded, of each host and of all, and that those of a peer with a
// connection stay (F10).
func TestKeysOfMany(t *testing.T) {
	b := newSide(t, 2, config(ringOf(1)))
	peer := newSide(t, 3, config(ringOf(1)))
	peer.agrees(b)
	b.connects(peer)
	const others = 30
	for i := range others {
		newSide(t, frame.EndpointID(100+i), config(ringOf(1))).agrees(b)
	}
	if all, passing := b.layer.Pairs(); passing != b.layer.cfg.Peers || all != passing+1 {
		t.Errorf("keys of %d pairs, %d without a connection; want %d of these", all, passing, b.layer.cfg.Peers)
	}
	if n := b.layer.TakeCounts().KeysEvicted; n != others-uint64(b.layer.cfg.Peers) {
		t.Errorf("%d were counted, want %d", n, others-b.layer.cfg.Peers)
	}
	if b.layer.Lacks(b.pair(peer), false) != NoLack {
		t.Error("the peer with a connection has lost its key")
	}
	b.loses(peer)
	if all, passing := b.layer.Pairs(); all != b.layer.cfg.Peers || passing != all {
		t.Errorf("keys of %d pairs, %d without a connection, after the peer is gone", all, passing)
	}
}

// TestAnswersAreBounded checks that no more datagrams are answered after a batch than may be, and that the others are counted.
func TestAnswersAreBounded(t *testing.T) {
	const questions = 10
	b := newSide(t, 2, config(ringOf(1)))
	var in []transport.Datagram
	for i := range questions {
		a := newSide(t, frame.EndpointID(100+i), config(ringOf(1)))
		in = append(in, transport.Datagram{From: a.at, Data: a.seals(b, a.frame(b, 40))[0]})
	}
	b.layer.Open(b.now, in)
	most := b.layer.cfg.Answers
	if n := len(b.layer.TakeAnswers()); n != most || b.layer.Owes() {
		t.Errorf("%d are answered, want %d", n, most)
	}
	if c := b.layer.TakeCounts(); c.Challenges != uint64(most) || c.Unanswered != uint64(questions-most) {
		t.Errorf("counted %+v", c)
	}
}

// TestAskingBecomesRare checks that a question is repeated at most once in 20 ms at first, and once a second in the end; and that several leave before a
// peer is given up, where that is soon.
func TestAskingBecomesRare(t *testing.T) {
	for _, x := range []struct {
		giveUp, until, first time.Duration
		least, most          int
	}{
		{10 * time.Second, 4 * time.Second, askFirst, 5, 10},
		{25 * time.Millisecond, 25 * time.Millisecond, 2500 * time.Microsecond, 4, 8},
	} {
		c := config(ringOf(1))
		c.GiveUp = x.giveUp
		a, b := newSide(t, 1, c), newSide(t, 2, config(ringOf(1)))
		var last, longest time.Duration
		asked := 0
		for at := time.Duration(0); at < x.until; at += 100 * time.Microsecond {
			a.now = ack.Instant(at) + 1
			if len(a.seals(b, a.frame(b, 40))) == 0 {
				continue
			}
			if asked++; asked > 1 && at-last < x.first {
				t.Errorf("give up after %v: it asks %v after it asked", x.giveUp, at-last)
			}
			longest = max(longest, at-last)
			last = at
		}
		if asked < x.least || asked > x.most || longest > askMost {
			t.Errorf("give up after %v: it asked %d times, up to %v apart", x.giveUp, asked, longest)
		}
	}
}

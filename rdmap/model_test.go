package rdmap_test

import (
	"errors"
	"flag"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dgrdma/dgrdma/rdmap"
)

var (
	programs = flag.Int("programs", 300, "how many random programs TestModel runs")
	from     = flag.Uint64("from", 1, "seed of the first one")
)

const (
	modelSTag  = 7 << 8
	modelBytes = 400
)

// model is what one side has asked for, and what must come of it.
type model struct {
	*side
	peer *side
	rng  *rand.Rand

	ids      []uint64 // posted, not completed
	texts    [][]byte // sent, not received at the peer
	counter  uint64   // of the peer's, to which only this side adds
	olds     map[uint64]uint64
	reads    map[uint64]*modelRead
	writes   []modelWrite // to the peer's region
	remote   []byte       // the peer's region
	inbox    [][]byte     // buffers of the peer's receives
	posted   int          // receives of the peer
	received int
	// disjoint is for carriers that place in any order: of Writes that overlap, any may be the
	// last then (RDMAP-060). at is where the next one goes.
	disjoint bool
	at       int
}

// modelWrite is a Write in the order of requests.
type modelWrite struct {
	id   uint64
	at   int
	data []byte
}

type modelRead struct {
	at     int
	buf    []byte
	before int // how many Writes were posted before it
}

// allowed says that a Read may have found the value at a place: what the last Write before it left there
// (RDMAP-067), or any later one (RDMAP-068).
func (m *model) allowed(r *modelRead, i int) bool {
	value := byte(0)
	for k, w := range m.writes {
		if at := r.at + i - w.at; at >= 0 && at < len(w.data) {
			if k >= r.before && w.data[at] == r.buf[i] {
				return true
			}
			if k < r.before {
				value = w.data[at]
			}
		}
	}
	return value == r.buf[i]
}

func (m *model) randomBytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(m.rng.Uint32())
	}
	return b
}

// act posts something.
func (m *model) act() {
	if len(m.ids) >= 16 {
		return
	}
	at := m.rng.IntN(modelBytes)
	n := m.rng.IntN(modelBytes - at + 1)
	w := rdmap.Work{STag: modelSTag, TO: uint64(at), Fence: m.rng.IntN(8) == 0}
	switch m.rng.IntN(6) {
	case 0:
		if m.disjoint {
			at = m.at
			n = min(n/8, modelBytes-at)
			m.at += n
			w.TO = uint64(at)
		}
		w.Op, w.Data = rdmap.OpWrite, m.randomBytes(n)
		m.ids = append(m.ids, m.post(w))
		m.writes = append(m.writes, modelWrite{m.next, at, w.Data})
	case 1:
		buf := make([]byte, n)
		w.Op = rdmap.OpRead
		w.Data, w.More = cut(m.rng, buf)
		m.ids = append(m.ids, m.post(w))
		m.reads[m.next] = &modelRead{at: at, buf: buf, before: len(m.writes)}
	case 2, 3:
		if len(m.texts) >= m.posted-m.received {
			if m.posted-m.received < 16 {
				buf := make([]byte, 300)
				m.posted++
				r := rdmap.Receive{ID: uint64(m.posted)}
				r.Data, r.More = cut(m.rng, buf)
				if err := m.peer.PostReceive(r); err != nil {
					m.t.Fatal(err)
				}
				m.inbox = append(m.inbox, buf)
			}
			return
		}
		w.Op, w.Data, w.Solicited = rdmap.OpSend, m.randomBytes(m.rng.IntN(300)), m.rng.IntN(2) == 0
		m.ids = append(m.ids, m.post(w))
		m.texts = append(m.texts, w.Data)
	case 4:
		w = rdmap.Work{Op: rdmap.OpFetchAdd, STag: modelSTag + 256, TO: 8, Operand: uint64(m.rng.IntN(100))}
		m.ids = append(m.ids, m.post(w))
		m.olds[m.next] = m.counter
		m.counter += w.Operand
	case 5:
		w = rdmap.Work{Op: rdmap.OpFlush, STag: modelSTag, Length: modelBytes, Global: true}
		m.ids = append(m.ids, m.post(w))
	}
}

// check takes what completed.
func (m *model) check(seed uint64) {
	for _, c := range m.sent.list {
		if len(m.ids) == 0 || m.ids[0] != c.ID || c.Err != nil {
			m.t.Fatalf("seed %d: %s completed %+v, outstanding %v", seed, m.name, c, m.ids)
		}
		m.ids = m.ids[1:]
		if old, ok := m.olds[c.ID]; ok && old != c.Old {
			m.t.Fatalf("seed %d: %s: FetchAdd %d found %d, want %d", seed, m.name, c.ID, c.Old, old)
		}
		if r := m.reads[c.ID]; r != nil {
			for i := range r.buf {
				if !m.allowed(r, i) {
					m.t.Fatalf("seed %d: %s: Read %d has %#x at %d, which nobody wrote there then", seed, m.name, c.ID, r.buf[i], r.at+i)
				}
			}
		}
	}
	m.sent.list = nil
	for _, c := range m.peer.received.list {
		if len(m.texts) == 0 || c.Err != nil || int(c.Length) != len(m.texts[0]) {
			m.t.Fatalf("seed %d: %s received %+v, outstanding %d", seed, m.peer.name, c, len(m.texts))
		}
		if got := m.inbox[0]; !slices.Equal(got[:c.Length], m.texts[0]) || slices.ContainsFunc(got[c.Length:], func(b byte) bool { return b != 0 }) {
			m.t.Fatalf("seed %d: %s received %x, want %x", seed, m.peer.name, got, m.texts[0])
		}
		m.inbox = m.inbox[1:]
		m.texts = m.texts[1:]
		m.received++
	}
	m.peer.received.list = nil
}

// TestModel runs random programs at both ends over every carrier, with an oracle for memory,
// deliveries and completions, and ends some of them in the middle (RDMAP-009, 048, 065 to 071, 076).
func TestModel(t *testing.T) {
	for seed := *from; seed < *from+uint64(*programs); seed++ {
		rng := rand.New(rand.NewPCG(seed, 2))
		c := carriers[seed%uint64(len(carriers))]
		ready := rdmap.Ready(rng.IntN(4))
		if c.unordered {
			ready = rdmap.ReadyNone
		}
		p := newPair(t, world{carrier: c, seed: seed, mtu: 1 + rng.IntN(150),
			cfg: rdmap.Config{Extensions: everything, ORD: 1 + rng.IntN(5), IRD: 5, Ready: ready}})
		sides := []*model{{side: p.a, peer: p.b}, {side: p.b, peer: p.a}}
		for _, m := range sides {
			m.rng, m.olds, m.reads, m.disjoint = rng, make(map[uint64]uint64), make(map[uint64]*modelRead), p.unordered
			m.remote = m.peer.expose(modelSTag, modelBytes, rdmap.AccessWrite, rdmap.AccessRead, rdmap.AccessFlushGlobal)
			m.peer.expose(modelSTag+256, 64, rdmap.AccessAtomic)
		}
		rounds := 200 + rng.IntN(600)
		cut := rng.IntN(4) == 0
		for range rounds {
			m := sides[rng.IntN(2)]
			switch rng.IntN(6) {
			case 0:
				m.act()
			case 1:
				p.take(m.side)
			case 2:
				p.say(m.side)
			case 3:
				if m.Job(new(rdmap.Job)) {
					m.JobDone(nil, nil)
				}
			default:
				if _, err := p.move(m.side, m.peer); err != nil {
					t.Fatalf("seed %d: %s: %v", seed, m.peer.name, err)
				}
			}
			sides[0].check(seed)
			sides[1].check(seed)
		}
		if cut {
			endModel(t, seed, sides)
			p.close()
			continue
		}
		for range 1000 {
			p.settle()
			for _, m := range sides {
				if m.Job(new(rdmap.Job)) {
					m.JobDone(nil, nil)
				}
				m.check(seed)
			}
		}
		for _, m := range sides {
			if len(m.ids)+len(m.texts) != 0 {
				t.Fatalf("seed %d: %s: %d requests and %d messages are not done", seed, m.name, len(m.ids), len(m.texts))
			}
			want := make([]byte, modelBytes)
			for _, w := range m.writes {
				copy(want[w.at:], w.data)
			}
			if !slices.Equal(m.remote, want) {
				t.Fatalf("seed %d: the region of %s is not what was written", seed, m.peer.name)
			}
		}
		p.close()
	}
	t.Logf("programs %d to %d", *from, *from+uint64(*programs)-1)
}

// endModel ends both sides in the middle: each request and each receive completes once.
func endModel(t *testing.T, seed uint64, sides []*model) {
	cause := errors.New("cut")
	for _, m := range sides {
		m.End(cause)
		if len(m.sent.list) != len(m.ids) {
			t.Fatalf("seed %d: %s: %d requests flushed of %d", seed, m.name, len(m.sent.list), len(m.ids))
		}
		for i, c := range m.sent.list {
			if c.ID != m.ids[i] || !errors.Is(c.Err, rdmap.ErrFlushed) || !errors.Is(c.Err, cause) {
				t.Fatalf("seed %d: %s: flushed %+v, want %d", seed, m.name, c, m.ids[i])
			}
		}
	}
	for _, m := range sides {
		if n := len(m.peer.received.list); n != m.posted-m.received {
			t.Fatalf("seed %d: %s: %d receives flushed of %d", seed, m.peer.name, n, m.posted-m.received)
		}
	}
}

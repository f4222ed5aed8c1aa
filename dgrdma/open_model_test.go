package dgrdma

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/endpoint/reassembly"
	"github.com/dgrdma/dgrdma/frame"
)

// openModel is what of a peer without sessions should be open: the number of messages that came of
// each transaction, those silent for longest first.
type openModel struct {
	txns      []uint32
	came      map[uint32]uint16
	completed uint64
}

// countOf is how many messages a transaction has in the frames of these tests.
func countOf(txn uint32) uint16 { return uint16(txn % 4) }

func (m *openModel) forget(txn uint32) {
	delete(m.came, txn)
	m.txns = slices.DeleteFunc(m.txns, func(x uint32) bool { return x == txn })
}

func (m *openModel) apply(msgs []frame.Message) {
	for _, x := range msgs {
		n := m.came[x.Txn] + 1
		if m.forget(x.Txn); n < x.Count {
			m.came[x.Txn] = n
			m.txns = append(m.txns, x.Txn)
		} else {
			m.completed++
		}
	}
}

// after returns how many are open after such a frame, if none is evicted, and how many of those
// that were go on in it.
func (m *openModel) after(msgs []frame.Message) (open, known int) {
	then := openModel{came: make(map[uint32]uint16)}
	seen := make(map[uint32]bool)
	for txn, n := range m.came {
		then.came[txn] = n
	}
	for _, x := range msgs {
		if _, was := m.came[x.Txn]; was && !seen[x.Txn] {
			seen[x.Txn] = true
			known++
		}
	}
	then.apply(msgs)
	return len(then.came), known
}

// TestWhatIsOpen checks that what is open, complete and evicted of a peer without sessions, whose
// ids come again at will, agrees with a model of it. Where all messages of a transaction stand
// together in their frame, a frame is refused only if more would be open than may be, and nothing
// is evicted in vain. In no frame more are opened than may be (attack A6, SECURITY.md).
func TestWhatIsOpen(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for round := range 30 {
		prof, limit, together := OpenCPI(false), 1+rnd.IntN(5), round%3 > 0
		if round%2 == 0 {
			prof = OpenCPI2()
		}
		var lost []uint32
		f := newFeed(t, Config{OpenIncoming: limit, OnEvent: func(e Event) {
			if e.Kind == TransactionLost {
				lost = append(lost, e.Txn)
			}
		}})
		c, err := f.e.Connect(Peer{ID: 1, Addr: addrA, Profile: &prof})
		if err != nil {
			t.Fatal(err)
		}
		h := &hostilePeer{f: f}
		m := openModel{came: make(map[uint32]uint16)}
		var evicted []uint32
		refused := uint64(0)
		for range 200 {
			var msgs []frame.Message
			for _, i := range rnd.Perm(12)[:1+rnd.IntN(4)] {
				txn := 1 + uint32(i)
				msgs = append(msgs, times(1+rnd.IntN(6), func(int) frame.Message { return bare(txn, countOf(txn), 1+uint16(rnd.IntN(3))) })...)
			}
			if !together {
				rnd.Shuffle(len(msgs), func(i, k int) { msgs[i], msgs[k] = msgs[k], msgs[i] })
			}
			h.give(msgs...)
			st := c.Stats()
			if st.Open > limit || st.OpenMemory != st.Open*reassembly.Size {
				t.Fatalf("%d are open in %d bytes, %d may be", st.Open, st.OpenMemory, limit)
			}
			if !together {
				continue
			}
			open, known := m.after(msgs)
			if over := open - limit; over > 0 && (!prof.NeverRetransmits || over > len(m.txns)-known) {
				refused++
			} else {
				for _, txn := range slices.Clone(m.txns) {
					if over > 0 && !slices.ContainsFunc(msgs, func(x frame.Message) bool { return x.Txn == txn }) {
						m.forget(txn)
						evicted = append(evicted, txn)
						over--
					}
				}
				m.apply(msgs)
			}
			var are []uint32
			for in := c.rx.open.Oldest(); in != nil; in = in.Younger() {
				are = append(are, in.Message.Txn)
			}
			if !slices.Equal(are, m.txns) || st.Completions != m.completed || st.OpenEvicted != uint64(len(evicted)) || !slices.Equal(lost, evicted) || st.RefusedBy(RefusedTooManyOpen) != refused {
				t.Fatalf("%v of %d are open, %d completed, %d refused, and %d given up, told of %v; want %v, %d, %d, %v",
					are, limit, st.Completions, st.RefusedBy(RefusedTooManyOpen), st.OpenEvicted, lost, m.txns, m.completed, refused, evicted)
			}
		}
	}
}

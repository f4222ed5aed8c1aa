package flood

import (
	"flag"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/settings"
	"github.com/dgrdma/dgrdma/tests/fixture"
)

var (
	peers = flag.Int("peers", 500, "how many peers an endpoint has in TestCrowd, up to 60000")
	open  = flag.Int("open", 200000, "how many transactions they begin there and never end: all of one of them, and once more all together")
)

const (
	firstOfCrowd = 1000
	// mostEach is how many bytes a peer may take, one that just sent something, and one that has been
	// silent for a while. It does not acknowledge what the server tells it of services. Measured are 10.7 KB.
	mostEach = 16 << 10
	// mostOther is likewise of a peer of another kind, of whose frames more is known. Measured are 49.6 KB.
	mostOther = 56 << 10
	// reserve is what each learned peer may hold open beside what all share: see [dgrdma.Config.OpenMemory].
	reserve = 8 << 10
	// eachFrame is how many transactions a frame begins.
	eachFrame = 50
)

// crowd is peers that introduced themselves, all in this process.
type crowd struct {
	*stranger
	all []member
}

// member is one of them.
type member struct {
	*begun
	from int    // its socket
	txn  uint32 // of the latest that it began
}

// newCrowd has so many peers come, of which each writes a word.
func newCrowd(t testing.TB, s *stranger, first, n int) *crowd {
	t.Helper()
	c := &crowd{s, make([]member, n)}
	for i := range c.all {
		m := &c.all[i]
		m.from = i % len(s.sockets)
		m.begun = s.introduceFrom(t, m.from, frame.EndpointID(first+i))
		m.txn = s.txn
		c.word(i)
	}
	return c
}

// send sends a frame of a peer's.
func (c *crowd) send(i int, all ...message) {
	m := &c.all[i]
	c.sockets[m.from].Write(data(m.header(m.next()), all...))
	c.sent.Add(1)
}

// word has a peer write a word in a transaction of its own.
func (c *crowd) word(i int) {
	m := &c.all[i]
	m.txn++
	c.send(i, word(m.txn, 0, frame.NotHandshake))
}

// begin has a peer begin a frame full of transactions of which a message is missing, behind so many others.
func (c *crowd) begin(i, behind int) {
	all := make([]message, eachFrame)
	for j := range all {
		all[j] = word(c.all[i].txn+1+uint32(behind+j), 2, 1)
	}
	c.send(i, all...)
}

// pace does something again and again, at the rate of strangers.
func pace(times int, do func(i int)) {
	const burst = 100
	began := time.Now()
	for i := range times {
		if do(i); i%burst == burst-1 {
			time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(*rate))))
		}
	}
}

// caughtUp waits until the server has done with what was sent before: the first peer writes a word behind it.
func (c *crowd) caughtUp(t testing.TB, srv *server) {
	t.Helper()
	before := srv.state().Peer.Completions
	for until := time.Now().Add(time.Minute); srv.state().Peer.Completions == before; time.Sleep(10 * time.Millisecond) {
		c.word(0)
		if time.Now().After(until) {
			t.Fatal("the server has not caught up within a minute")
		}
	}
}

// TestCrowd: an endpoint with many peers, of which each takes little memory and no frame more time than
// if there was one alone; and of transactions that they begin and never end, far more than are kept, its
// memory is bounded, a counter tells, a peer that began none of them goes on, and so does a transaction that
// is whole in a frame of one that began too many (attacks A5 and A6, SECURITY.md). The numbers of
// docs/limits.md are those of -peers 10000 -open 1000000.
func TestCrowd(t *testing.T) {
	if fixture.Race {
		t.Skip("the race detector's memory is in the way")
	}
	n := *peers
	srv := startServer(t, options{Peers: n + 100})
	peer, err := dgrdma.ParsePeer(srv.state().URL)
	if err != nil {
		t.Fatal(err)
	}
	s := newStranger(t, peer.Addr.AddrPort(), *seed)
	healthy := newFlow(t, peer)

	// One peer alone, and one among all.
	alone := newCrowd(t, s, strangerID, 1)
	cost := func(c *crowd) time.Duration {
		const frames = 4000
		before := srv.state()
		pace(frames, func(i int) { c.word(i % len(c.all)) })
		alone.caughtUp(t, srv)
		after := srv.state()
		return (after.CPU - before.CPU) / time.Duration(max(after.Stats.FramesReceived-before.Stats.FramesReceived, 1))
	}
	one := cost(alone)
	empty := srv.weigh()
	all := newCrowd(t, s, firstOfCrowd, n)
	active := srv.weigh()
	if got := active.Stats.Peers; got < n+1 {
		t.Fatalf("%d peers, want %d", got, n+1)
	}
	time.Sleep(1500 * time.Millisecond) // what was in use is given back after a second
	idle := srv.weigh()
	each := func(st state) int64 { return (st.Memory - empty.Memory) / int64(n) }
	among := cost(all)
	t.Logf("%d peers: %d bytes each after a write, %d when idle; a frame takes %v of one peer, %v of any of %d", n, each(active), each(idle), one, among, n)
	if each(idle) > mostEach || each(active) > mostEach {
		t.Errorf("a peer takes %d bytes after a write and %d when idle, want at most %d", each(active), each(idle), mostEach)
	}
	if most := 5*one + mostCost; among > most {
		t.Errorf("among %d peers a frame takes %v, want at most %v: of one it takes %v", n, among, most, one)
	}

	healthy.begin()
	healthy.speed(settleAfter)
	quiet := healthy.speed(settleAfter)
	before := srv.weigh()
	half := func(name string, opened uint32, begin func(i int), most int64, why dgrdma.Reason) {
		was := srv.state().Stats
		done, began := healthy.moved.Load(), time.Now()
		pace(*open/eachFrame, begin)
		for _, c := range []*crowd{alone, all} { // what is next is behind those that are open
			for i := range c.all {
				c.all[i].txn += opened
			}
		}
		alone.caughtUp(t, srv)
		beside := float64(healthy.moved.Load()-done) / time.Since(began).Seconds()
		st := srv.weigh()
		refused := st.Stats.RefusedBy(why) - was.RefusedBy(why)
		t.Logf("%s: %d transactions begun, %d frames refused, %d transactions open of one peer; %+.1f MiB, at most %.1f; the flow moves %.0f MB/s, before %.0f",
			name, *open, refused, st.Peer.Open, float64(st.Memory-before.Memory)/(1<<20), float64(most)/(1<<20), beside/1e6, quiet/1e6)
		if st.Memory-before.Memory > most {
			t.Errorf("%s: the server grew by %d bytes, want at most %d", name, st.Memory-before.Memory, most)
		}
		if refused == 0 || healthy.moved.Load() == done || st.Other.RefusedReasons() != nil {
			t.Errorf("%s: %d frames are counted as refused, and the flow moved %d bytes: %v, of the flow %v",
				name, refused, healthy.moved.Load()-done, st.Stats.RefusedReasons(), st.Other.RefusedReasons())
		}
	}
	half("one peer", uint32(*open), func(i int) { alone.begin(0, i*eachFrame) }, 2*settings.OpenMemory.Default, dgrdma.RefusedTooManyOpen)
	half("all peers", uint32(*open/n+eachFrame), func(i int) { all.begin(i%n, i/n*eachFrame) },
		2*(settings.OpenMemory.Default+int64(n)*reserve), dgrdma.RefusedOpenMemory)

	// Whole in a frame they need no room.
	was := srv.state().Stats.Completions
	for i := range n {
		all.word(i)
	}
	alone.caughtUp(t, srv)
	if done := srv.state().Stats.Completions - was; done < uint64(n)*9/10 {
		t.Errorf("of %d transactions that are whole in a frame %d are done", n, done)
	}
	healthy.stop.Store(true)
	healthy.all.Wait()
	if err := healthy.err(); err != nil {
		t.Errorf("the healthy peer: %v", err)
	}
}

// TestCrowdOfAnotherKind: peers that have nothing to prove themselves with are as many as there are places,
// the others are counted, and each takes little (SECURITY.md).
func TestCrowdOfAnotherKind(t *testing.T) {
	if fixture.Race {
		t.Skip("the race detector's memory is in the way")
	}
	n := *peers
	srv := startServer(t, options{Peers: n, Foreign: true})
	peer, err := dgrdma.ParsePeer(srv.state().URL)
	if err != nil {
		t.Fatal(err)
	}
	s := newStranger(t, peer.Addr.AddrPort(), *seed)
	before := srv.weigh()
	sent := 0
	for until := time.Now().Add(time.Minute); srv.state().Stats.RefusedBy(dgrdma.RefusedNoRoom) < uint64(n); {
		if time.Now().After(until) {
			t.Fatalf("of %d that came, %d are refused", sent, srv.state().Stats.RefusedBy(dgrdma.RefusedNoRoom))
		}
		pace(100, func(int) {
			sent++
			s.sockets[sent%len(s.sockets)].Write(s.encode(frame.EndpointID(firstOfCrowd+sent), 1, word(1, 2, 1)))
		})
	}
	st := srv.weigh()
	each := (st.Memory - before.Memory) / int64(n)
	t.Logf("%d came, %d are peers, %d refused; %d bytes each", sent, st.Stats.Peers, st.Stats.RefusedBy(dgrdma.RefusedNoRoom), each)
	if st.Stats.Peers != n || each > mostOther {
		t.Errorf("%d are peers, want %d; each takes %d bytes, want at most %d", st.Stats.Peers, n, each, mostOther)
	}
}

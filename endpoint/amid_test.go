package endpoint

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// settleAll posts transactions of that size by so many flows to a service, and reports how
// many failed, and the last error.
func (p *pair) settleAll(flows, each, size int) (failed int, why error) {
	here, there := newShelf("post", 1<<20), newShelf("post", 1<<20)
	serve(p.t, p.a, here)
	base := serve(p.t, p.b, there)
	time.Sleep(time.Second)
	ended := make(chan error, flows*each)
	for range flows {
		f := here.channel(0).Flow()
		for range each {
			x := write(base+MailSize, make([]byte, size), base+MailSize, 1)
			x.Done = func(_ *Transaction, err error) { ended <- err }
			if err := f.Post(x); err != nil {
				p.t.Fatal(err)
			}
		}
	}
	for range flows * each {
		if err := <-ended; err != nil {
			failed, why = failed+1, err
		}
	}
	return failed, why
}

// TestManyFlowsFewOpen: flows that are many keep no more transactions open than a peer may
// have room for, however small their turns are beside the transactions.
func TestManyFlowsFewOpen(t *testing.T) {
	for _, loss := range fewer([]float64{0, 0.02}, []float64{0.02}) {
		synctest.Test(t, func(t *testing.T) {
			link := gigabit
			link.Loss = loss
			p := newPair(t, pairConfig{link: link, b: Config{OpenIncoming: mostAmid + 16}})
			defer p.close()
			if failed, why := p.settleAll(200, 3, 50_000); failed > 0 {
				t.Errorf("loss %v: %d failed: %v", loss, failed, why)
			}
		})
	}
}

// TestFlowsAmidTransactions: as many as the documentation of Flow says, and no more, are
// amid transactions of several frames.
func TestFlowsAmidTransactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left, most := make(map[uint32]int), 0
		p := newPair(t, pairConfig{link: gigabit, a: Config{Trace: &Trace{FrameSent: func(_ PeerName, b []byte, again bool) {
			f, err := frame.Parse(b)
			if err != nil {
				t.Error(err)
			}
			for c := f.Cursor(); c.Next() && !again; {
				if _, hello := c.Msg.Hello(); hello {
					continue
				}
				if _, begun := left[c.Msg.Txn]; !begun {
					left[c.Msg.Txn] = int(c.Msg.Count)
				}
				if left[c.Msg.Txn]--; left[c.Msg.Txn] == 0 {
					delete(left, c.Msg.Txn)
				}
			}
			most = max(most, len(left))
		}}}})
		defer p.close()
		if failed, why := p.settleAll(64, 1, 40_000); failed > 0 {
			t.Errorf("%d failed: %v", failed, why)
		}
		if most != 32 {
			t.Errorf("up to %d, want 32", most)
		}
	})
}

// TestManyFlowsBesideTheGreedy: a learned peer whose flows are many gets on when others
// have taken all memory for what is incomplete (attack A6, SECURITY.md).
func TestManyFlowsBesideTheGreedy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := gigabit
		link.Loss = 0.01
		p := newPair(t, pairConfig{link: link})
		defer p.close()
		p.b.pool.learned = p.b.cfg.OpenMemory
		p.toA.learned.Store(true)
		p.toA.rx.held.shares = true
		if failed, why := p.settleAll(200, 3, 50_000); failed > 0 {
			t.Errorf("%d failed: %v", failed, why)
		}
	})
}

// TestOneOpen: a frame that ends a transaction and begins another one opens none.
func TestOneOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{link: gigabit, b: Config{OpenIncoming: 1}})
		defer p.close()
		if failed, why := p.settleAll(1, 100, 2000); failed > 0 {
			t.Errorf("%d failed: %v", failed, why)
		}
	})
}

// TestUrgentAmidMany: where as many flows as may be are amid transactions of several frames,
// an urgent one begins all the same, and no other of several frames does.
func TestUrgentAmidMany(t *testing.T) {
	r := newHalfRig(t, 1, Native(), Config{MTU: 1490, NewController: func(int) ack.Controller { return &ack.FixedWindow{} }})
	r.come(1 << 20)
	post := func(n int, urgent bool) *Transaction {
		x := write(64, make([]byte, n), 0, 1)
		x.Urgent = urgent
		r.c.tx.post(r.now, &Flow{conn: r.c, name: r.c.plain.name}, x)
		return x
	}
	for range mostAmid {
		post(8*turnBytes, false)
	}
	r.serve()
	if !r.c.tx.posted.crowded() {
		t.Fatalf("%d flows are amid a transaction", len(r.c.tx.posted.amid))
	}
	plain, urgent := post(2*turnBytes, false), post(2*turnBytes, true)
	for !urgent.complete {
		r.acknowledges(0)
	}
	if plain.begun || !r.c.tx.posted.crowded() {
		t.Errorf("one more has begun: %v; %d are amid a transaction", plain.begun, len(r.c.tx.posted.amid))
	}
}

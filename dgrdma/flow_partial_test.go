package dgrdma

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/queue"
	"github.com/dgrdma/dgrdma/endpoint/reassembly"
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

// TestManyFlowsFewOpen checks that flows that are many keep no more transactions open than a peer
// may have room for, however small their turns are in comparison with the transactions.
func TestManyFlowsFewOpen(t *testing.T) {
	for _, loss := range fewer([]float64{0, 0.02}, []float64{0.02}) {
		synctest.Test(t, func(t *testing.T) {
			link := gigabit
			link.Loss = loss
			p := newPair(t, pairConfig{link: link, b: Config{OpenIncoming: queue.MostPartial + 16}})
			defer p.close()
			if failed, why := p.settleAll(200, 3, 50_000); failed > 0 {
				t.Errorf("loss %v: %d failed: %v", loss, failed, why)
			}
		})
	}
}

// TestPartialTransactions checks that as many flows as the documentation of Flow says, and no more,
// have sent a part of a transaction of several frames.
func TestPartialTransactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left, most := make(map[uint32]int), 0
		p := newPair(t, pairConfig{link: gigabit, a: Config{Trace: &Trace{FrameSent: func(_ PeerName, b []byte, again bool) {
			for _, m := range messagesIn(t, b) {
				if again {
					break
				}
				if _, begun := left[m.Txn]; !begun {
					left[m.Txn] = int(m.Count)
				}
				if left[m.Txn]--; left[m.Txn] == 0 {
					delete(left, m.Txn)
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

// TestManyFlowsAmongTheGreedy checks that a learned peer whose flows are many gets on when others
// have taken all memory for what is incomplete (attack A6, SECURITY.md).
func TestManyFlowsAmongTheGreedy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := gigabit
		link.Loss = 0.01
		p := newPair(t, pairConfig{link: link})
		defer p.close()
		var greedy reassembly.Table
		var held reassembly.Holding
		held.Init(&p.b.pool)
		held.Share()
		greedy.Init(p.b.cfg.OpenMemory, &held)
		for id := range uint32(p.b.cfg.OpenMemory / reassembly.Size) {
			greedy.Add(&frame.Message{Txn: id})
		}
		p.toA.learned.Store(true)
		p.toA.rx.held.Share()
		if failed, why := p.settleAll(200, 3, 50_000); failed > 0 {
			t.Errorf("%d failed: %v", failed, why)
		}
	})
}

// TestOneOpen checks that a frame that ends a transaction and begins another one opens none.
func TestOneOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{link: gigabit, b: Config{OpenIncoming: 1}})
		defer p.close()
		if failed, why := p.settleAll(1, 100, 2000); failed > 0 {
			t.Errorf("%d failed: %v", failed, why)
		}
	})
}

// TestUrgentPassesPartial checks that an urgent transaction begins where as many flows as may have
// sent a part of a transaction, and that no other of several frames does.
func TestUrgentPassesPartial(t *testing.T) {
	r := newHalfRig(t, 1, Native(), Config{MTU: 1490, NewController: func(int) ack.Controller { return &ack.FixedWindow{} }})
	r.come(1 << 20)
	post := func(n int, urgent bool) *Transaction {
		x := write(64, make([]byte, n), 0, 1)
		x.Urgent = urgent
		r.c.tx.post(r.now, &Flow{conn: r.c, name: r.c.plain.name}, x)
		return x
	}
	for range queue.MostPartial {
		post(8*queue.Quantum, false)
	}
	r.serve()
	crowded := func() bool { return !r.c.tx.posted.MayLeavePartial(new(queue.Entry[Transaction])) }
	if !crowded() {
		t.Fatalf("fewer than %d flows have sent a part of a transaction", queue.MostPartial)
	}
	plain, urgent := post(2*queue.Quantum, false), post(2*queue.Quantum, true)
	for !urgent.complete {
		r.acknowledges(0)
	}
	if plain.entry.HasBegun() || !crowded() {
		t.Errorf("one more has begun: %v; fewer than %d have sent a part: %v", plain.entry.HasBegun(), queue.MostPartial, !crowded())
	}
}

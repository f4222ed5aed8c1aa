package endpoint

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestCompanyBesideBulk: a small transaction waits for company where a large one fills
// frames anyway neither by itself, if it is urgent, nor so that the large one waits with it.
func TestCompanyBesideBulk(t *testing.T) {
	const company = 50 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{a: Config{Coalesce: company}, link: simnet.Link{Rate: 1e9}})
		defer p.close()
		if err := p.toB.Write(t.Context(), write(0, pattern(1, 4096), 1<<19, 1)); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		took := map[string]time.Duration{}
		done := make(chan string)
		post := func(name string, tx *Transaction) {
			tx.Done = func(_ *Transaction, err error) {
				took[name] = time.Since(begin)
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				done <- name
			}
			if err := p.toB.Post(tx); err != nil {
				t.Fatal(err)
			}
		}
		post("bulk", write(0, pattern(2, 1<<19), 1<<19, 2)) // 4 ms
		time.Sleep(time.Millisecond)
		urgent := write(1<<19+64, pattern(3, 8), 1<<19, 3)
		urgent.Urgent = true
		post("urgent", urgent)
		for range 2 {
			<-done
		}
		if took["bulk"] > company/2 || took["urgent"] > company/2 || took["urgent"] > took["bulk"] {
			t.Errorf("%v", took)
		}
		begin = time.Now()
		alone := write(1<<19+64, pattern(4, 8), 1<<19, 4)
		alone.Urgent = true
		post("alone", alone)
		if <-done; took["alone"] > company/2 {
			t.Errorf("an urgent one by itself took %v", took["alone"])
		}
	})
}

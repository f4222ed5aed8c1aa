package dgrdma

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestCompanyDuringBulk checks that a small transaction waits for no company where a large one
// fills frames anyway, be it urgent or of another flow, and that the large one does not wait with
// it.
func TestCompanyDuringBulk(t *testing.T) {
	const company = 50 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{a: Config{Coalesce: company}, link: simnet.Link{Rate: 1e9}})
		defer p.close()
		here := newShelf("post", 1<<16)
		serve(t, p.a, here)
		base := serve(t, p.b, newShelf("post", 1<<16))
		time.Sleep(time.Second)
		if err := p.toB.Write(t.Context(), write(0, pattern(1, 4096), 1<<19, 1)); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		took := map[string]time.Duration{}
		done := make(chan string)
		post := func(name string, f interface{ Post(*Transaction) error }, tx *Transaction) {
			tx.Done = func(_ *Transaction, err error) {
				took[name] = time.Since(begin)
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				done <- name
			}
			if err := f.Post(tx); err != nil {
				t.Fatal(err)
			}
		}
		post("bulk", p.toB, write(0, pattern(2, 1<<19), 1<<19, 2)) // 4 ms, of which it is in frames before half are over
		time.Sleep(time.Millisecond / 2)
		urgent := write(1<<19+64, pattern(3, 8), 1<<19, 3)
		urgent.Urgent = true
		post("urgent", p.toB, urgent)
		time.Sleep(time.Millisecond / 2)
		post("other flow", here.channel(0).Flow(), write(base+MailSize, pattern(5, 8), base+MailSize, 5))
		for range 3 {
			<-done
		}
		for name, after := range took {
			if after > company/2 || after > took["bulk"] {
				t.Errorf("%s took %v, all %v", name, after, took)
			}
		}
		begin = time.Now()
		alone := write(1<<19+64, pattern(4, 8), 1<<19, 4)
		alone.Urgent = true
		post("alone", p.toB, alone)
		if <-done; took["alone"] > company/2 {
			t.Errorf("an urgent one by itself took %v", took["alone"])
		}
	})
}

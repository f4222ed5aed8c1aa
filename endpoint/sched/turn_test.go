package sched

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// turns has a script write down what the turns to send do, and count them.
func (c *script) turns(t *testing.T) (log *[]string, ended *int) {
	log, ended = new([]string), new(int)
	say := func(format string, args ...any) { *log = append(*log, fmt.Sprintf(format, args...)) }
	c.reply = func() { c.model.Reply(); say("reply") }
	c.flush = func() { say("flush") }
	c.serve = func(i *item) bool {
		whole := c.model.Serve(i, c.Now())
		say("%d", slices.Index(c.items, i))
		return whole
	}
	c.s.parting = func() { *ended++ }
	t.Cleanup(func() { c.s.parting = nil })
	return log, ended
}

func told(log *[]string) string {
	said := strings.Join(*log, " ")
	*log = nil
	return said
}

// TestTurnIsClaimed: who sends gives up the turn after the item at hand when who
// receives claims it, and nothing is forgotten, sent late or served twice (rule 2).
func TestTurnIsClaimed(t *testing.T) {
	m := newScript(t, Config{}, 4)
	log, _ := m.turns(t)
	for _, i := range m.items {
		m.need(i)
		m.s.Queue(&i.entry) // which is there
	}
	m.s.sending.claimed.Store(true)
	m.s.serve()
	if said := told(log); said != "" || !m.s.pending.Load() || len(m.s.wake) > 0 {
		t.Errorf("claimed before: %q; work is left %v, and tokens for who waits for the turn: %d", said, m.s.pending.Load(), len(m.s.wake))
	}
	m.s.sending.claimed.Store(false)
	serve := m.serve
	m.serve = func(i *item) bool {
		m.s.sending.claimed.Store(i == m.items[1])
		return serve(i)
	}
	m.s.serve()
	if said := told(log); said != "0 1 flush" || m.items[0].entry.Queued() || m.items[1].entry.Queued() || !m.items[2].entry.Queued() {
		t.Errorf("claimed with the second item: %q", said)
	}
	m.s.sending.claimed.Store(false)
	m.s.serve()
	if said := told(log); said != "2 3 flush" || m.s.pending.Load() {
		t.Errorf("not claimed any more: %q", said)
	}

	// Who has more to send than fits waits for its next turn behind the others.
	m.items[0].wanted += 3
	m.s.Queue(&m.items[0].entry)
	m.need(m.items[1])
	flush := m.flush
	m.flush = func() { m.s.sending.claimed.Store(true); flush() }
	m.s.serve()
	if said := told(log); said != "0 flush flush" {
		t.Errorf("claimed after a part: %q", said)
	}
	m.flush = flush
	m.s.sending.claimed.Store(false)
	m.s.serve()
	if said := told(log); said != "0 flush 0 1 flush" && said != "1 0 flush 0 flush" {
		t.Errorf("the rest: %q", said)
	}
	m.check()
	m.close()
}

// TestReceiverClaimsTheTurn: what a batch calls for is sent before what others queued.
func TestReceiverClaimsTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in which no time passes while a goroutine runs
		m := newScript(t, Config{}, 3)
		log, _ := m.turns(t)
		serve, over := m.serve, make(chan struct{})
		m.apply = func(int) (bool, error) { m.owes = true; return true, nil }
		m.serve = func(i *item) bool {
			if i == m.items[0] {
				go func() {
					m.s.apply(1)
					close(over)
				}()
				for !m.s.sending.claimed.Load() {
					runtime.Gosched()
				}
			}
			return serve(i)
		}
		for _, i := range m.items {
			m.need(i)
		}
		m.s.serve()
		<-over
		if said := told(log); said != "0 flush reply 1 2 flush" {
			t.Errorf("said %q", said)
		}
		m.check()
		m.close()
	})
}

// TestHeardWhileSendBlocks checks that batches are applied while the transport holds up the goroutine that sends, whichever
// it is (N1). What they call for is sent when it goes on, a reply too, and whether or not another datagram comes.
func TestHeardWhileSendBlocks(t *testing.T) {
	for _, holder := range []struct {
		name   string
		manual bool
		begins func(m *script, i *item)
	}{
		{"sending goroutine", false, func(m *script, i *item) { m.queue(i, false) }},
		{"caller", false, func(m *script, i *item) { go m.queue(i, true) }},
		{"caller, and another goroutine drives", true, func(m *script, i *item) { go m.queue(i, true) }},
	} {
		for _, reply := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/reply=%v", holder.name, reply), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m := newScript(t, Config{}, 3)
					goOn, held, applied, replies := make(chan struct{}), atomic.Bool{}, atomic.Int32{}, atomic.Int32{}
					m.flush = func() {
						if held.CompareAndSwap(false, true) {
							<-goOn
						}
						m.model.Flush()
					}
					m.apply = func(int) (bool, error) {
						m.want(<-m.in, false)
						applied.Add(1)
						return reply, nil
					}
					m.reply = func() { replies.Add(1) }
					stop := make(chan struct{})
					drivers := m.begin(mode{own: !holder.manual}, stop)
					synctest.Wait()
					holder.begins(m, m.items[0])
					synctest.Wait()
					if !held.Load() {
						t.Fatal("nothing is sent")
					}
					const batches = 5
					for n := range int32(batches) {
						m.in <- m.items[1]
						time.Sleep(2 * claimFor) // it may claim the turn for a reply when the datagram comes
						if got := applied.Load(); got != n+1 {
							t.Errorf("of %d batches %d are applied", n+1, got)
						}
					}
					close(goOn)
					time.Sleep(2 * claimFor)
					if want := map[bool]int32{false: 0, true: 1}[reply]; replies.Load() != want {
						t.Errorf("%d turns to reply, want %d", replies.Load(), want)
					}
					if done := m.items[1].doneSoFar(); done != batches {
						t.Errorf("of %d that were called for %d are served", batches, done)
					}
					m.check()
					close(stop)
					drivers.Wait()
					m.close()
				})
			})
		}
	}
}

// TestNothingIsLeftByAClaimThatEnds checks that what the goroutine that sends leaves to one that claims its turn is served also if the
// transport then holds it up until the claim has ended (N1): items not begun, and the rest of one.
func TestNothingIsLeftByAClaimThatEnds(t *testing.T) {
	for _, rest := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			m := newScript(t, Config{}, 3)
			serve, flush, over := func(i *item) bool { return m.model.Serve(i, m.Now()) }, m.model.Flush, make(chan struct{})
			claims := sync.OnceFunc(func() {
				go func() {
					m.s.apply(1)
					close(over)
				}()
				for !m.s.sending.claimed.Load() {
					runtime.Gosched()
				}
			})
			m.apply = func(int) (bool, error) { m.owes = true; return true, nil }
			m.serve = func(i *item) bool {
				if !rest {
					claims()
				}
				return serve(i)
			}
			flushes := 0
			m.flush = func() {
				if flushes++; rest && flushes == 1 {
					claims()
				} else {
					time.Sleep(2 * claimFor)
				}
				flush()
			}
			for _, i := range m.items {
				m.need(i)
				if rest {
					m.need(i)
				}
			}
			m.s.serve()
			<-over
			for len(m.s.wake) > 0 { // as its own goroutine would
				<-m.s.wake
				m.s.serve()
			}
			m.s.follow()
			m.check()
			m.close()
		})
	}
}

// TestTurnsTaken counts the turns to send: who has nothing to send takes none, and a
// caller of Work no more than two, however much there is.
func TestTurnsTaken(t *testing.T) {
	m := newScript(t, Config{}, 8)
	log, ended := m.turns(t)
	turns := func(want int, said, does string, f func()) {
		t.Helper()
		*ended = 0
		f()
		if now := told(log); *ended != want || now != said {
			t.Errorf("%s: %d turns, and %q; want %d, and %q", does, *ended, now, want, said)
		}
	}
	tokens := func(want int) {
		t.Helper()
		if n := len(m.s.wake); n != want {
			t.Errorf("%d tokens for who sends, want %d", n, want)
		}
		select {
		case <-m.s.wake:
		default:
		}
	}
	turns(0, "", "Work with nothing to do", func() { m.s.Work(true) })
	tokens(0)
	turns(0, "", "serve with nothing to do", m.s.serve)
	tokens(0)
	turns(1, "0 flush", "Work", func() { m.queue(m.items[0], true) })
	tokens(0)
	turns(0, "", "Work of others", func() { m.queue(m.items[0], false) })
	tokens(1)
	turns(1, "0 flush", "serve", m.s.serve)
	tokens(0)
	m.s.sending.mu.Lock()
	turns(0, "", "Work while another has the turn", func() { m.queue(m.items[0], true) })
	m.s.sending.mu.Unlock()
	tokens(0)
	turns(1, "0 flush", "its Work", func() { m.s.Work(true) })

	late := 0
	parting := m.s.parting
	m.s.parting = func() {
		parting()
		if late++; late < 4 {
			m.need(m.items[late])
		}
	}
	turns(2, "0 flush 1 flush", "Work that others add to", func() { m.queue(m.items[0], true) })
	tokens(1)
	turns(1, "2 flush", "serve that others add to", m.s.serve)
	tokens(1)
	m.s.parting = parting
	turns(1, "3 flush", "serve at last", m.s.serve)

	m.apply = func(int) (bool, error) { return false, nil }
	turns(0, "", "a batch", func() { m.s.apply(1) })
	unplugged := errors.New("unplugged")
	m.apply = func(int) (bool, error) { return false, unplugged }
	turns(0, "", "a batch that is the last", func() {
		if err := m.s.apply(1); err != unplugged {
			t.Error(err)
		}
	})
	m.apply = func(int) (bool, error) { m.owes = true; return true, unplugged }
	turns(1, "reply", "a batch to be answered", func() {
		if err := m.s.apply(1); err != unplugged {
			t.Error(err)
		}
	})
	tokens(0)
	m.apply = func(int) (bool, error) {
		m.queue(m.items[5], true)
		m.queue(m.items[6], false)
		if said := told(log); said != "" || !m.items[5].entry.Queued() || !m.s.Batching() {
			t.Errorf("amid a batch: %q", said)
		}
		return false, nil
	}
	turns(1, "5 6 flush", "a batch that brings work", func() { m.s.apply(1) })
	tokens(0)
	m.s.Break(unplugged)
	tokens(1)
	turns(0, "", "serve of a broken scheduler", func() {
		m.need(m.items[0])
		m.s.serve()
	})
	if m.s.pending.Load() {
		t.Error("there is work of a broken scheduler, that nobody will do")
	}
	tokens(0)
	m.items[0].wanted--
	m.check()
	m.close()
}

// TestNobodyIsWokenForNothing: the scheduler's own goroutine sleeps while there is
// nothing for it to do, be it for a day.
func TestNobodyIsWokenForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newScript(t, Config{}, 1)
		var woken atomic.Int32
		m.deliver = func() { woken.Add(1) }
		m.apply = func(int) (bool, error) { <-m.in; m.owes = true; return true, nil }
		m.s.Start(false)
		time.Sleep(24 * time.Hour)
		m.in <- m.items[0]
		synctest.Wait() // or it may find the turn taken
		m.queue(m.items[0], true)
		time.Sleep(24 * time.Hour)
		if n := woken.Load(); n != 0 {
			t.Errorf("woken %d times", n)
		}
		m.close()
	})
}

package run

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestSendLockIsClaimed checks that the holder of the send lock releases it after the item
// at hand when it is claimed, and nothing is forgotten, sent late or served twice (rule 2).
func TestSendLockIsClaimed(t *testing.T) {
	m := newScript(t, Config{}, 4)
	log, _ := m.logSends(t)
	for _, i := range m.items {
		m.need(i)
		m.s.Queue(&i.entry) // which is there
	}
	m.s.sendLock.claimed.Store(true)
	m.s.serve()
	if said := takeLog(log); said != "" || !m.s.pending.Load() || len(m.s.wake) > 0 {
		t.Errorf("claimed before: %q; work is left %v, and tokens for the goroutine that waits for the lock: %d", said, m.s.pending.Load(), len(m.s.wake))
	}
	m.s.sendLock.claimed.Store(false)
	serve := m.serve
	m.serve = func(i *item) bool {
		m.s.sendLock.claimed.Store(i == m.items[1])
		return serve(i)
	}
	m.s.serve()
	if said := takeLog(log); said != "0 1 flush" || m.items[0].entry.IsQueued() || m.items[1].entry.IsQueued() || !m.items[2].entry.IsQueued() {
		t.Errorf("claimed with the second item: %q", said)
	}
	m.s.sendLock.claimed.Store(false)
	m.s.serve()
	if said := takeLog(log); said != "2 3 flush" || m.s.pending.Load() {
		t.Errorf("not claimed any more: %q", said)
	}

	// An item with more to send than fits is served again after the others.
	m.items[0].wanted += 3
	m.s.Queue(&m.items[0].entry)
	m.need(m.items[1])
	flush := m.flush
	m.flush = func() { m.s.sendLock.claimed.Store(true); flush() }
	m.s.serve()
	if said := takeLog(log); said != "0 flush flush" {
		t.Errorf("claimed after a part: %q", said)
	}
	m.flush = flush
	m.s.sendLock.claimed.Store(false)
	m.s.serve()
	if said := takeLog(log); said != "0 flush 0 1 flush" && said != "1 0 flush 0 flush" {
		t.Errorf("the rest: %q", said)
	}
	m.check()
	m.close()
}

// TestReceiverClaimsSendLock checks that what a batch calls for is sent before what other
// goroutines queued.
func TestReceiverClaimsSendLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in which no time passes while a goroutine runs
		m := newScript(t, Config{}, 3)
		log, _ := m.logSends(t)
		serve, over := m.serve, make(chan struct{})
		m.apply = func(int) (bool, error) { m.replyPending = true; return true, nil }
		m.serve = func(i *item) bool {
			if i == m.items[0] {
				go func() {
					m.s.apply(1)
					close(over)
				}()
				for !m.s.sendLock.claimed.Load() {
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
		if said := takeLog(log); said != "0 flush reply 1 2 flush" {
			t.Errorf("said %q", said)
		}
		m.check()
		m.close()
	})
}

// TestHeardWhileSendBlocks checks that batches are applied while the transport blocks the
// holder of the send lock, whichever goroutine that is (N1). What they call for is sent when
// it goes on, a reply too, and whether or not another datagram comes.
func TestHeardWhileSendBlocks(t *testing.T) {
	for _, holder := range []struct {
		name   string
		manual bool
		begins func(m *script, i *item)
	}{
		{"sending goroutine", false, func(m *script, i *item) { m.queue(i, false) }},
		{"caller", false, func(m *script, i *item) { go m.queue(i, true) }},
		{"caller, and another goroutine polls", true, func(m *script, i *item) { go m.queue(i, true) }},
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
					pollers := m.begin(mode{own: !holder.manual}, stop)
					synctest.Wait()
					holder.begins(m, m.items[0])
					synctest.Wait()
					if !held.Load() {
						t.Fatal("nothing is sent")
					}
					const batches = 5
					for n := range int32(batches) {
						m.in <- m.items[1]
						time.Sleep(2 * claimLimit) // it may claim the lock for a reply when the datagram comes
						if got := applied.Load(); got != n+1 {
							t.Errorf("of %d batches %d are applied", n+1, got)
						}
					}
					close(goOn)
					time.Sleep(2 * claimLimit)
					if want := map[bool]int32{false: 0, true: 1}[reply]; replies.Load() != want {
						t.Errorf("%d replies, want %d", replies.Load(), want)
					}
					if done := m.items[1].doneSoFar(); done != batches {
						t.Errorf("of %d that were called for %d are served", batches, done)
					}
					m.check()
					close(stop)
					pollers.Wait()
					m.close()
				})
			})
		}
	}
}

// TestClaimThatEndsLeavesNothing checks that what the holder of the send lock leaves to the
// goroutine that claims it is served also if the transport then blocks the holder until the
// claim has ended (N1): items not begun, and the rest of one.
func TestClaimThatEndsLeavesNothing(t *testing.T) {
	for _, rest := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			m := newScript(t, Config{}, 3)
			serve, flush, over := func(i *item) bool { return m.model.Serve(i, m.Now()) }, m.model.Flush, make(chan struct{})
			claims := sync.OnceFunc(func() {
				go func() {
					m.s.apply(1)
					close(over)
				}()
				for !m.s.sendLock.claimed.Load() {
					runtime.Gosched()
				}
			})
			m.apply = func(int) (bool, error) { m.replyPending = true; return true, nil }
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
					time.Sleep(2 * claimLimit)
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
			m.s.sendAfterBatch()
			m.check()
			m.close()
		})
	}
}

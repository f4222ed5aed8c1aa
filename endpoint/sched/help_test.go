package sched

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/internal/patience"
)

// lone has a test be who helps and who lends: a scheduler with no goroutine that would.
func lone(t *testing.T, cfg Config, does func(m *script, u *until)) {
	synctest.Test(t, func(t *testing.T) {
		m := newScript(t, cfg, 1)
		m.s.own = true
		m.apply = func(int) (bool, error) { <-m.in; return false, nil }
		m.s.waiters.Store(1)
		time.Sleep(time.Second)
		does(m, &until{ready: func() bool { return false }})
		m.close()
	})
}

// TestHelp: when it is welcome, how long it lasts, whether it counts as luck, and
// whether the turn is to be taken back at once.
func TestHelp(t *testing.T) {
	const beat = 100 * time.Microsecond
	comes := func(m *script) {
		m.receive = func(time.Duration) (int, error) {
			time.Sleep(beat)
			m.in <- m.items[0]
			return 1, nil
		}
	}
	half := patience.MostLuck / 2
	for _, c := range []struct {
		name   string
		idle   bool // help is not to be lent
		begins func(m *script, u *until)
		loans  uint64
		took   time.Duration
		luck   int
		back   int  // tokens for who lends
		asked  bool // for the turn
		left   bool // with the turn where the next helper finds it
	}{
		{name: "not lent", idle: true, luck: half},
		{name: "broken", begins: func(m *script, _ *until) { m.s.Break(errors.New("cut")) }, luck: half},
		{name: "two wait", begins: func(m *script, _ *until) { m.s.waiters.Store(2) }, luck: half, back: 1},
		{name: "pause", begins: func(m *script, _ *until) { m.s.worth.Pauses.Store(1) }, luck: half, back: 1},
		{name: "turn is taken", begins: func(m *script, _ *until) {
			m.s.receiving.take()
			time.AfterFunc(time.Millisecond, m.s.receiving.give)
		}, luck: half, asked: true},
		{name: "there already", begins: func(m *script, u *until) { u.ready = func() bool { return true } }, loans: 1, luck: half, left: true},
		{name: "third batch", begins: func(m *script, u *until) {
			comes(m)
			looks := 0
			u.ready = func() bool { looks++; return looks > 3 }
		}, loans: 1, took: 3 * beat, luck: half, left: true},
		{name: "in vain", loans: 1, took: atATime, luck: half - 2, back: 1},
		{name: "for others", begins: func(m *script, _ *until) { comes(m) }, loans: 1, took: lendMost, luck: half, back: 1},
		{name: "another waits", begins: func(m *script, _ *until) {
			comes(m)
			time.AfterFunc(2*beat+beat/2, func() { m.s.waiters.Store(2) })
		}, loans: 1, took: 3 * beat, luck: half, back: 1},
		{name: "error", begins: func(m *script, _ *until) {
			comes(m)
			m.apply = func(int) (bool, error) { <-m.in; return false, errors.New("unplugged") }
		}, loans: 1, took: beat, luck: half - 2, back: 1},
	} {
		lone(t, Config{Lend: !c.idle}, func(m *script, u *until) {
			if c.begins != nil {
				c.begins(m, u)
			}
			began := time.Now()
			m.s.help(u)
			took := time.Since(began)
			if m.s.loans.Load() != c.loans || took != c.took || m.s.worth.Luck != c.luck {
				t.Errorf("%s: %d loans, %v, luck %d; want %d, %v, %d", c.name, m.s.loans.Load(), took, m.s.worth.Luck, c.loans, c.took, c.luck)
			}
			if len(m.s.returned) != c.back || m.s.asked.Load() != c.asked || (m.s.left == m.Now()) != c.left || !c.left && m.s.left != 0 {
				t.Errorf("%s: %d tokens, want %d; the turn is asked for: %v; the helper left at %v, and it is %v",
					c.name, len(m.s.returned), c.back, m.s.asked.Load(), m.s.left, m.Now())
			}
			if m.s.worth.Pauses.Load() != 0 {
				t.Errorf("%s: %d pauses", c.name, m.s.worth.Pauses.Load())
			}
		})
	}
}

// TestHelpersAbsence: one is judged once, by the next help, if the turn lay idle for it.
func TestHelpersAbsence(t *testing.T) {
	lone(t, Config{Lend: true}, func(m *script, u *until) {
		luck := patience.MostLuck / 2
		soon := &until{ready: func() bool { return true }}
		for n, c := range []struct {
			u      *until
			judged int
		}{{soon, 0}, {soon, 1}, {u, 1 - 2}, {u, -2}, {soon, 0}, {soon, 1}} {
			m.s.help(c.u)
			if luck += c.judged; m.s.worth.Luck != luck {
				t.Errorf("help %d: luck is %d, want %d", n, m.s.worth.Luck, luck)
			}
			time.Sleep(longAbsence / 2)
		}
	})
}

// TestPauses are counted one by one.
func TestPauses(t *testing.T) {
	lone(t, Config{Lend: true}, func(m *script, u *until) {
		m.s.worth.Pauses.Store(3)
		for left := int32(2); left >= 0; left-- {
			if m.s.help(u); m.s.worth.Pauses.Load() != left || m.s.loans.Load() != 0 {
				t.Errorf("%d are left, want %d; %d loans", m.s.worth.Pauses.Load(), left, m.s.loans.Load())
			}
		}
	})
}

// TestLend: when who lends has the turn back, and whether that was bad luck.
func TestLend(t *testing.T) {
	helps := func(m *script) {
		m.s.receiving.take()
		m.s.left = m.s.engine.Now()
		m.s.receiving.give()
	}
	const half = idleTurn / 2
	for _, c := range []struct {
		name  string
		after time.Duration // of half of idleTurn
		does  func(m *script)
		took  time.Duration
		luck  int
	}{
		{"nobody helps", 0, func(m *script) {}, idleTurn, -2},
		{"given back", half, func(m *script) { helps(m); patience.Leave(m.s.returned) }, half, 0},
		{"given back unused", half, func(m *script) { patience.Leave(m.s.returned) }, half, 0},
		{"helped once", half, func(m *script) {
			<-m.s.offered
			helps(m) // and who asked while lend looked is to hear of it, too
		}, half + idleTurn, -2},
		{"helps", half, func(m *script) {
			m.s.receiving.take()
			time.AfterFunc(3*idleTurn, m.s.receiving.give)
		}, 4 * idleTurn, -2},
	} {
		lone(t, Config{Lend: true}, func(m *script, _ *until) {
			m.s.receiving.take()
			m.s.asked.Store(true)
			m.s.left = 5
			for range 2 { // of earlier loans
				patience.Leave(m.s.returned)
				patience.Leave(m.s.offered)
			}
			idle := time.NewTimer(time.Hour)
			time.AfterFunc(c.after, func() { c.does(m) })
			began := time.Now()
			m.s.lend(idle)
			if took := time.Since(began); took != c.took || m.s.worth.Luck != patience.MostLuck/2+c.luck {
				t.Errorf("%s: it has the turn after %v, want %v; luck is %+d, want %+d", c.name, took, c.took, m.s.worth.Luck-patience.MostLuck/2, c.luck)
			}
			if m.s.asked.Load() || m.s.left != 0 || m.s.receiving.tryTake() || len(m.s.offered) != 1 {
				t.Errorf("%s: asked for %v, left at %v, offered %d times; or the turn is not taken", c.name, m.s.asked.Load(), m.s.left, len(m.s.offered))
			}
			m.s.receiving.give()
		})
	}
}

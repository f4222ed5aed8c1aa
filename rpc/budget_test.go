package rpc

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// budgetUser takes from a budget and gives back, and notes what was granted.
type budgetUser struct {
	*testing.T
	b      budget
	served []int
	shares []*share
}

func (u *budgetUser) take(host string, n int) {
	i := len(u.shares)
	s := &share{host: host, n: n, granted: func() { u.served = append(u.served, i) }}
	u.shares = append(u.shares, s)
	if u.b.take(s) {
		u.served = append(u.served, i)
	}
}

func (u *budgetUser) put(shares ...int) {
	for _, i := range shares {
		u.b.put(u.shares[i])
	}
}

func (u *budgetUser) expect(left int, want ...int) {
	u.Helper()
	if !slices.Equal(u.served, want) || u.b.left != left {
		u.Errorf("%v are served, %d octets are left: want %v and %d", u.served, u.b.left, want, left)
	}
}

// TestBudget checks that those of a host that find too little wait, are served in the order in which they came, and that what was
// taken never exceeds what there is. A caller that does not wait any more gives back nothing, and is not in the way of others.
func TestBudget(t *testing.T) {
	u := &budgetUser{T: t, b: budget{left: 200}}
	u.take("a", 60)
	u.take("a", 50) // waits: 110 of 200 are more than half
	u.take("a", 10) // and so does this one, which would fit
	u.take("a", 70)
	u.expect(140, 0)
	u.put(3) // gives up
	u.expect(140, 0)
	u.put(0)
	u.expect(140, 0, 1, 2)
	u.take("a", 90) // waits
	u.take("a", 40)
	u.expect(140, 0, 1, 2)
	u.put(4) // gives up, and no longer keeps the other one from what is there
	u.expect(100, 0, 1, 2, 5)
	u.put(1, 2, 5)
	u.take("b", 0) // which is nothing to wait for
	u.put(6)
	u.take("a", 200) // all, as nothing else is held
	u.expect(0, 0, 1, 2, 5, 6, 7)
	u.put(7)
	if u.b.left != 200 || len(u.b.hosts) != 0 || len(u.b.turn) != 0 {
		t.Errorf("%+v is left", &u.b)
	}
}

// TestBudgetIsShared checks that a host which takes what it can, and keeps it, leaves something for each further one; and that one that holds nothing and asks for
// much is served before the others get more.
func TestBudgetIsShared(t *testing.T) {
	u := &budgetUser{T: t, b: budget{left: 64}}
	for i := range 7 {
		for range 64 {
			u.take(fmt.Sprint(i), 1)
		}
		if held := u.b.hosts[fmt.Sprint(i)].held; held == 0 || held > 32 {
			t.Errorf("host %d of those that keep what they have has %d", i, held)
		}
	}
	u = &budgetUser{T: t, b: budget{left: 100}}
	u.take("a", 40)
	u.take("b", 20)
	u.take("c", 60) // waits: 40 are left
	u.take("a", 1)
	u.take("d", 1)
	u.expect(40, 0, 1)
	u.put(0)
	u.expect(18, 0, 1, 2, 3, 4)
	u.put(1, 2, 3, 4)
	if u.b.left != 100 || len(u.b.hosts) != 0 || len(u.b.turn) != 0 {
		t.Errorf("%+v is left", &u.b)
	}
}

// TestBudgetByChance checks with shares by chance of several hosts that each is granted once, and some time, that never more is given than there is, and that all comes back.
func TestBudgetByChance(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		const whole = 100
		b := budget{left: whole}
		var held, waiting []*share
		granted := make(map[*share]bool)
		grant := func(s *share) {
			if granted[s] || b.left < 0 {
				t.Fatalf("%d octets are left", b.left)
			}
			granted[s] = true
			waiting = slices.DeleteFunc(waiting, func(w *share) bool { return w == s })
			held = append(held, s)
		}
		back := func(from *[]*share) {
			i := r.IntN(len(*from))
			s := (*from)[i]
			*from = slices.Delete(*from, i, i+1)
			b.put(s)
		}
		for range 100 {
			switch s := (&share{host: fmt.Sprint(r.IntN(5)), n: r.IntN(whole + 1)}); {
			case r.IntN(3) > 0:
				s.granted = func() { grant(s) }
				waiting = append(waiting, s)
				if b.take(s) {
					grant(s)
				}
			case len(waiting) > 0 && r.IntN(4) == 0:
				back(&waiting)
			case len(held) > 0:
				back(&held)
			}
		}
		for len(held) > 0 {
			back(&held)
		}
		if len(waiting) > 0 || b.left != whole || len(b.hosts) > 0 || len(b.turn) > 0 {
			t.Fatalf("%d wait, %+v is left", len(waiting), &b)
		}
	}
}

// TestFitRoom checks that a call whose reply is there has of the memory for replies what that takes, be it less or more than the share it was granted, and that one
// that needs no room gets none.
func TestFitRoom(t *testing.T) {
	const whole, granted = 8 << 20, 1 << 20
	for _, lengths := range [][]int{{}, {1}, {4096}, {granted - 1}, {granted}, {granted + 1}, {3 << 20}, {100, 200}} {
		for _, needs := range []bool{false, true} {
			s := new(Server)
			s.replies.left = whole
			c := newServerCall(s)
			want := 0
			for _, n := range lengths {
				c.enc.Bulk(make([]byte, n))
				want += n
			}
			if !needs {
				want = 0
			} else if c.room.host, c.room.n = "10.0.0.1", granted; !s.replies.take(&c.room) {
				t.Fatal("there is no room")
			}
			if c.fitRoom(); c.room.n != want || s.replies.left != whole-want {
				t.Errorf("items of %v octets, needs room %v: it has %d, %d are left", lengths, needs, c.room.n, s.replies.left)
			}
			s.replies.put(&c.room)
			if s.replies.left != whole {
				t.Errorf("items of %v octets, needs room %v: %d are left at the end", lengths, needs, s.replies.left)
			}
		}
	}
}

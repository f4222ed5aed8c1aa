package session

import (
	"flag"
	"fmt"
	"hash/maphash"
	"testing"
	"time"
)

var (
	mostStates = flag.Int("states", 200_000, "how many states the explorer visits in all")
	eachStates = flag.Int("each", 0, "how many states it visits of each budget; 0: -states in all, shared among them")
)

// programs says what the programs of both endpoints do.
type programs struct {
	name            string
	connects, takes [2]bool
	posts           [2]bool
}

var (
	client = programs{"one connects", [2]bool{true, false}, [2]bool{false, true}, [2]bool{true, true}}
	both   = programs{"both connect", [2]bool{true, true}, [2]bool{}, [2]bool{true, true}}
	mixed  = programs{"both connect, and take unknown sources", [2]bool{true, true}, [2]bool{true, true}, [2]bool{true, true}}
)

// begin returns the first world, in which that may happen.
func (p *programs) begin(budget world) world {
	for x := range budget.Sides {
		budget.Sides[x].Takes = p.takes[x]
	}
	return budget
}

// step is what happened, and the world after it.
type step struct {
	name string
	wire uint32 // the message that was delivered; 0: none
	w    world
	bad  string
}

func (t *step) String() string {
	if t.wire != 0 {
		m := decode(t.wire)
		return fmt.Sprintf("%c gets %v", 'B'-m.from, m)
	}
	return t.name
}

// explorer visits worlds breadth first.
type explorer struct {
	p *programs
	v *variant
}

// steps appends all that may happen next.
func (e *explorer) steps(w *world, dst []step) []step {
	try := func(name string, wire uint32, f func(*world) string) {
		dst = append(dst, step{name: name, wire: wire, w: *w})
		last := &dst[len(dst)-1]
		last.bad = f(&last.w)
		last.w.prune(e.v)
		if last.w == *w && last.bad == "" {
			dst = dst[:len(dst)-1]
		}
	}
	for i := range w.N {
		code := w.Wire[i]
		try("", code, func(n *world) string { return n.receive(decode(code), e.v) })
	}
	for x := range w.Sides {
		s := &w.Sides[x]
		side := string(rune('A' + x))
		ep := func(n *world) (*Machine, At, tokens) {
			return &n.Sides[x].Machine, n.at(x), tokens{&n.Sides[x], e.v}
		}
		if e.p.connects[x] && s.Machine.State == None {
			try(side+" connects", 0, func(n *world) string {
				m, at, t := ep(n)
				return n.does(x, m.Connect(at, t), e.v)
			})
		}
		if w.Find > 0 && e.p.connects[x] {
			// A WELCOME that comes of it begins the session of a connection that is made then, as if that had asked.
			try(side+" asks whoever is at the address", 0, func(n *world) string {
				n.Find--
				_, _, t := ep(n)
				n.put(message{kind: Hello, from: uint8(x), a: t.Told()})
				return ""
			})
		}
		if s.Machine.State > Down && e.p.posts[x] && w.Post > 0 {
			try(side+" posts", 0, func(n *world) string {
				n.Post--
				n.Txns[txns-2-n.Post] = txn{Owner: uint8(x), State: queued}
				return ""
			})
		}
		if s.open() && s.Sent+2 < ids {
			for i := range w.Txns {
				if t := &w.Txns[i]; t.Owner == uint8(x) && t.Part < 2 && (t.State == queued || t.State == sent) {
					try(side+" sends the next part", 0, func(n *world) string { n.push(x, i); return "" })
				}
			}
		}
		if w.Crash > 0 && int(s.Life)+1 < lives {
			try(side+" crashes and starts again", 0, func(n *world) string { n.Crash--; n.crash(x); return "" })
		}
		if w.Reset > 0 && s.Machine.State != None && e.p.connects[x] {
			try(side+" resets the connection", 0, func(n *world) string {
				n.Reset--
				m, at, t := ep(n)
				return n.does(x, m.Restart(at, t), e.v)
			})
		}
		if w.Close > 0 && s.Machine.State != None {
			try(side+" closes the connection", 0, func(n *world) string {
				n.Close--
				m, _, t := ep(n)
				return n.does(x, m.Close(t), e.v)
			})
		}
		if w.GiveUp > 0 && s.Machine.State > Down {
			try(side+" gives the peer up", 0, func(n *world) string {
				n.GiveUp--
				m, _, t := ep(n)
				return n.does(x, m.GiveUp(t), e.v)
			})
		}
		if w.Bump > 0 && s.Generation+2 < generations {
			try("at "+side+" a session of another peer of the bucket ends", 0, func(n *world) string {
				n.Bump--
				n.Sides[x].Generation++
				return ""
			})
		}
		if w.Toggle > 0 && e.p.takes[x] {
			try(side+" takes unknown sources, or no longer", 0, func(n *world) string {
				n.Toggle--
				n.Sides[x].Takes = !n.Sides[x].Takes
				return ""
			})
		}
		if w.Expire > 0 {
			try("a slot ends at "+side, 0, func(n *world) string { n.Expire--; n.Sides[x].Slot++; return "" })
		}
	}
	return dst
}

func (w *world) crash(x int) {
	for i := range w.Txns {
		if t := &w.Txns[i]; t.Owner == uint8(x) && (t.State == queued || t.State == sent) {
			t.State = crashed
		}
	}
	w.Sides[x] = side{Life: w.Sides[x].Life + 1, Takes: w.Sides[x].Takes}
}

// heals runs a network that behaves from here on: what was sent before is lost, what is sent is delivered once and in
// order, timers fire, and programs that want a connection connect. No peer is given up by time. It returns after how
// many rounds of timers both had one session and a new write of each poster was done; 0: never.
func (e *explorer) heals(w world) (rounds, failures int) {
	defer func() {
		if recover() != nil { // generations are used up: one session after the other ends
			rounds = 0
		}
	}()
	clear(w.Wire[:])
	w.N, w.Full = 0, false
	for x := range w.Sides {
		w.Sides[x].Takes = e.p.takes[x]
	}
	for x := range w.Sides {
		if !e.p.posts[x] {
			continue
		}
		t := &w.Txns[txns-1]
		for tries := 0; ; {
			if rounds++; rounds > 24 {
				return 0, failures
			}
			e.round(&w)
			if t.Owner == uint8(x) && t.State == done {
				break
			}
			if t.Owner == uint8(x) && (t.State == queued || t.State == sent) || w.Sides[x].Machine.State <= Down {
				continue
			}
			if t.State == failed {
				failures++
				if tries++; tries > 3 {
					return 0, failures
				}
			}
			*t = txn{Owner: uint8(x), State: queued}
			w.Completed[txns-1], w.Applied[txns-1] = [lives]uint8{}, [lives][2]uint8{}
		}
		*t = txn{}
	}
	if !w.pairs(0) {
		return 0, failures
	}
	return rounds, failures
}

// round lets all timers fire once, and delivers what comes of it.
func (e *explorer) round(w *world) {
	for x := range w.Sides {
		s := &w.Sides[x]
		m := &s.Machine
		if e.p.connects[x] && m.State <= Down {
			w.does(x, m.Connect(w.at(x), tokens{s, e.v}), e.v)
		}
		if s.open() && s.Sent+3 >= ids { // the ids of the model are used up: as if it had more
			s.Frames, s.Acked, s.Sent = [ids]uint8{}, 0, 0
			if m.State == Up {
				m.UpID = uint32(m.Local) + 1
			}
			w.Sides[1-x].Got = 0
		}
		s.Rung = 0
		w.does(x, m.Retry(w.at(x), true), e.v)
		if s.open() {
			for i := range w.Txns {
				for t := &w.Txns[i]; t.Owner == uint8(x) && t.Part < 2 && (t.State == queued || t.State == sent) && s.Sent+2 < ids; {
					w.push(x, i)
				}
			}
			for f := uint8(1); f <= s.Sent; f++ {
				if s.Acked&(1<<f) == 0 {
					w.put(message{kind: dataKind, from: uint8(x), a: m.Local, b: m.Remote, id: f, load: s.Frames[f]})
				}
			}
		}
	}
	for n := 0; w.N > 0 && n < 200; n++ {
		// By kind, which is mostly the order in which they are sent.
		code := w.Wire[0]
		copy(w.Wire[:], w.Wire[1:w.N])
		w.N--
		w.Wire[w.N] = 0
		w.receive(decode(code), e.v)
	}
}

// result is what an exploration found.
type result struct {
	states, depth, rounds, failures int
	whole                           bool // all states of the budget were visited
	bad                             string
	trace                           []string
}

// explore visits at most that many states.
func (e *explorer) explore(first world, most int, healing bool) (r result) {
	seed := maphash.MakeSeed()
	seen := map[uint64]struct{}{maphash.Comparable(seed, first): {}}
	type origin struct {
		parent int32
		choice uint16
	}
	origins := []origin{{-1, 0}}
	level := []world{first}
	base := 0
	var next []step
	r.whole = true
	fail := func(at int, last, bad string) result {
		var path []uint16
		for i := int32(at); origins[i].parent >= 0; i = origins[i].parent {
			path = append(path, origins[i].choice)
		}
		w := first
		for i := len(path) - 1; i >= 0; i-- {
			st := &e.steps(&w, nil)[path[i]]
			w = st.w
			r.trace = append(r.trace, fmt.Sprintf("%-50v A %v | B %v", st, &w.Sides[0], &w.Sides[1]))
		}
		r.trace = append(r.trace, last)
		r.bad, r.states = bad, len(seen)
		return r
	}
	for len(level) > 0 {
		var following []world
		for k := range level {
			if healing {
				rounds, failures := e.heals(level[k])
				if rounds == 0 {
					return fail(base+k, "", "healing: no session, or no write done, though the network behaves")
				}
				r.rounds, r.failures = max(r.rounds, rounds), max(r.failures, failures)
			}
			next = e.steps(&level[k], next[:0])
			for i := range next {
				st := &next[i]
				if st.bad != "" {
					return fail(base+k, st.String(), st.bad)
				}
				if st.w.Full {
					r.whole = false
					continue
				}
				h := maphash.Comparable(seed, st.w)
				if _, ok := seen[h]; ok {
					continue
				}
				seen[h] = struct{}{}
				following = append(following, st.w)
				origins = append(origins, origin{int32(base + k), uint16(i)})
			}
			if len(seen) >= most {
				r.whole = false
				r.states = len(seen)
				return r
			}
		}
		base += len(level)
		level = following
		r.depth++
	}
	r.states = len(seen)
	return r
}

// budgets say what may happen in addition to what the programs do, and how often.
var budgets = []struct {
	p *programs
	b world
}{
	{&client, world{Post: 2, Reset: 2}},
	{&client, world{Post: 2, Crash: 1}},
	{&client, world{Post: 2, Close: 1}},
	{&client, world{Post: 2, GiveUp: 1}},
	{&client, world{Post: 2, Bump: 1}},
	{&client, world{Post: 2, Expire: 1}},
	{&client, world{Post: 1, Expire: 2, Crash: 1}},
	{&client, world{Post: 2, Toggle: 2}},
	{&client, world{Post: 1, Find: 2, Crash: 1}},
	{&client, world{Post: 1, Find: 2, Close: 1}},
	{&client, world{Post: 1, Find: 1, Expire: 1, GiveUp: 1}},
	{&client, world{Post: 1, Find: 1, Bump: 1, Crash: 1}},
	{&client, world{Post: 1, Close: 1, Crash: 1}},
	{&client, world{Post: 1, Crash: 2}},
	{&client, world{Post: 1, Crash: 1, GiveUp: 1}},
	{&client, world{Post: 1, GiveUp: 2}},
	{&both, world{Post: 1, Crash: 1, Reset: 1}},
	{&both, world{Post: 1, Crash: 2}},
	{&both, world{Post: 1, Crash: 1, Expire: 1}},
	{&both, world{Post: 1, GiveUp: 1, Reset: 1}},
	{&both, world{Post: 1, Close: 1}},
	{&both, world{Post: 2, Reset: 1}},
	{&both, world{Post: 2, Crash: 1}},
	{&both, world{Post: 2, GiveUp: 1}},
	{&mixed, world{Post: 1, Crash: 1, Toggle: 1}},
	{&mixed, world{Post: 2, Expire: 1}},
	{&mixed, world{Post: 2, GiveUp: 1}},
	{&both, world{Post: 1, Find: 1, Crash: 1}},
	{&mixed, world{Post: 1, Find: 1, Crash: 1, Close: 1}},
	{&mixed, world{Post: 1, Find: 1, Reset: 1, Toggle: 1}},
}

func (w *world) budget() (s string) {
	for _, b := range []struct {
		name string
		n    uint8
	}{{"post", w.Post}, {"crash", w.Crash}, {"reset", w.Reset}, {"close", w.Close}, {"giveup", w.GiveUp}, {"expire", w.Expire}, {"bump", w.Bump}, {"toggle", w.Toggle}, {"find", w.Find}} {
		if b.n > 0 {
			s += fmt.Sprintf(" %s %d", b.name, b.n)
		}
	}
	return s
}

// TestExplorer checks I1 to I6 in each state that two machines can reach, and that from each of them both come to one session.
func TestExplorer(t *testing.T) {
	for _, c := range budgets {
		most := *eachStates
		if most == 0 {
			most = *mostStates / len(budgets)
		}
		begin := time.Now()
		e := explorer{c.p, &variant{}}
		r := e.explore(c.p.begin(c.b), most, true)
		if r.bad != "" {
			t.Errorf("%s,%s: %s", c.p.name, c.b.budget(), r.bad)
			for _, l := range r.trace {
				t.Log(l)
			}
			continue
		}
		if r.states < min(most, 5000) && !r.whole {
			t.Errorf("%s,%s: only %d states were visited", c.p.name, c.b.budget(), r.states)
		}
		t.Logf("%s,%s: %d states to depth %d, whole: %v; heals in %d rounds with %d failed writes; %v",
			c.p.name, c.b.budget(), r.states, r.depth, r.whole, r.rounds, r.failures, time.Since(begin).Round(time.Millisecond))
	}
}

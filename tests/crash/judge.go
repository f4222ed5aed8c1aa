package main

import "fmt"

// judge reads what both sides of a pair say of themselves in all their lives, and looks into the memory of those that
// are over.
type judge struct {
	tell    func(string)
	counts  *counts
	now     [2]*process
	ways    [2]*way // by who posts
	pending []said  // what was read, and is judged when all that led to it was read too
	since   instant
	seen    [2]seen
}

// seen is when something was reported since the judge was told to watch.
type seen struct{ sent, came []instant }

// said is a record and whose it is.
type said struct {
	record
	side, own int // the life of who says so
}

// way is one direction: what one side posts into the other's memory.
type way struct {
	lives  map[uint16][]transaction // by number
	eras   map[era]int              // in which life of the memory something of it is
	last   [slots]name              // that completed, in the present life of the memory
	newest uint16
	links  map[name]*linkWay
}

// era is a life of a connection, as who posts sees it.
type era struct {
	life   uint16
	number uint32
}

// transaction is what is known of one.
type transaction struct {
	posted, withdrawn bool
	slot              uint8
	era               uint32
	in                int // life of the memory in which it completed
	completed         instant
	again             bool // it completed once more
}

func newJudge(c *counts, tell func(string)) *judge {
	j := &judge{tell: tell, counts: c}
	for side := range j.ways {
		j.ways[side] = &way{lives: make(map[uint16][]transaction), eras: make(map[era]int), links: make(map[name]*linkWay)}
	}
	return j
}

// begin is told of a life before it can say anything.
func (j *judge) begin(p *process) {
	j.now[p.Side] = p
	w := j.ways[1-p.Side]
	w.last, w.newest = [slots]name{}, 0
}

// watch begins to note when something is reported.
func (j *judge) watch() {
	j.since = now()
	j.seen = [2]seen{}
}

// workedAt returns when both sides had sent something, and got something, since then; 0: not yet.
func (j *judge) workedAt(since instant) (at instant) {
	for side := range j.seen {
		for _, all := range [][]instant{j.seen[side].sent, j.seen[side].came} {
			for len(all) > 0 && all[0] <= since {
				all = all[1:]
			}
			if len(all) == 0 {
				return 0
			}
			at = max(at, all[0])
		}
	}
	return at
}

func (j *judge) violate(s said, f fault, what string) {
	if what != "" {
		what = ": " + what
	}
	j.counts.violations.Add(1)
	j.tell(fmt.Sprintf("%v of %d: %v%s (side %d, life %d)", name{s.life, s.number}, s.poster(), f, what, s.side, s.own))
}

// poster returns who posted what a record is about.
func (s *said) poster() int {
	switch s.kind {
	case isBegun, isComplete, isReceived, isOver, isWrong:
		return 1 - s.side
	}
	return s.side
}

// read reads all that was said, and judges what was read before: whatever led to that is known by now.
func (j *judge) read() {
	before := j.pending
	j.pending = nil
	for side, p := range j.now {
		for {
			r, ok := p.journal.read()
			if !ok {
				break
			}
			s := said{r, side, p.Life}
			j.note(p, s)
			j.pending = append(j.pending, s)
		}
	}
	for _, s := range before {
		j.judge(s)
	}
}

// settle judges all that was said so far.
func (j *judge) settle() {
	j.read()
	j.read()
}

// note takes what is known from now on.
func (j *judge) note(p *process, s said) {
	w := j.ways[s.poster()]
	here := &j.seen[s.side]
	switch s.kind {
	case isReady:
		p.ready = s.t
	case isPosted:
		t := w.known(name{s.life, s.number})
		t.posted, t.withdrawn, t.era, t.slot = true, false, s.extra>>8, uint8(s.extra)
	case isWithdrawn:
		w.of(name{s.life, s.number}).withdrawn = true
	case isComplete:
		t := w.known(name{s.life, s.number})
		if t.again = t.in != 0; !t.again {
			t.in, t.completed = s.own, s.t
		}
		here.came = j.noted(here.came, s.t)
	case isDone:
		here.sent = j.noted(here.sent, s.t)
		j.counts.done.Add(1)
	case isFailed:
		j.counts.failed.Add(1)
	case isDialed, isFlushed, isReceived:
		j.noteLink(w, here, s)
	}
}

func (j *judge) noted(all []instant, t instant) []instant {
	const enough = 1 << 14
	if t <= j.since || len(all) == enough {
		return all
	}
	return append(all, t)
}

// known is of that makes room for what was not known.
func (w *way) known(n name) *transaction {
	all := w.lives[n.life]
	if n.number > journalSize/recordSize {
		return &transaction{}
	}
	for uint32(len(all)) <= n.number {
		all = append(all, transaction{})
	}
	w.lives[n.life] = all
	return &all[n.number]
}

// of returns what is known of a transaction; nothing is of one that nobody posted.
func (w *way) of(n name) *transaction {
	if all := w.lives[n.life]; n.number < uint32(len(all)) {
		return &all[n.number]
	}
	return &transaction{}
}

func (j *judge) judge(s said) {
	w, n := j.ways[s.poster()], name{s.life, s.number}
	t := w.of(n)
	switch s.kind {
	case isWrong:
		j.violate(s, s.code, "")
	case isComplete:
		j.posted(s, w, n, t)
		if t.again && t.completed != s.t {
			j.violate(s, wordTwice, fmt.Sprintf("first in life %d", t.in))
		}
		if n.life < w.newest {
			j.violate(s, lifeOver, fmt.Sprintf("behind life %d", w.newest))
		}
		w.newest = max(w.newest, n.life)
		w.last[t.slot] = n
	case isBegun:
		j.posted(s, w, n, t)
	case isDone:
		j.done(s, t)
	case isOver:
		j.linkOver(w, s)
	}
}

// done judges that a transaction was reported done.
func (j *judge) done(s said, t *transaction) {
	switch {
	case t.in == 0:
		j.violate(s, doneTooSoon, "")
	case t.completed > s.t:
		j.violate(s, doneTooSoon, fmt.Sprintf("it completed %v later", t.completed.sub(s.t)))
	}
}

// posted judges that something of a transaction is in a life of the memory.
func (j *judge) posted(s said, w *way, n name, t *transaction) {
	if !t.posted || t.withdrawn {
		j.violate(s, notPosted, "")
		return
	}
	e := era{n.life, t.era}
	if in, ok := w.eras[e]; ok && in != s.own {
		j.violate(s, wrongLife, fmt.Sprintf("others of connection %d were in life %d", t.era, in))
	}
	w.eras[e] = s.own
}

// over judges the memory of a life that is over, and forgets what nothing is to come of any more.
func (j *judge) over(p *process) {
	j.settle()
	w := j.ways[1-p.Side]
	for slot := range slots {
		j.image(p, w, slot)
	}
	// What the peer's lives that are over posted can be nowhere else.
	for life := range w.lives {
		if int(life) != j.now[1-p.Side].Life {
			delete(w.lives, life)
		}
	}
	for e := range w.eras {
		if int(e.life) != j.now[1-p.Side].Life {
			delete(w.eras, e)
		}
	}
}

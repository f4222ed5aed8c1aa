package inspect

// counterWindow is how many counters under one key are remembered, and counterLeap by how much one may be ahead of all before.
// Arbitrary: more than a network reorders, and more than a capture loses at once.
const (
	counterWindow = 512
	counterLeap   = 1 << 16
)

// counting follows the counters of sealed frames under one key, which go up by one.
type counting struct {
	begun      bool
	first, top uint64
	behind     uint64 // counters up to it may be of frames behind the snap length, of a record that looks like one frame
	slots      [counterWindow]counterSlot
	far        uint64 // the last one that was far from all others
	farRow     int    // how many in a row were, and follow each other
}

// counterSlot is what is known of one counter.
type counterSlot struct {
	salt   uint32 // tells a copy from a frame under another key
	record int32  // of a missing one, what came in its place
	seen   bool
	behind bool // of a missing one: it may be behind the snap length
}

// sealedCounts is what the counters of a direction tell.
type sealedCounts struct {
	keys, missing, late, copies, strays int
	behind                              int // counters before all that are remembered: late ones, most likely, which are in missing too
	unsplit                             int // of the missing ones, those that may be behind the snap length
	firstMissing, firstLate, firstCopy  int // records
}

// lost counts frames that are not in the capture. In the place of the first one came that record.
func (k *sealedCounts) lost(n, record int) {
	k.missing += n
	if k.firstMissing == 0 {
		k.firstMissing = record
	}
}

func (c *counting) at(n uint64) *counterSlot { return &c.slots[n%counterWindow] }

func (c *counting) begin(n uint64, salt uint32, k *sealedCounts) {
	*c = counting{begun: true, first: n, top: n}
	*c.at(n) = counterSlot{salt: salt, seen: true}
	k.keys++
}

// lostAt counts a frame that is not in the capture.
func (k *sealedCounts) lostAt(s *counterSlot) {
	k.lost(1, int(s.record))
	if s.behind {
		k.unsplit++
	}
}

// add takes the counter of a frame.
func (c *counting) add(n uint64, salt uint32, record int, k *sealedCounts) {
	switch {
	case !c.begun:
		c.begin(n, salt, k)
	case n > c.top && n-c.top <= counterLeap:
		c.advance(n, record, k)
		*c.at(n) = counterSlot{salt: salt, seen: true}
		c.farRow = 0
	case n <= c.top && c.top-n < counterWindow:
		c.again(n, salt, record, k)
	case n < c.top && c.restarts(n):
		k.behind = max(0, k.behind-(backBelieved-1))
		c.settle(k)
		c.begin(n, salt, k)
	case n < c.top:
		k.behind++
	case c.follows(n):
		k.strays = max(0, k.strays-(straysBelieved-1))
		c.settle(k)
		k.lost(int(n-c.top)-straysBelieved, record) // a long piece
		*c = counting{begun: true, first: n, top: n}
		*c.at(n) = counterSlot{salt: salt, seen: true}
	default:
		k.strays++
	}
}

// follows reports whether so many frames far from all others follow each other that they are right.
func (c *counting) follows(n uint64) bool {
	if c.farRow == 0 || n <= c.far || n-c.far > 64 {
		c.farRow = 0
	}
	c.far = n
	c.farRow++
	return c.farRow >= straysBelieved
}

// backBelieved is how many frames in a row, none of which is missing, make another numbering under an index whose counters were higher: that of another
// key. Arbitrary: more than a network holds back together without one between.
const backBelieved = 16

// restarts reports whether so many frames before all others follow each other that they are under another key.
func (c *counting) restarts(n uint64) bool {
	if n != c.far+1 {
		c.farRow = 0
	}
	c.far = n
	c.farRow++
	return c.farRow >= backBelieved
}

// missed returns how many never came: those that came when they were forgotten may be among the missing. Where the capture has records of
// several frames, those that may be behind the snap length are not counted.
func (w *sealedWay) missed() int {
	n := w.missing - w.behind
	if *w.offload {
		n -= w.unsplit
	}
	return max(0, n)
}

// odd returns how many have a counter far from all others.
func (k *sealedCounts) odd() int { return k.strays + k.behind }

// again takes a counter that is not ahead.
func (c *counting) again(n uint64, salt uint32, record int, k *sealedCounts) {
	s := c.at(n)
	switch {
	case !s.seen:
		k.late++
		if k.firstLate == 0 {
			k.firstLate = record
		}
		*s = counterSlot{salt: salt, seen: true}
	case s.salt == salt:
		k.copies++
		if k.firstCopy == 0 {
			k.firstCopy = record
		}
	default: // the same counter in another batch: the key is another one
		c.settle(k)
		c.begin(n, salt, k)
	}
}

// advance makes room for counters up to n.
func (c *counting) advance(n uint64, record int, k *sealedCounts) {
	if over := n - c.top; over > counterWindow {
		// Of what is between, only the last ones have room.
		k.lost(int(over-counterWindow), record)
		c.settle(k)
		c.top = n - counterWindow
		c.first = c.top + 1
	}
	for c.top < n {
		c.top++
		c.leaves(c.top, k)
		*c.at(c.top) = counterSlot{record: int32(record), behind: c.top <= c.behind}
	}
}

// leaves draws the conclusion of the counter that gives way to n.
func (c *counting) leaves(n uint64, k *sealedCounts) {
	if n < counterWindow || n-counterWindow < c.first {
		return
	}
	if s := c.at(n); !s.seen {
		k.lostAt(s)
	}
}

// settle draws the conclusions of all that is remembered.
func (c *counting) settle(k *sealedCounts) {
	if !c.begun {
		return
	}
	from := c.first
	if c.top >= counterWindow {
		from = max(from, c.top-counterWindow+1)
	}
	for n := from; n <= c.top; n++ {
		if s := c.at(n); !s.seen {
			k.lostAt(s)
		}
	}
	c.slots = [counterWindow]counterSlot{}
}

package rpcrdma

// kind is what a message is to credits.
type kind uint8

const (
	kindCall  kind = iota // a whole Call, or its last part
	kindReply             // a whole Reply, or its last part
	kindPart              // a part of a Call or Reply that goes on
	kindError
	kindProperties
	kindRefresh
	kindUnknown // came without a word of credits
)

// credits is how many messages both sides may send. Version 1 counts Calls, of each direction by itself, and
// version 2 counts all messages. The Calls of this side are always of one direction, and those of the peer of the other.
type credits interface {
	// mayCall reports whether a Call may begin.
	mayCall() bool
	// calls returns how many Calls there may be at once.
	calls() int
	// called counts a Call that begins, and answered one whose Reply or ERROR came. A Call that is cancelled
	// is not answered: the peer still has it.
	called()
	answered()
	// maySend reports whether a message may go.
	maySend(k kind) bool
	// sent counts a message that goes, and returns its word of credits.
	sent(k kind) (word uint32)
	// received counts a message that came, with its word of credits.
	received(k kind, word uint32)
	// receives returns how many receives must be posted from now on. It only grows.
	receives() int
	// refreshDue reports whether a message that only grants credits must go if no other one can.
	refreshDue() bool
	// withheld reports whether the peer may send nothing until this side sends a message that grants credits.
	withheld() bool
}

// credits1 is the credits of version 1.
type credits1 struct {
	window int // Calls of the peer that are taken at once
	most   int // Calls of this side that have a receive for their Replies
	grant  int // of the peer, for Calls of this side
	out    int // Calls of this side without Reply
	asked  uint32
	spare  int // receives for more than Calls and Replies
}

// newCredits1 returns credits of a connection on which nothing was granted: one Call may be out (RPC1-011).
func newCredits1(c *Config) *credits1 {
	v := &credits1{window: c.Window, most: c.Reverse, grant: 1, spare: 1}
	if c.Side == Client {
		v.window, v.most = v.most, v.window
	}
	return v
}

func (c *credits1) mayCall() bool { return c.out < c.calls() }

// calls does not trust a grant above what there are receives for (RPC1-015).
func (c *credits1) calls() int { return min(c.grant, c.most) }

func (c *credits1) called()           { c.out++ }
func (c *credits1) answered()         { c.out-- }
func (c *credits1) maySend(kind) bool { return true }
func (c *credits1) refreshDue() bool  { return false }
func (c *credits1) withheld() bool    { return false }
func (c *credits1) receives() int     { return c.window + c.most + c.spare }

// sent returns how many Calls a Call asks for, or a Reply or ERROR grants (RPC1-010, RPC1-014).
func (c *credits1) sent(k kind) uint32 {
	if k == kindCall {
		return uint32(c.most)
	}
	if c.asked == 0 || c.asked > uint32(c.window) {
		return uint32(max(c.window, 1))
	}
	return c.asked
}

func (c *credits1) received(k kind, word uint32) {
	if k == kindCall {
		c.asked = word
		return
	}
	c.grant = max(int(min(word, uint32(c.most))), 1) // 0 counts as 1 (RPC1-013)
}

// credits2 is the credits of version 2, exactly counted (RPC2-019). Grants are added up, and none is 0, so each message
// grants one that this side may not have. What the peer has proven to have taken is therefore counted as well: only a
// grant of two or more is of messages that were taken.
type credits2 struct {
	window int // of this side: what it says to the peer
	most   int // Calls of this side at once
	peer   int // what the peer has said first, later words do not count; 0 until then
	both   int // the lesser of the two
	before int // receives that are posted before the peer has said anything

	allowed  int  // messages that the peer has granted
	unproven int  // sent, and not proven to be taken
	owed     int  // taken, and not granted again
	beyond   bool // a refresh went without a credit, and nothing came since
	spoken   bool // a message was sent
	out      int  // Calls of this side without Reply
}

// newCredits2 returns credits of a connection on which nothing was said. A client may send one message (RPC2-022).
func newCredits2(c *Config) *credits2 {
	v := &credits2{window: c.Window, most: c.Reverse, before: c.Posted()}
	if c.Side == Client {
		v.most, v.allowed = c.Window, 1
	}
	return v
}

// mayCall keeps the Calls within what the peer has room for, whatever it has taken (RPC2-114).
func (c *credits2) mayCall() bool { return c.out < c.calls() }

func (c *credits2) calls() int { return min(c.both, c.most) }

func (c *credits2) called()   { c.out++ }
func (c *credits2) answered() { c.out-- }

func (c *credits2) maySend(k kind) bool {
	if k == kindRefresh {
		return c.allowed > 0 || !c.beyond
	}
	return c.allowed > 0 && c.unproven < max(c.both, 1)
}

func (c *credits2) sent(k kind) uint32 {
	switch {
	case k != kindRefresh:
		c.allowed--
		c.unproven++
	case c.allowed > 0:
		c.allowed--
	default:
		c.beyond = true // the receive on top (RPC2-016)
	}
	granted := 1 // a gift: what is owed stays owed
	switch {
	case !c.spoken:
		granted, c.spoken, c.owed = c.window, true, 0
	case c.owed >= 2:
		granted, c.owed = c.owed, 0
	}
	return Credit2(uint16(c.window), uint16(granted))
}

func (c *credits2) received(k kind, word uint32) {
	if k == kindUnknown {
		c.owed++
		return
	}
	h := Header{Credit: word}
	if c.peer == 0 {
		c.peer = max(int(h.Maximum()), 1)
		c.both = min(c.peer, c.window)
	}
	granted := max(int(h.Granted()), 1) // RPC2-013
	c.allowed = min(c.allowed+granted, c.peer)
	c.beyond = false
	if granted >= 2 {
		c.unproven = max(c.unproven-granted, 0)
	}
	if k != kindRefresh {
		c.owed++
	}
}

// receives returns the window, what the peer may send unproven, and one for a refresh: of this side's numbers
// alone, whatever the peer says.
func (c *credits2) receives() int {
	if c.peer == 0 {
		return c.before
	}
	return max(c.window+c.both+1, c.before)
}

func (c *credits2) refreshDue() bool {
	return c.peer > 0 && c.spoken && c.owed >= max(2, (c.both+1)/2) && c.maySend(kindRefresh)
}

// withheld is when as many messages of the peer were taken without a grant of two or more as it may send unproven.
func (c *credits2) withheld() bool { return c.peer > 0 && c.owed >= c.both }

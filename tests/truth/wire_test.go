package truth

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/endpoint/session"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// content is a frame as its sender numbers it: however often it was sent.
type content struct {
	from, to, life int
	session        uint32 // the tag of its session; 0: it is of none
	id             uint32 // of a peer without sessions, 16 bits
	numbered       bool   // it has an id of its own
	messages       bool   // it needs an acknowledgement
	hello          bool   // it is of a handshake
	body           []byte
	sends          []*sending
}

// series names a numbering: ids of one are compared with each other.
func (c *content) series() [2]uint32 { return [2]uint32{uint32(c.life), c.session} }

// sending is one frame that left an endpoint.
type sending struct {
	*content
	number int
	nth    int // of the sendings of its content, from 0
	at     time.Duration
	bytes  []byte
	acks   []*content // by a peer without sessions
	sealed bool
	came   int  // when it arrived first, counted over all that arrived from 1; 0: never
	early  bool // its receiver may not have had the session then
	times  int  // how often it arrived

	control frame.Control // of a frame of a session
	upTo    uint32        // what it acknowledges of the other direction's session back, if acked
	ranges  []frame.Range
	back    uint32
	acked   bool
	pair    [2]uint32 // the tags of the session of which a WELCOME or a CONFIRM is: from its sender, and back
}

// acknowledges reports whether the frame does so, as far as so much of it says.
func (s *sending) acknowledges(c *content, ranges bool) bool {
	if !s.acked {
		return slices.Contains(s.acks, c)
	}
	if !c.messages || c.from != s.to || c.session != s.back {
		return false
	}
	in := int32(c.id-s.upTo) <= 0
	for i := 0; i < len(s.ranges) && ranges; i++ {
		in = in || c.id-s.ranges[i].First < uint32(s.ranges[i].Count)
	}
	return in
}

// passing is a frame at a point of capture.
type passing struct {
	*sending
	at    time.Duration
	out   bool // sent by the host that captures
	bytes []byte
}

// ledger is the truth: all that was sent, and what passed where.
type ledger struct {
	sealed    bool
	mu        sync.Mutex
	began     time.Time
	all       []*sending
	latest    map[[2]int]map[frame.Seq]*content // of a node to another one, by id
	delivered map[[2]int]map[frame.Seq]*content // of a node at another one
	sessions  map[[2]uint32]*content            // by tag and id
	backs     map[uint32]uint32                 // the tags of a session's two directions
	arrivals  int
	spoke     map[uint32]bool // the tags with which frames were sent
	at        [3][]passing    // node 0, node 1, the middle
	broken    []string        // what no endpoint may send
	waited    [2]int          // how many frames' worth of a node's load was posted and not done, at most
}

func newLedger() *ledger {
	return &ledger{began: time.Now(), latest: map[[2]int]map[frame.Seq]*content{}, delivered: map[[2]int]map[frame.Seq]*content{},
		sessions: map[[2]uint32]*content{}, backs: map[uint32]uint32{}, spoke: map[uint32]bool{}}
}

func (l *ledger) now() time.Duration { return time.Since(l.began) }

// sends notes a frame that leaves a node.
func (l *ledger) sends(from, to, life int, b []byte) *sending {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &sending{number: len(l.all), at: l.now(), bytes: b}
	l.all = append(l.all, s)
	defer func() { l.at[from] = append(l.at[from], passing{s, s.at, true, b}) }()
	if !l.sealed && frame.IsSession(b) {
		l.inSession(s, from, to, life)
		return s
	}
	f, err := frame.Parse(b)
	if l.sealed || err != nil {
		s.sealed = true
		s.content = &content{from: from, to: to, life: life}
		s.content.sends = []*sending{s}
		return s
	}
	c := f.Cursor()
	if c.Next() {
		if h, ok := frame.HandshakeOf(&f, &c.Msg); ok {
			s.content = &content{from: from, to: to, life: life, hello: true}
			s.content.sends = []*sending{s}
			if h.Kind == frame.HandshakeWelcome || h.Kind == frame.HandshakeConfirm {
				s.pair = [2]uint32{tagOf(h.Receiver, h.Sender), tagOf(h.Sender, h.Receiver)}
				l.backs[s.pair[0]], l.backs[s.pair[1]] = s.pair[1], s.pair[0]
			}
			return s
		}
	}
	key := [2]int{from, to}
	if l.latest[key] == nil {
		l.latest[key] = map[frame.Seq]*content{}
	}
	body := f.Body() // neither padding nor a checksum
	if old := l.latest[key][f.Seq]; f.HasMessages() && old != nil && old.life == life && bytes.Equal(old.body, body) {
		s.content = old
	} else {
		s.content = &content{from: from, to: to, life: life, id: uint32(f.Seq), numbered: true, messages: f.HasMessages(), body: body}
		l.latest[key][f.Seq] = s.content
	}
	s.nth = len(s.sends)
	s.sends = append(s.sends, s)
	back := l.delivered[[2]int{to, from}]
	for i := range int(f.AckCount) {
		if acked := back[f.AckStart.Add(i)]; acked != nil {
			s.acks = append(s.acks, acked)
		}
	}
	return s
}

func tagOf(receiver, sender uint32) uint32 {
	return session.Tag(session.Epoch(receiver), session.Epoch(sender))
}

// inSession notes a frame of a session that leaves a node. What it breaks is noted, too.
func (l *ledger) inSession(s *sending, from, to, life int) {
	whole, sum := frame.SplitChecksum(s.bytes)
	f, err := frame.ParseSession(whole)
	if err != nil || sum == frame.WrongChecksum {
		l.broken = append(l.broken, fmt.Sprintf("node %d sent %x: %v, %v", from, s.bytes, err, sum))
		return
	}
	s.control = f.Control
	numbered := f.Control == frame.NoControl || f.Control == frame.ControlBell
	key := [2]uint32{f.Tag, f.ID}
	old := l.sessions[key]
	switch {
	case numbered && old != nil:
		s.content = old
		if !bytes.Equal(old.body, whole[frame.SessionHeaderSize:]) || old.from != from || old.life != life {
			l.broken = append(l.broken, fmt.Sprintf("node %d sent other content under the id %d of session %#x", from, f.ID, f.Tag))
		}
	default:
		s.content = &content{from: from, to: to, life: life, session: f.Tag, numbered: numbered, messages: numbered}
		if numbered {
			s.content.id, s.content.body = f.ID, whole[frame.SessionHeaderSize:]
			l.sessions[key] = s.content
		}
	}
	s.nth = len(s.sends)
	s.sends = append(s.sends, s)
	if numbered && int(f.Copy) != min(s.nth, frame.MostCopies) {
		l.broken = append(l.broken, fmt.Sprintf("node %d sent frame %d of session %#x for the %dth time as copy %d", from, f.ID, f.Tag, s.nth, f.Copy))
	}
	back, known := l.backs[f.Tag]
	if f.Control == frame.ControlReset {
		s.content.id = f.ID // which it quotes, with the tag of the other direction
		return
	}
	if !known {
		l.broken = append(l.broken, fmt.Sprintf("node %d sent a frame of session %#x, of which there was no handshake", from, f.Tag))
		return
	}
	l.spoke[f.Tag] = true
	s.acked, s.back, s.upTo = true, back, f.Ack
	if a, ok := f.SessionAck(); ok {
		for i := range a.Ranges.Len() {
			s.ranges = append(s.ranges, a.Ranges.At(i))
		}
	}
}

// arrives notes a frame that arrives at a node.
func (l *ledger) arrives(number, at int, b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.all[number]
	l.arrivals++
	if s.times++; s.came == 0 {
		s.came = l.arrivals
		s.early = s.session != 0 && !l.spoke[l.backs[s.session]]
	}
	key := [2]int{s.from, s.to}
	if l.delivered[key] == nil {
		l.delivered[key] = map[frame.Seq]*content{}
	}
	if !s.sealed && s.numbered && s.session == 0 {
		l.delivered[key][frame.Seq(s.id)] = s.content
	}
	l.at[at] = append(l.at[at], passing{s, l.now(), false, bytes.Clone(b)})
}

// crosses notes a frame in the middle.
func (l *ledger) crosses(number int, b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at[middle] = append(l.at[middle], passing{l.all[number], l.now(), l.all[number].from == 0, bytes.Clone(b)})
}

const middle = 2

// tagSize is how much a frame is longer on the simulated network: by the number of its sending.
const tagSize = 4

func numberOf(b []byte) int { return int(binary.LittleEndian.Uint32(b[len(b)-tagSize:])) }

// wire gives each frame a number that the network carries.
type wire struct {
	transport.Conn
	w       *world
	node    int
	life    int
	backlog []transport.Datagram // that came while the node stood still
}

func (c *wire) Caps() transport.Caps {
	caps := c.Conn.Caps()
	caps.MTU -= tagSize
	return caps
}

func (c *wire) MTU(to transport.Addr) int { return c.Conn.MTU(to) - tagSize }

func (c *wire) Send(batch []transport.Outgoing) (int, error) {
	tagged := make([]transport.Outgoing, len(batch))
	for i, o := range batch {
		b := append(append(append(make([]byte, 0, o.Len()+tagSize), o.Buf...), o.Rest...), o.Tail...)
		s := c.w.truth.sends(c.node, c.w.nodeAt(*o.To), c.life, b)
		tagged[i] = transport.Outgoing{To: o.To, Buf: binary.LittleEndian.AppendUint32(b[:len(b):cap(b)], uint32(s.number))}
	}
	return c.Conn.Send(tagged)
}

func (c *wire) Recv(dst []transport.Datagram, wait time.Duration) (int, error) {
	for {
		if still := c.w.still[c.node].left(c.w.truth.now()); still > 0 {
			if n, err := c.recv(dst, still); err != nil {
				return 0, err
			} else {
				for _, d := range dst[:n] {
					c.backlog = append(c.backlog, transport.Datagram{From: d.From, Data: bytes.Clone(d.Data)})
				}
			}
			continue
		}
		if len(c.backlog) > 0 {
			n := copy(dst, c.backlog)
			c.backlog = c.backlog[n:]
			return n, nil
		}
		return c.recv(dst, wait)
	}
}

func (c *wire) recv(dst []transport.Datagram, wait time.Duration) (int, error) {
	n, err := c.Conn.Recv(dst, wait)
	for i := range dst[:n] {
		b := dst[i].Data
		dst[i].Data = b[: len(b)-tagSize : len(b)-tagSize]
		c.w.truth.arrives(numberOf(b), c.node, dst[i].Data)
	}
	return n, err
}

// stillness is when a node does nothing.
type stillness struct{ from, to time.Duration }

func (s stillness) left(now time.Duration) time.Duration {
	if now < s.from {
		return 0
	}
	return s.to - now
}

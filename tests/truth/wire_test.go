package truth

import (
	"bytes"
	"encoding/binary"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// content is a frame as its sender numbers it: however often it was sent.
type content struct {
	from, to, life int
	seq            frame.Seq
	messages       bool // some that need an acknowledgement
	hello          bool
	body           []byte
	sends          []*sending
	acked          bool // by a frame that was sent
}

// sending is one frame that left an endpoint.
type sending struct {
	*content
	number int
	nth    int // of the sendings of its content, from 0
	at     time.Duration
	bytes  []byte
	acks   []*content
	sealed bool
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
	at        [3][]passing                      // node 0, node 1, the middle
	waited    [2]int                            // how many frames' worth of a node's load was posted and not done, at most
}

func newLedger() *ledger {
	return &ledger{began: time.Now(), latest: map[[2]int]map[frame.Seq]*content{}, delivered: map[[2]int]map[frame.Seq]*content{}}
}

func (l *ledger) now() time.Duration { return time.Since(l.began) }

// sends notes a frame that leaves a node.
func (l *ledger) sends(from, to, life int, b []byte) *sending {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &sending{number: len(l.all), at: l.now(), bytes: b}
	l.all = append(l.all, s)
	defer func() { l.at[from] = append(l.at[from], passing{s, s.at, true, b}) }()
	f, err := frame.Parse(b)
	if l.sealed || err != nil {
		s.sealed = true
		s.content = &content{from: from, to: to, life: life}
		s.content.sends = []*sending{s}
		return s
	}
	c := f.Cursor()
	hello := c.Next()
	if hello {
		_, hello = c.Msg.Hello()
	}
	key := [2]int{from, to}
	if l.latest[key] == nil {
		l.latest[key] = map[frame.Seq]*content{}
	}
	body := f.Body() // neither padding nor a checksum
	if old := l.latest[key][f.Seq]; f.HasMessages() && old != nil && old.life == life && bytes.Equal(old.body, body) {
		s.content = old
	} else {
		s.content = &content{from: from, to: to, life: life, seq: f.Seq, messages: f.HasMessages() && !hello, hello: hello, body: body}
		l.latest[key][f.Seq] = s.content
	}
	s.nth = len(s.sends)
	s.sends = append(s.sends, s)
	if !hello {
		back := l.delivered[[2]int{to, from}]
		for i := range int(f.AckCount) {
			if acked := back[f.AckStart.Add(i)]; acked != nil {
				acked.acked = true
				s.acks = append(s.acks, acked)
			}
		}
	}
	return s
}

// arrives notes a frame that arrives at a node.
func (l *ledger) arrives(number, at int, b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.all[number]
	key := [2]int{s.from, s.to}
	if l.delivered[key] == nil {
		l.delivered[key] = map[frame.Seq]*content{}
	}
	if !s.sealed {
		l.delivered[key][s.seq] = s.content
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

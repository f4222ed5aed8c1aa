package flood

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/seal"
)

// prefix is what stands before a frame in a UDP datagram.
const prefix = 2

// stranger sends frames to the server from many addresses, which on the loopback
// interface need no privilege.
type stranger struct {
	sockets []*net.UDPConn
	rnd     *rand.Rand
	seq     frame.Seq
	life    uint32 // of the proven peer that it plays, if it does
	txn     uint32 // counts on
	sent    atomic.Int64
}

const strangerAddresses = 64

// madeUp is a stranger without sockets: it makes datagrams.
func madeUp(seed uint64) *stranger { return &stranger{rnd: rand.New(rand.NewPCG(seed, 1))} }

func newStranger(t testing.TB, to netip.AddrPort, seed uint64) *stranger {
	t.Helper()
	s := madeUp(seed)
	for i := range strangerAddresses {
		from := &net.UDPAddr{IP: net.IPv4(127, 0, 1, byte(i))}
		c, err := net.DialUDP("udp4", from, net.UDPAddrFromAddrPort(to))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		s.sockets = append(s.sockets, c)
	}
	return s
}

// message is one message of a frame.
type message struct {
	frame.Message
	data []byte
}

// encode makes a datagram of these messages.
func (s *stranger) encode(id frame.EndpointID, seq frame.Seq, hello bool, messages ...message) []byte {
	b := make([]byte, 1472)
	var w frame.Writer
	w.Init(b[prefix:])
	for _, m := range messages {
		m.Len = uint16(len(m.data))
		copy(w.Add(&m.Message), m.data)
	}
	h := frame.Header{Dst: serverID, Src: id, Seq: seq, Flags: frame.FlagMessages}
	if hello {
		h.SetHelloID(uint32(seq))
	}
	h.Put(b[prefix:])
	return b[:prefix+w.Len()]
}

func (s *stranger) hello(id frame.EndpointID, h frame.Hello) []byte {
	return s.encode(id, 1, true, message{Message: h.Message()})
}

func (s *stranger) anyID() frame.EndpointID { return frame.EndpointID(s.rnd.IntN(65535) + 1) }

func (s *stranger) fill(b []byte) {
	for i := range b {
		b[i] = byte(s.rnd.Uint32())
	}
}

// between are the ids of a datagram to the server, from anybody.
func (s *stranger) between() (ids [4]byte) {
	h := frame.Header{Dst: serverID, Src: s.anyID()}
	var b [frame.HeaderSize]byte
	h.Put(b[:])
	return [4]byte(b[:])
}

// asks is a handshake of who has another key than the server.
func (s *stranger) asks() *seal.Asking { return seal.Ask(&seal.Key{2}, seal.NewInstance(), 1) }

// handshake makes a datagram of that kind, of which no more is true than that.
func (s *stranger) handshake(of seal.Kind) []byte {
	b := s.asks().Again(make([]byte, prefix), s.between())
	b = append(b, make([]byte, prefix+of.Size()-len(b))...)
	s.fill(b[prefix+frame.HeaderSize:])
	b[prefix+9] |= byte(of-seal.Question) << 1
	if seal.KindOf(b[prefix:]) != of {
		panic("BUG: it is none")
	}
	return b
}

// introduce becomes a peer under an id, from the first address.
func (s *stranger) introduce(t testing.TB, id frame.EndpointID) {
	t.Helper()
	s.introduceFrom(t, 0, id)
}

func (s *stranger) introduceFrom(t testing.TB, socket int, id frame.EndpointID) {
	t.Helper()
	c := s.sockets[socket]
	s.life = s.rnd.Uint32() | 1
	s.txn = s.life - 1
	for range 50 {
		c.Write(s.hello(id, frame.Hello{Life: s.life}))
		c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		if h, ok := s.answered(c); ok {
			c.Write(s.hello(id, frame.Hello{Life: s.life, Peer: h.Life, Tells: true}))
			s.seq = 1
			return
		}
	}
	t.Fatal("the server did not answer")
}

// answered returns the introduction that comes for the present life, if one does in time. Acknowledgements
// of others who use that socket are passed over.
func (s *stranger) answered(c *net.UDPConn) (h frame.Hello, ok bool) {
	in := make([]byte, 2048)
	for {
		n, err := c.Read(in)
		if err != nil {
			return h, false
		}
		f, err := frame.Parse(in[prefix:n])
		if err != nil || !f.HasMessages() {
			continue
		}
		cur := f.Cursor()
		cur.Next()
		if h, ok = cur.Msg.Hello(); ok && h.Peer == s.life {
			return h, true
		}
	}
}

// next returns the id of the next frame.
func (s *stranger) next() frame.Seq { s.seq++; return s.seq }

// word is a message that writes a word into the memory, of an open transaction if
// there are to be more.
func word(txn uint32, count, index uint16) message {
	return message{frame.Message{Txn: txn, CompletionAddr: serverMemory - 8, CompletionValue: txn, Count: count, Index: index, Addr: serverMemory - 64}, nil}
}

// run sends rate frames a second of a kind until stop is closed.
func (s *stranger) run(rate int, k kind, stop chan struct{}) {
	began, from := time.Now(), 0
	s.sent.Store(0)
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Millisecond):
		}
		due := int64(time.Since(began).Seconds() * float64(rate))
		for s.sent.Load() < due {
			if !k.proven {
				from = (from + 1) % len(s.sockets)
			}
			s.sockets[from].Write(k.make(s))
			s.sent.Add(1)
		}
	}
}

// strangerID is the id of the proven peer that a stranger plays.
const strangerID = 77

// kind is what a stranger sends.
type kind struct {
	name   string
	proven bool // it has introduced itself
	make   func(s *stranger) []byte
}

var kinds = []kind{
	{"junk", false, func(s *stranger) []byte {
		b := make([]byte, 64)
		s.fill(b)
		return b
	}},
	{"hello", false, func(s *stranger) []byte { return s.hello(s.anyID(), frame.Hello{Life: s.rnd.Uint32() | 1}) }},
	{"helloBack", false, func(s *stranger) []byte {
		return s.hello(s.anyID(), frame.Hello{Life: s.rnd.Uint32() | 1, Peer: s.rnd.Uint32(), Tells: true})
	}},
	{"data", false, func(s *stranger) []byte {
		return s.encode(s.anyID(), frame.Seq(s.rnd.Uint32()), false, word(s.rnd.Uint32(), 0, frame.NotHello))
	}},
	{"empty", false, func(s *stranger) []byte {
		b := make([]byte, prefix+frame.HeaderSize)
		h := frame.Header{Dst: serverID, Src: s.anyID(), Seq: frame.Seq(s.rnd.Uint32()), AckStart: 1, AckCount: 255}
		h.Put(b[prefix:])
		return b
	}},
	{"question", false, func(s *stranger) []byte { return s.asks().Again(make([]byte, prefix), s.between()) }},
	{"challenge", false, func(s *stranger) []byte { return s.handshake(seal.Challenge) }},
	{"first", false, func(s *stranger) []byte { return s.handshake(seal.First) }},
	{"second", false, func(s *stranger) []byte { return s.handshake(seal.Second) }},
	{"sealed", false, func(s *stranger) []byte {
		b := make([]byte, prefix+100)
		s.fill(b[prefix:])
		ids := s.between()
		copy(b[prefix:], ids[:])
		b[prefix+9] = seal.Flag | byte(s.rnd.IntN(seal.Indexes))<<1
		return b
	}},
	{"provenHello", true, func(s *stranger) []byte {
		return s.hello(strangerID, frame.Hello{Life: s.rnd.Uint32() | 1})
	}},
	{"provenFarTransaction", true, func(s *stranger) []byte { // attack A5
		s.txn += 32767
		return s.encode(strangerID, s.next(), false, word(s.txn, 0, frame.NotHello))
	}},
	{"provenFarFrame", true, func(s *stranger) []byte { // attack A5
		s.seq += 16384
		s.txn++
		return s.encode(strangerID, s.seq, false, word(s.txn, 0, frame.NotHello))
	}},
	{"provenColliding", true, func(s *stranger) []byte { // attack A5: ids that once met in one place of a table
		var all []message
		for range 50 {
			s.txn += 512
			all = append(all, word(s.txn, 2, 1))
		}
		return s.encode(strangerID, s.next(), false, all...)
	}},
	{"provenLong", true, func(s *stranger) []byte { // attack A6
		var all []message
		for range 50 {
			s.txn++
			all = append(all, word(s.txn, 65535, uint16(1+s.rnd.IntN(65535))))
		}
		return s.encode(strangerID, s.next(), false, all...)
	}},
	{"provenAcks", true, func(s *stranger) []byte {
		b := make([]byte, prefix+frame.HeaderSize+frame.StampSize)
		h := frame.Header{Dst: serverID, Src: strangerID, Seq: s.next(), AckStart: frame.Seq(s.rnd.Uint32()), AckCount: 255}
		h.Put(b[prefix:])
		frame.Stamp{Life: s.rnd.Uint32(), ID: uint32(h.Seq), Start: uint32(h.AckStart)}.Put(b[prefix+frame.HeaderSize:])
		return b
	}},
}

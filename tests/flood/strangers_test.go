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
	own     *begun // of the proven peer that it plays, if it does
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

// encode makes a datagram of these messages, as a peer without sessions sends them.
func (s *stranger) encode(id frame.EndpointID, seq frame.Seq, messages ...message) []byte {
	b := make([]byte, 1472)
	var w frame.Writer
	w.Init(b[prefix:])
	add(&w, messages)
	h := frame.Header{Dst: serverID, Src: id, Seq: seq, Flags: frame.FlagMessages}
	h.Put(b[prefix:])
	return b[:prefix+w.Len()]
}

// add writes messages.
func add(w *frame.Writer, messages []message) {
	for _, m := range messages {
		m.Len = uint16(len(m.data))
		copy(w.Add(&m.Message), m.data)
	}
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

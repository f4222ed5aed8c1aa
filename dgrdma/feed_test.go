package dgrdma

import (
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/endpoint/session"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// handmade is what wires that tests make have in common.
type handmade struct{ transport.Indifferent }

func (handmade) Caps() transport.Caps      { return transport.Caps{MTU: 1490, Batch: 64} }
func (handmade) MTU(transport.Addr) int    { return 1490 }
func (handmade) Stats() transport.Stats    { return transport.Stats{} }
func (handmade) LocalAddr() transport.Addr { return addrB }

// after returns what says that Recv is not to wait any longer.
func after(wait time.Duration) <-chan time.Time {
	if wait < 0 {
		return nil
	}
	return time.After(wait)
}

// feed is a wire whose frames the test makes, for an endpoint with Manual: what
// the engine does with a frame then happens inside Poll, on the test's goroutine.
type feed struct {
	handmade
	t             testing.TB
	e             *Endpoint
	mem           *Region
	from          transport.Addr
	next          []byte   // what Poll finds
	more          [][]byte // and after it
	sent          []frame.Frame
	sessionFrames [][]byte
	keeps         bool // what the endpoint sends is kept in sent
	closed        bool
	breaks        error // what Send fails with
	sessions
}

// newFeed opens endpoint 2, with 4096 bytes of memory, on such a wire.
func newFeed(t testing.TB, cfg Config) *feed {
	t.Helper()
	f := &feed{t: t, from: addrA}
	var err error
	if f.mem, err = NewRegion(4096); err != nil {
		t.Fatal(err)
	}
	cfg.ID, cfg.Manual = 2, true
	if cfg.Memory == nil {
		cfg.Memory = f.mem
	}
	if f.e, err = New(f, &cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.e.Close() })
	return f
}

func (f *feed) Recv(dst []transport.Datagram, _ time.Duration) (int, error) {
	if f.closed {
		return 0, net.ErrClosed
	}
	if f.next == nil {
		return 0, nil
	}
	dst[0] = transport.Datagram{From: f.from, Data: f.next}
	f.next = nil
	n := 1
	for ; n < len(dst) && len(f.more) > 0; n++ {
		dst[n].From, dst[n].Data, f.more = f.from, f.more[0], f.more[1:]
	}
	return n, nil
}

func (f *feed) Send(batch []transport.Outgoing) (int, error) {
	if len(batch) == 0 {
		f.t.Error("the wire was called to send nothing")
	}
	if f.keeps {
		for _, o := range batch {
			b := slices.Concat(o.Buf, o.Rest)
			if frame.IsSession(b) {
				f.sessionFrames = append(f.sessionFrames, b)
				continue
			}
			fr, err := frame.Parse(b)
			if err != nil {
				f.t.Error(err)
			}
			f.sent = append(f.sent, fr)
		}
	}
	if f.breaks != nil {
		return 0, f.breaks
	}
	return len(batch), nil
}

func (f *feed) Caps() transport.Caps   { return transport.Caps{MTU: frame.MaxData, Batch: 64} }
func (f *feed) MTU(transport.Addr) int { return frame.MaxData }
func (f *feed) Close() error           { f.closed = true; return nil }

// give has the endpoint act on one frame.
func (f *feed) give(b []byte) {
	f.t.Helper()
	f.next = b
	if _, err := f.e.Progress(0); err != nil {
		f.t.Fatal(err)
	}
}

// answers gives one frame and returns what the endpoint sends until it is quiet.
func (f *feed) answers(b []byte) []frame.Frame {
	f.t.Helper()
	f.sent, f.keeps = nil, true
	f.give(b)
	for range 3 {
		f.give(nil)
	}
	f.keeps = false
	return f.sent
}

// native connects to peer 1, which begins a session.
func (f *feed) native() *Conn {
	f.t.Helper()
	c, err := f.e.Connect(Peer{ID: 1, Addr: addrA})
	if err != nil {
		f.t.Fatal(err)
	}
	f.introduce(1, life)
	return c
}

// sessions are the epochs of those that peers have with the endpoint of a feed, by their ids.
type sessions map[frame.EndpointID][2]uint32 // the peer's, the endpoint's

// introduce has peer id at f.from begin a session under that epoch.
func (f *feed) introduce(id frame.EndpointID, epoch uint32) {
	f.t.Helper()
	shake := func(h frame.Handshake) []frame.Frame {
		b := make([]byte, frame.ListedSize)
		h.Put(b, 2, id)
		list := servesMemory()
		list.Put(b[frame.HandshakeSize:])
		return f.answers(b)
	}
	for range 5 {
		for _, got := range shake(frame.Handshake{Kind: frame.HandshakeHello, Sender: epoch}) {
			if h, ok := handshakeIn(&got); ok && h.Kind == frame.HandshakeWelcome && h.Receiver == epoch {
				if f.sessions == nil {
					f.sessions = sessions{}
				}
				f.sessions[id] = [2]uint32{epoch, h.Sender}
				shake(frame.Handshake{Kind: frame.HandshakeConfirm, Sender: epoch, Receiver: h.Sender, Check: h.Check})
				return
			}
		}
		time.Sleep(time.Millisecond)
	}
	f.t.Fatalf("peer %d: no WELCOME came back", id)
}

// encode makes a frame of the session of peer id, whose id is counted from its epoch, of messages whose data is zeros.
func (f *feed) encode(id frame.EndpointID, seq uint32, msgs ...frame.Message) []byte {
	of, ok := f.sessions[id]
	plain := encode(id, frame.Seq(seq), msgs...)
	if !ok {
		return plain
	}
	b := append(make([]byte, frame.SessionHeaderSize-frame.HeaderSize), plain...)
	h := frame.SessionHeader{Dst: 2, Src: id, ID: of[0] + seq, Tag: session.Tag(session.Epoch(of[1]), session.Epoch(of[0])), Ack: of[1]}
	h.Put(b)
	return b
}

// encode makes a frame from peer id of messages whose data is zeros.
func encode(id frame.EndpointID, seq frame.Seq, msgs ...frame.Message) []byte {
	size := frame.HeaderSize
	for _, m := range msgs {
		size += (frame.MessageHeaderSize + int(m.Len) + 7) &^ 7
	}
	b := make([]byte, size)
	h := frame.Header{Dst: 2, Src: id, Seq: seq, Flags: frame.FlagMessages}
	var w frame.Writer
	w.Init(b)
	for i := range msgs {
		if w.Room() < int(msgs[i].Len) {
			panic(fmt.Sprintf("BUG: message %d does not fit", i))
		}
		w.Add(&msgs[i])
	}
	h.Put(b)
	return b[:w.Len()]
}

// bare is a message without data that writes 1 to word 0 when its transaction is
// complete.
func bare(txn uint32, count, index uint16) frame.Message {
	return frame.Message{Txn: txn, CompletionValue: 1, Count: count, Index: index}
}

package link

import (
	"context"
	"encoding/binary"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// Where letters go, and the word that says that one came.
const (
	letterBell = 16
	letterBox  = 64
)

// stranger is a scripted peer of a host: it speaks frames and letters by hand, keeps
// no rule but those that the test keeps, and acknowledges all that comes.
type stranger struct {
	t      testing.TB
	n      *net
	conn   *simnet.Conn
	id     dgrdma.EndpointID
	to     *Host
	addr   transport.Addr
	life   uint32
	theirs uint32
	txn    uint32 // of the next transaction
	seq    uint32 // of the next frame

	mu      sync.Mutex
	wide    uint32 // id of the latest frame of the host's
	hellos  []frame.Hello
	box     [boxSize]byte
	letters []letter
	mute    bool // acknowledge nothing
	words   map[uint32]uint32
	count   int // words that came, letters not counted
}

// part is a message of a frame, and its data.
type part struct {
	frame.Message
	data []byte
}

// stranger introduces a scripted peer to a host.
func (n *net) stranger(id uint16, h *Host) *stranger {
	n.t.Helper()
	s := &stranger{
		t: n.t, n: n, conn: n.sim.Attach(simnet.Addr(uint32(id)), simnet.Config{Headroom: -1}), id: dgrdma.EndpointID(id),
		to: h, addr: simnet.Addr(uint32(h.ep.ID())), life: 1000, txn: 1000, seq: 1, words: make(map[uint32]uint32),
	}
	h.ep.AcceptAny(true)
	go s.listen() // ends with the network
	s.greet()
	return s
}

// greet introduces the stranger's life.
func (s *stranger) greet() {
	s.t.Helper()
	for range 5 {
		s.hello(false)
		s.wait(time.Millisecond)
		s.mu.Lock()
		for _, h := range s.hellos {
			s.theirs = h.Life
			if h.Peer == s.life {
				s.mu.Unlock()
				s.hello(true)
				s.wait(time.Millisecond)
				return
			}
		}
		s.mu.Unlock()
	}
	s.t.Fatal("no introduction came back")
}

// restart begins another life.
func (s *stranger) restart() {
	s.mu.Lock()
	s.hellos, s.theirs = nil, 0
	s.mu.Unlock()
	s.life += 1 << 20
	s.txn = s.life
	s.greet()
}

func (s *stranger) hello(tells bool) {
	s.frame(part{Message: frame.Hello{Life: s.life, Peer: s.theirs, Tells: tells}.Message()})
}

// setMute says whether the stranger acknowledges nothing from now on.
func (s *stranger) setMute(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mute = on
}

// wait lets time pass, and everything happen.
func (s *stranger) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (s *stranger) raw(b []byte) {
	s.conn.Send([]transport.Outgoing{{To: &s.addr, Buf: b}}) // fails when the network is closed
}

// frame sends messages in one frame.
func (s *stranger) frame(parts ...part) {
	b := make([]byte, 8900)
	s.mu.Lock()
	hd := frame.Header{Dst: s.to.ep.ID(), Src: s.id, Seq: frame.Seq(s.seq), Flags: frame.FlagMessages}
	if _, ok := parts[0].Hello(); ok {
		hd.SetHelloID(s.seq)
	}
	s.seq++
	s.mu.Unlock()
	var w frame.Writer
	w.Init(b)
	for _, m := range parts {
		m.Len = uint16(len(m.data))
		copy(w.Add(&m.Message), m.data)
	}
	hd.Put(b)
	s.raw(b[:w.Len()])
}

// write is a transaction of one message.
func (s *stranger) write(at uint32, data []byte, flagAt, flag uint32) part {
	p := s.message(0, 1, 1, at, data, flagAt, flag)
	s.txn++
	return p
}

// word is a transaction without data.
func (s *stranger) word(at, value uint32) part {
	p := s.message(0, 0, frame.NotHello, 0, nil, at, value)
	s.txn++
	return p
}

// message is one of a transaction that is so many after the next one.
func (s *stranger) message(txn uint32, count, index uint16, at uint32, data []byte, flagAt, flag uint32) part {
	return part{frame.Message{Txn: s.txn + txn, Count: count, Index: index, Addr: at, CompletionAddr: flagAt, CompletionValue: flag}, data}
}

// letter sends a letter, and waits until it is read.
func (s *stranger) letter(l letter) {
	var b [boxSize]byte
	n := l.put(b[:])
	s.frame(s.write(letterBox, b[:n], letterBell, uint32(n)))
	s.wait(5 * time.Millisecond)
}

// mail returns the letters that came.
func (s *stranger) mail() []letter {
	s.wait(20 * time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	got := s.letters
	s.letters = nil
	return got
}

// listen places what comes, and acknowledges it.
func (s *stranger) listen() {
	dst := make([]transport.Datagram, 16)
	for {
		n, err := s.conn.Recv(dst, transport.Forever)
		if err != nil {
			return
		}
		for _, d := range dst[:n] {
			f, err := frame.Parse(append([]byte(nil), d.Data...))
			if err != nil {
				s.t.Error(err)
			} else if f.HasMessages() {
				s.take(&f)
			}
		}
	}
}

func (s *stranger) take(f *frame.Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := f.Cursor(); c.Next(); {
		if h, ok := c.Msg.Hello(); ok {
			s.wide = f.HelloID()
			s.hellos = append(s.hellos, h)
			return
		}
		if at := c.Msg.Addr; c.Msg.Len > 0 && at >= letterBox && int(at)+len(c.Data) <= letterBox+boxSize {
			copy(s.box[at-letterBox:], c.Data)
		}
		if c.Msg.Count > 1 && c.Msg.Index < c.Msg.Count || !c.Msg.Completes() {
			continue // no frame is lost or overtaken
		}
		if c.Msg.CompletionAddr != letterBell {
			s.words[c.Msg.CompletionAddr] = c.Msg.CompletionValue
			s.count++
			continue
		}
		// Who says that its buffers are where its letter box is gets damaged letters.
		if l, err := parseLetter(s.box[:min(c.Msg.CompletionValue, boxSize)]); err == nil {
			s.letters = append(s.letters, l)
		}
	}
	s.wide += uint32(f.Seq.Diff(frame.Seq(s.wide)))
	if s.mute {
		return
	}
	b := make([]byte, frame.HeaderSize+frame.StampSize)
	hd := frame.Header{Dst: s.to.ep.ID(), Src: s.id, Seq: frame.Seq(s.seq), AckStart: f.Seq, AckCount: 1}
	hd.Put(b)
	frame.Stamp{Life: s.theirs, ID: s.seq, Start: s.wide}.Put(b[frame.HeaderSize:])
	s.seq++
	s.raw(b)
}

// buffers is what a stranger says of its memory.
func buffers(n, size uint32) half {
	return half{Buffers: n, Size: size, Pitch: size, Data: 1 << 20, Flags: 1 << 16, FlagPitch: 4, Credit: 1 << 15}
}

// dial asks for a link to a port, as number from, and returns the answer.
func (s *stranger) dial(from uint32, port string, d direction, out, back half) letter {
	s.t.Helper()
	s.letter(letter{kind: letterOpen, directions: d, from: from, attempt: uint64(from), name: port, out: out, back: back})
	for _, l := range s.mail() {
		if l.to == from && (l.kind == letterAccept || l.kind == letterRefuse) {
			return l
		}
	}
	s.t.Fatalf("no answer to the letter for link %d", from)
	return letter{}
}

// dialed has the host dial the stranger, which answers with what answer makes of the
// letter, and returns what came of it.
func (s *stranger) dialed(ctx context.Context, o *Options, answer func(open letter) letter) (*Link, error) {
	s.t.Helper()
	var l *Link
	ended := make(chan error, 1)
	go func() {
		var err error
		l, err = s.to.Dial(ctx, at(uint16(s.id)), "there", o)
		ended <- err
	}()
	for _, open := range s.mail() {
		if open.kind == letterOpen {
			s.letter(answer(open))
		}
	}
	err := <-ended
	return l, err
}

// serve accepts the links to a port until the test ends, and returns where they are.
func (h *Host) serve(t testing.TB, port string, o *Options) <-chan *Link {
	t.Helper()
	p, err := h.Listen(port, o)
	if err != nil {
		t.Fatal(err)
	}
	made := make(chan *Link, 10000)
	go func() {
		for {
			l, err := p.Accept(t.Context())
			if err != nil {
				return
			}
			made <- l
		}
	}()
	t.Cleanup(func() { p.Close() })
	return made
}

// put32 is words as bytes.
func put32(v ...uint32) (b []byte) {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}

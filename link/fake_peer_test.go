package link

import (
	"context"
	"encoding/binary"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/endpoint/session"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// The addresses of letters, and of the words that say that one came: each of as many bytes as
// letterUnit has a word.
const (
	letterBells = 64
	letterBox   = 1024
	letterUnit  = 64
	letterUnits = 128
)

// fakePeer is a scripted peer of a host: it speaks frames and letters by hand, keeps no rule but those
// that the test keeps, and acknowledges all that comes.
type fakePeer struct {
	t           testing.TB
	n           *net
	conn        *simnet.Conn
	id          dgrdma.EndpointID
	to          *Host
	addr        transport.Addr
	localEpoch  uint32 // of its session
	remoteEpoch uint32 // the host's; 0: there is no session
	check       uint32 // of the WELCOME
	txn         uint32 // of the next transaction
	seq         uint32 // of the next frame, counted from the epoch
	unit        uint32 // where its next letter begins

	mu      sync.Mutex
	arrived ack.ReceivedIDs // the frames of the host that arrived
	welcome chan frame.Handshake
	box     [dgrdma.MailSize - letterBox]byte
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

// fakePeer makes a scripted peer known to a host.
func (n *net) fakePeer(id uint16, h *Host) *fakePeer {
	n.t.Helper()
	s := &fakePeer{
		t: n.t, n: n, conn: n.sim.Attach(simnet.Addr(uint32(id)), simnet.Config{Headroom: -1}), id: dgrdma.EndpointID(id),
		to: h, addr: simnet.Addr(uint32(h.ep.ID())), localEpoch: 1000, txn: 1000, welcome: make(chan frame.Handshake, 16), words: make(map[uint32]uint32),
	}
	h.ep.AcceptAny(true)
	go s.listen() // ends with the network
	s.greet()
	return s
}

// greet begins a session.
func (s *fakePeer) greet() {
	s.t.Helper()
	for range 5 {
		s.shake(frame.Handshake{Kind: frame.HandshakeHello, Sender: s.localEpoch})
		s.wait(time.Millisecond)
		select {
		case h := <-s.welcome:
			s.mu.Lock()
			s.remoteEpoch, s.check, s.seq, s.unit = h.Sender, h.Check, 1, 0
			s.arrived.Begin(h.Sender)
			s.mu.Unlock()
			s.confirm()
			s.wait(time.Millisecond)
			return
		default:
		}
	}
	s.t.Fatal("no WELCOME came back")
}

// confirm says, again, that the session exists.
func (s *fakePeer) confirm() {
	s.shake(frame.Handshake{Kind: frame.HandshakeConfirm, Sender: s.localEpoch, Receiver: s.remoteEpoch, Check: s.check})
}

// shake sends a frame of the handshake. The fake peer's letter box is where its memory begins.
func (s *fakePeer) shake(h frame.Handshake) {
	b := make([]byte, frame.HandshakeSize+frame.ServicesSize)
	h.Put(b, s.to.ep.ID(), s.id)
	var list frame.Services
	for _, name := range []string{"memory", ServiceName} {
		n, err := frame.ParseServiceName(name)
		if err != nil {
			s.t.Fatal(err)
		}
		list.Add(frame.Service{Name: n})
	}
	list.Known = frame.MostServices
	list.Put(b[frame.HandshakeSize:])
	s.raw(b)
}

// restart begins another session.
func (s *fakePeer) restart() {
	s.mu.Lock()
	s.remoteEpoch = 0
	s.mu.Unlock()
	s.localEpoch += 1 << 20
	s.txn = s.localEpoch
	s.greet()
}

// setMute says whether the fake peer acknowledges nothing from now on.
func (s *fakePeer) setMute(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mute = on
}

// wait lets time pass, and everything happen.
func (s *fakePeer) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (s *fakePeer) raw(b []byte) {
	s.conn.Send([]transport.Outgoing{{To: &s.addr, Buf: b}}) // fails when the network is closed
}

// frame sends messages in one frame.
func (s *fakePeer) frame(parts ...part) {
	b := make([]byte, 8900)
	s.mu.Lock()
	hd := s.header()
	s.seq++
	s.mu.Unlock()
	var w frame.Writer
	w.InitAfter(b, frame.SessionHeaderSize)
	for _, m := range parts {
		m.Len = uint16(len(m.data))
		copy(w.Add(&m.Message), m.data)
	}
	hd.Put(b)
	s.raw(b[:w.Len()])
}

// header returns the header of the next frame. Guarded by mu.
func (s *fakePeer) header() frame.SessionHeader {
	tag := session.Tag(session.Epoch(s.remoteEpoch), session.Epoch(s.localEpoch))
	return frame.SessionHeader{Dst: s.to.ep.ID(), Src: s.id, ID: s.localEpoch + s.seq, Tag: tag, Ack: s.arrived.UpTo()}
}

// write returns a transaction of one message.
func (s *fakePeer) write(at uint32, data []byte, flagAt, flag uint32) part {
	p := s.message(0, 1, 1, at, data, flagAt, flag)
	s.txn++
	return p
}

// word returns a transaction without data.
func (s *fakePeer) word(at, value uint32) part {
	p := s.message(0, 0, frame.NotHandshake, 0, nil, at, value)
	s.txn++
	return p
}

// message returns a message of the transaction that is txn after the next one.
func (s *fakePeer) message(txn uint32, count, index uint16, at uint32, data []byte, flagAt, flag uint32) part {
	return part{frame.Message{Txn: s.txn + txn, Count: count, Index: index, Addr: at, CompletionAddr: flagAt, CompletionValue: flag}, data}
}

// places returns the bell of its next letter, and where that goes.
func (s *fakePeer) places() (bell, box uint32) {
	return letterBells + 4*s.unit, letterBox + s.unit*letterUnit
}

// mailed returns a letter of so many bytes, of which these are written.
func (s *fakePeer) mailed(b []byte, length uint32) part {
	bell, box := s.places()
	if length <= boxSize {
		if s.unit += max(1, (length+letterUnit-1)/letterUnit); s.unit >= letterUnits {
			s.unit = 0
		}
	}
	return s.write(box, b, bell, length)
}

// letter sends a letter, and waits until it is read.
func (s *fakePeer) letter(l letter) {
	var b [boxSize]byte
	n := l.put(b[:])
	s.frame(s.mailed(b[:n], uint32(n)))
	s.wait(5 * time.Millisecond)
}

// mail returns the letters that came.
func (s *fakePeer) mail() []letter {
	s.wait(20 * time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	got := s.letters
	s.letters = nil
	return got
}

// listen places what comes, and acknowledges it.
func (s *fakePeer) listen() {
	dst := make([]transport.Datagram, 16)
	for {
		n, err := s.conn.Recv(dst, transport.Forever)
		if err != nil {
			return
		}
		for _, d := range dst[:n] {
			b := append([]byte(nil), d.Data...)
			if frame.IsSession(b) {
				f, err := frame.ParseSession(b)
				if err != nil {
					s.t.Error(err)
				}
				s.take(&f)
				continue
			}
			f, err := frame.Parse(b)
			if err != nil {
				s.t.Error(err)
			}
			c := f.Cursor()
			c.Next()
			if h, ok := frame.HandshakeOf(&f, &c.Msg); ok && h.Kind == frame.HandshakeWelcome && h.Receiver == s.localEpoch {
				select {
				case s.welcome <- h:
				default:
				}
			}
		}
	}
}

func (s *fakePeer) take(f *frame.SessionFrame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Control != frame.NoControl && f.Control != frame.ControlBell || s.remoteEpoch == 0 {
		return
	}
	if s.mute {
		s.place(f)
		return
	}
	if now := ack.Instant(time.Now().UnixNano()); s.arrived.Check(f.ID) == ack.Fresh {
		s.arrived.Arrive(now, f.ID, f.Copy)
		s.place(f)
	} else {
		s.arrived.ArriveAgain(now, f.ID, f.Copy)
	}
	b := make([]byte, frame.MostSessionAck)
	hd := s.header()
	hd.ID = f.ID
	s.raw(b[:frame.PutSessionAckFrame(b, &hd, false, f.Copy, frame.LongestDelay, s.arrived.AppendRanges(nil))])
}

// place does what the messages of a frame ask for. Guarded by mu.
func (s *fakePeer) place(f *frame.SessionFrame) {
	for c := f.Cursor(); c.Next(); {
		if c.Msg.Type == frame.TypeServices {
			break
		}
		if at := c.Msg.Addr; c.Msg.Len > 0 && at >= letterBox && int(at)+len(c.Data) <= dgrdma.MailSize {
			copy(s.box[at-letterBox:], c.Data)
		}
		if c.Msg.Count > 1 && c.Msg.Index < c.Msg.Count || !c.Msg.Completes() {
			continue // no frame is lost or overtaken
		}
		unit := (c.Msg.CompletionAddr - letterBells) / 4
		if c.Msg.CompletionAddr%4 != 0 || unit >= letterUnits {
			s.words[c.Msg.CompletionAddr] = c.Msg.CompletionValue
			s.count++
			continue
		}
		// A peer that says that its buffers are where its letter box is gets damaged letters.
		if l, err := parseLetter(s.box[unit*letterUnit:][:min(c.Msg.CompletionValue, boxSize)]); err == nil {
			s.letters = append(s.letters, l)
		}
	}
}

// buffers returns what a fake peer says of its memory.
func buffers(n, size uint32) half {
	return half{Buffers: n, Size: size, Pitch: size, Data: 1 << 20, Flags: 1 << 16, FlagPitch: 4, Credit: 1 << 15}
}

// dial asks for a link to a port, as number from, and returns the answer.
func (s *fakePeer) dial(from uint32, port string, d direction, out, back half) letter {
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

// dialed has the host dial the fake peer, which answers with what answer makes of the letter, and
// returns the result.
func (s *fakePeer) dialed(ctx context.Context, o *Options, answer func(open letter) letter) (*Link, error) {
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

// serve accepts the links to a port until the test ends, and returns a channel of them.
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

// put32 returns words as bytes.
func put32(v ...uint32) (b []byte) {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}

package latency

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/internal/places"
	"github.com/dgrdma/dgrdma/verbs"
)

// Server takes clients. Its fields do not change once it does.
type Server struct {
	// Verbs has NoCRC, Strict and Timeout of connections; the rest is this package's.
	Verbs verbs.Options
	// Most is how many bytes an operation may have; 0: DefaultMost.
	Most uint32
	// File, if not nil, is memory of clients that Flush, which is persistent then: its first Most bytes.
	File *os.File

	patience time.Duration // 0: Patience
	once     sync.Once
	room     *places.Room
}

const (
	// DefaultMost is how many bytes an operation may have unless a server says otherwise.
	DefaultMost = 1 << 20
	// MostClients is how many a server has at once. Arbitrary.
	MostClients = 256
	// memory is how much all of them have, or what two of the largest need, if that is more. Arbitrary.
	memory = 256 << 20
	// Patience is for how long a client may do nothing while another wants its place.
	Patience = 10 * time.Second
)

// ErrGaveWay is the end of a client that has lost its place to another.
var ErrGaveWay = errors.New("the client has lost its place to another one")

// MostBytes is how many bytes an operation may have.
func (s *Server) MostBytes() uint32 {
	if s.Most == 0 {
		return DefaultMost
	}
	return s.Most
}

// enter takes a place for a client. Where there is none left, a silent client gives way, or one of the host that has most.
func (s *Server) enter(ctx context.Context, at net.Addr, size uint32) (*places.Place, error) {
	s.once.Do(func() {
		s.room = &places.Room{Most: MostClients, Bytes: max(memory, 4*uint64(s.MostBytes())), Patience: cmp.Or(s.patience, Patience)}
	})
	p, err := s.room.Enter(ctx, hostOf(at), 2*uint64(size)) // what is sent, and what is received
	if err != nil {
		return nil, refuse(ErrRefused, "%d clients are there already: try again later, or with a smaller size", s.room.Len())
	}
	return p, nil
}

// hostOf is the address of a client's host; over what has no such addresses all are one host.
func hostOf(at net.Addr) netip.Addr {
	if at, ok := at.(*net.TCPAddr); ok {
		return at.AddrPort().Addr()
	}
	return netip.Addr{}
}

// Accept takes a client, or rejects it, and the error says why: ErrStranger, ErrRefused.
func (s *Server) Accept(ctx context.Context, h *verbs.Host, r *verbs.Request) (*Session, error) {
	var asked request
	err := asked.parse(r.Private)
	if err == nil && asked.size > s.MostBytes() {
		return nil, s.tooLarge(r, &asked)
	}
	var place *places.Place
	if err == nil {
		place, err = s.enter(ctx, r.RemoteAddr(), asked.size)
	}
	if err != nil {
		return nil, errors.Join(err, r.TurnAway(words(err)))
	}
	c := &Session{server: s, place: place, Op: asked.op, Size: asked.size}
	if err := c.open(ctx, h, r, &asked); err != nil {
		c.release()
		return nil, err
	}
	c.way, c.giveWay = context.WithCancelCause(context.Background())
	place.Serve(c.done, func() { c.giveWay(ErrGaveWay) })
	return c, nil
}

// tooLarge rejects a client whose operations are larger than the server takes.
func (s *Server) tooLarge(r *verbs.Request, asked *request) error {
	said := fmt.Sprintf("%v of %d bytes: the server takes %d at most; give ping --serve as large a --size", asked.op, asked.size, s.MostBytes())
	return errors.Join(&refusal{ErrRefused, said}, r.TurnAway(oversize(asked.op, said)))
}

// words are what a client is told. None are longer than private data may be.
func words(err error) []byte {
	if r := (*refusal)(nil); errors.As(err, &r) {
		return []byte(r.said)
	}
	return []byte(err.Error())
}

// Session is a client as its server has it.
type Session struct {
	Op   Op
	Size uint32

	server   *Server
	place    *places.Place
	way      context.Context // ends when the client is to give way
	giveWay  context.CancelCauseFunc
	q        *verbs.QueuePair
	queue    *verbs.CompletionQueue
	region   *verbs.Region
	inbox    []byte
	answer   []verbs.Work // to a Send or a Write
	answered atomic.Uint64
}

func (c *Session) open(ctx context.Context, h *verbs.Host, r *verbs.Request, asked *request) error {
	v := c.server.Verbs
	v.Domain, v.Extensions = h.NewDomain(), c.Op.extensions()
	c.queue = verbs.NewCompletionQueue()
	v.Completions, v.Received = c.queue, c.queue
	granted := reply{op: c.Op}
	data := make([]byte, c.Size)
	var err error
	switch {
	case c.Op == Send:
		c.inbox = make([]byte, c.Size)
		c.answer = []verbs.Work{{Op: verbs.OpSend, Data: data, Silent: true}}
	case c.Op == Flush && c.server.File != nil:
		granted.persistent = true
		c.region, err = register(v.Domain, c.server.File, c.Size)
	case c.Op == Write:
		c.answer = written(asked.key, data)
		fallthrough
	default:
		c.region, err = v.Domain.Register(make([]byte, c.Size), c.Op.rights(), nil)
	}
	if err != nil {
		return errors.Join(err, r.TurnAway([]byte("the server has no memory for it")))
	}
	if c.region != nil {
		granted.key = c.region.Key()
	}
	v.Private, v.Posted = granted.bytes(), []verbs.Receive{c.receive(), c.receive()}
	c.q, err = r.Accept(ctx, &v)
	return err
}

func register(d *verbs.Domain, f *os.File, size uint32) (*verbs.Region, error) {
	return d.RegisterFile(f, 0, int64(size), Flush.rights()|verbs.FlushPersistent, nil)
}

// CheckFile says why a file cannot be [Server.File] for so many bytes. It has as many afterwards.
func CheckFile(f *os.File, size uint32) error {
	h, err := verbs.Open("tcp")
	if err != nil {
		return err
	}
	defer h.Close()
	r, err := register(h.Domain(), f, size)
	if err != nil {
		return err
	}
	return r.Close()
}

// receive is for a Send, or for what tells of a Write. Nobody looks at the bytes, so all go to the same place.
func (c *Session) receive() verbs.Receive { return verbs.Receive{Data: c.inbox} }

// Run serves the client until it closes the connection, which is no error, or something else ends it, or ctx: then
// the client finds the connection closed.
func (c *Session) Run(ctx context.Context) error {
	defer c.release()
	defer c.giveWay(nil)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(c.way, func() { stop(context.Cause(c.way)) })()
	for {
		d, err := next(ctx, c.queue)
		if err == nil && d.Op == verbs.OpReceive && c.answer == nil {
			err = fmt.Errorf("a message of %d bytes during %v, which has none", d.Length, c.Op)
		}
		if err == nil && d.Op == verbs.OpReceive {
			c.answered.Add(1)
			if err = c.q.PostReceive(c.receive()); err == nil {
				_, err = c.q.PostList(c.answer)
			}
		}
		switch {
		case err == nil:
		case end(err) == nil:
			c.q.Close()
			return nil
		default:
			closing, stop := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
			defer stop()
			c.q.Shutdown(closing)
			return err
		}
	}
}

// goodbye is how long a client may take to close the connection that the server ends. Arbitrary.
const goodbye = 100 * time.Millisecond

// Answered is how many Sends or Writes were answered. Of other operations the program hears nothing.
func (c *Session) Answered() uint64 { return c.answered.Load() }

func (c *Session) release() {
	if c.region != nil {
		c.region.Close()
	}
	c.place.Leave()
}

// done is how many operations the client has done.
func (c *Session) done() (n uint64) {
	s := c.q.Stats()
	for _, of := range s.Served {
		n += of
	}
	return n
}

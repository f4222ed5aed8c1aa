package verbs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dgrdma/dgrdma/internal/refused"
	"github.com/dgrdma/dgrdma/rdmap"
	"github.com/dgrdma/dgrdma/rdmap/memory"
	"github.com/dgrdma/dgrdma/rdmap/mpa"
)

// Host is one side of RDMA connections: its memory, its listeners, its queue pairs.
type Host struct {
	local  string // the address to dial from and to listen at; empty: all
	table  *memory.Table
	domain *Domain

	mu     sync.Mutex
	pairs  map[*QueuePair]bool
	open   map[*Listener]bool
	closed bool
	past   HostStats // of queue pairs that have ended

	setUps setUps
	bounds bounds
	away   *turnedAway // of Await
}

// Open opens a host at an address of this machine, from which it dials and at which it listens: "tcp:10.0.0.1", or "tcp"
// for all addresses. No socket is opened before [Host.Listen] or [Host.Dial].
func Open(address string) (*Host, error) {
	local, err := splitTCP(address)
	if err != nil {
		return nil, err
	}
	if local != "" && strings.Contains(local, ":") && !strings.HasPrefix(local, "[") && net.ParseIP(stripZone(local)) == nil {
		return nil, fmt.Errorf("open %q: a host is opened at an address without a port; the port is for Listen", address)
	}
	h := &Host{local: strings.Trim(local, "[]"), table: memory.NewTable(), pairs: make(map[*QueuePair]bool), open: make(map[*Listener]bool), away: newTurnedAway()}
	h.domain = h.NewDomain()
	return h, nil
}

func stripZone(s string) string {
	s, _, _ = strings.Cut(s, "%")
	return s
}

// splitTCP returns what follows the scheme.
func splitTCP(address string) (string, error) {
	scheme, rest, _ := strings.Cut(address, ":")
	const begins = "an address begins with tcp:, as in tcp:10.0.0.1:7471"
	switch {
	case scheme == "udp" || scheme == "ether" || strings.HasPrefix(scheme, "ocpi-"):
		return "", fmt.Errorf("%q: that is an endpoint string of DG/RDMA, which package dgrdma opens: here %s", address, begins)
	case scheme != "tcp":
		return "", fmt.Errorf("%q: %s", address, begins)
	}
	return rest, nil
}

// NewDomain makes a protection domain.
func (h *Host) NewDomain() *Domain { return &Domain{d: h.table.NewDomain()} }

// Domain is the domain of queue pairs that are opened without another.
func (h *Host) Domain() *Domain { return h.domain }

// Register grants bytes to the queue pairs of the host's domain. See [Domain.Register], which has more to
// choose, and [Domain.RegisterFile].
func (h *Host) Register(b []byte, rights Rights) (*Region, error) {
	return h.domain.Register(b, rights, nil)
}

// Options are how a queue pair is opened. The zero value, as nil, is every option's default.
type Options struct {
	// Private is for the peer's program, which finds it in [Request.Private] or [QueuePair.Private]: at most
	// [MaxPrivate] bytes.
	Private []byte
	// Domain is that of the queue pair; nil: the host's.
	Domain *Domain
	// Stream, if not nil, becomes the stream of the queue pair, and has its domain. Each is for one connection: where that does
	// not come about, another queue pair can have it.
	Stream *Stream
	// Sends and Receives are how many requests each queue holds; 0: 128. Memory for them is taken when the queue
	// pair is opened.
	Sends, Receives int
	// IRD is how many requests of the peer (Reads, atomics, Flush, Verify, Atomic Write) this side keeps that it has
	// to answer, ORD how many of its own it would like to have outstanding; 0: 32, below 0: none. The peer may lower
	// both: [QueuePair.Limits].
	IRD, ORD int
	// Extensions are those that both sides have agreed on: nothing on the wire tells of them, and a
	// peer that does not know one ends the connection.
	Extensions Extensions
	// Posted are receives that are there before the peer can send. If they are more than Receives, that is raised. Not
	// with Shared.
	Posted []Receive
	// Completions and Received are the queues in which requests complete; nil: the queue pair's own.
	Completions, Received *CompletionQueue
	// Shared is a queue of receives that several queue pairs share; nil: the queue pair's own.
	Shared *SharedReceives

	// NoCRC does without checksums if the peer does, too. Without them data is received straight into its
	// place; with them it is checked first.
	NoCRC bool
	// Strict keeps to the letter of RFC 5044: otherwise two of this implementation find each other by a
	// reserved bit, and use frames longer than a TCP segment.
	Strict bool
	// Revision of MPA to ask for: 1 or 2; 0: 2. Revision 1 tells nothing of IRD and ORD.
	Revision int
	// PeerToPeer lets the side that accepts speak first, and Ready says how that is made
	// possible; 0: as the peer likes.
	PeerToPeer bool
	Ready      Ready
	// Timeout is for each step of setting up, within what the context allows; 0: ten seconds.
	Timeout time.Duration
	// GiveUp is how long the peer may do nothing of what it has to: answer requests of this side, or take what was sent. Then the
	// connection ends with [ErrSilent]: not before, and no more than about an eighth of it later. A Flush or a Verify may take the peer's disk as long. A
	// peer that has nothing to do is given up if its machine does not answer TCP for so long, in whole seconds, two at least. 0: see
	// the package's documentation.
	GiveUp time.Duration
}

// MaxPrivate is the length of private data that every peer is known to take.
const MaxPrivate = mpa.SafePrivate

const (
	defaultDepth = 128
	defaultReads = 32
)

var errStreamTaken = fmt.Errorf("%w: Stream is that of another queue pair: make one for each", ErrOption)

// check says what is wrong before a peer is bothered with it.
func (o *Options) check() error {
	switch {
	case len(o.Private) > MaxPrivate:
		return fmt.Errorf("%w: Private has %d bytes, and %d are allowed: send the rest as a message", ErrOption, len(o.Private), MaxPrivate)
	case o.Shared != nil && len(o.Posted) > 0:
		return fmt.Errorf("%w: Posted and Shared exclude each other: post the receives to the shared queue", ErrOption)
	case o.Stream != nil && o.Stream.taken.Load():
		return errStreamTaken
	case o.Stream != nil && o.Domain != nil && o.Stream.of != o.Domain:
		return fmt.Errorf("%w: Stream is of another domain than Domain: leave Domain out", ErrOption)
	case o.Extensions&^(Atomics|Immediates|Commit) != 0:
		return fmt.Errorf("%w: Extensions has %v", ErrOption, o.Extensions)
	}
	return nil
}

func (o *Options) reads(n int) int {
	switch {
	case n == 0:
		return defaultReads
	case n < 0:
		return 0
	}
	return n
}

func (o *Options) depth(n int) int {
	if n <= 0 {
		return defaultDepth
	}
	return n
}

// mpa returns what concerns the carrier.
func (o *Options) mpa() *mpa.Options {
	return &mpa.Options{Private: o.Private, NoCRC: o.NoCRC, IRD: o.reads(o.IRD), ORD: o.reads(o.ORD), Strict: o.Strict,
		Rev: o.Revision, PeerToPeer: o.PeerToPeer, Ready: o.Ready, Timeout: o.Timeout, Terminate: rdmap.SetUpTerminate}
}

// Dial connects to a peer, as in "tcp:10.0.0.2:7471", which is what [Listener.String] says. It returns when the peer's
// program has accepted: ctx bounds how long that takes, and [Options.Timeout] how long the peer has for its answer when
// the TCP connection is there. When Dial has returned, ctx means nothing to the queue pair.
//
// Errors are those of package net where nobody listens; [RejectedError] if the peer's program does not want the
// connection; [SetUpError] if the two sides do not fit, and with [ErrNotMPA] if whoever listens there does not speak
// iWARP; [ErrLost] if they end the connection, or say nothing; [ErrOption] for what cannot be asked for.
func (h *Host) Dial(ctx context.Context, address string, o *Options) (*QueuePair, error) {
	if o == nil {
		o = &Options{}
	}
	remote, err := splitTCP(address)
	if err != nil {
		return nil, err
	}
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("dial %s: %w", address, err)
	}
	nc, err := h.reach(ctx, address, remote)
	if err != nil {
		h.setUps.failed.Add(1)
		return nil, err
	}
	return h.connect(ctx, nc, o)
}

// reach makes the TCP connection.
func (h *Host) reach(ctx context.Context, address, remote string) (net.Conn, error) {
	d := net.Dialer{}
	if h.local != "" {
		a, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(h.local, "0"))
		if err != nil {
			return nil, fmt.Errorf("dial %s from %s: %w", address, h.local, h.explain(err))
		}
		d.LocalAddr = a
	}
	nc, err := d.DialContext(ctx, "tcp", remote)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil, fmt.Errorf("dial %s: nothing listens there: start the peer first, and look at its port: %w", address, err)
	case err != nil:
		return nil, fmt.Errorf("dial %s: %w", address, h.explain(err))
	}
	return nc, nil
}

// explain says what a user may do where the system has no socket for the host.
func (h *Host) explain(err error) error {
	var name *net.DNSError
	switch {
	case errors.As(err, new(*net.AddrError)), errors.As(err, &name) && strings.HasPrefix(name.Name, "tcp/"): // the second is of a port's name
		return fmt.Errorf("%w; Dial takes tcp:HOST:PORT, as in tcp:10.0.0.2:7471, and Listen a port alone, as in 7471", err)
	case name != nil:
		return refused.Name(name.Name, err)
	case refused.NoFiles(err):
		return refused.Files(err)
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return refused.Way(err)
	}
	return refused.Bind(err, h.local == "")
}

// Connect opens a queue pair over a connection that is there, as its initiator. The connection is the
// queue pair's from then on, and closed if that fails. The other side takes it by a [Listener], or by
// [Host.Await]: one of TLS, as an example. Errors are those of [Host.Dial].
func (h *Host) Connect(ctx context.Context, nc net.Conn, o *Options) (*QueuePair, error) {
	if o == nil {
		o = &Options{}
	}
	if err := o.check(); err != nil {
		nc.Close()
		return nil, setUp("connect to", nc.RemoteAddr(), err)
	}
	return h.connect(ctx, nc, o)
}

func (h *Host) connect(ctx context.Context, nc net.Conn, o *Options) (*QueuePair, error) {
	conn, err := mpa.Initiate(ctx, nc, o.mpa())
	if err != nil {
		h.setUps.fail(err)
		return nil, setUp("connect to", nc.RemoteAddr(), err)
	}
	return h.start(conn, o, &h.setUps.dialed)
}

// setUp is an error of setting a connection up, which says of whom, unless nobody was asked.
func setUp(doing string, with net.Addr, err error) error {
	if errors.Is(err, ErrOption) {
		return fmt.Errorf("%s %v: %w", doing, with, err)
	}
	return err
}

// start opens the queue pair over a connection that is set up, and counts it.
func (h *Host) start(conn *mpa.Conn, o *Options, counter *atomic.Uint64) (*QueuePair, error) {
	agreed := conn.Agreed()
	own := o.Stream
	switch {
	case own != nil:
	case o.Domain != nil:
		own = o.Domain.NewStream()
	default:
		own = h.domain.NewStream()
	}
	q := &QueuePair{host: h, conn: conn, private: agreed.Private, own: own, memory: own.s, done: make(chan struct{}),
		sent: o.Completions, received: o.Received}
	if q.sent == nil {
		q.sent = NewCompletionQueue()
		q.sent.own = q
	}
	if q.received == nil {
		q.received = NewCompletionQueue()
		q.received.own = q
	}
	q.changed.L, q.sends = &q.mu, q.send
	q.ctx, q.stop = context.WithCancel(context.Background())
	q.cfg = rdmap.Config{
		Initiator: counter == &h.setUps.dialed, Ready: readyOf(agreed), IRD: agreed.IRD, ORD: agreed.ORD, Extensions: o.Extensions,
		Sends: o.depth(o.Sends), Receives: max(o.depth(o.Receives), len(o.Posted)),
		Memory: access{q.memory}, Sent: (*completer)(q.sent), Received: (*completer)(q.received), Owner: q, Job: q.work,
	}
	if o.Shared != nil {
		q.cfg.Shared = (*taker)(o.Shared)
	}
	q.stream = rdmap.New(q.cfg)
	q.lending.init()
	q.queues((*CompletionQueue).serve) // from here on who waits there knows of it
	var err error
	for _, r := range o.Posted {
		err = errors.Join(err, q.stream.PostReceive(rdmap.Receive(r)))
	}
	h.mu.Lock()
	if h.closed {
		err = errors.Join(err, net.ErrClosed)
	}
	if err == nil && own.taken.Swap(true) {
		err = errStreamTaken
	}
	if err == nil {
		h.pairs[q] = true
	}
	h.mu.Unlock()
	if err != nil {
		conn.Abort()
		q.queues((*CompletionQueue).served)
		h.setUps.failed.Add(1)
		return nil, fmt.Errorf("open %v: %w", q, err)
	}
	counter.Add(1)
	q.turn.claim()
	q.watch(o.GiveUp)
	go q.receive()
	q.sendAway() // the message that opens the stream, if there is one
	return q, nil
}

func readyOf(a mpa.Agreed) rdmap.Ready {
	switch a.Ready {
	case mpa.ReadyWrite:
		return rdmap.ReadyWrite
	case mpa.ReadyRead:
		return rdmap.ReadyRead
	case mpa.ReadySend:
		return rdmap.ReadySend
	}
	return rdmap.ReadyNone
}

// QueuePairs are those that are open, in no order.
func (h *Host) QueuePairs() []*QueuePair {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.pairs))
}

// forget is told of a queue pair that has ended, why, and what it has done.
func (h *Host) forget(q *QueuePair, done Stats, why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.pairs, q)
	h.past.add(done)
	h.past.ended(why)
}

// Close closes the listeners and aborts the queue pairs of the host, and returns when everything has
// completed. Regions stay as they are.
func (h *Host) Close() error {
	h.mu.Lock()
	h.closed = true
	pairs := slices.Collect(maps.Keys(h.pairs))
	open := slices.Collect(maps.Keys(h.open))
	h.mu.Unlock()
	h.away.end()
	for _, l := range open {
		l.Close()
	}
	for _, q := range pairs {
		q.Abort()
	}
	return nil
}

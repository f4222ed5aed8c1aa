package stream

import (
	"context"
	"io"
	"sync"
	"sync/atomic"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
)

const (
	// DefaultPort is the port of dgrdmacat's listen.
	DefaultPort = "stream"
	// Unknown is the size of a stream whose sender does not know it before the end.
	Unknown = -1

	buffers    = 128
	bufferSize = 256 << 10 // stays in a core's cache from when it is filled until it is sent

	// Memory is how much of its host's memory a receiver takes for each stream: the buffers, a page's
	// worth of bookkeeping for each, and a reserve.
	Memory = buffers*(bufferSize+1024) + 1<<20
)

// Options are how one side wants its streams. The zero value is good.
type Options struct {
	// Port is the name of the host's port. Empty means DefaultPort.
	Port string
	// Duplex has bytes go in both directions. Both sides need it.
	Duplex bool
	// Checksum has SHA-256 compared at both ends. It is enough if one side wants it.
	Checksum bool
	// Filter, if not nil, is called by Accept for every dialer, before the stream takes memory.
	// duplex is what the dialer wants. The dialer is refused with the error that Filter returns.
	Filter func(peer dgrdma.PeerName, duplex bool) error
	// Refused, if not nil, is called for each dialer that Accept refused, by Filter or because it speaks
	// no streams.
	Refused func(peer dgrdma.PeerName, why error)
}

func (o *Options) or() (full Options) {
	if o != nil {
		full = *o
	}
	if full.Port == "" {
		full.Port = DefaultPort
	}
	return full
}

// hello returns the private data of this side.
func (o *Options) hello(size int64) []byte {
	h := hello{duplex: o.Duplex, checksum: o.Checksum, size: size}
	return h.encode()
}

// Stream is a stream that is to be moved, or was.
type Stream struct {
	link     *link.Link
	dialed   bool // by this side
	duplex   bool // as the side that dialed wants it
	checksum bool
	size     int64
	foreign  error // why the peer speaks no streams

	used           atomic.Bool
	from           Source // nil: nothing is sent
	into           Sink   // nil: nothing is received
	sent, received atomic.Int64
	committing     atomic.Bool // all was received, and is being committed

	mu      sync.Mutex // held while a buffer is filled
	outSum  []byte     // of what was sent, when all of it is
	inSum   []byte
	ending  sync.Mutex // guards what follows
	outcome Result     // without the bytes
}

// Result is what is known of a stream.
type Result struct {
	Sent, Received int64 // bytes so far
	// Once all is well: the SHA-256 of both directions, if that was compared, and
	// whether the peer said that it knows. A sender that returned nil always does.
	SentSum, ReceivedSum []byte
	Confirmed            bool
}

// Dial makes a stream to the listener at the host with that URL. size is how many bytes will be sent,
// or Unknown, and the receiver is told. Of a source that has more, such as a file that grows, no more
// is sent. A source that has less, such as a file that is cut while it is sent, fails with ErrChanged.
func Dial(ctx context.Context, h *link.Host, peerURL string, size int64, opt *Options) (*Stream, error) {
	o := opt.or()
	shape := &link.Options{Directions: link.Both, Buffers: 4, Size: 256, Private: o.hello(size)} // for receipts
	if o.Duplex {
		shape.Buffers, shape.Size = buffers, bufferSize
	}
	l, err := h.Dial(ctx, peerURL, o.Port, shape)
	if err != nil {
		return nil, err
	}
	remote, err := parseHello(l.Private())
	return &Stream{link: l, dialed: true, duplex: o.Duplex, checksum: o.Checksum || remote.checksum, size: size, foreign: err}, nil
}

// Link returns the link that carries the stream. Its buffers are the stream's.
func (s *Stream) Link() *link.Link { return s.link }

// Size returns what the sender announced, or a negative number.
func (s *Stream) Size() int64 { return s.size }

// Duplex reports whether the side that dialed wants something back.
func (s *Stream) Duplex() bool { return s.duplex }

// Result returns what is known of the stream. It may be called at any time.
func (s *Stream) Result() Result {
	s.ending.Lock()
	defer s.ending.Unlock()
	r := s.outcome
	r.Sent, r.Received = s.sent.Load(), s.received.Load()
	return r
}

// Send sends all that a reader has, and returns nil when the receiver has it all. Otherwise the
// receiver is told why, and has nothing that it could take for all.
func (s *Stream) Send(ctx context.Context, from io.Reader) error { return s.start(ctx, from, nil) }

// Receive writes what the sender sends into a sink, and commits it when all is there
// and is what was sent. Otherwise the sender is told why, and the sink is discarded.
func (s *Stream) Receive(ctx context.Context, into Sink) error { return s.start(ctx, nil, into) }

// Exchange is Send and Receive at the same time. It returns when both are done, or when one has
// failed.
func (s *Stream) Exchange(ctx context.Context, from io.Reader, into Sink) error {
	return s.start(ctx, from, into)
}

func (s *Stream) start(ctx context.Context, from io.Reader, into Sink) error {
	if s.used.Swap(true) {
		return ErrUsed
	}
	err := s.foreign
	if outwards, inwards := from != nil, into != nil; err == nil && (outwards != (s.dialed || s.duplex) || inwards != (!s.dialed || s.duplex)) {
		err = ErrDirections
	}
	if err != nil {
		s.Abort(err)
	} else {
		s.from, s.into = sourceOf(from, s.duplex), into
		err = s.run(ctx)
	}
	if err != nil && into != nil {
		into.Discard()
	}
	return err
}

// Abort ends a stream that is not to be moved, or not any more, and tells the peer why.
func (s *Stream) Abort(why error) {
	wait := linger
	if isGone(why) {
		wait = grace
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	s.link.Abort(ctx, reasonForPeer(why))
}

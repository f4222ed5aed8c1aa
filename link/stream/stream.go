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
	// Unknown is the size of a stream that nobody knows before its end.
	Unknown = -1

	buffers    = 32
	bufferSize = 1 << 20 // a tenth less processor time than 64 buffers of a quarter

	// Memory is how much of its host's memory a side that receives takes for each
	// stream: the buffers, a page's worth of bookkeeping for each, and a reserve.
	Memory = buffers*(bufferSize+1024) + 1<<20
)

// Options are how one side wants its streams. The zero value is good.
type Options struct {
	// Port of the host's links. Empty means DefaultPort.
	Port string
	// Duplex: bytes go both ways. Both sides need it.
	Duplex bool
	// Checksum: SHA-256 is compared at both ends. It is enough if one side wants it.
	Checksum bool
	// Vet, if not nil, is asked by Accept whether who dials is served, before the stream
	// takes memory: whether bytes go both ways is as the peer wants it. It is
	// refused with the error that Vet returns, or because it or Refused panics, as
	// [link.Options.Vet] says.
	Vet func(peer dgrdma.PeerName, duplex bool) error
	// Refused, if not nil, is told of those whom Accept refused, by Vet or because they
	// speak no streams.
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

// hello is what this side says of itself.
func (o *Options) hello(size int64) []byte {
	h := hello{duplex: o.Duplex, checksum: o.Checksum, size: size}
	return h.encode()
}

// Stream is a stream that is about to be moved, or was.
type Stream struct {
	link     *link.Link
	dialed   bool // by this side
	duplex   bool // as who dialed wants it
	checksum bool
	size     int64
	foreign  error // why the peer is not one

	used           atomic.Bool
	from           Source // nil: nothing is sent
	into           Sink   // nil: nothing is received
	sent, received atomic.Int64
	committing     atomic.Bool // all was received, and is being put where it belongs

	mu      sync.Mutex // held while a buffer is filled
	outSum  []byte     // of what was sent, when it is whole
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

// Dial makes a stream to who listens at the host with that URL. size is what will be
// sent, or Unknown, and told to the receiver: so much is sent of a source that has more,
// such as a file that grows, and one that has less, such as a file that is cut meanwhile,
// fails with ErrChanged.
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
	theirs, err := parseHello(l.Private())
	return &Stream{link: l, dialed: true, duplex: o.Duplex, checksum: o.Checksum || theirs.checksum, size: size, foreign: err}, nil
}

// Link returns the link that carries the stream. Its buffers are the stream's.
func (s *Stream) Link() *link.Link { return s.link }

// Size returns what the sender announced, or a negative number.
func (s *Stream) Size() int64 { return s.size }

// Duplex reports whether who dialed wants something back.
func (s *Stream) Duplex() bool { return s.duplex }

// Result may be called at any time.
func (s *Stream) Result() Result {
	s.ending.Lock()
	defer s.ending.Unlock()
	r := s.outcome
	r.Sent, r.Received = s.sent.Load(), s.received.Load()
	return r
}

// Send sends all that a reader has and returns nil when the receiver has it all.
// Otherwise the receiver is told why, and has nothing that it could take for all.
func (s *Stream) Send(ctx context.Context, from io.Reader) error { return s.start(ctx, from, nil) }

// Receive writes what the sender sends into a sink, and commits it when all is there
// and is what was sent. Otherwise the sender is told why, and the sink is discarded.
func (s *Stream) Receive(ctx context.Context, into Sink) error { return s.start(ctx, nil, into) }

// Exchange is Send and Receive at the same time. It returns when both are through, or
// when one has failed.
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

// Abort ends a stream that shall not be moved, or not any more, and tells the peer why.
func (s *Stream) Abort(why error) {
	wait := linger
	if isGone(why) {
		wait = grace
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	s.link.Abort(ctx, reasonForPeer(why))
}

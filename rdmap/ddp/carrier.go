package ddp

// A Guard is held while somebody touches memory that its owner may withdraw.
type Guard interface {
	// Enter says that the memory is there, as it was in that epoch, and keeps it until Leave. Whoever entered
	// leaves soon, without waiting for anybody: the owner waits for it.
	Enter(epoch uint64) bool
	Leave()
}

// Span is a run of bytes that a carrier fills or sends. Without a guard they stay until
// the stream has been told that it is done with them.
type Span struct {
	Bytes []byte
	Guard Guard
	// Epoch is that of the guard's memory when the span was made. An owner that withdraws memory can grant other
	// bytes by the same guard, in the next epoch, and a carrier may keep a span for as long as its peer likes.
	Epoch uint64
}

// Enter is to be called, and to say true, before anybody touches the bytes.
func (s *Span) Enter() bool { return s.Guard == nil || s.Guard.Enter(s.Epoch) }

// Leave ends what Enter began.
func (s *Span) Leave() {
	if s.Guard != nil {
		s.Guard.Leave()
	}
}

// InlineSize is how much of a message may be the stream's own words: 52 bytes of an atomic request are
// the most that RFC 7306 knows, 16 and a hash of 32 a Verify.
const InlineSize = 64

// Message is one message for a carrier to send: the octets of Inline, then those of Data.
type Message struct {
	// Header is that of the first segment. The carrier sets Last, MO and TO of each
	// segment.
	Header
	Inline     [InlineSize]byte
	InlineSize int
	// Data is the stream's, and valid until the message is sent.
	Data []Span
	// Length counts all bytes, Inline included.
	Length uint32
}

// Source is a stream as a carrier asks it for messages. Between Begin and End nobody else
// calls the stream.
type Source interface {
	Begin()
	// Next sets m to the next message to send. Not ok: there is none now. Messages of a
	// stream are sent in this order, and never mixed.
	Next(m *Message) (ok bool)
	// Sent says that the n oldest messages which have not been named yet are with the
	// layer below, so that their buffers are free and this side cannot lose them.
	Sent(n int)
	End()
}

// Sink is a stream as a carrier tells it what arrives. Between Begin and End nobody else
// calls the stream. After an error of Place or Deliver the carrier places and delivers
// nothing more; the stream has taken note of it already.
type Sink interface {
	Begin()
	// Place says where the n bytes of payload of a segment go. A span of fewer bytes, and of one at least, is where the first of them
	// go: when those are in place the carrier asks again for the rest, with the offset of that.
	Place(h *Header, n int) (Span, error)
	// Deliver says that a message of n bytes is complete; h is the header of its first segment.
	Deliver(h *Header, n uint32) error
	End()
}

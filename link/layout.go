package link

const (
	mostBuffers   = 1 << 16
	mostSize      = MaxMessage
	mostOffered   = 1 << 30 // bytes of buffers at the peer, of which most may be acquired at once
	cacheLine     = 64
	mostFlagPitch = 1<<16 - 1
)

// half is what one direction of a link needs to know of memory: of the side that receives, the buffers
// and flags; of the side that sends, the word for credits. In letterOpen the wishes of a dialer that
// sends are here too.
type half struct {
	Buffers, Size, Pitch uint32
	Data                 uint32
	Flags, FlagPitch     uint32
	Credit               uint32
}

// setPitches computes the distances of buffers and flags.
func (h *half) setPitches() {
	if h.FlagPitch == 0 {
		h.FlagPitch = wordSize
	}
	h.Pitch = (h.Size + cacheLine - 1) &^ (cacheLine - 1)
}

// memory returns how many bytes buffers and flags take.
func (h *half) memory() uint64 { return uint64(h.Buffers) * (uint64(h.Pitch) + uint64(h.FlagPitch)) }

// isValid reports whether a half that the peer describes can be written to.
func (h *half) isValid() bool {
	const top = 1 << 32
	return h.Buffers > 0 && h.Buffers <= mostBuffers && h.Size > 0 && h.Size <= mostSize && h.Pitch >= h.Size && h.Pitch < 1<<22 &&
		uint64(h.Buffers)*uint64(h.Size) <= mostOffered && uint64(h.Data)+uint64(h.Buffers)*uint64(h.Pitch) <= top &&
		h.FlagPitch >= wordSize && h.FlagPitch <= mostFlagPitch && uint64(h.Flags)+uint64(h.Buffers)*uint64(h.FlagPitch) <= top
}

// returns is how a producer learns of free buffers.
type returns uint8

const (
	returnsCounted returns = iota // a word holds how many were given back in all
	returnsEach                   // a word for each buffer is written when it is free
)

// outLayout is where the consumer wants messages, and how it gives buffers back.
type outLayout struct {
	buffers   uint64
	size      int
	data      uint32
	pitch     uint32
	flags     uint32
	flagPitch uint32
	returns   returns
}

package rpcrdma

// The most of each kind that a [Decoder] has room for. The numbers are arbitrary: Linux sends at most
// one Read chunk, one Write chunk, and about 20 segments.
const (
	MaxSegments    = 256 // of a message
	MaxReadChunks  = 16
	MaxWriteChunks = 16
	MaxProperties  = 64 // of a connection
	// MaxPropertySize is the longest value of a property, and MaxPropertiesSize the length of all values of a
	// connection.
	MaxPropertySize   = 4096
	MaxPropertiesSize = 64 << 10
)

// Limits are bounds for what peers send. Numbers above the constants of the same name count as
// these; 0 Read or Write chunks is a Responder without chunks.
type Limits struct {
	Segments    int
	ReadChunks  int
	WriteChunks int
}

// within returns a limit that is one: between 0 and what there is room for.
func within(limit, room int) int { return min(max(limit, 0), room) }

// DefaultLimits are the highest ones.
func DefaultLimits() Limits { return Limits{MaxSegments, MaxReadChunks, MaxWriteChunks} }

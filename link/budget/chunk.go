package budget

import (
	"math/bits"
	"sync"
)

// The lengths of chunks are powers of two. So what a peer says of its buffers decides nothing,
// and a chunk serves messages of all links to a peer.
const (
	LeastChunk = 64
	MostChunk  = LeastChunk << (classes - 1) // 2 MiB
	classes    = 16
)

// Chunk is memory for a message to be sent.
type Chunk struct{ Bytes []byte }

// classOf returns which class of chunks holds n bytes.
func classOf(n int) int { return bits.Len(uint(max(n, LeastChunk)-1)) - bits.Len(LeastChunk-1) }

// SizeOf returns what a message of n bytes takes.
func SizeOf(n int) int64 {
	if n == 0 {
		return 0
	}
	return LeastChunk << classOf(n)
}

// chunkCache is the chunks of one peer that no message is in. A program that sends more of a
// buffer than it wrote shows the peer only what went to that peer before. The garbage collector
// takes chunks that were not used for a while.
type chunkCache [classes]sync.Pool

func (s *chunkCache) take(n int) *Chunk {
	if n == 0 {
		return nil
	}
	k := classOf(n)
	if c, ok := s[k].Get().(*Chunk); ok {
		return c
	}
	return &Chunk{make([]byte, LeastChunk<<k)}
}

func (s *chunkCache) give(c *Chunk) { s[classOf(len(c.Bytes))].Put(c) }

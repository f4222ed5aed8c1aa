package dgrdma

import (
	"github.com/dgrdma/dgrdma/endpoint/segmentation"
	"github.com/dgrdma/dgrdma/frame"
)

// layoutOf returns how data is cut for full frames of that length.
func (t *terms) layoutOf(full int) segmentation.Layout {
	p := &t.profile
	return segmentation.Layout{Chunk: p.Chunk, Final: p.Final, NoLength4: p.NoLength4, Full: full - t.partHead()}
}

// messages returns how many messages the transaction becomes if its first frame has that much room.
func (t *Transaction) messages(l *segmentation.Layout, room int) (count int) {
	for i := range t.Segments {
		var n int
		n, room = l.Messages(len(t.Segments[i].Bytes), room)
		count += n
	}
	return count
}

// uncut returns the bytes of a frame's body and the messages that the transaction takes if it is not cut, and false
// if one frame is not enough.
func (t *Transaction) uncut(l *segmentation.Layout) (body, count int, fits bool) {
	limit := l.FullBody()
	for i := range t.Segments {
		n := len(t.Segments[i].Bytes)
		if n == 0 {
			continue
		}
		if body = l.Append(body, n); body > limit {
			return body, 0, false
		}
		count++
	}
	return max(body, frame.MessageHeaderSize), count, true
}

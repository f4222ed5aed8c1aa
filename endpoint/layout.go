package endpoint

import "github.com/dgrdma/dgrdma/frame"

// minFragment is the least room for which a message is cut in two: less is
// not worth the header. Arbitrary.
const minFragment = 64

// layout is how data is cut into messages for one kind of peer.
type layout struct {
	chunk, final int
	noLength4    bool
	full         int // data bytes of a message that has a frame to itself
}

// cut returns how many of the n bytes left of a segment go into a message with
// that much room; 0 if it is better to start a new frame, or if there is none.
func (l *layout) cut(n, room int) int {
	if roundUp(n, l.final) <= room {
		if l.noLength4 && n == 4 {
			return 2
		}
		return n
	}
	if room < minFragment && room < l.full {
		return 0
	}
	return l.chunkOf(room)
}

// chunkOf returns how many bytes a message takes of that much room, if more are left.
func (l *layout) chunkOf(room int) int { return room &^ (l.chunk - 1) }

// messages returns how many messages a transaction becomes if its first frame
// has that much room.
func (l *layout) messages(t *Transaction, room int) (count int) {
	for i := range t.Segments {
		n := len(t.Segments[i].Bytes)
		for n > 0 {
			take := l.cut(n, room)
			if take == 0 {
				room = l.full
				continue
			}
			if whole := l.cut(n, l.full); room == l.full && n > 2*whole {
				// One frame after the other is full.
				frames := n/whole - 1
				count += frames
				n -= frames * whole
				continue
			}
			count++
			n -= take
			room = l.after(room, take)
		}
	}
	return count
}

// after returns the room left when a message took that many bytes; less than nothing if
// there is none for another header.
func (l *layout) after(room, take int) int {
	length := roundUp(take, l.final)
	return room - length - frame.PadLen(length) - frame.MessageHeaderSize
}

// alone returns the bytes of a frame's body and the messages that the transaction takes if
// it is not cut, and false if one frame is not enough.
func (l *layout) alone(t *Transaction) (bytes, count int, fits bool) {
	limit := l.full + frame.MessageHeaderSize
	for i := range t.Segments {
		n := len(t.Segments[i].Bytes)
		if n == 0 {
			continue
		}
		bytes += frame.PadLen(bytes) + frame.MessageHeaderSize + roundUp(n, l.final)
		if bytes > limit {
			return bytes, 0, false
		}
		count++
	}
	return max(bytes, frame.MessageHeaderSize), count, true
}

// roundUp rounds n up to a multiple of a power of two.
func roundUp(n, multiple int) int { return (n + multiple - 1) &^ (multiple - 1) }

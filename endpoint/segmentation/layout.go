package segmentation

import "github.com/dgrdma/dgrdma/frame"

// LeastRoom is the least room for which a segment is cut: less is not worth the header. A frame that has
// less when it is empty is filled all the same. Arbitrary.
const LeastRoom = 64

// Layout is how segments are cut into messages for one kind of peer. Chunk and Final are powers of two, and Chunk is a
// multiple of Final, as profiles are checked for.
type Layout struct {
	Chunk     int  // the length of a message is a multiple of this, but for the last of a segment
	Final     int  // the last is padded to a multiple of this
	NoLength4 bool // four bytes become two messages
	Full      int  // room of an empty frame
}

// Cut returns how many of the n bytes that are left of a segment go into a message with that much room; 0:
// it is better to start a new frame, or there is no room.
func (l *Layout) Cut(n, room int) int {
	if l.Padded(n) <= room {
		if l.NoLength4 && n == 4 {
			return 2
		}
		return n
	}
	if room < LeastRoom && room < l.Full {
		return 0
	}
	return l.ChunkOf(room)
}

// ChunkOf returns how many bytes a message takes of that much room, if more of the segment are left.
func (l *Layout) ChunkOf(room int) int { return room &^ (l.Chunk - 1) }

// Padded returns the length of a message with the last n bytes of a segment.
func (l *Layout) Padded(n int) int { return roundUp(n, l.Final) }

// Messages returns how many messages a segment of n bytes becomes that begins in a frame with that much
// room, and the room that is left in the frame in which it ends.
func (l *Layout) Messages(n, room int) (count, left int) {
	for n > 0 {
		take := l.Cut(n, room)
		if take == 0 {
			room = l.Full
			continue
		}
		if whole := l.Cut(n, l.Full); room == l.Full && n > 2*whole {
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
	return count, room
}

// MostMessages returns a bound of Messages that is fast to compute: no room makes more of them.
func (l *Layout) MostMessages(n int) int {
	ends := 2 // of the segment, where it shares frames with others
	if l.NoLength4 {
		ends++
	}
	return n/l.ChunkOf(l.Full) + ends
}

// after returns the room that is left when a message took that many bytes; less than 0: there is none for another header.
func (l *Layout) after(room, take int) int {
	length := l.Padded(take)
	return room - length - frame.PadLen(length) - frame.MessageHeaderSize
}

// Append returns the length of a body of that many bytes when a message with n bytes more, uncut, is in it.
func (l *Layout) Append(body, n int) int {
	return body + frame.PadLen(body) + frame.MessageHeaderSize + l.Padded(n)
}

// FullBody returns the length of the longest body.
func (l *Layout) FullBody() int { return l.Full + frame.MessageHeaderSize }

// roundUp rounds n up to a multiple of a power of two.
func roundUp(n, multiple int) int { return (n + multiple - 1) &^ (multiple - 1) }

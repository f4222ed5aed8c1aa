package link

// wordSize is the length of a flag, and of a word of credits.
const wordSize = 4

// words are addresses at which a peer writes words, which go to a half of the link and not into
// memory. They belong to the receive goroutine.
type words struct {
	at, end uint64
	pitch   uint32
	last    int // the last one found: all frames of a message name the same one
	lastAt  uint64
}

func wordsAt(at, n, pitch uint32) words {
	return words{at: uint64(at), end: uint64(at) + uint64(n)*uint64(pitch), pitch: pitch, lastAt: uint64(at)}
}

// index returns which word is at addr; -1: none.
func (w *words) index(addr uint64) int {
	if addr < w.at || addr >= w.end {
		return -1
	}
	if addr == w.lastAt {
		return w.last
	}
	off := uint32(addr - w.at)
	i := off / w.pitch
	if i*w.pitch != off {
		return -1
	}
	w.last, w.lastAt = int(i), addr
	return w.last
}

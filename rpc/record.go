package rpc

import (
	"encoding/binary"
	"errors"
)

// Record marking (RFC 5531, section 11) cuts a stream into messages: each is a record of fragments,
// and a word before each fragment has its length, and whether it is the last one.
const (
	markLength = 4
	markLast   = 1 << 31
	// chunkLength is how much of a stream is read at once. Records that fit lie there, several in one chunk.
	chunkLength = 32 << 10
	// longFrom is how much of a record has come when memory for all of it is taken, if it does not fit into a chunk: a length
	// alone takes none.
	longFrom = chunkLength / 2
	// leastSpace is how much room a chunk has where a record may begin. It is arbitrary.
	leastSpace = 4 << 10
	// kindLength is how much of a message says what it is: its XID, and whether it is a call.
	kindLength = 8
	// headLength is how much of a record that is too long is told, if its first fragments have it: of a call, what procedure it
	// calls.
	headLength = atProcedure + 4
)

var errEmptyFragment = errors.New("a fragment of a record is empty, and not the last one")

// record is one message of a stream.
type record struct {
	b []byte
	// mem is where b lies, shared with this record. nil: b is memory of its own, which the garbage
	// collector takes.
	mem *memory
	// tooLong is how long the record is at least if it is longer than allowed, else 0. Then b is its head, and the rest is
	// skipped.
	tooLong int
}

// is reports whether the record is a message of a kind.
func (r record) is(kind uint32) bool {
	return len(r.b) >= kindLength && binary.BigEndian.Uint32(r.b[4:]) == kind
}

// isMessage reports whether a record is a call or a reply, as far as it has come.
func (r record) isMessage() bool {
	return len(r.b) < kindLength || r.is(kindCall) || r.is(kindReply)
}

// records cuts a stream into records. It is told what was read (space, received), and says which
// records are complete (next). It is passive.
type records struct {
	// limit is the length of the longest record.
	limit int
	// more, if it is there, says how much longer a record may be that begins with head, of kindLength at least.
	more func(head []byte) int
	// long returns memory for a record of n octets that begins with head, as record has it.
	long func(head []byte, n int) ([]byte, *memory)

	chunk      *memory
	start, end int // what was received and is not cut yet

	state recordState
	body  []byte  // of a record that is not in the chunk: what is there of it, when gathering
	mem   *memory // of body
	have  int     // octets of body, when placing
	left  int     // octets of the fragment that have not come, when gathering or skipping
	last  bool    // it is the last one
}

// recordState says where the record lies that is being received.
type recordState int

const (
	inChunk   recordState = iota // in the chunk
	placing                      // in memory of its own, into which the stream is read
	gathering                    // its fragments are copied to memory of its own
	skipping                     // nowhere
)

// space returns where the next octets of the stream go. It is never empty.
func (r *records) space() []byte {
	if r.state == placing {
		return r.body[r.have:]
	}
	if r.chunk == nil {
		r.chunk = takeMemory(chunkLength)
	}
	switch kept := r.chunk.b[r.start:r.end]; {
	case len(kept) == 0 && !r.chunk.shared():
		r.start, r.end = 0, 0
	case len(kept) == 0 && len(r.chunk.b)-r.end < leastSpace || r.wanted() > len(r.chunk.b)-r.start:
		chunk := r.chunk
		if chunk.shared() {
			chunk = takeMemory(chunkLength)
		}
		r.start, r.end = 0, copy(chunk.b, kept)
		if chunk != r.chunk {
			r.chunk.release()
			r.chunk = chunk
		}
	}
	return r.chunk.b[r.end:]
}

// wanted returns how long what is in the chunk becomes there: at most a chunk.
func (r *records) wanted() int {
	if r.state != inChunk {
		return markLength + headLength
	}
	if r.end-r.start < markLength {
		return markLength
	}
	return min(markLength+int(binary.BigEndian.Uint32(r.chunk.b[r.start:])&^markLast), len(r.chunk.b))
}

// received tells that n octets of the stream are in the space.
func (r *records) received(n int) {
	if r.state == placing {
		r.have += n
	} else {
		r.end += n
	}
}

// partial reports whether a record has begun to come.
func (r *records) partial() bool { return r.state != inChunk || r.start < r.end }

// next returns the next record that is complete. It reports whether there is one.
func (r *records) next() (rec record, ok bool, err error) {
	for {
		switch r.state {
		case placing:
			if r.have < len(r.body) {
				return record{}, false, nil
			}
			return r.emit(), true, nil
		case gathering, skipping:
			n := min(r.left, r.end-r.start)
			if r.state == gathering {
				r.body = append(r.body, r.chunk.b[r.start:r.start+n]...)
			}
			r.start += n
			if r.left -= n; r.left > 0 {
				return record{}, false, nil
			}
			if !r.last {
				if rec, ok, err = r.fragment(); ok || err != nil || r.left == 0 && !r.last {
					return rec, ok, err
				}
				continue
			}
			if r.state == gathering {
				return r.emit(), true, nil
			}
			r.state = inChunk
		default:
			var more bool
			if rec, ok, more, err = r.whole(); !more {
				return rec, ok, err
			}
		}
	}
}

// whole cuts a record out of the chunk. more says that the state has changed.
func (r *records) whole() (rec record, ok, more bool, err error) {
	n, last, ok := r.mark()
	b := r.chunkLeft()
	switch {
	case !ok, last && n > r.limit && r.more != nil && len(b) < markLength+kindLength:
		return record{}, false, false, nil
	case !last || n > r.most(b[markLength:], n):
		r.body, r.mem, r.left, r.last, r.state = nil, nil, 0, false, gathering
		return record{}, false, true, nil
	case len(b) >= markLength+n:
		r.chunk.share()
		r.start += markLength + n
		return record{b: b[markLength : markLength+n : markLength+n], mem: r.chunk}, true, false, nil
	case markLength+n > len(r.chunk.b) && len(b)-markLength >= longFrom:
		r.body, r.mem = r.long(b[markLength:], n)
		r.have = copy(r.body, b[markLength:])
		r.start, r.state = r.end, placing
	}
	return record{}, false, false, nil
}

// most returns how long a record may be that begins with head, and is n octets or more.
func (r *records) most(head []byte, n int) int {
	if n <= r.limit || r.more == nil || len(head) < kindLength {
		return r.limit
	}
	return r.limit + r.more(head)
}

// fragment begins the next fragment of a record that is gathered, or skipped. If the record becomes too long with it,
// fragment returns its head. Without a fragment left is 0, and last false.
func (r *records) fragment() (rec record, ok bool, err error) {
	n, last, ok := r.mark()
	if !ok {
		return record{}, false, nil
	}
	if n == 0 && !last {
		return record{}, false, errEmptyFragment
	}
	ok = false
	if tooLong := n > r.limit-len(r.body); tooLong && r.state == gathering {
		wanted := min(max(headLength-len(r.body), 0), n)
		b := r.chunkLeft()[markLength:]
		if len(r.body) == 0 && !(record{b: b}).isMessage() { // text, TLS and the request of iWARP begin like that
			return record{}, false, ErrNotRPC
		}
		if len(b) < wanted {
			return record{}, false, nil
		}
		head := append(r.body[:len(r.body):len(r.body)], b[:wanted]...)
		if length := len(r.body) + n; length > r.most(head, length) {
			rec, ok = record{b: head, tooLong: length}, true
			r.body, r.state = nil, skipping
		}
	}
	r.start += markLength
	r.left, r.last = n, last
	return rec, ok, nil
}

// mark returns the word before a fragment, without taking it.
func (r *records) mark() (n int, last, ok bool) {
	b := r.chunkLeft()
	if len(b) < markLength {
		return 0, false, false
	}
	w := binary.BigEndian.Uint32(b)
	return int(w &^ markLast), w&markLast != 0, true
}

func (r *records) chunkLeft() []byte {
	if r.chunk == nil {
		return nil
	}
	return r.chunk.b[r.start:r.end]
}

// emit returns the record in body.
func (r *records) emit() record {
	rec := record{b: r.body, mem: r.mem}
	r.body, r.mem, r.state = nil, nil, inChunk
	return rec
}

// release gives back the memory of the stream.
func (r *records) release() {
	r.chunk.release()
	r.mem.release()
	r.chunk, r.mem, r.body = nil, nil, nil
}

package rpcrdma

import (
	"time"

	"github.com/dgrdma/dgrdma/xdr"
)

// Incoming is one Call of the peer. It is the machine's, but for two times: from ActPlace until Place, Reply or Fail,
// and from ActDeliver until Reply or Fail.
type Incoming struct {
	XID     uint32
	Version uint32
	// Message is the Call without Items. Both are valid until ActAnswered.
	Message []byte
	// Items are those that were fetched, each as long as the length word before it says. At ActPlace each has its
	// length, and nothing is in it yet.
	Items []xdr.Item
	// TooLong is how long the Call is at least if it is longer than Config.MaxCall, else 0. ActDeliver tells of such a Call before
	// anything of it is fetched, and before all parts have come: Message is its beginning, or nothing. In version 2 the
	// program answers it by Fail: the peer may still send parts. In version 1 an ERROR would not say why.
	TooLong int
	// Gone says that the connection is lost: a Reply is still taken, and goes nowhere.
	Gone bool

	state  inState
	buffer *Buffer   // of Message: the receive, or what was collected or fetched
	length int       // of what was collected
	places []*Buffer // of Items; nil where the program named a place
	since  time.Time // of the last part that had octets, or the last progress of Reads

	// The lists are copies of the Decoder's.
	segments  []Segment
	reads     []ReadChunk // the one at Position 0 is not among them
	writes    []Chunk
	reply     Chunk
	invalid   uint32 // the handle that the Reply invalidates, or 0
	hasHead   bool   // there is a Read chunk at Position 0, which is head
	head      Chunk
	fetching  int           // the item whose Reads are being posted
	from      segmentCursor // in its chunk
	hasPlaces bool          // all Items have their memory
	reading   int           // Reads that are posted and not complete
	writing   int           // Writes of the answer that are posted and not complete
	conveyed  bool          // the last Send is posted
	answering
}

// inState is how far an Incoming is.
type inState uint8

const (
	inCollecting inState = iota // parts of it have come; of a new one as well
	inHead                      // the Read chunk at Position 0 is being fetched
	inPlacing                   // ActPlace was said, and nothing of the items is fetched
	inFetching                  // items are being fetched
	inWork                      // ActDeliver was said
	inAnswering                 // the Reply, or an ERROR, is on its way
	inDone                      // ActAnswered was said
)

// Answer is the Reply to an Incoming. It is the machine's until ActAnswered.
type Answer struct {
	// Head is the RPC message without Items. Items that find no Write chunk are inserted in it.
	Head  []byte
	Items []xdr.Item
	Done  func() // for whoever carries out ActAnswered
}

// keptSegments is how many segments an Incoming keeps room for while it is not in use. The number is arbitrary, and
// above what Linux sends.
const keptSegments = 8

// reset makes an Incoming ready for the next Call.
func (in *Incoming) reset(h *Header, now time.Time) {
	kept := Incoming{
		XID: h.XID, Version: h.Version, since: now,
		Items: in.Items[:0], places: in.places[:0], segments: in.segments[:0], reads: in.reads[:0], writes: in.writes[:0],
	}
	if cap(kept.segments) > keptSegments {
		kept.segments = nil
	}
	*in = kept
}

// take copies the lists of the Call, of which the Decoder's are valid until the next message.
func (in *Incoming) take(h *Header) {
	keep := func(c Chunk) Chunk {
		first := len(in.segments)
		in.segments = append(in.segments, c...)
		return in.segments[first:len(in.segments):len(in.segments)]
	}
	for i := range h.Reads {
		c := keep(h.Reads[i].Segments)
		if h.Reads[i].Position == 0 {
			in.head, in.hasHead = c, true
			continue
		}
		in.reads = append(in.reads, ReadChunk{h.Reads[i].Position, c})
	}
	for _, w := range h.Writes {
		in.writes = append(in.writes, keep(w))
	}
	in.reply = keep(h.Reply)
}

// onlyHandle returns the handle of the Call's segments if they all have the same one.
func (in *Incoming) onlyHandle() (handle uint32, only bool) {
	for i := range in.segments {
		if in.segments[i].Handle != in.segments[0].Handle {
			return 0, false
		}
	}
	if len(in.segments) == 0 {
		return 0, false
	}
	return in.segments[0].Handle, true
}

// firstItem is the least Position of an item: XID, message type, and the length of the item are before it.
const firstItem = 3 * wordSize

// locate says where the items belong in the message, and reports whether each of them has a length word before it that is no
// part of another item (RPC2-103). That the message is long enough is known (Header.Unreduced).
func (in *Incoming) locate() bool {
	least, inserted := firstItem, 0
	for i := range in.reads {
		r := &in.reads[i]
		at := int(r.Position) - inserted
		if at < least {
			return false
		}
		in.Items = append(in.Items, xdr.Item{At: at})
		least = at + wordSize
		inserted += int(roundup(r.Length()))
	}
	return true
}

// measure reads the lengths of the items from the message, and reports whether they are those of the chunks. In version 1 a
// chunk may have the roundup of its item (RPC1-028), which is not fetched; in version 2 it may not (RPC2-036).
func (in *Incoming) measure() bool {
	for i := range in.reads {
		n := uint64(in.itemLength(i))
		length := in.reads[i].Length()
		if length != n && (in.Version != Version1 || length != roundup(n)) {
			return false
		}
	}
	return true
}

// itemLength returns the length of an item, of which the chunk has been held against it.
func (in *Incoming) itemLength(i int) int { return int(word(in.Message, in.Items[i].At-wordSize)) }

// segmentCursor is a place in a chunk.
type segmentCursor struct {
	segment int
	within  uint32 // octets of the segment that are before it
	octets  int    // of the chunk that are before it
}

// rest returns how much of the chunk follows the cursor in a row.
func (p *segmentCursor) rest(c Chunk) int {
	for p.segment < len(c) && p.within == c[p.segment].Length {
		p.segment++
		p.within = 0
	}
	if p.segment == len(c) {
		return 0
	}
	return int(c[p.segment].Length - p.within)
}

// next returns the rest of the segment at the cursor, at most limit octets of it, and moves behind that. It is not
// ok at the end of the chunk.
func (p *segmentCursor) next(c Chunk, limit int) (s Segment, ok bool) {
	if limit <= 0 || p.rest(c) == 0 {
		return s, false
	}
	s = c[p.segment]
	s.Offset += uint64(p.within)
	s.Length = uint32(min(uint64(s.Length-p.within), uint64(limit)))
	p.within += s.Length
	p.octets += int(s.Length)
	return s, true
}

// ItemsLength returns the length of all items together: at ActPlace, of what is to be fetched.
func (in *Incoming) ItemsLength() (n int) {
	for i := range in.reads {
		n += in.itemLength(i)
	}
	return n
}

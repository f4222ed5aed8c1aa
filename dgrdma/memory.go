package dgrdma

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/dgrdma/dgrdma/frame"
)

// Memory is what an endpoint's peers write into, and the hook for layers above:
// every message repeats the whole description of its transaction. Both methods
// run on the goroutine that receives; they must not block.
type Memory interface {
	// Admit returns where the m.Len bytes of a message go, before any byte of
	// its frame is placed. An error refuses the whole frame, which is then not
	// acknowledged; see Swallow for the milder way.
	Admit(src EndpointID, m *Message) (dst []byte, err error)
	// Complete performs the completion write of m's transaction, after all its
	// data is placed. It is not called for transactions without completion.
	Complete(src EndpointID, m *Message)
}

// Placed is implemented by memories that want to know when data arrived, as
// opposed to completions: some peers write flags as data (quirk F15).
type Placed interface {
	Placed(src EndpointID, m *Message)
}

// PerConn is implemented by memories that each peer sees in a way of its own:
// For is asked once for every connection, before anything of its peer is
// admitted, and what it returns stands for the memory from then on. With nil the peer may
// write nothing. For must not call the endpoint.
type PerConn interface {
	For(c *Conn) Memory
}

// Region is flat memory, bounds-checked on data and on completion words. The
// zero Region has no memory.
//
// A Region belongs to no endpoint: it outlives those that peers write into it through, and
// a Wait on it continues after they close. See [Region.Wait].
type Region struct {
	mem    []byte
	watch  watchers
	polled polledEndpoints // the endpoints whose memory it is
}

var (
	_ Memory = (*Region)(nil)
	_ Placed = (*Region)(nil)
)

// polledBy is called when an endpoint with that memory is opened, and closed.
func (r *Region) polledBy(e *Endpoint, on bool) {
	if on {
		r.polled.add(e)
	} else {
		r.polled.remove(e)
	}
}

// region is for memories that embed a Region: a goroutine that waits for a word of it runs their endpoint.
func (r *Region) region() *Region { return r }

// NewRegion makes zeroed memory of size bytes for peers to write into, up to 4 GiB.
func NewRegion(size int) (*Region, error) {
	if uint64(size) > 1<<32 {
		return nil, fmt.Errorf("dgrdma: a region has 0 to 4294967296 bytes, not %d", size)
	}
	words := make([]uint64, size/8+1) // so that the block is 8-aligned whatever its size
	block := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 8*len(words))
	return &Region{mem: block[:size:size]}, nil
}

// RegionOver makes a Region of memory that exists, such as a mapped file. It must begin
// at a multiple of 8.
//
// A mapped file must keep its length while the region is in use, and have its disk space: the goroutine that touches
// bytes which are gone ends the program by SIGBUS, the endpoint's own goroutines included. A program that drives its
// endpoint with Progress can have a panic instead, by debug.SetPanicOnFault, and end in good order; the endpoint cannot be
// used after that.
func RegionOver(mem []byte) (*Region, error) {
	if len(mem) > 0 && uintptr(unsafe.Pointer(&mem[0]))%8 != 0 {
		return nil, errMisalignedRegion
	}
	return &Region{mem: mem}, nil
}

// String says how large it is.
func (r *Region) String() string { return fmt.Sprintf("region of %d bytes", r.Size()) }

// Bytes returns the memory. Peers write into it at any time; a completion word
// read with Load32 orders the data before it, nothing else does.
func (r *Region) Bytes() []byte {
	return r.mem
}

// Size returns the length of the memory in bytes.
func (r *Region) Size() uint64 {
	return uint64(len(r.mem))
}

// Admit checks that data and completion word lie inside the memory
// (DGRDMA-037).
func (r *Region) Admit(_ EndpointID, m *Message) ([]byte, error) {
	at, n, size := uint64(m.Addr), uint64(m.Len), uint64(len(r.mem))
	if n > 0 && at+n > size {
		return nil, &boundsError{what: "data", addr: m.Addr, n: int(n), size: size}
	}
	if m.Completes() && uint64(m.CompletionAddr)+4 > size {
		return nil, &boundsError{what: "completion word", addr: m.CompletionAddr, n: 4, size: size}
	}
	if n == 0 {
		return nil, nil
	}
	return r.mem[at : at+n : at+n], nil
}

// Complete stores the completion word so that everything placed before is
// visible to a program that reads it with Load32 (DGRDMA-036).
func (r *Region) Complete(_ EndpointID, m *Message) {
	r.Store32(m.CompletionAddr, m.CompletionValue)
}

// Placed wakes the goroutines that watch a word that was written as data.
func (r *Region) Placed(_ EndpointID, m *Message) {
	if m.Len == 4 {
		r.watch.wake(m.Addr)
	}
}

// place copies a message's data. Four aligned bytes are stored as a word, for
// they may be a flag (quirk F15).
func place(dst, data []byte) {
	if len(data) == 4 {
		store32(dst, binary.LittleEndian.Uint32(data))
		return
	}
	copy(dst, data)
}

// noMemory refuses everything.
type noMemory struct{}

var errNoMemory = fmt.Errorf("%w: there is none that this peer may write into", ErrBounds)

func (noMemory) Admit(_ frame.EndpointID, m *frame.Message) ([]byte, error) {
	if m.Len == 0 && !m.Completes() {
		return nil, nil
	}
	return nil, errNoMemory
}

func (noMemory) Complete(frame.EndpointID, *frame.Message) {}

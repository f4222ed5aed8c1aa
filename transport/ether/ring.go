package ether

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/internal/mmsg"
)

const (
	blockSize   = 1 << 20
	leastBlocks = 4
	mostBlocks  = 1<<32/blockSize - 1 // what the kernel's 32 bits hold
	retireMS    = 1                   // the least: after so long a block is ours that is not full
	// offSender is where a frame's header is followed by its struct sockaddr_ll:
	// TPACKET_ALIGN(sizeof(struct tpacket3_hdr)).
	offSender = (unix.SizeofTpacket3Hdr + unix.TPACKET_ALIGNMENT - 1) &^ (unix.TPACKET_ALIGNMENT - 1)
)

// ring is memory of blocks (TPACKET_V3) into which the kernel puts frames. It
// gives us a block when it is full or old, and we give it back when we are
// through. It belongs to who calls Recv.
type ring struct {
	socket  *mmsg.Socket
	memory  []byte
	current int // block
	// lent says that the current block is ours. The memory is held meanwhile, so
	// that Close does not take it from under the frames that Recv returned.
	lent bool
	left uint32 // frames of the block that were not returned yet
	next uint32 // where it has the first of them
}

// newRing makes a ring of the socket, of about that many bytes.
func newRing(s *mmsg.Socket, bytes int) (*ring, error) {
	blocks := min(max(bytes/blockSize, leastBlocks), mostBlocks)
	r := &ring{socket: s}
	err := s.Control(func(fd int) error {
		if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V3); err != nil {
			return os.NewSyscallError("setsockopt", err)
		}
		const formal = 2048 // V3 wants a frame size and makes no use of it
		err := unix.SetsockoptTpacketReq3(fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &unix.TpacketReq3{
			Block_size: blockSize, Block_nr: uint32(blocks), Retire_blk_tov: retireMS,
			Frame_size: formal, Frame_nr: uint32(blocks * (blockSize / formal)),
		})
		if err != nil {
			return os.NewSyscallError("setsockopt", err)
		}
		r.memory, err = s.Map(blocks * blockSize)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%w: a receive ring of %d MiB cannot be had; ask for smaller buffers, or do without it", err, blocks)
	}
	return r, nil
}

// abandon is for connections that nobody knows any more, though a block is
// lent: closed without another Recv, or not at all.
func (r *ring) abandon() {
	r.socket.Close()
	if r.lent {
		r.giveBack()
	}
}

func (r *ring) header() *unix.TpacketHdrV1 {
	d := (*unix.TpacketBlockDesc)(unsafe.Pointer(&r.memory[r.current*blockSize]))
	return (*unix.TpacketHdrV1)(unsafe.Pointer(&d.Hdr))
}

// take makes the next block ours, if there is one, or comes while we wait.
func (r *ring) take(wait time.Duration) (ok bool, err error) {
	if !r.socket.Hold() {
		return false, net.ErrClosed
	}
	h := r.header()
	for atomic.LoadUint32(&h.Block_status)&unix.TP_STATUS_USER == 0 {
		if wait != 0 {
			err = r.socket.WaitInput(wait)
		}
		if err != nil || wait == 0 {
			r.socket.Release()
			return false, err
		}
		wait = 0 // whoever wants to wait on asks again
	}
	r.lent, r.left, r.next = true, h.Num_pkts, h.Offset_to_first_pkt
	return true, nil
}

func (r *ring) giveBack() {
	atomic.StoreUint32(&r.header().Block_status, unix.TP_STATUS_KERNEL)
	if r.current++; r.current*blockSize == len(r.memory) {
		r.current = 0
	}
	r.lent = false
	r.socket.Release()
}

// frame returns the next frame of the block, and the address it came with.
func (r *ring) frame() (data []byte, name *mmsg.Name, whole bool) {
	block := r.memory[r.current*blockSize:][:blockSize]
	h := (*unix.Tpacket3Hdr)(unsafe.Pointer(&block[r.next]))
	name = (*mmsg.Name)(block[r.next+offSender:])
	data = block[r.next+uint32(h.Net):][:h.Snaplen:h.Snaplen]
	r.next += h.Next_offset
	r.left--
	return data, name, h.Snaplen == h.Len
}

// receiveRing returns 0 also if the block had no frames.
func (c *Conn) receiveRing(dst []transport.Datagram, wait time.Duration) (int, error) {
	defer runtime.KeepAlive(c)
	r := c.ring
	if r.lent && (r.left == 0 || r.socket.Closed()) {
		r.giveBack()
	}
	if !r.lent {
		if ok, err := r.take(wait); !ok {
			return 0, err
		}
	}
	n := 0
	for n < len(dst) && r.left > 0 {
		if data, name, whole := r.frame(); c.accept(&dst[n], data, name, whole) {
			n++
		}
	}
	return n, nil
}

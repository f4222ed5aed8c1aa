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
	// offSender is where a slot has the struct sockaddr_ll of its frame:
	// TPACKET_ALIGN(sizeof(struct tpacket2_hdr)).
	offSender = (unix.SizeofTpacket2Hdr + unix.TPACKET_ALIGNMENT - 1) &^ (unix.TPACKET_ALIGNMENT - 1)
	// offData is where it has the frame, if the socket leaves the header off:
	// TPACKET_ALIGN(TPACKET2_HDRLEN) + 16.
	offData = (offSender+unix.SizeofSockaddrLinklayer+unix.TPACKET_ALIGNMENT-1)&^(unix.TPACKET_ALIGNMENT-1) + 16
	// leastSlots: as many as one call returns, twice.
	leastSlots = 2 * messages
	mostRing   = 1<<31 - 1
	// enoughRing is what a ring has by default: five of the widest windows at MTU 1500,
	// nearly one at 9000. The kernel walks through all of it, so a larger one is slower: of
	// 1 / 2 / 4 / 8 / 16 MiB 1.10 / 1.06 / 1.04 / 1 / 0.98 at MTU 1500, 1.18 / 1.13 / 1.09 /
	// 1 / 0.97 at 9000. But 2 MiB drop a frame of 17 that 64 peers send to a busy machine.
	enoughRing = 8 << 20
	// leastBlock is how much memory of one piece the kernel has without long searching.
	leastBlock = 64 << 10
	// askAfter is how often who never sleeps asks for errors, which takes a call. Arbitrary:
	// short beside lookAgain, long beside a call.
	askAfter = 10 * time.Millisecond
	// mostVain is for how many looks in vain it may not read the clock. Reading takes as
	// long as two looks of the ring, and a tenth of one of an endpoint's.
	mostVain = 64
)

// ring is memory of slots (TPACKET_V2) into which the kernel puts a frame each. A slot
// is ours when its frame is whole, and we give it back when we are through. It belongs to
// who calls Recv.
type ring struct {
	socket    *mmsg.Socket
	memory    []byte
	slotSize  int
	most      int // bytes of a frame, for which a slot may have a few more
	blockSize int
	perBlock  int // whole slots of a block
	next      position
	// lent are slots before next, whose frames Recv returned. The memory is held
	// meanwhile, so that Close does not take it from under them.
	lent  int
	first position

	patience mmsg.Patience
	asking
}

// asking says when to ask for errors, to who never sleeps: one may look millions of times
// a second, and one a hundred times. The clock is read at the first look after a question,
// and while that was too soon after twice as many each time.
type asking struct {
	asked time.Time
	vain  int // looks since the clock was read
	skip  int // looks until it is read again
}

// isDue is told of a look in vain.
func (a *asking) isDue() bool {
	if a.vain++; a.vain <= a.skip {
		return false
	}
	now := time.Now()
	if a.vain = 0; now.Sub(a.asked) < askAfter {
		a.skip = min(2*a.skip+1, mostVain-1)
		return false
	}
	a.asked, a.skip = now, 0
	return true
}

// position is that of a slot.
type position struct{ block, slot int }

// newRing makes a ring of the socket, of about that many bytes (0 or less: enough), for
// frames of at most that length.
func newRing(s *mmsg.Socket, bytes, carries int) (*ring, error) {
	r := &ring{socket: s, most: carries, patience: mmsg.NewPatience(), slotSize: (offData + carries + unix.TPACKET_ALIGNMENT - 1) &^ (unix.TPACKET_ALIGNMENT - 1)}
	if bytes <= 0 {
		bytes = enoughRing
	}
	page := os.Getpagesize()
	r.blockSize = max(leastBlock, (r.slotSize+page-1)&^(page-1))
	r.perBlock = r.blockSize / r.slotSize
	blocks := min(max(bytes/r.blockSize, (leastSlots+r.perBlock-1)/r.perBlock), mostRing/r.blockSize)
	err := s.Control(func(fd int) error {
		if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V2); err != nil {
			return os.NewSyscallError("setsockopt", err)
		}
		err := unix.SetsockoptTpacketReq(fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &unix.TpacketReq{
			Block_size: uint32(r.blockSize), Block_nr: uint32(blocks), Frame_size: uint32(r.slotSize), Frame_nr: uint32(blocks * r.perBlock),
		})
		if err != nil {
			return os.NewSyscallError("setsockopt", err)
		}
		r.memory, err = s.Map(blocks * r.blockSize)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%w: a receive ring of %d KiB cannot be had; ask for smaller buffers (sockbuf=), or do without it (ring=off)", err, blocks*r.blockSize>>10)
	}
	return r, nil
}

// abandon is for connections that nobody knows any more, though frames are lent: closed
// without another Recv, or not at all.
func (r *ring) abandon() {
	r.socket.Close()
	r.giveBack()
}

// at returns the memory of a slot.
func (r *ring) at(p position) []byte {
	return r.memory[p.block*r.blockSize+p.slot*r.slotSize:][:r.slotSize]
}

func (r *ring) header(p position) *unix.Tpacket2Hdr {
	return (*unix.Tpacket2Hdr)(unsafe.Pointer(&r.at(p)[0]))
}

func (r *ring) after(p position) position {
	if p.slot++; p.slot < r.perBlock {
		return p
	}
	if p.slot, p.block = 0, p.block+1; p.block*r.blockSize == len(r.memory) {
		p.block = 0
	}
	return p
}

// some reports whether a frame is there.
func (r *ring) some() bool {
	return atomic.LoadUint32(&r.header(r.next).Status)&unix.TP_STATUS_USER != 0
}

// giveBack gives the lent slots back to the kernel.
func (r *ring) giveBack() {
	if r.lent == 0 {
		return
	}
	for ; r.lent > 0; r.lent-- {
		atomic.StoreUint32(&r.header(r.first).Status, unix.TP_STATUS_KERNEL)
		r.first = r.after(r.first)
	}
	r.socket.Release()
}

// frame returns the next frame, which is there, and the address it came with.
func (r *ring) frame() (data []byte, name *mmsg.Name, whole bool) {
	h := r.header(r.next)
	slot := r.at(r.next)
	name = (*mmsg.Name)(slot[offSender:])
	data = slot[h.Net:][:h.Snaplen:h.Snaplen]
	r.next = r.after(r.next)
	r.lent++
	return data, name, h.Snaplen == h.Len && len(data) <= r.most
}

// receiveRing returns 0 also if what came were no frames.
func (c *Conn) receiveRing(dst []transport.Datagram, wait time.Duration) (int, error) {
	defer runtime.KeepAlive(c)
	r := c.ring
	r.giveBack()
	if !r.socket.Hold() {
		return 0, net.ErrClosed
	}
	if ok, err := r.await(wait); !ok {
		r.socket.Release()
		return 0, err
	}
	n := 0
	for n < len(dst) && r.some() {
		if data, name, whole := r.frame(); c.accept(&dst[n], data, name, whole) {
			n++
		}
	}
	return n, nil
}

// await waits until a frame is there. Only within Hold.
func (r *ring) await(wait time.Duration) (some bool, err error) {
	r.patience.Begin()
	for !r.some() {
		switch {
		case wait == 0:
			// Nobody else would say that the interface is away.
			if r.isDue() {
				err = r.socket.Pending()
			}
			return false, err
		case r.patience.Again():
		default:
			if err := r.socket.WaitInput(wait); err != nil {
				return false, err
			}
			return r.some(), nil // whoever wants to wait on asks again
		}
	}
	r.patience.Found()
	return true, nil
}

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

	"github.com/dgrdma/dgrdma/internal/patience"
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
	// enoughRing is what a ring has by default: five of the widest windows at MTU 1500.
	// The kernel walks through all of it, so a larger one is slower: of 1 / 2 / 4 / 8 / 16 MiB
	// 1.10 / 1.06 / 1.04 / 1 / 0.98 at MTU 1500, 1.18 / 1.13 / 1.09 / 1 / 0.97 at 9000. But
	// 2 MiB drop a frame of 17 that 64 peers send to a busy machine.
	enoughRing = 8 << 20
	// enoughSlots are two of the widest windows: a short frame takes as much of the ring
	// as a long one. It has them by default, but does not become larger than that for it.
	enoughSlots = 2048
	mostUnasked = 32 << 20
	// leastBlock is how much memory of one piece the kernel has without long searching. A
	// longer block it puts together of pages where it finds none.
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
//
// Slots are as long as our own frames. Peers may use more of what the interface carries:
// their frames wait in the socket's queue, each with a slot that says so.
type ring struct {
	socket    *mmsg.Socket
	memory    []byte
	slotSize  int
	carries   int // bytes of a frame; a slot may have more, or fewer
	blockSize int
	perBlock  int // whole slots of a block
	next      position
	// lent are slots before next, whose frames Recv returned. The memory is held
	// meanwhile, so that Close does not take it from under them.
	lent  int
	first position

	patience patience.Patience
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

// newRing makes a ring of the socket, of about that many bytes (0 or less: enough), with
// slots for frames of mtu bytes, on an interface that carries as many, or more.
func newRing(s *mmsg.Socket, bytes, mtu, carries int) (*ring, error) {
	r := &ring{socket: s, carries: carries, patience: patience.New(runtime.NumCPU())}
	r.divide(mtu)
	blocks := r.blocks(bytes)
	err := s.Control(func(fd int) error {
		if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V2); err != nil {
			return os.NewSyscallError("setsockopt", err)
		}
		if mtu < carries {
			// A switch, whatever its number.
			if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_COPY_THRESH, 1); err != nil {
				return os.NewSyscallError("setsockopt", err)
			}
		}
		err := unix.SetsockoptTpacketReq(fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &unix.TpacketReq{
			Block_size: uint32(r.blockSize), Block_nr: uint32(blocks), Frame_size: uint32(r.slotSize), Frame_nr: uint32(blocks * r.perBlock),
		})
		if err != nil {
			return os.NewSyscallError("setsockopt", err)
		}
		if r.memory, err = s.Map(blocks * r.blockSize); err != nil {
			// Else frames would go there, and no call would find them.
			unix.SetsockoptTpacketReq(fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &unix.TpacketReq{})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%w: a receive ring of %d KiB cannot be had; ask for smaller buffers (sockbuf=), or do without it (ring=off)", err, blocks*r.blockSize>>10)
	}
	return r, nil
}

// divide says how long slots and blocks are. The kernel takes a power of two of pages for a
// block, and no slot goes on in the next one: blocks become longer until that wastes little.
func (r *ring) divide(mtu int) {
	r.slotSize = (offData + mtu + unix.TPACKET_ALIGNMENT - 1) &^ (unix.TPACKET_ALIGNMENT - 1)
	for r.blockSize = leastBlock; r.blockSize%r.slotSize > r.blockSize/8; {
		r.blockSize *= 2
	}
	r.perBlock = r.blockSize / r.slotSize
}

// blocks returns how many make a ring of about that many bytes.
func (r *ring) blocks(bytes int) int {
	of := func(slots int) int { return (slots + r.perBlock - 1) / r.perBlock }
	if bytes <= 0 {
		return min(max(enoughRing/r.blockSize, of(enoughSlots)), mostUnasked/r.blockSize)
	}
	return min(max(bytes/r.blockSize, of(leastSlots)), mostRing/r.blockSize)
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

// frame returns the next frame, which is there, as far as it has room in its slot, its
// length, and the address it came with.
func (r *ring) frame() (data []byte, length int, name *mmsg.Name) {
	h := r.header(r.next)
	slot := r.at(r.next)
	name = (*mmsg.Name)(slot[offSender:])
	data = slot[h.Net:][:h.Snaplen:h.Snaplen]
	r.next = r.after(r.next)
	r.lent++
	return data, int(h.Len), name
}

// isLong reports whether the next frame, which is there, waits in the socket's queue.
func (r *ring) isLong() bool {
	return atomic.LoadUint32(&r.header(r.next).Status)&unix.TP_STATUS_COPY != 0
}

// receiveRing returns 0 also if what came were no frames.
func (c *Conn) receiveRing(dst []transport.Datagram, wait time.Duration) (n int, err error) {
	defer runtime.KeepAlive(c)
	r := c.ring
	r.giveBack()
	if !r.socket.Hold() {
		return 0, net.ErrClosed
	}
	err = r.await(wait)
	for err == nil && n < len(dst) && r.some() {
		if r.isLong() {
			if n == 0 {
				n, err = c.receiveLong(&dst[0])
			}
			break // one at a time: a call overwrites what the one before it brought
		}
		data, length, name := r.frame()
		switch {
		case len(data) < length && length <= r.carries:
			c.kernelDrops.Add(1) // the queue was full
		case c.accept(&dst[n], data, name, length <= r.carries):
			n++
		}
	}
	if r.lent == 0 {
		r.socket.Release()
	}
	return n, err
}

// receiveLong returns the next frame, which waits in the socket's queue.
func (c *Conn) receiveLong(d *transport.Datagram) (n int, err error) {
	r := &c.receiving
	if r.in == nil {
		r.makeRoom(fewMessages, c.ring.carries)
	}
	if err := r.fetch(c.socket, 0); err != nil {
		return 0, err // it is still there
	}
	_, _, name := c.ring.frame() // there is no address in the queue
	if r.next < r.n && c.accept(d, r.in.Data(r.next), name, !r.in.Truncated(r.next)) {
		n = 1
	}
	r.next = min(r.next+1, r.n)
	return n, nil
}

// await waits until a frame is there, and no longer than that time. Only within Hold.
func (r *ring) await(wait time.Duration) (err error) {
	r.patience.Begin()
	for !r.some() {
		switch {
		case wait == 0:
			// Nobody else would say that the interface is away.
			if r.isDue() {
				err = r.socket.Pending()
			}
			return err
		case r.patience.Again():
		default:
			return r.socket.WaitInput(wait) // whoever wants to wait on asks again
		}
	}
	r.patience.Found()
	return nil
}

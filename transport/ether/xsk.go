package ether

import (
	"errors"
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/transport/internal/mmsg"
)

const (
	// enoughChunks hold what is on its way in a device: at MTU 1500 a frame each, which 100 Gbit/s
	// take 120 us for. Memory for them is locked, and an unprivileged user has 8 MiB of that.
	enoughChunks = 1024
	// fewChunks are for who has little memory to lock: 512 KiB at MTU 1500. Arbitrary.
	fewChunks = 256
	// shortChunk is how long chunks are for frames of usual size. Longer frames take longer
	// chunks, and the longest ones several, 17 at most, as the kernel takes: it knows no chunk longer than a page.
	shortChunk = 2048
	longChunk  = 4096
	// busyFor is how long a queue may stay in use whose socket was closed: the kernel tidies up
	// in the background. What closed it may have been another program, or nobody.
	busyFor = 50 * time.Millisecond
	// busyLong is the same for who insists on one: a busy machine takes longer to tidy up. Arbitrary.
	busyLong = 2 * time.Second
	// mostQueues bounds how many queues of a device are tried. Arbitrary.
	mostQueues = 64
	// mostPerCall is how many chunks one call moves, where the kernel lets us say so (6.17).
	mostPerCall = 64
	// leastBudget is how many chunks one call moves at least, in every kernel (TX_BATCH_SIZE).
	leastBudget = 16
)

// xsk is an AF_XDP socket that sends. It receives nothing: no program is loaded, and what the
// device receives goes where it went before. It is in copy mode, which every driver has and which
// changes nothing about the device: a call has the kernel copy the frames and hand them to the
// driver. Nothing stands between: no queueing discipline, no filter, no capture. It belongs to the
// goroutine that sends.
type xsk struct {
	fd      int
	ifindex int32
	number  int // of the device's queue
	perCall int // chunks that a call moves
	maps    [][]byte

	chunks
	queue sendRing
	left  completionRing
}

// openXSK opens a socket for frames of mtu bytes, on the first queue of the interface that
// is free, or is within a time. buffer is as [Config.Buffer].
func openXSK(socket func() (int, error), ifindex int32, mtu, buffer int, within time.Duration) (*xsk, error) {
	x, err := openXSKOf(socket, ifindex, mtu, buffer, enoughChunks, within)
	if errors.Is(err, unix.ENOBUFS) {
		x, err = openXSKOf(socket, ifindex, mtu, buffer, fewChunks, within)
	}
	return x, err
}

func openXSKOf(socket func() (int, error), ifindex int32, mtu, buffer, chunks int, within time.Duration) (*xsk, error) {
	fd, err := socket()
	if err != nil {
		return nil, err
	}
	x := &xsk{fd: fd, ifindex: ifindex}
	if err := x.setUp(mtu, chunks); err != nil {
		x.close()
		return nil, err
	}
	mmsg.SetBuffers(fd, buffer)
	if err := x.bind(x.chunksOf(mtu) > 1, within); err != nil {
		x.close()
		return nil, err
	}
	return x, nil
}

// setUp makes the memory and the rings.
func (x *xsk) setUp(mtu, chunks int) error {
	x.chunks.size = shortChunk
	if frameOffset+headerSize+mtu > shortChunk {
		x.chunks.size = longChunk
	}
	memory, err := unix.Mmap(-1, 0, chunks*x.chunks.size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return os.NewSyscallError("mmap", err)
	}
	x.maps = append(x.maps, memory)
	x.chunks.fill(memory)
	// Fields that came later than chunk size and headroom are left out, as old kernels do not know them.
	region := unix.XDPUmemReg{Addr: uint64(uintptr(unsafe.Pointer(&memory[0]))), Len: uint64(len(memory)), Size: uint32(x.chunks.size)}
	if e := setsockopt(x.fd, unix.XDP_UMEM_REG, unsafe.Pointer(&region), unsafe.Offsetof(region.Flags)); e != nil {
		return fmt.Errorf("memory of %d KiB: %w", len(memory)>>10, e)
	}
	// The kernel insists on a fill ring, though it is of use only to who receives.
	for _, ring := range []struct{ option, entries int }{{unix.XDP_UMEM_FILL_RING, 1}, {unix.XDP_UMEM_COMPLETION_RING, chunks}, {unix.XDP_TX_RING, chunks}} {
		if err := unix.SetsockoptInt(x.fd, unix.SOL_XDP, ring.option, ring.entries); err != nil {
			return os.NewSyscallError("setsockopt", err)
		}
	}
	x.perCall = leastBudget
	if unix.SetsockoptInt(x.fd, unix.SOL_XDP, unix.XDP_MAX_TX_SKB_BUDGET, mostPerCall) == nil {
		x.perCall = mostPerCall
	}
	var at unix.XDPMmapOffsets
	length := uint32(unsafe.Sizeof(at))
	if _, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(x.fd), unix.SOL_XDP, unix.XDP_MMAP_OFFSETS,
		uintptr(unsafe.Pointer(&at)), uintptr(unsafe.Pointer(&length)), 0); e != 0 {
		return os.NewSyscallError("getsockopt", e)
	}
	if length != uint32(unsafe.Sizeof(at)) {
		return errors.New("the kernel is too old: rings without flags")
	}
	tx, err := x.mapRing(at.Tx.Desc+uint64(chunks)*uint64(unsafe.Sizeof(unix.XDPDesc{})), unix.XDP_PGOFF_TX_RING)
	if err != nil {
		return err
	}
	done, err := x.mapRing(at.Cr.Desc+uint64(chunks)*8, unix.XDP_UMEM_PGOFF_COMPLETION_RING)
	if err != nil {
		return err
	}
	x.queue.init(tx, at.Tx, chunks)
	x.left.init(done, at.Cr, chunks)
	return nil
}

func (x *xsk) mapRing(length uint64, offset int64) ([]byte, error) {
	m, err := unix.Mmap(x.fd, offset, int(length), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	x.maps = append(x.maps, m)
	return m, nil
}

// bind takes the first queue that is free, or is within a time. To gather frames from several chunks takes Linux 6.6.
func (x *xsk) bind(gather bool, within time.Duration) error {
	flags := uint16(unix.XDP_COPY)
	if gather {
		flags |= unix.XDP_USE_SG
	}
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		busy := error(nil)
		for x.number = 0; x.number < mostQueues; x.number++ {
			err := unix.Bind(x.fd, &unix.SockaddrXDP{Flags: flags, Ifindex: uint32(x.ifindex), QueueID: uint32(x.number)})
			switch {
			case err == nil:
				return nil
			case err == unix.EBUSY:
				busy = err
				continue
			case busy == nil:
				return os.NewSyscallError("bind", err)
			}
			break // there are no more queues
		}
		if time.Since(began) > within {
			return os.NewSyscallError("bind", busy)
		}
	}
}

// close gives everything back. What the kernel has of the frames it keeps until they have left.
func (x *xsk) close() {
	unix.Close(x.fd)
	for _, m := range x.maps {
		unix.Munmap(m)
	}
}

// call has the kernel send what is queued. 0: all of it. EAGAIN: the device takes no more at
// present. EBUSY: it dropped the frame that it came to.
func (x *xsk) call() unix.Errno {
	// The kernel says EAGAIN also after as many chunks as one call may move.
	for tries := x.queue.waiting()/leastBudget + 1; ; {
		_, _, e := unix.Syscall6(unix.SYS_SENDTO, uintptr(x.fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
		switch {
		case e == 0 && x.queue.waiting() > 0:
			return unix.ENXIO // the device has the queue no more
		case e == 0:
			return 0
		case e == unix.EINTR:
		case (e == unix.EAGAIN || e == unix.ENOBUFS || e == unix.ENOMEM) && tries == 0:
			return unix.EAGAIN
		case e == unix.EAGAIN || e == unix.ENOBUFS || e == unix.ENOMEM:
			tries--
		default:
			return e
		}
	}
}

// Queued implements [mmsg.Room].
func (x *xsk) Queued() int {
	x.takeBack()
	return x.chunks.used()
}

// AwaitRoom implements [mmsg.Room].
func (x *xsk) AwaitRoom(time.Duration) (some bool, err error) {
	time.Sleep(pause)
	return x.call() != unix.EAGAIN, nil
}

// pause is how long to wait for a device that takes nothing more before it is asked again. The
// kernel does not tell. Arbitrary: shorter than what a device has queued lasts, 1 ms at 1 Gbit/s.
const pause = 50 * time.Microsecond

// takeBack takes back the chunks that have left. It takes no call.
func (x *xsk) takeBack() {
	for {
		addr, ok := x.left.next()
		if !ok {
			return
		}
		x.chunks.giveBack(addr)
	}
}

func setsockopt(fd, option int, value unsafe.Pointer, length uintptr) error {
	_, _, e := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.SOL_XDP, uintptr(option), uintptr(value), length, 0)
	if e != 0 {
		return os.NewSyscallError("setsockopt", e)
	}
	return nil
}

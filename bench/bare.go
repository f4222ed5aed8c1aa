package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/url"
)

// Types of Ethernet frames for local experiments (IEEE 802).
const (
	bareType      = 0x88b5
	otherBareType = 0x88b6
)

// bareHead is what stands in front of the bytes of each frame, as long as the header of a frame of DG/RDMA and of one message are. Integers
// are little-endian. What is not named is zero, as where a frame of DG/RDMA has ids.
//
//	8   kind: bareData or bareAck
//	10  number of the frame, from 0; of an acknowledgement, of the frame that would be the next
//	18  where its bytes go, from the beginning of the memory
//	26  how many these are
const bareHead = 34

// Kinds of frames.
const (
	bareData = 1
	bareAck  = 2
)

const (
	// bareWindow is how much is unacknowledged at most. As with DG/RDMA, more makes it no faster; 128 KiB carried 0.8 of it.
	bareWindow = 1 << 20
	// bareSlab is how much of it is made and given to the kernel at a time. More does not stay in the processor's cache, and less fills no bursts.
	bareSlab = 256 << 10
	// bareAcks is how many acknowledgements a window has: rare ones cost less, and none may be so rare that the sender waits for it.
	bareAcks = 4
	// barePatience is after how long without an acknowledgement frames count as lost. It is arbitrary, and much more than a busy receiver takes.
	barePatience = 20 * time.Millisecond
)

// bareQuiet is how long nothing comes when all is over: more than a receiver is
// behind that the scheduler let wait.
const bareQuiet = 50 * time.Millisecond

// beside returns the string of a transport at the same place on the same wire, with
// the same options but for xdp=off, that gets none of the endpoint's frames.
func beside(at dgrdma.Addr, wire string) (string, error) {
	u, err := url.Parse(wire)
	if err != nil {
		return "", err
	}
	u.ID = 0
	if u.Scheme == url.UDP {
		u.Addr = netip.AddrPortFrom(at.AddrPort().Addr(), 0)
		return u.String(), nil
	}
	kind := bareType
	if t, _ := u.Options.Get("ethertype"); t != "" {
		if n, err := strconv.ParseUint(t, 0, 16); err == nil && n == bareType {
			kind = otherBareType
		}
	}
	// An AF_XDP socket has a queue of the interface for itself, which is the endpoint's; and a packet socket is what
	// programs have that do not set up more.
	u.Options = u.Options.Without("ethertype").With("ethertype", fmt.Sprintf("%#x", kind)).Without("xdp").With("xdp", "off")
	return u.String(), nil
}

// bare is one side of datagrams or frames of the wire with a window and nothing that repairs what is lost: the sender's if it knows whom to
// send to. Its number of frames under way bounds what the system keeps; what was lost counts as gone as soon as later ones are acknowledged.
type bare struct {
	wire dgrdma.Transport
	to   dgrdma.Addr
	in   []dgrdma.Datagram

	// The sender's.
	room   int // for bytes, in each frame
	window uint64
	slab   []byte
	batch  []dgrdma.Outgoing
	next   uint64 // number of the next frame
	acked  uint64 // of the first that is not acknowledged

	got         atomic.Uint64
	first, last atomic.Int64 // ns since it began
	told        sync.Once
	ending      chan struct{}
	gone        chan struct{}
}

func newBare(at dgrdma.Addr, wire string) (*bare, error) {
	where, err := beside(at, wire)
	if err != nil {
		return nil, err
	}
	t, err := dgrdma.OpenTransport(where)
	if err != nil {
		return nil, err
	}
	return &bare{wire: t, in: make([]dgrdma.Datagram, t.Caps().Batch), ending: make(chan struct{}), gone: make(chan struct{})}, nil
}

// openBare returns what awaits frames: no peer has to be accepted for that.
func openBare(at dgrdma.Addr, wire string) (acceptor, error) {
	b, err := newBare(at, wire)
	if err != nil {
		return nil, err
	}
	return b, nil
}

func dialBare(from, to dgrdma.Addr, port uint32, wire string) (rival, error) {
	b, err := newBare(from, wire)
	if err != nil {
		return nil, err
	}
	if b.to = to; to.Kind() == dgrdma.KindUDP {
		b.to = dgrdma.UDPAddr(netip.AddrPortFrom(to.AddrPort().Addr(), uint16(port)))
	}
	b.wire.Focus(b.to)
	caps := b.wire.Caps()
	b.room = b.wire.MTU(b.to) - bareHead
	size := bareHead + b.room
	b.window = windowOf(size)
	b.batch = make([]dgrdma.Outgoing, 0, min(max(bareSlab/size, 1), int(b.window)/2, caps.Batch))
	b.slab = make([]byte, cap(b.batch)*(caps.Headroom+size))
	close(b.gone) // it counts nothing that comes back
	return b, nil
}

// windowOf returns how many frames of a size are under way at most.
func windowOf(size int) uint64 { return uint64(max(bareWindow/size, bareAcks)) }

func (b *bare) port() uint32 {
	if at := b.wire.LocalAddr(); at.Kind() == dgrdma.KindUDP {
		return uint32(at.AddrPort().Port())
	}
	return 0
}

func (b *bare) accept(_ context.Context, from dgrdma.Addr, memory []byte) (rival, error) {
	go b.receive(from.Host(), memory)
	return b, nil
}

// receive places what comes from that host, until it is told that no more does, and none did
// for a while.
func (b *bare) receive(from dgrdma.Addr, memory []byte) {
	defer close(b.gone)
	began := time.Now()
	ack := make([]byte, b.wire.Caps().Headroom+bareHead)
	var next, acked uint64
	size := bareHead // of the longest frame
	var sender dgrdma.Addr
	for {
		n, err := b.wire.Recv(b.in, bareQuiet)
		if err != nil {
			return
		}
		if n == 0 {
			select {
			case <-b.ending:
				return
			default:
				continue
			}
		}
		bytes := 0
		for i := range b.in[:n] {
			d := &b.in[i]
			if d.From != sender {
				if d.From.Host() != from {
					continue
				}
				sender = d.From
				b.wire.Focus(sender)
			}
			number, at, data, ok := bareFrame(d.Data, memory)
			if !ok {
				continue
			}
			if number >= next {
				next = number + 1
			}
			size = max(size, len(d.Data))
			bytes += copy(memory[at:], data)
		}
		if bytes == 0 {
			continue
		}
		now := int64(time.Since(began))
		b.first.CompareAndSwap(0, now)
		b.last.Store(now)
		b.got.Add(uint64(bytes))
		if next-acked >= max(windowOf(size)/bareAcks, 1) {
			acked = next
			putBareHead(ack[len(ack)-bareHead:], bareAck, next, 0, 0)
			if _, err := b.wire.Send([]dgrdma.Outgoing{{To: &sender, Buf: ack}}); err != nil {
				return
			}
		}
	}
}

func putBareHead(h []byte, kind uint16, number, at uint64, length int) {
	binary.LittleEndian.PutUint64(h, 0)
	binary.LittleEndian.PutUint16(h[8:], kind)
	binary.LittleEndian.PutUint64(h[10:], number)
	binary.LittleEndian.PutUint64(h[18:], at)
	binary.LittleEndian.PutUint64(h[26:], uint64(length))
}

// bareFrame reads a frame of data. It is not ok unless all of it fits the memory.
func bareFrame(b, memory []byte) (number, at uint64, data []byte, ok bool) {
	if len(b) < bareHead || binary.LittleEndian.Uint16(b[8:]) != bareData {
		return 0, 0, nil, false
	}
	data, at = b[bareHead:], binary.LittleEndian.Uint64(b[18:])
	length, room := binary.LittleEndian.Uint64(b[26:]), uint64(len(memory))
	if length == 0 || length > uint64(len(data)) || at > room || length > room-at {
		return 0, 0, nil, false
	}
	data = data[:length] // Ethernet makes short frames longer
	return binary.LittleEndian.Uint64(b[10:]), at, data, true
}

// Post sends a block in frames as large as the wire has, as the window lets it.
func (b *bare) Post(op *Op) (complete bool, err error) {
	headroom := b.wire.Caps().Headroom
	at := uint64(op.Slot) * uint64(len(op.Bytes))
	for rest := op.Bytes; len(rest) > 0; {
		b.batch = b.batch[:0]
		slab := b.slab
		for len(rest) > 0 && len(b.batch) < cap(b.batch) {
			n := min(b.room, len(rest))
			buf := slab[:headroom+bareHead+n]
			slab = slab[len(buf):]
			putBareHead(buf[headroom:], bareData, b.next+uint64(len(b.batch)), at, n)
			copy(buf[headroom+bareHead:], rest[:n])
			b.batch = append(b.batch, dgrdma.Outgoing{To: &b.to, Buf: buf})
			rest, at = rest[n:], at+uint64(n)
		}
		if err := b.await(b.window - uint64(len(b.batch))); err != nil {
			return false, err
		}
		if _, err := b.wire.Send(b.batch); err != nil {
			return false, err
		}
		b.next += uint64(len(b.batch))
	}
	return true, nil
}

// await waits until no more than that many frames are under way. What is not acknowledged for a while counts as gone.
func (b *bare) await(most uint64) error {
	for b.next-b.acked > most {
		n, err := b.wire.Recv(b.in, barePatience)
		if err != nil {
			return err
		}
		if n == 0 {
			b.acked = b.next
		}
		for i := range b.in[:n] {
			b.acked = max(b.acked, bareAcknowledged(b.in[i].Data, b.next))
		}
	}
	return nil
}

// bareAcknowledged returns up to where an acknowledgement goes; 0: it is none, or of what was never sent.
func bareAcknowledged(b []byte, sent uint64) uint64 {
	if len(b) < bareHead || binary.LittleEndian.Uint16(b[8:]) != bareAck {
		return 0
	}
	if next := binary.LittleEndian.Uint64(b[10:]); next <= sent {
		return next
	}
	return 0
}

// Wait has nothing to wait for: the receiver says how much came.
func (b *bare) Wait(context.Context) error { return nil }

func (b *bare) arrived() uint64       { return b.got.Load() }
func (b *bare) arriving() uint64      { return uint64(b.last.Load() - b.first.Load()) }
func (b *bare) over() <-chan struct{} { return b.gone }

func (b *bare) stop() { b.told.Do(func() { close(b.ending) }) }

func (b *bare) Close() error {
	b.stop()
	err := b.wire.Close()
	<-b.gone
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

package bench

import (
	"context"
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
	floodType      = 0x88b5
	otherFloodType = 0x88b6
)

// floodHead is what the sender puts in front of the bytes of each frame, where DG/RDMA has its header.
const floodHead = 8

// floodQuiet is how long nothing comes when a flood is over: more than a receiver is
// behind that the scheduler let wait.
const floodQuiet = 50 * time.Millisecond

// beside returns the string of a transport at the same place on the same wire, with
// the same options, that gets none of the endpoint's frames.
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
	kind := floodType
	if t, _ := u.Options.Get("ethertype"); t != "" {
		if n, err := strconv.ParseUint(t, 0, 16); err == nil && n == floodType {
			kind = otherFloodType
		}
	}
	u.Options = u.Options.Without("ethertype").With("ethertype", fmt.Sprintf("%#x", kind))
	return u.String(), nil
}

// flood is one side of datagrams that nobody acknowledges: the sender's if it knows whom to
// send to.
type flood struct {
	wire  dgrdma.Transport
	to    dgrdma.Addr
	batch []dgrdma.Outgoing

	got         atomic.Uint64
	first, last atomic.Int64 // ns since it began
	told        sync.Once
	ending      chan struct{}
	gone        chan struct{}
}

func newFlood(at dgrdma.Addr, wire string) (*flood, error) {
	where, err := beside(at, wire)
	if err != nil {
		return nil, err
	}
	t, err := dgrdma.OpenTransport(where)
	if err != nil {
		return nil, err
	}
	return &flood{wire: t, ending: make(chan struct{}), gone: make(chan struct{})}, nil
}

// openFlood returns what awaits datagrams: no peer has to be accepted for that.
func openFlood(at dgrdma.Addr, wire string) (acceptor, error) {
	f, err := newFlood(at, wire)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func dialFlood(from, to dgrdma.Addr, port uint32, wire string) (rival, error) {
	f, err := newFlood(from, wire)
	if err != nil {
		return nil, err
	}
	if f.to = to; to.Kind() == dgrdma.KindUDP {
		f.to = dgrdma.UDPAddr(netip.AddrPortFrom(to.AddrPort().Addr(), uint16(port)))
	}
	f.wire.Focus(f.to)
	caps := f.wire.Caps()
	f.batch = make([]dgrdma.Outgoing, caps.Batch)
	for i := range f.batch {
		f.batch[i] = dgrdma.Outgoing{To: &f.to, Buf: make([]byte, caps.Headroom+floodHead)}
	}
	close(f.gone) // nothing comes back
	return f, nil
}

func (f *flood) port() uint32 {
	if at := f.wire.LocalAddr(); at.Kind() == dgrdma.KindUDP {
		return uint32(at.AddrPort().Port())
	}
	return 0
}

func (f *flood) accept(_ context.Context, from dgrdma.Addr, memory []byte) (rival, error) {
	go f.receive(from.Host(), memory)
	return f, nil
}

// receive places what comes from that host, until it is told that no more does, and none did
// for a while.
func (f *flood) receive(from dgrdma.Addr, memory []byte) {
	defer close(f.gone)
	in := make([]dgrdma.Datagram, f.wire.Caps().Batch)
	began := time.Now()
	for at := 0; ; {
		n, err := f.wire.Recv(in, floodQuiet)
		if err != nil {
			return
		}
		if n == 0 {
			select {
			case <-f.ending:
				return
			default:
				continue
			}
		}
		bytes := 0
		for _, d := range in[:n] {
			if d.From.Host() != from || len(d.Data) < floodHead || len(d.Data)-floodHead > len(memory) {
				continue
			}
			data := d.Data[floodHead:]
			if at+len(data) > len(memory) {
				at = 0
			}
			at += copy(memory[at:], data)
			bytes += len(data)
		}
		now := int64(time.Since(began))
		f.first.CompareAndSwap(0, now)
		f.last.Store(now)
		f.got.Add(uint64(bytes))
	}
}

// Post sends a block in frames as large as the wire has.
func (f *flood) Post(op *Op) (complete bool, err error) {
	room, n := f.wire.MTU(f.to)-floodHead, 0
	for rest := op.Bytes; len(rest) > 0; {
		f.batch[n].Rest = rest[:min(room, len(rest))]
		rest = rest[len(f.batch[n].Rest):]
		if n++; n == len(f.batch) || len(rest) == 0 {
			if _, err := f.wire.Send(f.batch[:n]); err != nil {
				return false, err
			}
			n = 0
		}
	}
	return true, nil
}

// Wait has nothing to wait for: the receiver says how much came.
func (f *flood) Wait(context.Context) error { return nil }

func (f *flood) arrived() uint64       { return f.got.Load() }
func (f *flood) arriving() uint64      { return uint64(f.last.Load() - f.first.Load()) }
func (f *flood) over() <-chan struct{} { return f.gone }

func (f *flood) stop() { f.told.Do(func() { close(f.ending) }) }

func (f *flood) Close() error {
	f.stop()
	err := f.wire.Close()
	<-f.gone
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

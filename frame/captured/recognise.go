package captured

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"golang.org/x/net/bpf"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/seal/datagram"
)

// Options says which packets of a capture are frames.
type Options struct {
	// EtherType is the Ethernet type of DG/RDMA; 0 means frame.EtherType.
	EtherType uint16
	// Ports are the UDP ports of DG/RDMA, at either end. All their datagrams
	// are taken, even if they do not parse. Without any, what looks like a
	// frame is taken.
	Ports []uint16
	// None is for captures of which only iWARP is wanted: nothing is taken for DG/RDMA.
	None bool
}

// Filter returns what a live capture needs to take for these options.
func (o Options) Filter() capture.Filter {
	r := o.recogniser()
	f := capture.Filter{EtherType: r.EtherType, Ports: r.Ports}
	switch {
	case o.None:
		f.Datagram = []bpf.Instruction{bpf.RetConstant{Val: 0}}
	case len(r.Ports) == 0:
		f.Datagram = plausibleStart
	}
	return f
}

// plausibleStart is what the kernel can tell of plausible by the prefix and the header of a
// frame. Words are compared with each other and with 0, in whatever byte order.
var plausibleStart = []bpf.Instruction{
	bpf.LoadIndirect{Off: frame.PrefixSize + datagram.FlagsAt, Size: 1},
	bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: datagram.Flag, SkipFalse: 3},
	bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: datagram.FlagsNever, SkipTrue: 18},
	bpf.LoadIndirect{Off: frame.PrefixSize + datagram.LeastPayload - 1, Size: 1}, // shorter ones are dropped
	bpf.Jump{Skip: 4},
	bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: frame.FlagSession, SkipFalse: 2},
	bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: frame.FlagMessages, SkipTrue: 14},
	bpf.Jump{Skip: 1},
	bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: knownFlags, SkipTrue: 12},
	bpf.LoadIndirect{Off: frame.PrefixSize + 2, Size: 2}, // source
	bpf.StoreScratch{Src: bpf.RegA, N: source},
	bpf.LoadIndirect{Off: frame.PrefixSize, Size: 2}, // destination
	bpf.StoreScratch{Src: bpf.RegA, N: destination},
	bpf.LoadIndirect{Off: 0, Size: 2}, // prefix
	bpf.LoadScratch{Dst: bpf.RegX, N: destination},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1},
	bpf.JumpIfX{Cond: bpf.JumpEqual, SkipFalse: 4},
	bpf.LoadScratch{Dst: bpf.RegA, N: source},
	bpf.ALUOpX{Op: bpf.ALUOpOr},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1}, // both: one is in questions who is there, and answers
	bpf.RetConstant{Val: capture.Take},
	bpf.RetConstant{Val: 0},
}

// knownFlags are those that some known sender sets.
const knownFlags = frame.FlagMessages | frame.FlagChecksum

// source and destination are where plausibleStart keeps those ids.
const source, destination = 14, 15

// recogniser is a [capture.Recogniser].
type recogniser Options

func (o Options) recogniser() *recogniser {
	if o.EtherType == 0 {
		o.EtherType = frame.EtherType
	}
	o.Ports = slices.Clone(o.Ports)
	return (*recogniser)(&o)
}

// Takes reports whether a datagram of UDP is taken for one of frames, of which data is there and length bytes were on the wire.
func (o Options) Takes(src, dst netip.AddrPort, data []byte, length int) bool {
	_, ok := (*recogniser)(&o).Datagram(src, dst, data, length)
	return ok
}

func (r *recogniser) Ethernet(etherType uint16) bool { return !r.None && etherType == r.EtherType }

func (r *recogniser) Datagram(src, dst netip.AddrPort, data []byte, length int) (size int, ok bool) {
	j := joined{data: data, length: length}
	size = j.split()
	if r.None {
		return size, false
	}
	if len(r.Ports) > 0 {
		// An empty datagram asks the system on the way whether anybody has the port.
		return size, length > 0 && (slices.Contains(r.Ports, src.Port()) || slices.Contains(r.Ports, dst.Port()))
	}
	first := j.at(0)
	return size, plausible(&first)
}

// mostType is the highest type of a message that OpenCPI has a name for.
const mostType = 3

// plausible tells frames from other datagrams by fields that no known sender
// uses. A frame that was cut need only be plausible as far as it goes.
func plausible(p *Packet) bool {
	h, ok := p.Header()
	if k := p.Seal(); k != datagram.Plain {
		return plausiblePrefix(p, &h) && plausibleSeal(p.Data, k, &h)
	}
	if p.Session() {
		return plausiblePrefix(p, &h) && plausibleSession(p)
	}
	if !ok || h.Flags&^knownFlags != 0 || !plausiblePrefix(p, &h) || !plausibleIDs(p, &h) {
		return false
	}
	if !h.HasMessages() {
		return p.Length == frame.HeaderSize && h.AckCount != 0
	}
	for m := range p.Messages() {
		if m.Type > mostType || m.Index > m.Count && m.Count != 0 {
			return false
		}
	}
	_, err := frame.Parse(p.Data)
	return err == nil || p.Cut()
}

// plausibleIDs reports whether both ends have an id, as they have but where one asks who is there,
// and is answered.
func plausibleIDs(p *Packet, h *frame.Header) bool {
	if h.Dst != 0 && h.Src != 0 {
		return true
	}
	for m := range p.Messages() {
		is, ok := frame.HandshakeOf(&frame.Frame{Header: *h}, &m)
		return ok && (h.Src != 0 && is.Kind == frame.HandshakeHello || h.Dst != 0 && (is.Kind == frame.HandshakeRefused || is.Kind == frame.HandshakeWelcome))
	}
	return false
}

// plausiblePrefix reports whether the bytes before a frame are what some known
// sender puts there.
func plausiblePrefix(p *Packet, h *frame.Header) bool {
	id := binary.LittleEndian.Uint16(p.Prefix)
	return id == 0 || id == uint16(h.Dst)
}

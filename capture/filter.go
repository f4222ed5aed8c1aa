package capture

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Filter says which packets a live capture takes. The kernel drops all others before it
// copies them, so that a capture beside a lot of other traffic costs little. What it cannot
// see through, as what is behind three VLAN tags, or a later fragment of a datagram, is taken.
type Filter struct {
	EtherType uint16   // of frames of the protocol
	Ports     []uint16 // of UDP, at either end; none: all
	Ends      []End    // of which a packet needs one; none: all
	TCP       []uint16 // ports, at either end, of which segments of TCP are taken too; none: no segment
	// Datagram ends the program where a datagram of UDP is looked at, by returning 0 to drop it
	// or [Take]. Register X is where its data begins. Without it all are taken.
	Datagram []bpf.Instruction
	// Program takes part too, if there is one: packets that it drops are dropped.
	Program Program
}

// Take is what a program returns that takes a packet: so much of it, which is more than any
// has.
const Take = 1 << 18

// compile makes a program for the kernel. A filter that is too long for it chooses by
// protocol only.
func (f *Filter) compile() ([]bpf.RawInstruction, error) {
	a := assembler{at: map[label]int{}}
	a.hardware()
	a.packets(f)
	own, err := a.assemble()
	if err != nil {
		return nil, err
	}
	if all := f.Program.before(own); len(all) <= maxProgram {
		return all, nil
	}
	if len(f.Ports) == 0 && len(f.Ends) == 0 {
		return nil, fmt.Errorf("the filter program is too long: the kernel takes %d instructions with those that choose the protocol", maxProgram)
	}
	return (&Filter{EtherType: f.EtherType, Datagram: f.Datagram, TCP: f.TCP, Program: f.Program}).compile()
}

// Places in the program.
const (
	toEthernet label = iota
	toRaw
	toOwn
	toIPv4
	toIPv6
	toDatagram
	toInnerTag
	toPass
	toDrop
	toNext // and those behind it
)

// Where the program keeps what it found out.
const (
	srcPort = iota
	dstPort
	ipHeader // where it begins
	udpData
	protocol
)

// hardware begins the program: what is in front of a packet depends on the kind of its
// interface.
func (a *assembler) hardware() {
	a.add(bpf.LoadExtension{Num: bpf.ExtLinkLayerType})
	for _, h := range hardwareTypes {
		switch {
		case h.kind == unix.ARPHRD_LOOPBACK:
			loopback := a.label()
			a.unless(uint32(h.kind), loopback)
			// What goes out there comes in as well.
			a.add(bpf.LoadExtension{Num: bpf.ExtType})
			a.when(unix.PACKET_OUTGOING, toDrop)
			a.jump(toEthernet)
			a.mark(loopback)
		case h.link == linkEthernet:
			a.when(uint32(h.kind), toEthernet)
		default:
			a.when(uint32(h.kind), toRaw)
		}
	}
	a.jump(toDrop)
}

// packets is the rest. Register X is where the header of IP begins.
func (a *assembler) packets(f *Filter) {
	a.mark(toRaw)
	a.add(bpf.LoadConstant{Dst: bpf.RegX, Val: 0}, bpf.LoadAbsolute{Off: 0, Size: 1}, bpf.ALUOpConstant{Op: bpf.ALUOpShiftRight, Val: 4})
	a.when(4, toIPv4)
	a.when(6, toIPv6)
	a.jump(toDrop)

	a.mark(toEthernet)
	a.etherType(f, 12, toInnerTag) // the outermost tag is out of the frame already
	a.mark(toInnerTag)
	a.etherType(f, 16, toPass)

	a.mark(toOwn)
	a.ether(f)
	a.mark(toIPv4)
	a.ipv4(f)
	a.mark(toIPv6)
	a.ipv6(f)
	a.mark(toDatagram)
	a.datagram(f)
	a.mark(toDrop)
	a.add(bpf.RetConstant{Val: 0})
	a.mark(toPass)
	a.add(bpf.RetConstant{Val: Take})
}

// etherType goes by the type at off, to tagged if there is another tag.
func (a *assembler) etherType(f *Filter, off uint32, tagged label) {
	a.add(bpf.LoadConstant{Dst: bpf.RegX, Val: off + 2}, bpf.LoadAbsolute{Off: off, Size: 2})
	a.when(uint32(f.EtherType), toOwn)
	a.when(etherIPv4, toIPv4)
	a.when(etherIPv6, toIPv6)
	for _, tag := range []uint32{etherVLAN, etherQinQ, etherQinQOld} {
		a.when(tag, tagged)
	}
	a.jump(toDrop)
}

// ether chooses frames of the protocol by their hardware addresses.
func (a *assembler) ether(f *Filter) {
	for _, e := range f.Ends {
		if e.ip.IsValid() {
			continue
		}
		for _, off := range []uint32{0, 6} {
			other := a.label()
			a.add(bpf.LoadAbsolute{Off: off, Size: 4})
			a.unless(binary.BigEndian.Uint32(e.mac[:]), other)
			a.add(bpf.LoadAbsolute{Off: off + 4, Size: 2})
			a.when(uint32(binary.BigEndian.Uint16(e.mac[4:])), toPass)
			a.mark(other)
		}
	}
	if len(f.Ends) == 0 {
		a.jump(toPass)
	}
	a.jump(toDrop)
}

func (a *assembler) ipv4(f *Filter) {
	a.add(bpf.LoadIndirect{Off: 9, Size: 1})
	a.protocol(f)
	first := a.label()
	a.add(bpf.LoadIndirect{Off: 6, Size: 2}, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0x1FFF})
	a.when(0, first)
	a.jump(toPass)
	a.mark(first)
	a.add(
		bpf.StoreScratch{Src: bpf.RegX, N: ipHeader},
		bpf.LoadIndirect{Off: 0, Size: 1},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 15},
		bpf.ALUOpConstant{Op: bpf.ALUOpShiftLeft, Val: 2},
		bpf.ALUOpX{Op: bpf.ALUOpAdd},
		bpf.TAX{},
	)
	a.ports(0)
	a.add(bpf.LoadScratch{Dst: bpf.RegX, N: ipHeader})
	for _, e := range f.Ends {
		if e.ip.Is4() {
			b := e.ip.As4()
			a.end(e, b[:], 12)
		}
	}
	if len(f.Ends) == 0 {
		a.jump(toDatagram)
	}
	a.jump(toDrop)
}

func (a *assembler) ipv6(f *Filter) {
	a.add(bpf.LoadIndirect{Off: 6, Size: 1})
	for _, extension := range []uint32{protoHopByHop, protoRouting, protoFragment, protoAuth, protoOptions} {
		a.when(extension, toPass) // what is behind it is for who reads
	}
	a.protocol(f)
	a.ports(40)
	for _, e := range f.Ends {
		if e.ip.IsValid() {
			b := e.ip.As16()
			a.end(e, b[:], 8)
		}
	}
	if len(f.Ends) == 0 {
		a.jump(toDatagram)
	}
	a.jump(toDrop)
}

// protocol goes on if what IP carries is of use, and keeps which it is if there are two.
func (a *assembler) protocol(f *Filter) {
	if len(f.TCP) == 0 {
		a.unless(protoUDP, toDrop)
		return
	}
	a.add(bpf.StoreScratch{Src: bpf.RegA, N: protocol})
	useful := a.label()
	a.when(protoUDP, useful)
	a.unless(protoTCP, toDrop)
	a.mark(useful)
}

// ports keeps what is in and behind the header off bytes behind X: UDP and TCP both begin with the ports.
func (a *assembler) ports(off uint32) {
	a.add(
		bpf.TXA{}, bpf.ALUOpConstant{Op: bpf.ALUOpAdd, Val: off + 8}, bpf.StoreScratch{Src: bpf.RegA, N: udpData},
		bpf.LoadIndirect{Off: off, Size: 2}, bpf.StoreScratch{Src: bpf.RegA, N: srcPort},
		bpf.LoadIndirect{Off: off + 2, Size: 2}, bpf.StoreScratch{Src: bpf.RegA, N: dstPort},
	)
}

// end goes on with a packet that has an end: its addresses, that long, are off bytes behind X.
func (a *assembler) end(e End, ip []byte, off uint32) {
	for _, port := range []int{srcPort, dstPort} {
		other := a.label()
		for i := 0; i < len(ip); i += 4 {
			a.add(bpf.LoadIndirect{Off: off + uint32(i), Size: 4})
			a.unless(binary.BigEndian.Uint32(ip[i:]), other)
		}
		if !e.anyPort {
			a.add(bpf.LoadScratch{Dst: bpf.RegA, N: port})
			a.unless(uint32(e.port), other)
		}
		a.jump(toDatagram)
		a.mark(other)
		off += uint32(len(ip))
	}
}

// datagram chooses by the ports that were kept, then, over UDP, by the data.
func (a *assembler) datagram(f *Filter) {
	chosen := a.label()
	if len(f.TCP) > 0 {
		udp := a.label()
		a.add(bpf.LoadScratch{Dst: bpf.RegA, N: protocol})
		a.when(protoUDP, udp)
		a.anyPort(f.TCP, toPass)
		a.jump(toDrop)
		a.mark(udp)
	}
	if len(f.Ports) == 0 {
		a.jump(chosen)
	}
	a.anyPort(f.Ports, chosen)
	a.jump(toDrop)
	a.mark(chosen)
	a.add(bpf.LoadScratch{Dst: bpf.RegX, N: udpData})
	a.add(f.Datagram...)
	a.jump(toPass)
}

// anyPort jumps if one of the ports that were kept is in the list.
func (a *assembler) anyPort(ports []uint16, to label) {
	for _, kept := range []int{srcPort, dstPort} {
		a.add(bpf.LoadScratch{Dst: bpf.RegA, N: kept})
		for _, port := range ports {
			a.when(uint32(port), to)
		}
	}
}

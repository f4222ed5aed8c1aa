package ether

import (
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// filter accepts what is for us. It works on the frame behind the EtherType.
func filter(ifindex int, id uint16) ([]bpf.RawInstruction, error) {
	const refuse = 255 // a label, replaced below
	program := []bpf.Instruction{
		// Not what we or our neighbours on this interface send, nor what an
		// interface in promiscuous mode overhears, nor frames of a VLAN that
		// has no interface here: the kernel calls those another host's.
		bpf.LoadExtension{Num: bpf.ExtType},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.PACKET_HOST, SkipFalse: refuse},
		// A parent's socket is shown what is for its VLANs and its bond too.
		bpf.LoadExtension{Num: bpf.ExtInterfaceIndex},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(ifindex), SkipFalse: refuse},
	}
	if id != 0 {
		program = append(program,
			bpf.LoadAbsolute{Off: 0, Size: 2}, // big-endian; ids are little-endian
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(id>>8 | id<<8), SkipFalse: refuse})
	}
	program = append(program, bpf.RetConstant{Val: 1 << 18}, bpf.RetConstant{Val: 0})
	for i, in := range program {
		if jump, ok := in.(bpf.JumpIf); ok && jump.SkipFalse == refuse {
			jump.SkipFalse = uint8(len(program) - 1 - (i + 1))
			program[i] = jump
		}
	}
	return bpf.Assemble(program)
}

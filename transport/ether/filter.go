package ether

import (
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// nothing is the filter that accepts no frame.
var nothing = []bpf.RawInstruction{{Op: unix.BPF_RET | unix.BPF_K}}

// filter accepts what is for us. It works on the frame behind the EtherType.
// The range of ids may be wider than those of the endpoint; 0 is no id.
func filter(ifindex int, low, high uint16) ([]bpf.RawInstruction, error) {
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
	switch {
	case low == 0:
	case low == high:
		program = append(program,
			bpf.LoadAbsolute{Off: 0, Size: 2}, // big-endian; ids are little-endian
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(low>>8 | low<<8), SkipFalse: refuse})
	default:
		program = append(program,
			bpf.LoadAbsolute{Off: 1, Size: 1},
			bpf.ALUOpConstant{Op: bpf.ALUOpShiftLeft, Val: 8},
			bpf.TAX{},
			bpf.LoadAbsolute{Off: 0, Size: 1},
			bpf.ALUOpX{Op: bpf.ALUOpOr},
			bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: uint32(low), SkipFalse: refuse},
			bpf.JumpIf{Cond: bpf.JumpLessOrEqual, Val: uint32(high), SkipFalse: refuse})
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

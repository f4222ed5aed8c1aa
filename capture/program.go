package capture

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/net/bpf"
)

// maxProgram is BPF_MAXINSNS, the longest program that the kernel takes.
const maxProgram = 4096

// Program is a classic BPF program: what libpcap makes of an expression, for the link type
// of the interface.
type Program []bpf.RawInstruction

// ParseProgram reads a program as "tcpdump -ddd" prints it: the number of instructions, then
// each in a line of four numbers. The kernel checks it when it is used, but not whether it ends
// where something else is put behind it.
func ParseProgram(r io.Reader) (Program, error) {
	lines := bufio.NewScanner(r)
	n, read := 0, 0
	var p Program
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" {
			continue
		}
		if read == 0 {
			if _, err := fmt.Sscanf(line+"\n", "%d\n", &n); err != nil || n < 1 || n > maxProgram {
				return nil, fmt.Errorf("line %d: %.40q is no number of instructions, 1 to %d", number, line, maxProgram)
			}
			read = 1
			continue
		}
		var ins bpf.RawInstruction
		if _, err := fmt.Sscanf(line+"\n", "%d %d %d %d\n", &ins.Op, &ins.Jt, &ins.Jf, &ins.K); err != nil || len(p) == n {
			return nil, fmt.Errorf("line %d: %.40q is not one of %d instructions, each of four numbers", number, line, n)
		}
		p = append(p, ins)
	}
	switch err := lines.Err(); {
	case err != nil:
		return nil, err
	case n == 0:
		return nil, errors.New("it is empty")
	case len(p) < n:
		return nil, fmt.Errorf("it ends after %d of %d instructions", len(p), n)
	}
	if err := p.ends(); err != nil {
		return nil, err
	}
	return p, nil
}

// ends reports why a program would not end within itself.
func (p Program) ends() error {
	for i, ins := range p {
		behind := uint64(max(ins.Jt, ins.Jf))
		if ins.Op == opJump {
			behind = uint64(ins.K)
		}
		if ins.Op&opClass == opClassJump && uint64(i)+1+behind >= uint64(len(p)) {
			return fmt.Errorf("instruction %d jumps out of the program", i+1)
		}
	}
	if last := p[len(p)-1]; last.Op&opClass != opReturn {
		return errors.New("its last instruction does not return")
	}
	return nil
}

// Fields of an instruction.
const (
	opClass     = 0x07
	opReturn    = 0x06
	opValue     = 0x18 // of a return: what is returned
	opOfA       = 0x10
	opClassJump = 0x05
	opJump      = opClassJump // always
)

// before returns a program that does what p does, and goes on with next where p takes a
// packet.
func (p Program) before(next []bpf.RawInstruction) []bpf.RawInstruction {
	if len(p) == 0 {
		return next
	}
	// Jumps within p stay as they are: each return of it becomes one instruction.
	const equal = 0x15
	trailer := []bpf.RawInstruction{{Op: equal, Jf: 1, K: 0}, {Op: opReturn, K: 0}} // A is 0: drop
	all := make([]bpf.RawInstruction, 0, len(p)+len(trailer)+len(next))
	for i, ins := range p {
		if ins.Op&opClass == opReturn {
			switch toTrailer := uint32(len(p) - i - 1); {
			case ins.Op&opValue == opOfA:
				ins = bpf.RawInstruction{Op: opJump, K: toTrailer}
			case ins.K != 0:
				ins = bpf.RawInstruction{Op: opJump, K: toTrailer + uint32(len(trailer))}
			}
		}
		all = append(all, ins)
	}
	return append(append(all, trailer...), next...)
}

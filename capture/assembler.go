package capture

import (
	"fmt"

	"golang.org/x/net/bpf"
)

// label is a place in a program.
type label int

// assembler puts together a program whose jumps go to labels. Conditional jumps of the
// machine reach 255 instructions, the others any: conditions here jump over one of those.
type assembler struct {
	code   []bpf.Instruction
	jumps  []jumpTo
	at     map[label]int
	labels int // made by label
}

type jumpTo struct {
	from int
	to   label
}

func (a *assembler) add(ins ...bpf.Instruction) { a.code = append(a.code, ins...) }

// label makes one that nobody has.
func (a *assembler) label() label {
	a.labels++
	return toNext + label(a.labels)
}

// mark makes what follows the place of a label.
func (a *assembler) mark(l label) { a.at[l] = len(a.code) }

func (a *assembler) jump(to label) {
	a.jumps = append(a.jumps, jumpTo{len(a.code), to})
	a.add(bpf.Jump{})
}

// when jumps if A is v.
func (a *assembler) when(v uint32, to label) {
	a.add(bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipFalse: 1})
	a.jump(to)
}

// unless jumps if A is not v.
func (a *assembler) unless(v uint32, to label) {
	a.add(bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipTrue: 1})
	a.jump(to)
}

// link gives the jumps their distances.
func (a *assembler) link() error {
	for _, j := range a.jumps {
		at, ok := a.at[j.to]
		if !ok || at <= j.from {
			return fmt.Errorf("no place %d behind instruction %d", j.to, j.from)
		}
		a.code[j.from] = bpf.Jump{Skip: uint32(at - j.from - 1)}
	}
	return nil
}

func (a *assembler) assemble() ([]bpf.RawInstruction, error) {
	if err := a.link(); err != nil {
		return nil, err
	}
	return bpf.Assemble(a.code)
}

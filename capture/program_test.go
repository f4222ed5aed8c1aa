package capture

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/bpf"
)

// port40002 is what "tcpdump -ddd udp port 40002" prints, on Ethernet.
const port40002 = `20
40 0 0 12
21 0 6 34525
48 0 0 20
21 0 15 17
40 0 0 54
21 12 0 40002
40 0 0 56
21 10 11 40002
21 0 10 2048
48 0 0 23
21 0 8 17
40 0 0 20
69 6 0 8191
177 0 0 14
72 0 0 14
21 2 0 40002
72 0 0 16
21 0 1 40002
6 0 0 262144
6 0 0 0
`

// A program of libpcap's does what its expression says.
func TestProgramOfTcpdump(t *testing.T) {
	p, err := ParseProgram(strings.NewReader(port40002))
	if err != nil {
		t.Fatal(err)
	}
	code, ok := bpf.Disassemble(p)
	vm, err := bpf.NewVM(code)
	if err != nil || !ok {
		t.Fatal(err)
	}
	all := wrapped(t)
	for name, want := range map[string]bool{"udp6": true, "udp4padded": true, "ethernet": false} {
		if n, err := vm.Run(all[name].Data); err != nil || n > 0 != want {
			t.Errorf("%s: %d, %v; want %v", name, n, err, want)
		}
	}
}

func TestParseProgram(t *testing.T) {
	for _, good := range []string{"1\n6 0 0 262144\n", "2\r\n 40 0 0 12\r\n\r\n22 0 0 0", "4096\n" + strings.Repeat("0 1 255 4294967295\n", 4095) + "6 0 0 0", "3\n5 0 0 1\n21 0 0 7\n6 0 0 0"} {
		p, err := ParseProgram(strings.NewReader(good))
		if err != nil || fmt.Sprint(len(p)) != strings.Fields(good)[0] {
			t.Errorf("%.20q: %d instructions, %v", good, len(p), err)
		}
	}
	for bad, want := range map[string]string{
		"":                               "it is empty",
		"\n\n":                           "it is empty",
		"0\n":                            `line 1: "0" is no number of instructions`,
		"4097\n":                         `"4097" is no number of instructions`,
		"(000) ldh [12]\n":               `"(000) ldh [12]" is no number of instructions`,
		"1 2\n":                          `"1 2" is no number`,
		"2\n6 0 0 1\n":                   "it ends after 1 of 2 instructions",
		"1\n6 0 0 1\n6 0 0 0\n":          "line 3: ",
		"1\n6 0 0\n":                     "line 2: ",
		"1\n6 0 0 1 1\n":                 "line 2: ",
		"1\n6 256 0 1\n":                 "line 2: ",
		"1\n6 0 0 4294967296\n":          "line 2: ",
		"1\n6 0 0 -1\n":                  "line 2: ",
		"1\n40 0 0 12\n":                 "its last instruction does not return",
		"2\n5 0 0 1\n6 0 0 0\n":          "instruction 1 jumps out of the program",
		"2\n21 1 0 7\n6 0 0 0\n":         "instruction 1 jumps out of the program",
		"2\n29 0 1 0\n6 0 0 0\n":         "instruction 1 jumps out of the program",
		"2\n5 0 0 4294967295\n6 0 0 0\n": "instruction 1 jumps out of the program",
		strings.Replace(port40002, "21 2 0 40002", "jeq #40002 jt 18", 1): "line 17: ",
		strings.Repeat("x", 1<<17):                                        "too long",
	} {
		if p, err := ParseProgram(strings.NewReader(bad)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, %v; want %s", bad, p, err, want)
		}
	}
}

// What a program drops is dropped, and of what it takes, the next one decides.
func TestProgramBefore(t *testing.T) {
	raw := func(ins ...bpf.Instruction) []bpf.RawInstruction {
		all, err := bpf.Assemble(ins)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	// The first byte decides: 0 drops, 1 takes, and from 2 on it is what is returned, less 2.
	first := raw(
		bpf.LoadAbsolute{Off: 0, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: 2, SkipTrue: 3},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 1, SkipTrue: 1},
		bpf.RetConstant{Val: 0},
		bpf.RetConstant{Val: 1 << 18},
		bpf.ALUOpConstant{Op: bpf.ALUOpSub, Val: 2},
		bpf.RetA{},
	)
	// The second byte decides.
	second := raw(
		bpf.LoadAbsolute{Off: 1, Size: 1},
		bpf.RetA{},
	)
	code, ok := bpf.Disassemble(Program(first).before(second))
	vm, err := bpf.NewVM(code)
	if err != nil || !ok {
		t.Fatal(err)
	}
	for packet, want := range map[[2]byte]int{
		{0, 9}: 0, {1, 9}: 9, {1, 0}: 0, {2, 9}: 0, {3, 9}: 9, {3, 0}: 0, {200, 7}: 7,
	} {
		if got, err := vm.Run(packet[:]); err != nil || got != want {
			t.Errorf("%v: %d, %v; want %d", packet, got, err, want)
		}
	}
	if got := Program(nil).before(second); len(got) != len(second) {
		t.Errorf("no program makes %d instructions of %d", len(got), len(second))
	}
}

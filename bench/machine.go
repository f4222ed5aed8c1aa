package bench

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Machine is what a machine did besides while a run was measured on it.
type Machine struct {
	Processors int
	Load       float64 // tasks that ran or wanted to, an average over the last minute; 0: not known
	// Others is the share of all processors' time that others took than the two ends: at least
	// that, as what the kernel does between tasks is nobody's. Negative: not measured.
	Others float64
}

// mostOthers is how much others may take before ratios are in doubt. Arbitrary: with little else
// on two cores it was 0, and beside one busy loop for each 0.4 to 0.6.
const mostOthers = 0.1

// Busy reports whether others took so much that nothing can be told from ratios.
func (m Machine) Busy() bool { return m.Others > mostOthers }

// ThisMachine returns what can be told without a run.
func ThisMachine() Machine {
	m := Machine{Processors: runtime.NumCPU(), Others: -1}
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		fmt.Sscan(string(b), &m.Load)
	}
	return m
}

// Processors is what a machine's processors did since it started.
type Processors struct {
	Taken time.Duration // by tasks, or by other machines on the same hardware
	Had   time.Duration // all of it
}

// Others returns the share of the time since an earlier look that others took, if a program took
// so much of it itself; negative: nobody knows.
func (p Processors) Others(before Processors, own time.Duration) float64 {
	if p.Had <= before.Had {
		return -1
	}
	return max(0, (p.Taken-before.Taken-own).Seconds()/(p.Had-before.Had).Seconds())
}

// userTick is what /proc counts in, on all of Linux's architectures but Alpha.
const userTick = time.Second / 100

// ReadProcessors looks at them; the zero Processors if the system does not tell.
func ReadProcessors() Processors {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return Processors{}
	}
	line, _, _ := bytes.Cut(b, []byte("\n"))
	return parseProcessors(string(line))
}

// parseProcessors reads the line of all processors: user, nice, system, idle, iowait, irq,
// softirq, steal; guests' time is in user and nice already. What is done in
// interrupts is left out: the kernel counts it for the network, and for whom it interrupts, too.
func parseProcessors(line string) (p Processors) {
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return Processors{}
	}
	for i, f := range fields[1:9] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return Processors{}
		}
		p.Had += time.Duration(n) * userTick
		if i < 3 || i == 7 {
			p.Taken += time.Duration(n) * userTick
		}
	}
	return p
}

// thisMachine is a number that whoever runs on this machine finds, and others do not; 0: not
// known.
var thisMachine = sync.OnceValue(func() uint64 {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return 0
	}
	h := fnv.New64a()
	h.Write(b)
	return h.Sum64()
})

var thisProcess = rand.Uint64()

// othersBeside returns the share of a machine's processors that neither of two ends took. What
// is at the other end is no other if it is on the same machine.
func othersBeside(here, there *Counts) float64 {
	own := here.CPU
	if here.Machine != 0 && here.Machine == there.Machine && here.Process != there.Process {
		own += there.CPU
	}
	seen := Processors{Taken: time.Duration(here.MachineCPU), Had: time.Duration(here.MachineTime)}
	return seen.Others(Processors{}, time.Duration(own))
}

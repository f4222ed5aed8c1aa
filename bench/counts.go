package bench

import (
	"runtime"
	"syscall"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// counts is what the endpoint of one side, if it has one, and the process counted so far.
type counts struct {
	stats   dgrdma.Stats
	cpu     time.Duration
	waits   uint64
	machine Processors
}

func countsOf(e *dgrdma.Endpoint) counts {
	c := countsHere()
	c.stats = e.Stats()
	return c
}

// countsHere is what the process counted.
func countsHere() counts {
	c := counts{machine: ReadProcessors()}
	c.cpu, c.waits = processUsage()
	return c
}

// processUsage returns the processor time that this process has taken, and how often one of its
// threads gave up its processor to wait.
func processUsage() (cpu time.Duration, waits uint64) {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0, 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()), uint64(r.Nvcsw)
}

// since adds what was counted from an earlier time to now.
func (c counts) since(before counts, s *Counts) {
	a, b := &c.stats, &before.stats
	s.FramesSent = a.FramesSent - a.AcksAlone - (b.FramesSent - b.AcksAlone)
	s.FramesHeard = a.FramesReceived - b.FramesReceived
	s.Retransmits = a.RetransmitsFast + a.RetransmitsTimed - b.RetransmitsFast - b.RetransmitsTimed
	s.Duplicates = a.Duplicates - b.Duplicates
	s.KernelDrops = a.Transport.KernelDrops - b.Transport.KernelDrops
	s.CPU = uint64(c.cpu - before.cpu)
	s.Waits = c.waits - before.waits
	s.Machine, s.Process, s.Processors = thisMachine(), thisProcess, uint64(runtime.NumCPU())
	s.MachineCPU = uint64(c.machine.Taken - before.machine.Taken)
	s.MachineTime = uint64(c.machine.Had - before.machine.Had)
}

// add sums up turns.
func (s *Counts) add(o *Counts) {
	s.Bytes += o.Bytes
	s.Transactions += o.Transactions
	s.Nanoseconds += o.Nanoseconds
	s.FramesSent += o.FramesSent
	s.FramesHeard += o.FramesHeard
	s.Retransmits += o.Retransmits
	s.Duplicates += o.Duplicates
	s.KernelDrops += o.KernelDrops
	s.CPU += o.CPU
	s.Arrived += o.Arrived
	s.Waits += o.Waits
	s.Machine, s.Process = o.Machine, o.Process
	s.Processors = o.Processors
	s.MachineCPU += o.MachineCPU
	s.MachineTime += o.MachineTime
	if s.PeerMemory == 0 {
		s.PeerMemory = o.PeerMemory
	}
	if s.Wrong == 0 {
		s.WrongSlot, s.WrongRound, s.WrongOffset = o.WrongSlot, o.WrongRound, o.WrongOffset
		s.WrongExpected, s.WrongGot = o.WrongExpected, o.WrongGot
	}
	s.Wrong += o.Wrong
}

package main

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// counts is what the endpoint of one side and the process counted so far.
type counts struct {
	stats dgrdma.Stats
	cpu   time.Duration
}

func countsOf(e *dgrdma.Endpoint) counts { return counts{e.Stats(), processCPU()} }

// processCPU returns the processor time that this process has taken.
func processCPU() time.Duration {
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// since adds what was counted from an earlier time to now.
func (c counts) since(before counts, s *seen) {
	a, b := &c.stats, &before.stats
	s.FramesSent = a.FramesSent - a.AcksAlone - (b.FramesSent - b.AcksAlone)
	s.FramesHeard = a.FramesReceived - b.FramesReceived
	s.Retransmits = a.RetransmitsFast + a.RetransmitsTimed - b.RetransmitsFast - b.RetransmitsTimed
	s.Duplicates = a.Duplicates - b.Duplicates
	s.KernelDrops = a.Transport.KernelDrops - b.Transport.KernelDrops
	s.CPU = uint64(c.cpu - before.cpu)
}

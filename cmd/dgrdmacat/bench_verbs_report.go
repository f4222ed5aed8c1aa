package main

import (
	"fmt"
	"io"

	"github.com/dgrdma/dgrdma/bench"
)

// verbsResult is the object that --json prints of work requests between queue pairs.
type verbsResult struct {
	builtFrom
	benchLoad
	Transport      string  `json:"transport"`
	Op             string  `json:"op"`
	CRC            bool    `json:"crc"`
	Strict         bool    `json:"strict"`
	Revision       int     `json:"revision"`
	OperationsPerS float64 `json:"operations_per_s"`
	CPUPerOp       float64 `json:"cpu_ns_per_operation"`
	ServerCPUPerOp float64 `json:"server_cpu_ns_per_operation"`

	times string // what the times are of
}

func verbsResultOf(o *benchOptions, p *bench.Plan, out *bench.Outcome, oneProcess bool) *verbsResult {
	r := &verbsResult{Transport: tcpScheme, Op: o.tcp.String(), CRC: !o.framing.noCRC, Strict: o.framing.strict, Revision: o.framing.revision, times: timesOf(*o.tcp, o.plan.Verify)}
	r.benchLoad, r.OperationsPerS = o.load(p, out, "verbs", oneProcess)
	ops := out.Mine.Transactions + out.Theirs.Transactions
	r.CPUPerOp, r.ServerCPUPerOp = perFrame(out.Mine.CPU, ops), perFrame(out.Theirs.CPU, ops)
	return r
}

// timesOf says when an operation is complete: that a Write is says that its buffer is free.
func timesOf(v bench.Verb, verify bench.Verify) string {
	switch {
	case v == bench.VerbSend, v.Noted(verify):
		return "taken"
	case v == bench.VerbWrite:
		return "buffer free"
	}
	return "answered"
}

func (r *verbsResult) print(w io.Writer) error {
	return buffered(w, func(w io.Writer) error {
		r.describe(w)
		return nil
	})
}

// printRow prints the result as a line of a table, below its heads if it is the first.
func (r *verbsResult) printRow(w io.Writer, first bool) error {
	return printRow(w, first, "operations/s", &sweepRow{r.Size, r.MBPerS, r.OperationsPerS, "-", &r.latencies})
}

// describe writes the result for people.
func (r *verbsResult) describe(w io.Writer) {
	describeMoved(w, r.Bytes, r.Seconds, "RDMA on TCP", r.MBPerS, countPerSecond(r.OperationsPerS, "operation"))
	r.describeWays(w, "posted")
	crc, frames := "with CRC", ""
	if !r.CRC {
		crc = "without CRC"
	}
	if r.Strict {
		frames = ", frames of one segment"
	}
	fmt.Fprintf(w, "load         %s on %s, %d of %s outstanding, %s%s\n", r.Op, count(r.Peers, "queue pair"), r.Outstanding, count(r.Size, "byte"), crc, frames)
	r.latencies.describe(w, r.times)
	whose := "client"
	if r.OneProcess {
		whose = "both ends"
	}
	if r.ServerCPUPerOp > 0 { // else the server did not tell
		fmt.Fprintf(w, "processor    %.0f ns per operation (%s)", r.CPUPerOp, whose)
		if !r.OneProcess {
			fmt.Fprintf(w, ", %.0f ns (server)", r.ServerCPUPerOp)
		}
		fmt.Fprintln(w)
	}
	if r.ServerBytesPerPeer > 0 {
		fmt.Fprintf(w, "memory       %s per idle queue pair at the server\n", count(r.ServerBytesPerPeer, "byte"))
	}
	r.describeRest(w)
}

package main

import (
	"fmt"
	"io"
	"time"

	"github.com/dgrdma/dgrdma/bench"
)

// benchResult is the object that --json prints. Counters and throughput are of
// both sides; frames are those that carry messages.
type benchResult struct {
	builtFrom
	Transport           string  `json:"transport"`
	Profile             string  `json:"profile"`
	MTU                 int     `json:"mtu"`
	Size                int     `json:"size"`
	Depth               int     `json:"depth"`
	Outstanding         int     `json:"outstanding"`
	Peers               int     `json:"peers"`
	Bidir               bool    `json:"bidir"`
	Reverse             bool    `json:"reverse"`
	Rate                uint64  `json:"rate_bytes_per_s,omitempty"` // at most
	WarmUp              float64 `json:"warm_up_seconds,omitempty"`
	BusyPoll            bool    `json:"busy_poll"`
	Verify              string  `json:"verify"`
	OneProcess          bool    `json:"one_process"`
	Seconds             float64 `json:"seconds"`
	Bytes               uint64  `json:"bytes"`
	MBPerS              float64 `json:"mb_per_s"`
	TransactionsPerS    float64 `json:"transactions_per_s"`
	Frames              uint64  `json:"frames"`
	Retransmits         uint64  `json:"retransmits"`
	Duplicates          uint64  `json:"duplicates"`
	KernelDrops         uint64  `json:"kernel_drops"`
	CPUPerFrame         float64 `json:"cpu_ns_per_frame"`
	ServerCPUPerFrame   float64 `json:"server_cpu_ns_per_frame"`
	latencies                   // of completions
	ServerBytesPerPeer  uint64  `json:"server_bytes_per_peer,omitempty"`
	VerificationsFailed uint64  `json:"verifications_failed"`
	BackMBPerS          float64 `json:"back_mb_per_s,omitempty"`
	lossResult
	benchComparison
	Intervals []benchInterval `json:"intervals,omitempty"`
	Error     string          `json:"error,omitempty"` // it ended early, and this is what was measured until then
}

func perSecond(n uint64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

func perFrame(ns, frames uint64) float64 { return float64(ns) / float64(max(frames, 1)) }

func (c *benchClient) result(o *bench.Outcome, oneProcess bool) benchResult {
	mine, theirs := &o.Mine, &o.Theirs
	took, tookBack := time.Duration(mine.Nanoseconds), time.Duration(theirs.Nanoseconds)
	back := perSecond(theirs.Bytes, tookBack) / 1e6
	r := benchResult{
		Transport: wireName(c.peer), Profile: c.opt.wire.profile.orDefault(),
		Size: int(c.Plan.Size), Depth: int(c.Plan.Depth), Peers: int(c.Plan.Peers), Outstanding: int(c.Plan.Active),
		Bidir: c.opt.bidir, Reverse: c.opt.reverse, Rate: c.Plan.Rate, WarmUp: c.opt.warmUp.Seconds(), BusyPoll: c.opt.busyPoll, Verify: c.opt.verify, OneProcess: oneProcess,
		Seconds: max(took, tookBack*time.Duration(c.Plan.BothWays)).Seconds(), Bytes: mine.Bytes + theirs.Bytes, MBPerS: perSecond(mine.Bytes, took)/1e6 + back,
		TransactionsPerS: perSecond(mine.Transactions, took) + perSecond(theirs.Transactions, tookBack),
		Frames:           mine.FramesSent + theirs.FramesSent, Retransmits: mine.Retransmits + theirs.Retransmits,
		Duplicates: mine.Duplicates + theirs.Duplicates, KernelDrops: mine.KernelDrops + theirs.KernelDrops,
		latencies:          latenciesOf(o.Times, c.opt.histogram),
		ServerBytesPerPeer: theirs.PeerMemory, VerificationsFailed: mine.Wrong + theirs.Wrong, BackMBPerS: back,
	}
	r.CPUPerFrame, r.ServerCPUPerFrame = perFrame(mine.CPU, r.Frames), perFrame(theirs.CPU, r.Frames)
	r.MTU = mtuTo(c.local, c.peer)
	r.lossResult = c.opt.loss.result()
	r.benchComparison = compare(o, c.opt.compare.all)
	return r
}

func (r *benchResult) print(w io.Writer) error {
	return buffered(w, func(w io.Writer) error {
		r.describe(w)
		return nil
	})
}

// printRow prints the result as a line of a table, below its heads if it is the first.
func (r *benchResult) printRow(w io.Writer, first bool) error {
	return printRow(w, first, "transactions/s", &sweepRow{r.Size, r.MBPerS, r.TransactionsPerS, r.Retransmits, &r.latencies})
}

// sweepRow is what a sweep shows of a size.
type sweepRow struct {
	size        int
	mbPerS      float64
	perS        float64
	retransmits uint64
	times       *latencies
}

func printRow(w io.Writer, first bool, perS string, r *sweepRow) error {
	return buffered(w, func(w io.Writer) error {
		if first {
			fmt.Fprintf(w, "%10s  %8s  %14s  %10s  %10s  %10s  %10s  %10s\n", "bytes", "MB/s", perS, "p50 us", "p99 us", "p99.9 us", "max us", "sent again")
		}
		us := func(v float64) string {
			if !r.times.measured() {
				return "-"
			}
			return fmt.Sprintf("%.1f", v)
		}
		fmt.Fprintf(w, "%10d  %8s  %14.0f  %10s  %10s  %10s  %10s  %10d\n",
			r.size, megabytes(r.mbPerS), r.perS, us(r.times.P50), us(r.times.P99), us(r.times.P999), us(r.times.Max), r.retransmits)
		r.times.draw(w)
		return nil
	})
}

// describeMoved writes what a load of any kind moved.
func describeMoved(w io.Writer, bytes uint64, seconds float64, transport string, mbPerS float64, each string) {
	fmt.Fprintf(w, "moved        %s in %.2f s over %s: %s MB/s, %s\n", amount(int64(bytes)), seconds, transport, megabytes(mbPerS), each)
}

// describe writes the result for people.
func (r *benchResult) describe(w io.Writer) {
	whose := "client"
	if r.OneProcess {
		whose = "both ends"
	}
	each := countPerSecond(r.TransactionsPerS, "transaction")
	if !r.Reverse {
		each += r.spares(r.OneProcess)
	}
	describeMoved(w, r.Bytes, r.Seconds, r.Transport, r.MBPerS, each)
	if r.Bidir {
		fmt.Fprintf(w, "directions   %s MB/s to the server, %s MB/s back\n", megabytes(r.MBPerS-r.BackMBPerS), megabytes(r.BackMBPerS))
	}
	if r.Reverse {
		fmt.Fprintln(w, "direction    the server wrote")
	}
	fmt.Fprintf(w, "load         %s, %s of %s outstanding, MTU %d, profile %s\n", count(r.Peers, "peer"), count(r.Outstanding, "transaction"), count(r.Size, "byte"), r.MTU, r.Profile)
	r.latencies.describe(w, "completion")
	fmt.Fprintf(w, "frames       %d, of them sent again %d; %s, %d dropped by the kernel\n",
		r.Frames, r.Retransmits, count(r.Duplicates, "duplicate"), r.KernelDrops)
	if r.ServerCPUPerFrame > 0 { // else the server did not tell, nor how many frames it sent
		fmt.Fprintf(w, "processor    %.0f ns per frame (%s)", r.CPUPerFrame, whose)
		if !r.OneProcess {
			fmt.Fprintf(w, ", %.0f ns (server)", r.ServerCPUPerFrame)
		}
		fmt.Fprintln(w)
	}
	if r.ServerBytesPerPeer > 0 {
		fmt.Fprintf(w, "memory       %s per idle peer at the server\n", count(r.ServerBytesPerPeer, "byte"))
	}
	r.lossResult.describe(w)
	r.benchComparison.describe(w)
	if r.VerificationsFailed == 0 && r.Verify != "off" && r.Error == "" {
		fmt.Fprintf(w, "verified     %s\n", r.Verify)
	}
}

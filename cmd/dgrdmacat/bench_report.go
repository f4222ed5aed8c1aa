package main

import (
	"fmt"
	"io"
	"time"

	"github.com/dgrdma/dgrdma/bench"
	"github.com/dgrdma/dgrdma/metrics"
	"github.com/dgrdma/dgrdma/metrics/watch"
)

// benchLoad is what results of loads of transactions and of work requests have, whatever carried them.
// Throughput is of both sides.
type benchLoad struct {
	Size                int     `json:"size"`
	Depth               int     `json:"depth"`
	Outstanding         int     `json:"outstanding"`
	Peers               int     `json:"peers"`
	Bidir               bool    `json:"bidir"`
	Reverse             bool    `json:"reverse"`
	Rate                uint64  `json:"rate_bytes_per_s,omitempty"` // at most
	WarmUp              float64 `json:"warm_up_seconds,omitempty"`
	Verify              string  `json:"verify"`
	OneProcess          bool    `json:"one_process"`
	Seconds             float64 `json:"seconds"`
	Bytes               uint64  `json:"bytes"`
	MBPerS              float64 `json:"mb_per_s"`
	BackMBPerS          float64 `json:"back_mb_per_s,omitempty"`
	CPU                 float64 `json:"cpu_ns_per_kb,omitempty"` // both ends
	latencies                   // of completions
	ServerBytesPerPeer  uint64  `json:"server_bytes_per_peer,omitempty"`
	VerificationsFailed uint64  `json:"verifications_failed"`
	benchComparison
	Intervals []benchInterval `json:"intervals,omitempty"`
	Error     string          `json:"error,omitempty"` // it ended early, and this is what was measured until then
}

// benchResult is the object that --json prints. Counters are of both sides; frames are those that carry
// messages.
type benchResult struct {
	builtFrom
	benchLoad
	Transport         string              `json:"transport"`
	Profile           string              `json:"profile"`
	MTU               int                 `json:"mtu"`
	BusyPoll          bool                `json:"busy_poll"`
	TransactionsPerS  float64             `json:"transactions_per_s"`
	Frames            uint64              `json:"frames"`
	Retransmits       uint64              `json:"retransmits"`
	Duplicates        uint64              `json:"duplicates"`
	KernelDrops       uint64              `json:"kernel_drops"`
	Congestion        *metrics.Congestion `json:"congestion,omitempty"` // of the first peer, in the end; none: the server sent
	CPUPerFrame       float64             `json:"cpu_ns_per_frame"`
	ServerCPUPerFrame float64             `json:"server_cpu_ns_per_frame"`
	lossResult
}

func perSecond(n uint64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

func perFrame(ns, frames uint64) float64 { return float64(ns) / float64(max(frames, 1)) }

// load returns what a client of any kind measured, and how many operations that was in a second.
func (o *benchOptions) load(p *bench.Plan, out *bench.Outcome, ours string, oneProcess bool) (r benchLoad, perS float64) {
	mine, theirs := &out.Mine, &out.Theirs
	took, tookBack := time.Duration(mine.Nanoseconds), time.Duration(theirs.Nanoseconds)
	back := perSecond(theirs.Bytes, tookBack) / 1e6
	return benchLoad{
		Size: int(p.Size), Depth: int(p.Depth), Peers: int(p.Peers), Outstanding: int(p.Active),
		Bidir: o.bidir, Reverse: o.reverse, Rate: p.Rate, WarmUp: o.warmUp.Seconds(), Verify: o.verify, OneProcess: oneProcess,
		Seconds: max(took, tookBack*time.Duration(p.BothWays)).Seconds(), Bytes: mine.Bytes + theirs.Bytes, MBPerS: perSecond(mine.Bytes, took)/1e6 + back, BackMBPerS: back, CPU: turnsOf(out, bench.Contender{}).CPU,
		latencies: latenciesOf(out.Times, o.histogram), ServerBytesPerPeer: theirs.PeerMemory, VerificationsFailed: mine.Wrong + theirs.Wrong,
		benchComparison: compare(out, o.compare.all, ours),
	}, perSecond(mine.Transactions, took) + perSecond(theirs.Transactions, tookBack)
}

func (c *benchClient) result(o *bench.Outcome, oneProcess bool) *benchResult {
	mine, theirs := &o.Mine, &o.Theirs
	r := &benchResult{
		Transport: wireName(c.peer), Profile: c.opt.wire.profile.orDefault(), BusyPoll: c.opt.busyPoll,
		Frames: mine.FramesSent + theirs.FramesSent, Retransmits: mine.Retransmits + theirs.Retransmits,
		Duplicates: mine.Duplicates + theirs.Duplicates, KernelDrops: mine.KernelDrops + theirs.KernelDrops,
	}
	r.benchLoad, r.TransactionsPerS = c.opt.load(&c.Plan, o, "dgrdma", oneProcess)
	r.CPUPerFrame, r.ServerCPUPerFrame = perFrame(mine.CPU, r.Frames), perFrame(theirs.CPU, r.Frames)
	if !c.opt.reverse {
		stats := c.Conns[0].Stats()
		r.Congestion = watch.Congestion(&stats.Congestion)
	}
	r.noteWire(c.peer.Scheme)
	r.MTU = mtuTo(c.local, c.peer)
	r.lossResult = c.opt.loss.result()
	return r
}

// common is what every result of a load has.
func (l *benchLoad) common() *benchLoad { return l }

// describeWays writes which way was how fast, unless it was one way to the server.
func (l *benchLoad) describeWays(w io.Writer, wrote string) {
	if l.Bidir {
		fmt.Fprintf(w, "directions   %s MB/s to the server, %s MB/s back\n", threeDigits(l.MBPerS-l.BackMBPerS), threeDigits(l.BackMBPerS))
	}
	if l.Reverse {
		fmt.Fprintf(w, "direction    the server %s\n", wrote)
	}
}

// describeRest writes what every result ends with.
func (l *benchLoad) describeRest(w io.Writer) {
	l.benchComparison.describe(w)
	if l.VerificationsFailed == 0 && l.Verify != "off" && l.Error == "" {
		fmt.Fprintf(w, "verified     %s\n", l.Verify)
	}
}

func (r *benchResult) print(w io.Writer) error {
	return buffered(w, func(w io.Writer) error {
		r.describe(w)
		return nil
	})
}

// printRow prints the result as a line of a table, below its heads if it is the first.
func (r *benchResult) printRow(w io.Writer, first bool) error {
	return printRow(w, first, "transactions/s", &sweepRow{r.Size, r.MBPerS, r.TransactionsPerS, fmt.Sprint(r.Retransmits), &r.latencies})
}

// sweepRow is what a sweep shows of a size.
type sweepRow struct {
	size      int
	mbPerS    float64
	perS      float64
	sentAgain string // -: TCP does that
	times     *latencies
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
		fmt.Fprintf(w, "%10d  %8s  %14s  %10s  %10s  %10s  %10s  %10s\n",
			r.size, threeDigits(r.mbPerS), perSecondText(r.perS), us(r.times.P50), us(r.times.P99), us(r.times.P999), us(r.times.Max), r.sentAgain)
		r.times.draw(w)
		return nil
	})
}

// describeMoved writes what a load of any kind moved.
func describeMoved(w io.Writer, bytes uint64, seconds float64, transport string, mbPerS float64, each string) {
	fmt.Fprintf(w, "moved        %s in %.2f s over %s: %s MB/s (%s Gbit/s), %s\n", amount(int64(bytes)), seconds, transport,
		threeDigits(mbPerS), threeDigits(mbPerS*8/1000), each)
}

// describeCongestion writes what the control of a path that others use did in the end.
func describeCongestion(w io.Writer, c *metrics.Congestion) {
	if c == nil || c.State == "" {
		return
	}
	fmt.Fprintf(w, "congestion   %s in %s: the path delivers %s MB/s, paced at %s MB/s, round trip without queues %s", c.Controller, c.State,
		threeDigits(c.Bandwidth/1e6), threeDigits(c.Pacing/1e6), orDash(c.MinRTT, briefTime))
	for _, b := range []struct {
		name  string
		bytes int
	}{{"long-term", c.LongTerm}, {"short-term", c.ShortTerm}} {
		if b.bytes > 0 {
			fmt.Fprintf(w, ", %s bound %s", b.name, amount(int64(b.bytes)))
		}
	}
	fmt.Fprintln(w)
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
	r.describeWays(w, "wrote")
	fmt.Fprintf(w, "load         %s, %s of %s outstanding%s, profile %s\n", count(r.Peers, "peer"), count(r.Outstanding, "transaction"), count(r.Size, "byte"), mtuText(r.MTU), r.Profile)
	r.latencies.describe(w, "completion")
	fmt.Fprintf(w, "frames       %d, of them sent again %d; %s, %s\n", r.Frames, r.Retransmits, count(r.Duplicates, "duplicate"), droppedText(r.KernelDrops))
	describeCongestion(w, r.Congestion)
	adviseOnDrops(w, r.KernelDrops, r.Retransmits, r.Frames, r.Loss, r.Transport, "a smaller --depth or --size")
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
	r.describeRest(w)
}

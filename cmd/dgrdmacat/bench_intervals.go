package main

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/dgrdma/dgrdma/bench"
)

// benchInterval is an interval of a run, as JSON has it.
type benchInterval struct {
	From   float64 `json:"from_seconds"`
	To     float64 `json:"to_seconds"`
	Bytes  uint64  `json:"bytes"`
	MBPerS float64 `json:"mb_per_s"`
	// One of these, as the whole result has it.
	TransactionsPerS *float64 `json:"transactions_per_s,omitempty"`
	MessagesPerS     *float64 `json:"messages_per_s,omitempty"`
	OperationsPerS   *float64 `json:"operations_per_s,omitempty"`
	Retransmits      *uint64  `json:"retransmits,omitempty"` // of this side, where it is not TCP that does that
}

// intervalLog keeps the intervals of a run, or prints each as it ends.
type intervalLog struct {
	opt    *benchOptions
	out    io.Writer
	failed context.CancelCauseFunc // if it cannot be printed

	mu  sync.Mutex
	all []benchInterval
	err error
}

// follow returns a log, and a context that ends when nobody reads it any more.
func (o *benchOptions) follow(ctx context.Context, out io.Writer) (*intervalLog, context.Context) {
	l := &intervalLog{opt: o, out: out}
	ctx, l.failed = context.WithCancelCause(ctx)
	return l, ctx
}

// each is nil if no intervals are wanted.
func (l *intervalLog) each() func(bench.Interval) {
	if l.opt.interval == 0 {
		return nil
	}
	return l.add
}

func (l *intervalLog) add(i bench.Interval) {
	took := i.To - i.From
	b := benchInterval{From: i.From.Seconds(), To: i.To.Seconds(), Bytes: i.Bytes, MBPerS: perSecond(i.Bytes, took) / 1e6}
	perS := perSecond(i.Transactions, took)
	what, again := "transactions", ""
	switch {
	case l.opt.link:
		what, b.MessagesPerS = "messages", &perS
	case l.opt.tcp != nil:
		what, b.OperationsPerS = "operations", &perS
	default:
		b.TransactionsPerS = &perS
	}
	if l.opt.tcp == nil {
		b.Retransmits = &i.Resent
		again = "  " + count(i.Resent, "frame") + " sent again"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opt.json {
		l.all = append(l.all, b)
		return
	}
	_, err := fmt.Fprintf(l.out, "%6.2f..%6.2f s  %8s  %6s MB/s  %8s %s/s%s\n",
		b.From, b.To, amount(int64(b.Bytes)), threeDigits(b.MBPerS), perSecondText(perS), what, again)
	if err != nil && l.err == nil {
		l.err = err
		l.failed(err)
	}
}

// close returns the intervals that were kept, or why they could not be printed.
func (l *intervalLog) close() ([]benchInterval, error) {
	l.failed(nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all, l.err
}

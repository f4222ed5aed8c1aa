package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/dgrdma/dgrdma/bench"
)

// figures are those of several runs.
type figures []float64

func (f figures) median() float64 {
	if len(f) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(f))
	return (sorted[len(sorted)/2] + sorted[(len(sorted)-1)/2]) / 2
}

func (f figures) in(format string) string {
	return fmt.Sprintf(format+" ("+format+".."+format+")", f.median(), slices.Min(f), slices.Max(f))
}

// series are the runs of a row.
type series struct {
	ours, theirs figures
	busy         bool // in some run others took too much of the machine, whom the row does not want
}

// result is one run of a row.
type result struct{ ours, theirs float64 }

// measure is a run of a row.
type measure func(ctx context.Context, r *rig) (result, error)

func (r *row) measureOften(ctx context.Context, o options, t *tools) (*series, error) {
	s := new(series)
	for range o.repeats {
		processors, own := bench.ReadProcessors(), childrenCPU()
		one, err := r.measureOnce(ctx, o, t)
		if ctx.Err() != nil {
			return nil, errors.New("interrupted")
		}
		if err != nil {
			return nil, err
		}
		others := bench.ReadProcessors().Others(processors, childrenCPU()-own)
		s.busy = s.busy || !r.busy && bench.Machine{Others: others}.Busy()
		s.ours = append(s.ours, one.ours)
		if r.versus != "" {
			s.theirs = append(s.theirs, one.theirs)
		}
	}
	return s, nil
}

func (r *row) measureOnce(ctx context.Context, o options, t *tools) (result, error) {
	g, err := newRig(ctx, r, o, t)
	if err != nil {
		return result{}, err
	}
	defer g.close()
	if r.busy {
		if err := g.beBusy(); err != nil {
			return result{}, err
		}
	}
	one, err := r.runs(ctx, g)
	if err == nil && (one.ours <= 0 || r.versus != "" && one.theirs <= 0) {
		err = fmt.Errorf("measured nothing: ours %v, theirs %v", one.ours, one.theirs)
	}
	return one, err
}

// childrenCPU returns the processor time that programs took which have ended.
func childrenCPU() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_CHILDREN, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

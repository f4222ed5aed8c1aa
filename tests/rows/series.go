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
	ours, theirs       figures
	oursCPU, theirsCPU figures  // us of processor time per MB, of both ends
	by                 []string // controllers that theirs had, in the order in which they were chosen; "": it has none
	byItself           string   // the machine's default, with which theirs did what byDefault has; "": that is what it was measured with
	byDefault          figures
	choice             *choice    // of a row that is all over TCP
	load               [2]float64 // of the machine, before and after
	busy               bool       // in some run others took too much of the machine, whom the row does not want
}

// result is one run of a row. What is zero was not measured.
type result struct {
	ours, theirs       float64
	oursCPU, theirsCPU float64
	by, byItself       string
	byDefault          float64
}

// add adds a run.
func (s *series) add(one result, compared bool) {
	s.ours = append(s.ours, one.ours)
	if one.oursCPU > 0 {
		s.oursCPU = append(s.oursCPU, one.oursCPU)
	}
	if !compared {
		return
	}
	s.theirs = append(s.theirs, one.theirs)
	if one.theirsCPU > 0 {
		s.theirsCPU = append(s.theirsCPU, one.theirsCPU)
	}
	if one.by != "" && !slices.Contains(s.by, one.by) {
		s.by = append(s.by, one.by)
	}
	if one.byDefault > 0 {
		s.byItself, s.byDefault = one.byItself, append(s.byDefault, one.byDefault)
	}
}

// measure is a run of a row.
type measure func(ctx context.Context, r *rig) (result, error)

func (r *row) measureOften(ctx context.Context, o options, t *tools, chosen controllers) (s *series, err error) {
	s = &series{load: [2]float64{bench.ThisMachine().Load}}
	if s.choice, err = chosen.at(ctx, r, o, t); err != nil {
		return nil, err
	}
	for range o.repeats {
		processors, own := bench.ReadProcessors(), childrenCPU()
		one, err := r.measureOnce(ctx, o, t, s.choice)
		if ctx.Err() != nil {
			return nil, errors.New("interrupted")
		}
		if err != nil {
			return nil, err
		}
		others := bench.ReadProcessors().Others(processors, childrenCPU()-own)
		s.busy = s.busy || !r.busy && bench.Machine{Others: others}.Busy()
		s.add(one, r.versus != "")
	}
	s.load[1] = bench.ThisMachine().Load
	return s, nil
}

func (r *row) measureOnce(ctx context.Context, o options, t *tools, c *choice) (result, error) {
	g, err := newRig(ctx, r, o, t)
	if err != nil {
		return result{}, err
	}
	defer g.close()
	if c != nil && c.refused == "" {
		err = g.setController(c.controller)
	}
	if err = errors.Join(err, g.startLoops()); err != nil {
		return result{}, err
	}
	one, err := r.runs(ctx, g)
	if err == nil && (one.ours <= 0 || r.versus != "" && one.theirs <= 0) {
		err = fmt.Errorf("measured nothing: ours %v, theirs %v", one.ours, one.theirs)
	}
	return one, err
}

// childrenCPU returns the processor time that programs took which have ended.
func childrenCPU() time.Duration { return usage(syscall.RUSAGE_CHILDREN) }

// usage returns the processor time that this program has taken, or others that it has started.
func usage(who int) time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(who, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

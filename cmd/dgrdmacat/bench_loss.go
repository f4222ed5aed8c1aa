package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/transport/lossy"
)

// lossFlag is --loss: what is lost of what comes to the endpoints of this process.
type lossFlag struct {
	percentFlag
	seed uint64 // 0: draw one

	mu    sync.Mutex
	wires []*lossy.Conn
}

// mostLoss is the percentage with which a connection is not given up yet.
const mostLoss = 50

// Set implements [flag.Value].
func (f *lossFlag) Set(text string) error {
	f.most = mostLoss
	return f.percentFlag.Set(text)
}

func (f *lossFlag) given() bool { return f.share > 0 }

// open opens an endpoint, to which not all comes if anything is to be lost.
func (f *lossFlag) open(local string, cfg *dgrdma.Config) (*dgrdma.Endpoint, error) {
	if !f.given() {
		return dgrdma.Open(local, cfg)
	}
	return dgrdma.OpenOver(local, cfg, func(t dgrdma.Transport) dgrdma.Transport {
		f.mu.Lock()
		defer f.mu.Unlock()
		for f.seed == 0 {
			f.seed = uint64(rand.Uint32())
		}
		c := lossy.New(t, f.share, f.seed+uint64(len(f.wires)))
		f.wires = append(f.wires, c)
		return c
	})
}

// announce says what a server loses.
func (f *lossFlag) announce(w io.Writer) {
	if f.given() {
		fmt.Fprintf(w, "%g %% of what comes is lost, seed %d\n", 100*f.share, f.seed)
	}
}

// result returns what was lost in this process so far.
func (f *lossFlag) result() (r lossResult) {
	if !f.given() {
		return lossResult{}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	r.Loss, r.LossSeed = 100*f.share, f.seed
	for _, c := range f.wires {
		lost, _ := c.Lost()
		r.Lost += lost
	}
	return r
}

// lossResult is what results of every kind say of loss.
type lossResult struct {
	Loss     float64 `json:"loss_percent,omitempty"` // of what comes to this process
	LossSeed uint64  `json:"loss_seed,omitempty"`
	Lost     uint64  `json:"lost_frames,omitempty"`
}

// spares says that the figure is of a client that writes, and loses but acknowledgements.
func (r *lossResult) spares(oneProcess bool) string {
	if r.Loss == 0 || oneProcess {
		return ""
	}
	return "; nothing was lost on the way to the server, unless by its own --loss"
}

func (r *lossResult) describe(w io.Writer) {
	if r.Loss > 0 {
		fmt.Fprintf(w, "loss         %g %% of what comes to this process, seed %d: %s\n", r.Loss, r.LossSeed, count(r.Lost, "frame"))
	}
}

// check refuses what loss does not go with.
func (f *lossFlag) check(o *benchOptions) error {
	switch {
	case !f.given() && f.seed != 0:
		return badUsage("--seed belongs to --loss")
	case !f.given():
		return nil
	case len(o.compare.all) > 0:
		return badUsage("%w", errors.New("--loss loses what comes to our endpoints, and nothing of --compare's: as root, go run ./tests/rows loss-1 in the sources compares over a network that loses"))
	}
	return nil
}

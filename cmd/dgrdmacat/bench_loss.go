package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/transport/lossy"
)

// lossFlag is --loss: what is lost of what comes to the endpoints of this process.
type lossFlag struct {
	text   string
	chance float64
	seed   uint64 // 0: draw one

	mu    sync.Mutex
	wires []*lossy.Conn
}

func (f *lossFlag) String() string { return f.text }

// mostLoss is the share with which a connection is not given up yet.
const mostLoss = 50

// Set implements [flag.Value].
func (f *lossFlag) Set(text string) error {
	percent, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err != nil || !(percent > 0 && percent <= mostLoss) {
		return fmt.Errorf("need percent, more than 0 and at most %d, such as 1 or 0.5%%", mostLoss)
	}
	f.text, f.chance = text, percent/100
	return nil
}

func (f *lossFlag) given() bool { return f.text != "" }

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
		c := lossy.New(t, f.chance, f.seed+uint64(len(f.wires)))
		f.wires = append(f.wires, c)
		return c
	})
}

// lost returns how many frames were lost in this process, and of how many.
func (f *lossFlag) lost() (lost, of uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.wires {
		l, o := c.Lost()
		lost, of = lost+l, of+o
	}
	return lost, of
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

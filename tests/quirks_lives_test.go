package tests

import (
	"fmt"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/tests/peers"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// redial ends our endpoint without a word and begins another life of ours at the
// same address.
func (r *rig) redial(p dgrdma.Profile, cfg dgrdma.Config) {
	r.t.Helper()
	r.ep.Close()
	r.dial(p, cfg)
}

// Observation V1 (docs/peers.md): a driver that outlives a run of ours remembers
// its ids, acknowledges frames that have one of them, and does not write what
// they carry.
func TestSecondRunIsWritten(t *testing.T) {
	for _, kind := range []struct {
		profile dgrdma.Profile
		start   func(*rig)
	}{
		{dgrdma.OpenCPI(false), func(r *rig) { r.dg1(peers.DG1Config{}) }},
		{dgrdma.OpenCPI(true), func(r *rig) { r.dg1(peers.DG1Config{UDP: true}) }},
		{dgrdma.OpenCPI2(), func(r *rig) { r.dg2(peers.DG2Config{}) }},
		{dgrdma.Legacy(false), func(r *rig) { r.legacy(peers.DG1Config{}) }},
		{dgrdma.Legacy(true), func(r *rig) { r.legacy(peers.DG1Config{UDP: true}) }},
	} {
		for _, size := range []int{64, 3000} {
			t.Run(fmt.Sprintf("%s/%d/%d", kind.profile.Name, kind.profile.MaxFrame, size), func(t *testing.T) {
				rigTest(t, 1, func(t *testing.T, r *rig) {
					kind.start(r)
					r.dial(kind.profile, dgrdma.Config{})
					r.send(40, size)
					for range 11 {
						r.redial(kind.profile, dgrdma.Config{})
						r.send(40, size)
					}
					r.completed(false)
					if n := r.double.Counters().Duplicates; n > 0 {
						t.Errorf("%d frames were taken for copies", n)
					}
				})
			})
		}
	}
}

// Observation V1 (docs/peers.md): nor are the transactions of the second run
// counted together with one that the first left half done, as long as they are
// fewer than the driver's table has places (quirks D1-12, D2-13).
func TestSecondRunAfterHalfATransaction(t *testing.T) {
	for _, kind := range []struct {
		profile dgrdma.Profile
		start   func(*rig)
	}{
		{dgrdma.OpenCPI(false), func(r *rig) { r.dg1(peers.DG1Config{}) }},
		{dgrdma.OpenCPI2(), func(r *rig) { r.dg2(peers.DG2Config{}) }},
	} {
		t.Run(kind.profile.Name, func(t *testing.T) {
			rigTest(t, 2, func(t *testing.T, r *rig) {
				kind.start(r)
				r.link(simnet.Link{Script: func(i int, _ []byte) simnet.Verdict {
					if i == 1 {
						return simnet.Drop()
					}
					return simnet.Deliver()
				}}, simnet.Link{})
				r.dial(kind.profile, dgrdma.Config{})
				if err := r.conn.Post(&dgrdma.Transaction{
					Segments: []dgrdma.Segment{{Addr: 0x10000, Bytes: rigPattern(0, 2800)}},
				}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Millisecond)
				r.redial(kind.profile, dgrdma.Config{})
				r.send(40, 2800)
				r.completed(false)
			})
		})
	}
}

// Observation V1: nor do the ids of many short runs, all of which a driver with a table
// may still know, meet those of a longer one.
func TestLongRunAfterManyShortOnes(t *testing.T) {
	const worlds = 40
	met := 0
	for seed := range uint64(worlds) {
		rigTest(t, seed, func(t *testing.T, r *rig) {
			d := r.dg1(peers.DG1Config{})
			r.dial(dgrdma.OpenCPI(false), dgrdma.Config{})
			run := func(frames int) int {
				before := d.Counters().Duplicates
				for range frames {
					if err := r.conn.Post(&dgrdma.Transaction{
						Segments:   []dgrdma.Segment{{Addr: rigData, Bytes: make([]byte, 1440)}},
						Completion: dgrdma.Word(rigFlag, 1),
					}); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(time.Second)
				return d.Counters().Duplicates - before
			}
			for range 60 {
				run(5)
				r.redial(dgrdma.OpenCPI(false), dgrdma.Config{})
			}
			if run(256) > 0 {
				met++
			}
		})
	}
	// By chance, 1 in 100. Scattered in the table they would be 1 in 5.
	if met > worlds/20 {
		t.Errorf("%d of %d long runs met the id of a short one", met, worlds)
	}
}

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/dgrdma/dgrdma/bench"
	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/settings"
	"github.com/dgrdma/dgrdma/url"
)

// servedMemory is the size of a server's memory without --memory.
const servedMemory = 128 << 20

// mostPeers is as many as an endpoint can have.
var mostPeers = int(settings.MaxPeers.Most)

// openServer opens the serving side of bench. private: no client shares its process.
func openServer(opt *benchOptions, local url.Endpoint, size uint64, private bool, log *peerLog) (*bench.Server, error) {
	local, err := opt.wire.apply(local)
	if err = cmp.Or(err, fitsHere(local)); err != nil {
		return nil, err
	}
	memory, err := bench.NewMemory(int(size))
	if err != nil {
		return nil, err
	}
	local = withMemory(local, size)
	profile, err := profileBetweenUs(opt.wire.profile.orDefault(), local.Scheme == url.UDP, true)
	if err != nil {
		return nil, err
	}
	e, err := opt.loss.open(local.String(), &dgrdma.Config{
		Memory: memory, Service: bench.Service, Profile: &profile, AcceptAny: true, MaxPeers: mostPeers, PeersPerHost: mostPeers, BusyPoll: opt.busyPoll, Queue: mostDepth,
	})
	if err != nil {
		return nil, err
	}
	opt.metrics.endpoint(e)
	s := &bench.Server{Endpoint: e, Memory: memory, Local: local.String()}
	if private {
		s.Idle = bench.MemoryInUse()
	}
	s.Runs = tellRuns(log, func(r bench.Run) {
		back := ""
		if r.Saw.Transactions > 0 {
			back = fmt.Sprintf("; %d written back, %s", r.Saw.Transactions, rateText(perSecond(r.Saw.Bytes, time.Duration(r.Saw.Nanoseconds))))
		}
		fmt.Fprintf(log, "%v: %s of %s, %s%s; %s heard, %s, %s, %.0f ns CPU per frame\n",
			r.Client, count(r.Saw.Arrived, "transaction"), count(uint64(r.Plan.Size), "byte"), rateText(perSecond(r.Saw.Arrived*uint64(r.Plan.Size), r.Took)), back,
			count(r.Saw.FramesHeard, "frame"), count(r.Saw.Duplicates, "duplicate"), droppedText(r.Saw.KernelDrops), perFrame(r.Saw.CPU, r.Saw.FramesHeard+r.Saw.FramesSent))
	})
	s.Failed = func(client dgrdma.PeerName, err error) {
		var named *dgrdma.PeerError
		if errors.As(err, &named) {
			fmt.Fprintln(log, err)
			return
		}
		fmt.Fprintf(log, "%v: %v\n", client, err)
	}
	return s, nil
}

// tellRuns writes what the runs of clients do, and to a terminal how far they are; ours writes of one that was not a rival's.
func tellRuns(log *peerLog, ours func(r bench.Run)) bench.Runs {
	return bench.Runs{
		Began: func(p bench.Plan, arrived func() uint64) (over func()) {
			began := time.Now()
			return showProgress(log.to, func() string {
				bytes := arrived() * uint64(p.Size)
				return fmt.Sprintf("%s arrived, %s", amount(int64(bytes)), rateText(perSecond(bytes, time.Since(began))))
			})
		},
		Ran: func(r bench.Run) {
			if r.Plan.Carrier != bench.Ours {
				by := r.Plan.Carrier.String()
				if c := r.Plan.Controller.String(); c != "" {
					by += " with " + c
				}
				fmt.Fprintf(log, "%v: %s by %s, %s\n", r.Client, amount(int64(r.Saw.Arrived)), by, rateText(perSecond(r.Saw.Arrived, r.Took)))
				return
			}
			ours(r)
		},
	}
}

func benchServe(ctx context.Context, opt *benchOptions, stderr io.Writer) error {
	local, err := parseLocal("serve", opt.serve)
	if err != nil {
		return err
	}
	log := newPeerLog(stderr)
	defer log.close()
	s, err := openServer(opt, local, opt.memory.value, true, log)
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Fprintf(stderr, "serving on %s\n%s%s may write into its memory\n", s.Endpoint.URL(), reach(s.Endpoint), anybody(local))
	opt.loss.announce(stderr)
	if err := opt.urlFile.write(s.Endpoint.URL()); err != nil {
		return err
	}
	return s.Serve(ctx, opt.once)
}

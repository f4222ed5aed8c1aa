package main

import (
	"context"
	"fmt"
	"io"
	"net/netip"
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
func openServer(opt *benchOptions, local url.Endpoint, size uint64, private bool, log io.Writer) (*bench.Server, error) {
	local, err := opt.wire.apply(local)
	if err != nil {
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
	e, tcp, err := openBeside(local, &dgrdma.Config{
		Memory: memory, Service: bench.Service, Profile: &profile, AcceptAny: true, MaxPeers: mostPeers, PeersPerHost: mostPeers, BusyPoll: opt.busyPoll, Queue: mostDepth,
	}, bench.ServeTCP, log)
	if err != nil {
		return nil, err
	}
	opt.metrics.endpoint(e)
	s := &bench.Server{Endpoint: e, Memory: memory, TCP: tcp}
	if private {
		s.Idle = bench.MemoryInUse()
	}
	s.Began = func(p bench.Plan, arrived func() uint64) (over func()) {
		began := time.Now()
		return showProgress(log, func() string {
			bytes := arrived() * uint64(p.Size)
			return fmt.Sprintf("%s arrived, %.0f MB/s", amount(int64(bytes)), float64(bytes)/time.Since(began).Seconds()/1e6)
		})
	}
	s.Ran = func(r bench.Run) {
		back := ""
		if r.Saw.Transactions > 0 {
			back = fmt.Sprintf("; %d written back, %.0f MB/s", r.Saw.Transactions, perSecond(r.Saw.Bytes, time.Duration(r.Saw.Nanoseconds))/1e6)
		}
		fmt.Fprintf(log, "%v: %s of %s, %.0f MB/s%s; %s heard, %s, %d dropped by the kernel, %.0f ns CPU per frame\n",
			r.Client, count(r.Saw.Arrived, "transaction"), count(uint64(r.Plan.Size), "byte"), perSecond(r.Saw.Arrived*uint64(r.Plan.Size), r.Took)/1e6, back,
			count(r.Saw.FramesHeard, "frame"), count(r.Saw.Duplicates, "duplicate"), r.Saw.KernelDrops, perFrame(r.Saw.CPU, r.Saw.FramesHeard+r.Saw.FramesSent))
	}
	s.Failed = func(client dgrdma.EndpointID, err error) { fmt.Fprintf(log, "peer %d: %v\n", client, err) }
	return s, nil
}

func benchServe(ctx context.Context, opt *benchOptions, stderr io.Writer) error {
	local, err := parseLocal("serve", opt.serve)
	if err != nil {
		return err
	}
	s, err := openServer(opt, local, opt.memory.value, true, stderr)
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Fprintf(stderr, "serving on %s\n%sany peer may write into its memory\n", s.Endpoint.URL(), reach(s.Endpoint))
	if err := opt.urlFile.write(s.Endpoint.URL()); err != nil {
		return err
	}
	return s.Serve(ctx, opt.once)
}

// portTries is how often a port is chosen for a server that another program has for TCP.
// Arbitrary: it is rare even once.
const portTries = 8

// openBeside opens an endpoint, and has TCP served at its address. A port that only has to be
// free for UDP may be another program's for TCP.
func openBeside(local url.Endpoint, cfg *dgrdma.Config, serve func(netip.AddrPort) (*bench.TCPServer, error), log io.Writer) (*dgrdma.Endpoint, *bench.TCPServer, error) {
	for tries := 1; ; tries++ {
		e, err := dgrdma.Open(local.String(), cfg)
		if err != nil || local.Scheme != url.UDP {
			return e, nil, err
		}
		tcp, err := serve(e.LocalAddr().AddrPort())
		if err != nil && local.Addr.Port() == 0 && tries < portTries {
			e.Close()
			continue
		}
		if err != nil {
			fmt.Fprintf(log, "no TCP beside it, --compare will fail: %v\n", err)
		}
		return e, tcp, nil
	}
}

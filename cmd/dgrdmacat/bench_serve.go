package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/url"
)

const (
	// servedMemory is what a server has whose endpoint string names no size.
	servedMemory = 128 << 20
	// farewell is how long a side that is through still acknowledges.
	farewell = 50 * time.Millisecond
)

var errSilent = errors.New("the client fell silent in the middle of a run")

// server is the serving side of bench.
type server struct {
	opt      *benchOptions
	endpoint *dgrdma.Endpoint
	target   *target
	streams  *tcpServer // nil on wires without TCP
	idle     uint64     // bytes of memory before anybody came; 0: nobody else's would be told apart
	log      io.Writer
}

// openServer opens the endpoint of the server. private: no client shares its
// process.
func openServer(opt *benchOptions, local url.Endpoint, private bool, log io.Writer) (*server, error) {
	if local.Size == 0 {
		local.Size = servedMemory
	}
	if local.Size < 2*completionsAt {
		return nil, badUsage("--serve: memory of %d bytes, need at least %d", local.Size, 2*completionsAt)
	}
	memory, err := newTarget(int(local.Size))
	if err != nil {
		return nil, err
	}
	if local.Dialect == url.Short {
		local.Size = 0 // it has no place for it
	}
	s := &server{opt: opt, target: memory, log: log}
	profile, err := profileBetweenUs(opt.wire.profile, local.Scheme == url.UDP, true)
	if err != nil {
		return nil, err
	}
	s.endpoint, err = dgrdma.Open(opt.wire.apply(local).String(), &dgrdma.Config{
		Memory: memory, Profile: &profile, AcceptAny: true, MaxPeers: 65535, PeersPerHost: 65535, BusyPoll: opt.busyPoll, Queue: 1 << 20,
	})
	if err != nil {
		return nil, err
	}
	opt.metrics.endpoint(s.endpoint)
	if local.Scheme == url.UDP {
		if s.streams, err = serveTCP(s.endpoint.LocalAddr().AddrPort()); err != nil {
			fmt.Fprintf(log, "no TCP beside it, --compare will fail: %v\n", err)
		}
	}
	if private {
		s.idle = memoryInUse()
	}
	return s, nil
}

func (s *server) close() {
	s.streams.close()
	s.endpoint.Close()
}

func memoryInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// writeURL tells others where the server is.
func writeURL(file, s string) error {
	return writeWholeText(file, s+"\n")
}

// serve answers clients until the context ends, or with once until the first
// one is through.
func (s *server) serve(ctx context.Context, once bool) error {
	for {
		select {
		case <-ctx.Done():
			if once {
				return errors.New("interrupted before a client came")
			}
			return nil
		case c := <-s.target.control:
			if c.kind != kindBegin {
				continue
			}
			err := s.client(ctx, c)
			switch {
			case once:
				return err
			case err != nil:
				fmt.Fprintf(s.log, "peer %d: %v\n", c.from, err)
			}
		}
	}
}

// client serves all runs of one client.
func (s *server) client(ctx context.Context, begin control) error {
	var failed error
	for {
		var p plan
		decode(begin.data, &p)
		conns, err := s.peersOf(p)
		if err == nil {
			err = s.serveRun(ctx, p, conns)
		}
		if failed = errors.Join(failed, err); p.MoreRuns == 0 || conns == nil {
			s.dismiss(ctx, conns)
			return failed
		}
		if begin, err = s.await(ctx, conns[0], kindBegin, nil); err != nil {
			return errors.Join(failed, err)
		}
	}
}

// peersOf finds the connections that a plan speaks of.
func (s *server) peersOf(p plan) ([]*dgrdma.Conn, error) {
	if err := p.check(s.target.Size()); err != nil {
		return nil, err
	}
	conns := make([]*dgrdma.Conn, p.Peers)
	missing := len(conns)
	for _, c := range s.endpoint.Conns() {
		i := int(c.Peer().ID) - int(p.FirstID)
		if i < 0 || i >= len(conns) || c.Err() != nil {
			continue
		}
		if conns[i] == nil {
			missing--
		}
		conns[i] = c // the latest with that id
	}
	if missing > 0 {
		return nil, fmt.Errorf("%d of %d peers never spoke", missing, len(conns))
	}
	return conns, nil
}

// dismiss forgets the peers of a client that is through, when their last
// acknowledgements are sent.
func (s *server) dismiss(ctx context.Context, conns []*dgrdma.Conn) {
	select {
	case <-time.After(farewell):
	case <-ctx.Done():
	}
	for _, c := range conns {
		c.Close()
	}
}

// serveRun serves one run and tells the client what was seen here.
func (s *server) serveRun(ctx context.Context, p plan, conns []*dgrdma.Conn) error {
	var saw seen
	if s.idle != 0 {
		if now := memoryInUse(); now > s.idle {
			saw.PeerMemory = (now - s.idle) / uint64(p.Peers)
		}
	}
	in := s.target.expect(p)
	var out *pump
	if p.BothWays != 0 {
		out = newPump(p, conns, new(histogram))
	}
	before := countsOf(s.endpoint)
	began := time.Now()
	if err := tell(ctx, conns[0], kindReady, nil); err != nil {
		return err
	}
	if out != nil {
		out.start()
	}
	progress := showProgress(s.log, func() string {
		n := in.arrived.Load()
		return fmt.Sprintf("%d MiB arrived, %.0f MB/s", n*uint64(p.Size)>>20, float64(n)*float64(p.Size)/time.Since(began).Seconds()/1e6)
	})
	_, err := s.await(ctx, conns[0], kindEnd, in)
	elapsed := time.Since(began)
	progress()
	if out != nil {
		bounded, cancel := context.WithTimeout(context.Background(), s.endpoint.GiveUp())
		err = errors.Join(err, out.stop(bounded))
		cancel()
		out.report(&saw)
	}
	if err != nil {
		return err
	}
	countsOf(s.endpoint).since(before, &saw)
	in.report(&saw)
	s.logRun(p, conns[0], &saw, elapsed)
	err = s.deliver(ctx, conns[0], &saw)
	if saw.Wrong > 0 {
		return fmt.Errorf("%d errors in what arrived; the first: %w", saw.Wrong, saw.mismatch())
	}
	return err
}

func (s *server) logRun(p plan, c *dgrdma.Conn, saw *seen, elapsed time.Duration) {
	fmt.Fprintf(s.log, "peer %v: %d transactions of %d bytes, %.0f MB/s; %d frames heard, %d duplicates, %d dropped by the kernel, %.0f ns CPU per frame\n",
		c.Name(), saw.Arrived, p.Size, float64(saw.Arrived)*float64(p.Size)/elapsed.Seconds()/1e6,
		saw.FramesHeard, saw.Duplicates, saw.KernelDrops, float64(saw.CPU)/float64(max(saw.FramesHeard, 1)))
}

// deliver hands the client what was seen. Its thanks are as good as an
// acknowledgement, which it may not live to send again.
func (s *server) deliver(ctx context.Context, c *dgrdma.Conn, saw *seen) error {
	failed := make(chan error, 1)
	err := c.Post(&dgrdma.Transaction{
		Segments: []dgrdma.Segment{{Addr: controlData, Bytes: encode(saw)}}, CompletionAddr: controlWord, CompletionValue: kindReport,
		Done: func(_ *dgrdma.Transaction, err error) {
			if err != nil {
				failed <- err
			}
		},
	})
	if err != nil {
		return err
	}
	for {
		select {
		case err := <-failed:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		case m := <-s.target.control:
			if m.from == c.Peer().ID && m.kind == kindBye {
				return nil
			}
			s.turnAway(m)
		}
	}
}

// await waits for a client's next control record. Who says nothing and writes
// nothing for too long is gone.
func (s *server) await(ctx context.Context, c *dgrdma.Conn, kind uint32, in *arrivals) (control, error) {
	tick := time.NewTicker(s.endpoint.GiveUp() / 8)
	defer tick.Stop()
	last, heard := uint64(0), time.Now()
	for {
		select {
		case m := <-s.target.control:
			if m.from == c.Peer().ID && m.kind == kind {
				return m, nil
			}
			s.turnAway(m)
		case <-c.Done():
			return control{}, c.Err()
		case <-ctx.Done():
			return control{}, context.Cause(ctx)
		case now := <-tick.C:
			n := c.Stats().FramesReceived
			if in != nil {
				n += in.arrived.Load()
			}
			if n != last || s.streams.busy() {
				last, heard = n, now
			}
			if now.Sub(heard) > s.endpoint.GiveUp() {
				return control{}, errSilent
			}
		}
	}
}

// turnAway answers a client that came while another has a run.
func (s *server) turnAway(m control) {
	if m.kind != kindBegin {
		return
	}
	for _, c := range s.endpoint.Conns() {
		if c.Peer().ID == m.from {
			c.Post(&dgrdma.Transaction{CompletionAddr: controlWord, CompletionValue: kindBusy})
		}
	}
}

// tell writes a control record and waits until it is acknowledged.
func tell(ctx context.Context, c *dgrdma.Conn, kind uint32, content any) error {
	t := dgrdma.Transaction{CompletionAddr: controlWord, CompletionValue: kind}
	if content != nil {
		t.Segments = []dgrdma.Segment{{Addr: controlData, Bytes: encode(content)}}
	}
	return c.Write(ctx, &t)
}

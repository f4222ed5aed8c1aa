package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// Linger is how long a side that is through still acknowledges.
const Linger = 50 * time.Millisecond

// Server is the side that is written to, by one client at a time.
type Server struct {
	Endpoint *dgrdma.Endpoint
	Memory   *Memory // the endpoint's, at least LeastMemory
	Local    string  // the endpoint's own string, with its options: for Raw
	Idle     uint64  // MemoryInUse before anybody came; 0: clients share the process

	Runs
	// Failed, if not nil, is told of clients that failed while others may come.
	Failed func(client dgrdma.PeerName, err error)

	serving *dgrdma.Conn // the first of the peers of the client that has a run; nil: none
	since   time.Time    // it came
	heard   time.Time    // something of it came, as far as was looked

	ended []*dgrdma.Conn // of the client before, closed when another one comes

	// What says that something came.
	watched *dgrdma.Conn // nil: nothing
	in      *arrivals    // or nil
	seen    uint64
}

// Close closes the endpoint.
func (s *Server) Close() { s.Endpoint.Close() }

// leastWeighed is how many peers there have to be for what each of them takes to be
// measured. What the first one brings into use, 65 KB, is then a tenth: 75,792 bytes for
// each of 1, 33,738 of 10, 12,866 of 100, and 11,133 of 1000.
const leastWeighed = 100

// MemoryInUse returns how many bytes this process uses, when all that is garbage is
// collected.
func MemoryInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// Serve answers clients until the context ends, or with once until the first one is
// through.
func (s *Server) Serve(ctx context.Context, once bool) error {
	for {
		select {
		case <-ctx.Done():
			return interrupted(once)
		case c := <-s.Memory.control:
			if c.kind != kindBegin {
				continue
			}
			name := s.nameOf(c.from)
			err := s.client(ctx, c)
			switch {
			case once:
				return err
			case err != nil && s.Failed != nil:
				s.Failed(name, err)
			}
		}
	}
}

// interrupted is why a server ends with its context: one that was there for a client has failed.
func interrupted(once bool) error {
	if once {
		return fmt.Errorf("%w before a client came", ErrInterrupted)
	}
	return nil
}

// nameOf returns the name of who sent a record.
func (s *Server) nameOf(id dgrdma.EndpointID) dgrdma.PeerName {
	for _, c := range slices.Backward(s.Endpoint.Conns()) {
		if c.Peer().ID == id {
			return c.Name()
		}
	}
	return dgrdma.PeerName{ID: id} // it is gone
}

// client serves all runs of one client.
func (s *Server) client(ctx context.Context, begin control) error {
	for _, c := range s.ended {
		if c.Err() != nil { // it has not begun again since
			c.Close()
		}
	}
	s.ended = nil
	s.since = time.Now()
	defer func() { s.serving = nil }()
	var failed error
	for {
		var p Plan
		decode(begin.data, &p)
		conns, err := s.peersOf(p)
		lives := livesOf(conns)
		if err == nil {
			s.serving = conns[0]
			err = s.run(ctx, p, conns)
		}
		if failed = errors.Join(failed, err); p.MoreRuns == 0 || conns == nil {
			s.dismiss(ctx, conns, lives)
			return failed
		}
		if begin, err = s.await(ctx, conns[0], kindBegin, nil); err != nil {
			if errors.Is(failed, err) { // the connection ended in the run
				return failed
			}
			return errors.Join(failed, err)
		}
	}
}

// peersOf finds the connections that a plan speaks of.
func (s *Server) peersOf(p Plan) ([]*dgrdma.Conn, error) {
	if err := p.Check(s.Memory.Size()); err != nil {
		return nil, err
	}
	conns := make([]*dgrdma.Conn, p.Peers)
	missing := len(conns)
	for _, c := range s.Endpoint.Conns() {
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

// livesOf returns which run of the peer's program each connection is with.
func livesOf(conns []*dgrdma.Conn) []uint32 {
	lives := make([]uint32, len(conns))
	for i, c := range conns {
		lives[i] = c.Stats().Theirs
	}
	return lives
}

// dismiss forgets the peers of a client that is through, when their last
// acknowledgements are sent. A program that began since under the same id and address has the same connection, and
// keeps it.
func (s *Server) dismiss(ctx context.Context, conns []*dgrdma.Conn, lives []uint32) {
	// The client's last word is read amid the batch that brought it, of which nothing is
	// acknowledged before its end.
	applied := make(chan struct{})
	s.Endpoint.AfterBatch(func() { close(applied) })
	<-applied
	select {
	case <-time.After(Linger):
	case <-ctx.Done():
	}
	for i, c := range conns {
		switch {
		case c.Err() != nil: // a program may be about to begin under the same id and address, and would be told that this one restarted
			s.ended = append(s.ended, c)
		case c.Stats().Theirs == lives[i]:
			c.Close()
		}
	}
}

// run serves one run and tells the client what was seen here.
func (s *Server) run(ctx context.Context, p Plan, conns []*dgrdma.Conn) error {
	var saw Counts
	if s.Idle != 0 && p.Peers >= leastWeighed {
		if now := MemoryInUse(); now > s.Idle {
			saw.PeerMemory = (now - s.Idle) / uint64(p.Peers)
		}
	}
	return s.serve(ctx, p, &served{s, conns}, &saw)
}

// served is the server's end of a client of transactions.
type served struct {
	*Server
	conns []*dgrdma.Conn
}

func (s *served) giveUp() time.Duration   { return s.Endpoint.GiveUp() }
func (s *served) counts() counts          { return countsOf(s.Endpoint) }
func (s *served) expect(p Plan) *arrivals { return s.Memory.expect(p) }
func (s *served) settle(*arrivals)        {} // each was looked at as it completed
func (s *served) poster(p Plan) Poster    { return &transactions{p, s.conns} }
func (s *served) bytes() []byte           { return s.Memory.Bytes() }
func (s *served) here() dgrdma.Addr       { return s.Endpoint.LocalAddr() }
func (s *served) there() dgrdma.Addr      { return s.conns[0].Name().Addr }
func (s *served) wire() string            { return s.Local }
func (s *served) name() fmt.Stringer      { return s.conns[0].Name() }

func (s *served) ready(ctx context.Context, r *Ready) error {
	return tell(ctx, s.conns[0], kindReady, r)
}

func (s *served) ended(ctx context.Context, in *arrivals) (told finish, err error) {
	m, err := s.await(ctx, s.conns[0], kindEnd, in)
	if err == nil {
		decode(m.data, &told)
	}
	return told, err
}

func (s *served) deliver(ctx context.Context, saw *Counts) error {
	return s.Server.deliver(ctx, s.conns[0], saw)
}

func (s *served) abandon() {
	for _, c := range s.conns {
		c.Close() // so that nothing is written to it any more
	}
}

// deliver sends the client what was seen. The client's thanks count as an acknowledgement: it
// may end before it sends one again. One that acknowledged and is gone without thanks has it, too.
func (s *Server) deliver(ctx context.Context, c *dgrdma.Conn, saw *Counts) error {
	told := make(chan error, 1)
	err := c.Post(&dgrdma.Transaction{
		Segments: []dgrdma.Segment{{Addr: controlData, Bytes: encode(saw)}}, Completion: dgrdma.Word(controlWord, kindReport),
		Done: func(_ *dgrdma.Transaction, err error) { told <- err },
	})
	if err != nil {
		return err
	}
	s.watch(c, nil)
	has, gone := false, c.Done()
	var silent <-chan time.Time
	for {
		select {
		case err := <-told:
			if err != nil {
				return err
			}
			has, silent = true, time.After(s.Endpoint.GiveUp())
		case <-gone: // its thanks are before that in control
			gone, silent = nil, time.After(Linger)
		case <-silent:
			if has {
				return nil
			}
			return c.Err()
		case <-ctx.Done():
			return context.Cause(ctx)
		case m := <-s.Memory.control:
			if m.from == c.Peer().ID && m.kind == kindBye {
				return nil
			}
			if s.turnAway(m) {
				return c.Err() // nil: it may have been told
			}
		}
	}
}

// await waits for a client's next control record. A client that says nothing and writes
// nothing for as long as the endpoint's GiveUp is gone, and earlier if another one comes.
func (s *Server) await(ctx context.Context, c *dgrdma.Conn, kind uint32, in *arrivals) (control, error) {
	tick := time.NewTicker(s.Endpoint.GiveUp() / 8)
	defer tick.Stop()
	s.watch(c, in)
	for {
		select {
		case m := <-s.Memory.control:
			if m.from == c.Peer().ID && m.kind == kind {
				return m, nil
			}
			if s.turnAway(m) {
				return control{}, ErrSilent
			}
		case <-c.Done():
			if len(s.Memory.control) == 0 { // what the client said last came before that
				return control{}, c.Err()
			}
		case <-ctx.Done():
			if silent := s.silent(); silent > s.patience() {
				return control{}, fmt.Errorf("%w, and it had been silent for %v", context.Cause(ctx), silent.Round(time.Second))
			}
			return control{}, context.Cause(ctx)
		case <-tick.C:
			if s.silent() > s.Endpoint.GiveUp() {
				return control{}, ErrSilent
			}
		}
	}
}

// watch has silent tell for how long nothing has come of a client.
func (s *Server) watch(c *dgrdma.Conn, in *arrivals) {
	s.watched, s.in = c, in
	s.silent()
	s.heard = time.Now()
}

// silent returns for how long nothing has come of the client, as far as can be said by what has come since it was asked last.
func (s *Server) silent() time.Duration {
	n := s.seen
	if s.watched != nil {
		n = s.watched.Stats().FramesReceived
	}
	if s.in != nil {
		n += s.in.arrived.Load()
	}
	if n != s.seen {
		s.seen, s.heard = n, time.Now()
	}
	return time.Since(s.heard)
}

// patience is how long a client may be silent that keeps others waiting: twice as long as those
// that have nothing to write are (see Client.stay).
func (s *Server) patience() time.Duration { return s.Endpoint.GiveUp() / 2 }

// turnAway answers a client that came while another has a run. If that one seems to be gone it
// reports so instead, and the record will be read again.
func (s *Server) turnAway(m control) (gone bool) {
	if m.kind != kindBegin {
		return false
	}
	silent := s.silent()
	if silent > s.patience() {
		select {
		case s.Memory.control <- m:
			return true
		default: // many others come, and ask again
		}
	}
	who := busy{For: uint64(time.Since(s.since)), Silent: uint64(silent), Patience: uint64(s.patience())}
	copy(who.Client[:], s.serving.Name().String())
	for _, c := range s.Endpoint.Conns() {
		if c.Peer().ID == m.from {
			c.Post(&dgrdma.Transaction{
				Segments: []dgrdma.Segment{{Addr: controlData, Bytes: encode(&who)}}, Completion: dgrdma.Word(controlWord, kindBusy),
			})
		}
	}
	return false
}

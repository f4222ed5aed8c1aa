package bench

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/verbs"
)

// VerbsGiveUp is how long a client may be silent without [VerbsServer.GiveUp].
const VerbsGiveUp = 10 * time.Second

// VerbsServer is the side whose memory work requests go to, by one client at a time.
type VerbsServer struct {
	Host     *verbs.Host
	Listener *verbs.Listener
	Memory   []byte        // at least LeastMemory
	Idle     uint64        // MemoryInUse before anybody came; 0: clients share the process
	GiveUp   time.Duration // after which a silent client is gone; 0: VerbsGiveUp

	Runs
	// Failed, if not nil, is told of clients that failed while others may come.
	Failed func(client fmt.Stringer, err error)
	// Rejected, if not nil, is told of clients of another kind, with their private data. It may be called beside Failed.
	Rejected func(client net.Addr, private []byte)

	mu     sync.Mutex
	client *verbsServed // nil: nobody
}

func (s *VerbsServer) patience() time.Duration { return s.giveUp() / 2 }
func (s *VerbsServer) giveUp() time.Duration   { return cmp.Or(s.GiveUp, VerbsGiveUp) }

// Serve answers clients until the context ends, or with once until the first one is through.
func (s *VerbsServer) Serve(ctx context.Context, once bool) error {
	came := make(chan *verbsServed, 1)
	answering, cancel := context.WithCancel(ctx)
	listened := make(chan error, 1)
	go func() { listened <- s.answer(answering, came) }()
	defer func() {
		cancel()
		<-listened
		select {
		case c := <-came:
			c.turnDown()
		default:
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return interrupted(once)
		case err := <-listened:
			listened <- err
			if err == nil { // who listens saw the end of the context first
				err = interrupted(once)
			}
			return err
		case c := <-came:
			err := c.attend(ctx)
			s.mu.Lock()
			if s.client == c {
				s.client = nil
			}
			s.mu.Unlock()
			switch {
			case once:
				return err
			case err != nil && s.Failed != nil:
				s.Failed(c.name(), err)
			}
		}
	}
}

// answer answers all who want a connection, until the context ends.
func (s *VerbsServer) answer(ctx context.Context, came chan<- *verbsServed) error {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		r, err := s.Listener.Accept(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		var h hello
		var with *busy
		known := AsksForVerbs(r.Private) && decodeIf(r.Private, &h) && h.Version == version
		if known && h.Kind == pairControl {
			if with = s.admit(r, came); with == nil {
				continue
			}
		}
		if known && h.Kind == pairMeasured {
			all.Go(func() { s.measured(ctx, r, &h) })
			continue
		}
		if with != nil {
			r.TurnAway(encode(&refusal{protocol, version, *with}))
			continue
		}
		r.TurnAway([]byte("this is bench --serve of dgrdmacat, for its own clients"))
		if s.Rejected != nil {
			s.Rejected(r.RemoteAddr(), r.Private)
		}
	}
}

// admit has a client attended, or says with whom the server is busy. Whoever is silent, and keeps
// others waiting, gives way.
func (s *VerbsServer) admit(r *verbs.Request, came chan<- *verbsServed) *busy {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was := s.client; was != nil {
		silent := was.silent()
		if silent <= s.patience() || len(came) == cap(came) {
			b := &busy{For: uint64(time.Since(was.since)), Silent: uint64(silent), Patience: uint64(s.patience())}
			copy(b.Client[:], was.name().String())
			return b
		}
		was.giveWay()
	}
	s.client = &verbsServed{VerbsServer: s, request: r, number: rand.Uint64(), since: time.Now(), gaveWay: make(chan struct{})}
	came <- s.client
	return nil
}

// measured opens a queue pair of the client that has the server.
func (s *VerbsServer) measured(ctx context.Context, r *verbs.Request, h *hello) {
	s.mu.Lock()
	c := s.client
	s.mu.Unlock()
	if c == nil || c.number != h.Session {
		r.Close()
		return
	}
	c.join(ctx, r, int(h.Peer))
}

package dgrdma_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

var endA, endB = simnet.Addr(1), simnet.Addr(2)

const (
	endMemory = 1 << 16
	lostAddr  = 4096 // writes there are discarded, and OnEvent is told
	endBeat   = 100 * time.Microsecond
)

// driving is one of the ways in which an endpoint gets its work done.
type driving struct {
	name  string
	cfg   Config
	wire  func(*simnet.Conn) transport.Conn
	loops int // how many goroutines call drive until the end
	drive func(w *endWorld)
}

// slowPoll is a wire of which Recv waits when it is asked not to: a goroutine that polls
// without end would let no time pass in a bubble.
type slowPoll struct{ *simnet.Conn }

func (s slowPoll) Recv(dst []transport.Datagram, wait time.Duration) (int, error) {
	if wait == 0 {
		wait = endBeat / 5
	}
	return s.Conn.Recv(dst, wait)
}

func drivings() []driving {
	return []driving{
		{name: "own", cfg: Config{NoHelp: true}},
		{name: "help", cfg: Config{}, loops: 1, drive: func(w *endWorld) {
			ctx, cancel := context.WithTimeout(context.Background(), 10*endBeat)
			defer cancel()
			var waiter Waiter
			waiter.Init()
			w.b.Await(ctx, &waiter, func() bool {
				// By the goroutine that waits, and so once more when the endpoint has ended.
				w.hooks.does("ready")
				return false
			}, nil, nil)
		}},
		{name: "poll", cfg: Config{Manual: true}, loops: 1, drive: func(w *endWorld) {
			w.b.Progress(0)
		}},
		{name: "write", cfg: Config{Manual: true}, loops: 2, drive: func(w *endWorld) {
			w.toA.Write(context.Background(), w.transaction())
		}},
		{name: "busy", cfg: Config{BusyPoll: true}, wire: func(c *simnet.Conn) transport.Conn { return slowPoll{c} }},
	}
}

// endWorld is an endpoint b that will end, and a that writes to it and is written to.
type endWorld struct {
	t      *testing.T
	net    *simnet.Network
	hooks  *hooks
	a, b   *Endpoint
	toB    *Conn
	toA    *Conn
	other  *Conn // to a as well, under another id
	manual bool
	fails  bool // because a callback panics
	before int  // goroutines of endpoints before b began
	loops  sync.WaitGroup

	mu    sync.Mutex
	posts []*endPost
}

// call calls f, which may panic if the endpoint is to fail.
func (w *endWorld) call(f func()) {
	if w.fails {
		caught(f)
	} else {
		f()
	}
}

// isOver reports whether an error says that the endpoint ended.
func (w *endWorld) isOver(err error) bool {
	return isClosed(err) || w.fails && err != nil && errors.Is(err, w.b.Err())
}

type endPost struct {
	to       string
	accepted atomic.Bool
	returned atomic.Bool // Post did
	answers  atomic.Int32
}

func newEndWorld(t *testing.T, d driving, which string, fails bool) *endWorld {
	t.Helper()
	w := &endWorld{
		t: t, net: simnet.New(1), hooks: &hooks{which: which, acted: make(chan struct{})},
		manual: d.cfg.Manual, fails: fails,
	}
	w.net.Link(endA, endB, simnet.Link{Latency: endBeat / 2})
	w.net.Link(endB, endA, simnet.Link{Latency: endBeat / 2, Script: func(i int, _ []byte) simnet.Verdict {
		return simnet.Verdict{Drop: i%5 == 4}
	}})
	region := func() *Region {
		r, err := NewRegion(endMemory)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	open := func(tc transport.Conn, cfg *Config) *Endpoint {
		e, err := New(tc, cfg)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	connect := func(e *Endpoint, p Peer) *Conn {
		c, err := e.Connect(p)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	w.a = open(w.net.Attach(endA, simnet.Config{Poison: true}), &Config{ID: 1, Memory: region(), NoHelp: true})
	w.before = endpointGoroutines()
	wire := transport.Conn(w.net.Attach(endB, simnet.Config{Poison: true}))
	if d.wire != nil {
		wire = d.wire(wire.(*simnet.Conn))
	}
	d.cfg.ID, d.cfg.Queue = 2, 100
	w.b = open(wire, w.hooks.install(d.cfg, region()))
	w.toB = connect(w.a, Peer{ID: 2, Addr: endB, Size: endMemory})
	connect(w.a, Peer{ID: 9, Addr: endB, Size: endMemory})
	w.toA = connect(w.b, Peer{ID: 1, Addr: endA, Size: endMemory})
	w.other = connect(w.b, Peer{ID: 1, Addr: endA, Size: endMemory, As: 9})
	for range d.loops {
		w.loops.Go(func() {
			for !w.hooks.ended.Load() {
				w.call(func() { d.drive(w) })
				time.Sleep(endBeat / 10)
			}
		})
	}
	w.loops.Go(func() {
		for !w.hooks.ended.Load() {
			w.call(func() { w.post(w.toA) })
			w.call(func() { w.post(w.other) })
			time.Sleep(endBeat)
		}
	})
	w.loops.Go(func() {
		for i := uint32(0); ; i++ {
			tx := &Transaction{Segments: []Segment{{64 + lostAddr*(i%2), make([]byte, 2000)}}, Completion: Word(0, i)}
			tx.Segments[0].Addr -= 64 * (i % 2)
			if err := w.toB.Post(tx); isClosed(err) || errors.Is(err, ErrPeerClosed) {
				return
			}
			time.Sleep(endBeat)
		}
	})
	return w
}

func isClosed(err error) bool { return errors.Is(err, net.ErrClosed) }

// transaction returns one of two frames.
func (w *endWorld) transaction() *Transaction {
	return &Transaction{
		Segments: []Segment{{64, make([]byte, 2000)}}, Completion: Word(0, 1),
		Copied: func(*Transaction) { defer w.hooks.enter("Copied")() },
		Packed: func(*Transaction) { defer w.hooks.enter("Packed")() },
	}
}

// post posts a transaction whose answers are counted.
func (w *endWorld) post(c *Conn) error {
	p := &endPost{to: fmt.Sprint(c.Peer().As)}
	tx := w.transaction()
	tx.Done = func(_ *Transaction, err error) {
		p.answers.Add(1)
		if err != nil && !w.isOver(err) {
			w.t.Errorf("a post was answered with %v", err)
		}
		defer w.hooks.enter("Done")()
	}
	w.mu.Lock()
	w.posts = append(w.posts, p)
	w.mu.Unlock()
	err := c.Post(tx)
	p.accepted.Store(err == nil)
	p.returned.Store(true)
	if err != nil && !w.isOver(err) && !errors.Is(err, ErrQueueFull) {
		w.t.Errorf("Post: %v", err)
	}
	return err
}

// end ends b, and notes that nothing of it may run any more.
func (w *endWorld) end(how func() error) error {
	err := how()
	w.hooks.ended.Store(true)
	if n := w.hooks.running.Load(); n != 0 {
		w.t.Errorf("%d callbacks run", n)
	}
	return err
}

// check looks at what must hold when b has ended, and takes everything down.
func (w *endWorld) check() {
	t := w.t
	t.Helper()
	w.hooks.act.Store(nil)
	if err := w.post(w.toA); !w.isOver(err) {
		t.Errorf("Post: %v, want ErrClosed", err)
	}
	if w.manual {
		if _, err := w.b.Progress(0); !isClosed(err) {
			t.Errorf("Poll: %v, want ErrClosed", err)
		}
	}
	w.net.Attach(endB, simnet.Config{}) // panics if it is taken
	synctest.Wait()
	if n := endpointGoroutines(); n > w.before {
		t.Errorf("%d goroutines are left", n-w.before)
	}
	time.Sleep(100 * endBeat)
	w.a.Close()
	w.loops.Wait()
	time.Sleep(time.Second)
	w.net.Close()
	if which := w.hooks.late.Load(); which != nil {
		t.Errorf("%s ran after the end", *which)
	}
	for i, p := range w.posts {
		want := int32(0)
		if p.accepted.Load() {
			want = 1
		}
		if n := p.answers.Load(); n != want && (p.returned.Load() || n > 1) {
			t.Errorf("post %d of %d, as %s: answered %d times, want %d", i, len(w.posts), p.to, n, want)
		}
	}
}

// endpointGoroutines returns how many goroutines were begun by an endpoint.
func endpointGoroutines() int {
	buf := make([]byte, 1<<20)
	all := string(buf[:runtime.Stack(buf, true)])
	return strings.Count(all, "created by github.com/dgrdma/dgrdma/endpoint/run.") + strings.Count(all, "created by github.com/dgrdma/dgrdma/dgrdma.(*")
}

package endpoint_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	. "github.com/dgrdma/dgrdma/endpoint"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

var endA, endB = simnet.Addr(1), simnet.Addr(2)

const (
	endMemory = 1 << 16
	lostAddr  = 4096 // writes there are swallowed, of which OnEvent is told
	endBeat   = 100 * time.Microsecond
)

// hooks are in everything that the application hands to an endpoint. They note what
// runs after the end, and one of them does something.
type hooks struct {
	which   string
	act     atomic.Pointer[func()]
	acted   chan struct{} // closed when it was done for the first time
	first   sync.Once
	running atomic.Int32
	ended   atomic.Bool
	late    atomic.Pointer[string]
}

// enter is called first, and what it returns last, in what is called which.
func (h *hooks) enter(which string) func() {
	note := func() {
		if h.ended.Load() {
			h.late.Store(&which)
		}
	}
	h.running.Add(1)
	note()
	if act := h.act.Load(); act != nil && which == h.which {
		(*act)()
		h.first.Do(func() { close(h.acted) })
	}
	return func() {
		note()
		h.running.Add(-1)
	}
}

// underLock says which are documented to run under locks: time of a bubble stands
// still while others wait for these.
func (h *hooks) underLock() bool {
	switch h.which {
	case "Done", "Admit", "Complete", "OnEvent", "ready":
		return false
	}
	return true
}

// pass lets time pass, in a callback or beside one.
func (h *hooks) pass(d time.Duration) {
	if h.underLock() {
		for range d / time.Microsecond {
			runtime.Gosched()
		}
		return
	}
	time.Sleep(d)
}

// install puts the hooks into a configuration.
func (h *hooks) install(cfg Config, region *Region) *Config {
	cfg.Memory = &hookedRegion{region, h}
	cfg.OnEvent = func(Event) { defer h.enter("OnEvent")() }
	cfg.Trace = &Trace{
		FrameSent:     func(PeerName, []byte, bool) { defer h.enter("FrameSent")() },
		FrameReceived: func(PeerName, *frame.Frame, Reason) { defer h.enter("FrameReceived")() },
		FrameLost:     func(PeerName, frame.Seq, bool) { defer h.enter("FrameLost")() },
	}
	cfg.Logger = slog.New(&hookedLog{h})
	cfg.NewController = func(int) ack.Controller { return &hookedController{hooks: h} }
	return &cfg
}

type hookedRegion struct {
	*Region
	hooks *hooks
}

func (r *hookedRegion) Admit(src frame.EndpointID, m *frame.Message) ([]byte, error) {
	defer r.hooks.enter("Admit")()
	if m.Addr == lostAddr {
		return nil, Swallow(errors.New("not wanted"))
	}
	return r.Region.Admit(src, m)
}

func (r *hookedRegion) Complete(src frame.EndpointID, m *frame.Message) {
	defer r.hooks.enter("Complete")()
	r.Region.Complete(src, m)
}

type hookedLog struct{ hooks *hooks }

func (l *hookedLog) Enabled(context.Context, slog.Level) bool { return true }
func (l *hookedLog) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *hookedLog) WithGroup(string) slog.Handler            { return l }
func (l *hookedLog) Handle(context.Context, slog.Record) error {
	defer l.hooks.enter("Log")()
	return nil
}

type hookedController struct {
	ack.FixedWindow
	hooks *hooks
}

func (c *hookedController) Window() int {
	defer c.hooks.enter("Window")()
	return 20_000
}

func (c *hookedController) OnAcked(ack.Instant, int, time.Duration) {
	defer c.hooks.enter("OnAcked")()
}

// driving is one of the ways in which an endpoint gets its work done.
type driving struct {
	name  string
	cfg   Config
	wire  func(*simnet.Conn) transport.Conn
	loops int // how many goroutines call drive until it fails
	drive func(w *endWorld) error
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
		{name: "own", cfg: Config{Help: HelpNever}},
		{name: "help", cfg: Config{Help: HelpAlways}, loops: 2, drive: func(w *endWorld) error {
			w.b.Help(func() bool {
				defer w.hooks.enter("ready")()
				return false
			})
			time.Sleep(endBeat / 10)
			if w.hooks.ended.Load() {
				return ErrClosed
			}
			return nil
		}},
		{name: "poll", cfg: Config{Manual: true}, loops: 1, drive: func(w *endWorld) error {
			_, err := w.b.Poll()
			time.Sleep(endBeat / 5)
			return err
		}},
		{name: "write", cfg: Config{Manual: true}, loops: 2, drive: func(w *endWorld) error {
			return w.toA.Write(context.Background(), w.transaction())
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
	before int // goroutines of endpoints before b began
	loops  sync.WaitGroup

	mu    sync.Mutex
	posts []*endPost
}

type endPost struct {
	to       string
	accepted atomic.Bool
	answers  atomic.Int32
}

func newEndWorld(t *testing.T, d driving, which string) *endWorld {
	t.Helper()
	w := &endWorld{
		t: t, net: simnet.New(1), hooks: &hooks{which: which, acted: make(chan struct{})},
		manual: d.cfg.Manual,
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
	w.a = open(w.net.Attach(endA, simnet.Config{Poison: true}), &Config{ID: 1, Memory: region(), Help: HelpNever})
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
			for d.drive(w) == nil {
			}
		})
	}
	w.loops.Go(func() {
		for !isClosed(w.post(w.toA)) {
			w.post(w.other)
			time.Sleep(endBeat)
		}
	})
	w.loops.Go(func() {
		for i := uint32(0); ; i++ {
			tx := &Transaction{Segments: []Segment{{64 + lostAddr*(i%2), make([]byte, 2000)}}, CompletionValue: i}
			tx.Segments[0].Addr -= 64 * (i % 2)
			if isClosed(w.toB.Post(tx)) {
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
		Segments: []Segment{{64, make([]byte, 2000)}}, CompletionValue: 1,
		Copied: func(*Transaction) { defer w.hooks.enter("Copied")() },
	}
}

// post posts a transaction whose answers are counted.
func (w *endWorld) post(c *Conn) error {
	p := &endPost{to: fmt.Sprint(c.Peer().As)}
	tx := w.transaction()
	tx.Done = func(_ *Transaction, err error) {
		p.answers.Add(1)
		if err != nil && !isClosed(err) {
			w.t.Errorf("a post was answered with %v", err)
		}
		defer w.hooks.enter("Done")()
	}
	w.mu.Lock()
	w.posts = append(w.posts, p)
	w.mu.Unlock()
	err := c.Post(tx)
	p.accepted.Store(err == nil)
	if err != nil && !isClosed(err) && !errors.Is(err, ErrQueueFull) {
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
	if err := w.post(w.toA); !isClosed(err) {
		t.Errorf("Post: %v, want ErrClosed", err)
	}
	if w.manual {
		if _, err := w.b.Poll(); !isClosed(err) {
			t.Errorf("Poll: %v, want ErrClosed", err)
		}
	}
	w.b.Help(func() bool { defer w.hooks.enter("ready")(); return true })
	w.net.Attach(endB, simnet.Config{}) // panics if it is taken
	synctest.Wait()
	if n := endpointGoroutines(); n != w.before {
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
		if n := p.answers.Load(); n != want {
			t.Errorf("post %d of %d, as %s: answered %d times, want %d", i, len(w.posts), p.to, n, want)
		}
	}
}

// endpointGoroutines returns how many goroutines were begun by an endpoint.
func endpointGoroutines() int {
	buf := make([]byte, 1<<20)
	return strings.Count(string(buf[:runtime.Stack(buf, true)]), "created by github.com/dgrdma/dgrdma/endpoint.")
}

// bounded runs a test in a bubble, and ends the process when it hangs: a goroutine that
// waits for a mutex is no deadlock to a bubble.
func bounded(t *testing.T, f func(t *testing.T)) {
	watchdog := time.AfterFunc(20*time.Second, func() {
		debug.SetTraceback("all")
		panic(t.Name() + " hangs")
	})
	defer watchdog.Stop()
	synctest.Test(t, f)
}

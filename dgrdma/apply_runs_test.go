package dgrdma

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/session"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// tape is what a world does, as bytes: those of a fuzzer, or random ones.
type tape []byte

// n returns a number below k. At the end of the tape it is 0.
func (t *tape) n(k int) int {
	if len(*t) == 0 {
		return 0
	}
	b := (*t)[0]
	*t = (*t)[1:]
	return int(b) % k
}

// notebook is memory that writes down what it is told, refuses some addresses, swallows
// others, and has its owner's connection reset now and then.
type notebook struct {
	*Region
	notes  []string
	picky  bool
	resets int // after so many messages; 0: never
	reset  func()
}

func (b *notebook) Admit(src frame.EndpointID, m *frame.Message) ([]byte, error) {
	if b.picky && m.Len > 0 {
		switch m.Addr >> 10 & 31 {
		case 7:
			return nil, errors.New("not here")
		case 11:
			return nil, Swallow(nil)
		}
	}
	return b.Region.Admit(src, m)
}

func (b *notebook) Placed(_ frame.EndpointID, m *frame.Message) {
	b.notes = append(b.notes, fmt.Sprintf("placed %+v", *m))
	if b.resets > 0 && len(b.notes)%b.resets == 0 {
		b.reset()
	}
}

func (b *notebook) Complete(src frame.EndpointID, m *frame.Message) {
	b.notes = append(b.notes, fmt.Sprintf("complete %d", m.Txn))
	b.Region.Complete(src, m)
}

// follower is an endpoint that is given datagrams in batches.
type follower struct {
	*feed
	c      *Conn
	book   *notebook
	events []string
	runs   int // frames that were applied behind another one
}

// newest is the id that a follower would use next.
const newest = 4720

func newFollower(t testing.TB, p Profile, tap *tape) *follower {
	f := &follower{book: new(notebook)}
	var err error
	if f.book.Region, err = NewRegion(1 << 16); err != nil {
		t.Fatal(err)
	}
	cfg := Config{
		Memory:  f.book,
		Entropy: func() uint32 { return 4711 },
		OnEvent: func(e Event) { f.events = append(f.events, fmt.Sprint(e.Kind, e.Reason, e.Txn, e.Frames, e.Err)) },
	}
	if tap.n(2) == 1 {
		cfg.OpenIncoming = 1 + tap.n(3)
	}
	f.book.picky = tap.n(2) == 1
	if !p.Session && tap.n(3) == 1 {
		f.book.resets = 50 + tap.n(100)
	}
	served := tap.n(2) == 1
	f.feed = newFeed(t, cfg)
	f.e.epochs.all = followed
	if f.c, err = f.e.Connect(Peer{ID: 1, Addr: addrA, Profile: &p}); err != nil {
		t.Fatal(err)
	}
	if served {
		serve(t, f.e, newShelf("shelf", 1<<16))
	}
	f.book.reset = func() { f.c.Reset(1) }
	if p.Session {
		f.introduce(1, life)
	} else {
		f.c.nextID.Store(newest)
	}
	f.c.rx.lastAt, f.c.rx.livedAt = 0, 0 // by a clock that is not the test's
	return f
}

// followed has all followers tell their peers the same epochs.
var followed = func() (g session.Generations) {
	g.Of(nil, 0).Told()
	return g
}()

// deliver has the endpoint act on a batch, one by one or in runs.
func (f *follower) deliver(now ack.Instant, batch []transport.Datagram, runs bool) {
	for len(batch) > 0 {
		n := 1
		if runs {
			n = len(batch)
		}
		n = f.e.receive(now, batch[:n])
		f.runs += n - 1
		batch = batch[n:]
	}
	f.e.endBatch(now)
}

// kept is what a receiving half knows, in a form that can be compared.
func (f *follower) kept() []any {
	r := &f.c.rx
	var open []any
	for in := r.open.Oldest(); in != nil; in = in.Younger() {
		open = append(open, [...]any{in.Message, in.Got, in.Lost, in.Low, in.High, in.Bytes, in.Overcount})
	}
	all := []any{r.counters, r.held.Bytes(), r.told, r.lastAt, r.livedAt, open, f.c.tx.heard.counters, f.book.notes, f.events,
		f.e.Stats().Refused}
	switch k := r.kind.(type) {
	case *sessionReceiving:
		at, pending := f.c.session.tx.frames.AckAt()
		all = append(all, k.frames, k.up, at, pending, f.c.session.tx.frames.Header(frame.NoControl))
	case *foreignReceiving:
		at, owed := f.c.tx.wire.ackAt()
		all = append(all, at, owed, k.v107.Newest())
	}
	return all
}

// course is a transaction that a peer is in the midst of.
type course struct {
	msg  frame.Message
	step uint32
}

// air is what a peer sent, and the network has not delivered.
type air struct {
	*tape
	encode       func(seq frame.Seq, msgs ...frame.Message) []byte
	head         int // length of a header
	frames, lost [][]byte
	next         frame.Seq
	txn          uint32
	courses      []course
	ack          bool
	salt         byte
}

func newAir(to *follower, t *tape) *air {
	return &air{tape: t, head: to.c.header, encode: func(seq frame.Seq, msgs ...frame.Message) []byte {
		return to.encode(1, uint32(seq), msgs...)
	}}
}

func (a *air) send(msgs ...frame.Message) {
	b := a.encode(a.next, msgs...)
	a.next++
	if len(msgs) == 1 {
		b = b[:a.head+frame.MessageHeaderSize+int(msgs[0].Len)]
		for i := a.head + frame.MessageHeaderSize; i < len(b); i++ {
			a.salt += 7
			b[i] = a.salt
		}
	}
	if a.ack && a.head == frame.HeaderSize {
		frame.PutAck(b, 5, 3)
		a.ack = false
	}
	a.frames = append(a.frames, b)
}

func (a *air) begin() {
	count := 2 + a.n(120)
	size := []int{1456, 100, 64, 8, 4, 1}[a.n(6)]
	if size == 1456 {
		count = min(count, 44)
	}
	a.courses = append(a.courses, course{msg: frame.Message{
		Txn: a.txn, CompletionAddr: 8, CompletionValue: a.txn, Count: uint16(count), Addr: uint32(16 + 64*a.n(20)), Len: uint16(size),
	}, step: uint32(size)})
	a.txn++
}

// part returns the next message of a transaction, which may begin.
func (a *air) part(i int) frame.Message {
	if len(a.courses) <= i {
		a.begin()
		i = len(a.courses) - 1
	}
	c := &a.courses[i]
	c.msg.Index++
	m := c.msg
	if c.msg.Addr += c.step; m.Index == m.Count {
		a.courses = slices.Delete(a.courses, i, i+1)
	}
	return m
}

// act has the peer or the network do something, and returns what is delivered with it.
func (a *air) act() (batch [][]byte) {
	some := func() int { return a.n(len(a.frames)) }
	switch op := a.n(22); {
	case op < 8 || len(a.frames) == 0:
		i := a.n(2)
		for range 1 + a.n(50) {
			a.send(a.part(i))
		}
	case op == 8:
		a.begin()
	case op == 9: // small ones, and parts of two
		x := frame.Message{Txn: a.txn, CompletionAddr: 12, CompletionValue: a.txn, Count: 1, Index: 1}
		a.txn++
		if a.send(x); a.n(2) == 0 {
			a.send(a.part(0), x)
		}
	case op == 10: // lost
		k := some()
		n := min(1+a.n(4), len(a.frames)-k)
		a.lost = append(a.lost, a.frames[k:k+n]...)
		a.frames = slices.Delete(a.frames, k, k+n)
	case op == 11:
		a.frames = append(a.frames, a.lost...)
		a.lost = nil
	case op == 12: // doubled
		a.frames = slices.Insert(a.frames, some(), a.frames[some()])
	case op == 13: // overtaken
		i, j := some(), some()
		a.frames[i], a.frames[j] = a.frames[j], a.frames[i]
	case op == 14: // almost what goes on
		k := some()
		b := slices.Clone(a.frames[k])
		b[a.n(min(len(b), a.head+frame.MessageHeaderSize))] ^= 1 << a.n(8)
		a.frames[k] = b
	case op == 15:
		a.ack = true
	case op == 16: // an id without messages
		b := a.encode(a.next)[:a.head]
		a.next++
		a.frames = append(a.frames, b)
	case op == 17 || op == 18: // goes on further ahead, and there again once that came: with ids of its own
		if len(a.courses) > 0 {
			i := a.n(len(a.courses))
			ahead := a.courses[i]
			k := uint16(1 + a.n(12))
			if left := ahead.msg.Count - ahead.msg.Index; k < left {
				ahead.msg.Index += k
				ahead.msg.Addr += uint32(k) * ahead.step
				a.courses = slices.Insert(a.courses, i, ahead)
			}
		}
	default:
		batch, a.frames = a.frames, nil
	}
	return batch
}

// compareRuns lets a peer and a network do what the tape says, and delivers it to an endpoint
// frame by frame and to another one in runs.
func compareRuns(t *testing.T, tap tape) (followed int) {
	profile := []Profile{Native(), OpenCPI(true), OpenCPI2(), FPGA()}[tap.n(4)]
	if tap.n(8) == 1 {
		profile.History, profile.Ahead = 64, 32
	}
	options := tap[:min(len(tap), 5)]
	tap = tap[len(options):]
	one, two := options, options
	each, runs := newFollower(t, profile, &one), newFollower(t, profile, &two)
	a := newAir(runs, &tap)
	a.next, a.txn, a.salt = 2, life, 1
	if tap.n(4) == 0 && !profile.Session {
		a.next = 65500
	}
	if profile.Session {
		a.next = 1
	}
	if profile.FirstFrame != 0 {
		a.next = profile.FirstFrame
	}
	now := each.e.now() + ack.Instant(1e9)
	for step := 0; len(tap) > 0; step++ {
		sent := a.act()
		if sent == nil {
			continue
		}
		batch := make([]transport.Datagram, len(sent))
		for i, b := range sent {
			batch[i] = transport.Datagram{From: addrA, Data: b}
			if tap.n(64) == 1 {
				batch[i].From = addrB // a stranger's, who knows what goes on
			}
		}
		now += ack.Instant(1+tap.n(256)) * 1e5
		each.deliver(now, batch, false)
		runs.deliver(now, batch, true)
		sameKept(t, step, each, runs)
	}
	return runs.runs
}

// sameKept fails unless both know the same, and have the same in memory.
func sameKept(t *testing.T, step int, each, runs *follower) {
	t.Helper()
	x, y := each.kept(), runs.kept()
	for i := range x {
		if !reflect.DeepEqual(x[i], y[i]) {
			t.Fatalf("step %d, kept %d: frame by frame, and in runs:\n%+v\n%+v", step, i, x[i], y[i])
		}
	}
	if !slices.Equal(each.book.mem, runs.book.mem) {
		t.Fatalf("step %d: the memories differ", step)
	}
}

// TestRunsAreFrames: runs leave the memory, the acknowledgements, the counters and all that is
// kept as their frames would have one by one, wherever they break.
func TestRunsAreFrames(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	followed, tapes := 0, fewer(150, 30)
	for range tapes {
		tap := make(tape, 1000)
		for i := range tap {
			tap[i] = byte(rnd.Uint32())
		}
		followed += compareRuns(t, tap)
	}
	if followed < 10_000*tapes/150 {
		t.Errorf("%d frames were applied in runs", followed)
	}
}

// FuzzRuns looks for a course that runs leave otherwise than frames.
func FuzzRuns(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 40, 19, 1, 1, 10, 14, 3, 24, 2, 19, 9})
	f.Fuzz(func(t *testing.T, tap []byte) { compareRuns(t, tap[:min(len(tap), 2000)]) })
}

// TestRunsEndAtTheLastIndex: behind the last index there is comes 0, and then 1, which says that
// a transaction began: also in a row of frames that go on otherwise.
func TestRunsEndAtTheLastIndex(t *testing.T) {
	for _, profile := range []Profile{Native(), OpenCPI(true), OpenCPI2(), FPGA()} {
		each, runs := newFollower(t, profile, new(tape)), newFollower(t, profile, new(tape))
		a := newAir(runs, new(tape))
		if a.next = max(2, profile.FirstFrame); profile.Session {
			a.next = 1
		}
		m := frame.Message{Txn: life, CompletionValue: 1, Count: frame.MaxMessages, Index: frame.MaxMessages - 20, Addr: 64, Len: 8}
		for range 40 {
			a.send(m)
			m.Index++
			m.Addr += 8
		}
		var batch []transport.Datagram
		for _, b := range a.frames {
			batch = append(batch, transport.Datagram{From: addrA, Data: b})
		}
		now := each.e.now() + ack.Instant(1e9)
		each.deliver(now, batch, false)
		runs.deliver(now, batch, true)
		sameKept(t, 0, each, runs)
		if runs.runs < 10 {
			t.Errorf("%s: %d frames were applied in runs", profile.Name, runs.runs)
		}
	}
}

// TestLongRuns: more frames may go on than are applied as one run.
func TestLongRuns(t *testing.T) {
	each, runs := newFollower(t, Native(), new(tape)), newFollower(t, Native(), new(tape))
	a := newAir(runs, new(tape))
	a.next = 1
	m := frame.Message{Txn: life, CompletionValue: 1, Count: 5 * mostFollow, Addr: 64, Len: 8}
	var batch []transport.Datagram
	for range 4 * mostFollow {
		m.Index++
		a.send(m)
		m.Addr += 8
		batch = append(batch, transport.Datagram{From: addrA, Data: a.frames[m.Index-1]})
	}
	now := each.e.now() + ack.Instant(1e9)
	each.deliver(now, batch, false)
	runs.deliver(now, batch, true)
	sameKept(t, 0, each, runs)
	if want := 4*mostFollow - 4; runs.runs != want {
		t.Errorf("%d frames were applied behind others, want %d", runs.runs, want)
	}
}

// TestRunsEndWithTheTransaction checks that a run ends with the last message of a transaction, and that what goes on after it is of the
// next one.
func TestRunsEndWithTheTransaction(t *testing.T) {
	f := newFeed(t, Config{})
	f.native()
	var in []transport.Datagram
	for i := uint16(1); i <= 6; i++ {
		m := frame.Message{Txn: life, CompletionValue: 1, Count: 4, Index: i, Addr: 8 * uint32(i), Len: 8}
		b := f.encode(1, uint32(i), m)
		in = append(in, transport.Datagram{From: addrA, Data: b[:frame.SessionHeaderSize+frame.MessageHeaderSize+8]})
	}
	now := f.e.now()
	for len(in) > 0 {
		in = in[f.e.receive(now, in):]
	}
	f.e.endBatch(now)
	st := f.e.Stats()
	if st.MessagesPlaced != 6 || st.Completions != 1 || f.e.Conns()[0].Stats().Open != 1 {
		t.Errorf("%d of 6 messages were placed, %d completions", st.MessagesPlaced, st.Completions)
	}
}

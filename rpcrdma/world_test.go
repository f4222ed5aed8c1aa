package rpcrdma

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/xdr"
)

// A world is a connection of two machines, and programs at both ends that call each other. The oracle is what both programs
// know: whole messages, without reductions, and memory.
type world struct {
	t    *testing.T
	seed uint64
	rng  *rand.Rand
	pair *fakePair

	calls []*modelCall
	byXID [2]map[uint32]*modelCall // by the end that calls
	todo  []func()
	// Of what may go wrong here.
	cancels, loses, fails, scarce bool

	served int // Calls that were carried out
}

// modelCall is one call, as both ends ought to see it.
type modelCall struct {
	w       *world
	from    *fakeEnd
	name    string
	call    Call
	request rpcMessage
	result  rpcMessage
	// short says that a result is longer than its place: whether that matters is the transport's to know.
	short bool

	delivered, answered, cancelled, returned int
	failed                                   bool // the handler has an ERROR sent
	lent                                     [][]byte
	kept                                     bool
}

// size draws a length around a limit that matters, or any.
func (w *world) size(most int) int {
	limits := []int{0, 4, 64, 1024, 1024 - 28, 2048 - 28, 4096 - 28, 4096 - 36, 4096 - 68, 8192, 20000, 60000}
	n := limits[w.rng.IntN(len(limits))] + w.rng.IntN(7) - 3
	if w.rng.IntN(3) == 0 {
		n = w.rng.IntN(300)
	}
	return min(max(n, 0), most)
}

func (w *world) sizes(most int) (list []int) {
	if w.rng.IntN(2) == 0 {
		return nil
	}
	for range w.rng.IntN(5) {
		list = append(list, w.size(most))
	}
	return list
}

// issue makes a call from an end.
func (w *world) issue(side int) {
	e := w.pair.ends[side]
	k := &modelCall{w: w, from: e}
	most := 70000
	if side == 1 && e.m.version == Version1 {
		most = 200
	}
	xid := w.rng.Uint32()
	for w.byXID[side][xid] != nil || xid == settleXID {
		xid++
	}
	k.name = fmt.Sprintf("%s's call %#x", e.name, xid)
	head := 40 + w.size(most)/wordSize*wordSize
	k.request = w.draw(xid, msgCall, head, w.sizes(most))
	k.result = w.draw(xid, msgReply, 24+w.size(most)/wordSize*wordSize, w.sizes(most))
	c := &k.call
	c.Head = bytes.Clone(k.request.head)
	for _, item := range k.request.items {
		c.Items = append(c.Items, xdr.Item{At: item.At, Data: bytes.Clone(item.Data)})
	}
	c.MaxReply = len(k.result.head)
	into := w.rng.IntN(MaxInto + 1)
	if w.rng.IntN(2) == 0 {
		into = min(len(k.result.items), MaxInto)
	}
	for i, item := range k.result.items {
		if i < into {
			room := len(item.Data) + w.rng.IntN(3)*w.rng.IntN(100)
			if w.rng.IntN(40) == 0 && room > 0 {
				room = w.rng.IntN(len(item.Data) + 1)
			}
			k.short = k.short || room < len(item.Data)
			c.Into = append(c.Into, bytes.Repeat([]byte{rubbish}, room))
			continue
		}
		c.MaxReply += xdr.Padded(len(item.Data))
	}
	for len(c.Into) < into {
		c.Into = append(c.Into, bytes.Repeat([]byte{rubbish}, w.rng.IntN(100)))
	}
	c.Direct = w.rng.IntN(2) == 0
	k.lent = append(k.lent, c.Head)
	for _, item := range c.Items {
		k.lent = append(k.lent, item.Data)
	}
	k.lent = append(k.lent, c.Into...)
	switch err := e.m.Call(w.pair.now, c); {
	case errors.Is(err, ErrQueue), errors.Is(err, ErrLost):
		return
	case err != nil:
		w.fatal("%s: %v", k.name, err)
	}
	w.calls = append(w.calls, k)
	w.byXID[side][xid] = k
	e.drive()
}

func (w *world) fatal(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("seed %d: "+format, append([]any{w.seed}, args...)...)
}

// act is what a program does when the machine says something.
func (w *world) act(e *fakeEnd, a *Action) {
	switch a.Kind {
	case ActPlace:
		w.later(func() { w.place(e, a.In) })
	case ActDeliver:
		w.deliver(e, a.In)
	case ActReturn:
		w.returned(e, a.Call)
	case ActAnswered:
		if a.Done != nil {
			a.Done()
		}
	case ActClose:
		if w.pair.ended == "" {
			w.dump()
			w.fatal("%s ends the connection: %v", e.name, a.Err)
		}
	}
}

// later has something happen at a random moment.
func (w *world) later(f func()) { w.todo = append(w.todo, f) }

// modelCall of an Incoming of an end.
func (w *world) of(e *fakeEnd, in *Incoming) *modelCall {
	side := 0
	if e == w.pair.ends[0] {
		side = 1
	}
	k := w.byXID[side][in.XID]
	if k == nil {
		w.fatal("%s: a Call with xid %#x comes that was not made", e.name, in.XID)
	}
	return k
}

// place says where items go.
func (w *world) place(e *fakeEnd, in *Incoming) {
	k := w.of(e, in)
	if len(in.Items) == 0 {
		w.fatal("%s: a place is asked for no items", k.name)
	}
	for i := range in.Items {
		if in.Items[i].Data != nil {
			w.fatal("%s: an item is there before its place is said", k.name)
		}
	}
	switch w.rng.IntN(20) {
	case 0:
		k.delivered++
		w.answer(e, in, k)
	case 1, 2, 3, 4:
		into := make([][]byte, w.rng.IntN(len(in.Items)+1))
		for i := range into {
			into[i] = make([]byte, w.rng.IntN(70000))
		}
		e.m.Place(w.pair.now, in, into)
	default:
		e.m.Place(w.pair.now, in, nil)
	}
	e.drive()
}

// deliver carries a Call out, once.
func (w *world) deliver(e *fakeEnd, in *Incoming) {
	k := w.of(e, in)
	if in.TooLong > 0 {
		if n := len(k.request.whole); n <= e.m.cfg.MaxCall || in.TooLong > n {
			w.fatal("%s has %d octets, and counts as one of %d", k.name, n, in.TooLong)
		}
		w.later(func() {
			e.m.Fail(w.pair.now, in, Report{Code: CodeSystem})
			e.drive()
		})
		return
	}
	if k.delivered++; k.delivered > 1 {
		w.fatal("%s is carried out twice", k.name)
	}
	if n := len(k.request.whole); n > e.m.cfg.MaxCall && k.cancelled == 0 {
		w.fatal("%s has %d octets, %d are the most", k.name, n, e.m.cfg.MaxCall)
	}
	w.served++
	w.later(func() {
		whole := insert(in.Message, in.Items, all)
		cut := k.cancelled > 0 && len(whole) < len(k.request.whole) && bytes.Equal(whole, k.request.whole[:len(whole)])
		if !cut && !bytes.Equal(whole, k.request.whole) {
			w.fatal("%s arrives as %d octets %s, want %d", k.name, len(whole), differ(whole, k.request.whole), len(k.request.whole))
		}
		w.answer(e, in, k)
		e.drive()
	})
}

// answer replies to a Call, or refuses it.
func (w *world) answer(e *fakeEnd, in *Incoming, k *modelCall) {
	if w.fails && w.rng.IntN(10) == 0 {
		k.failed = true
		e.m.Fail(w.pair.now, in, Report{Code: CodeSystem})
		return
	}
	a := Answer{Head: bytes.Clone(k.result.head)}
	for _, item := range k.result.items {
		a.Items = append(a.Items, xdr.Item{At: item.At, Data: bytes.Clone(item.Data)})
	}
	if w.rng.IntN(4) > 0 {
		a.Done = func() {
			if k.answered++; k.answered > 1 {
				w.fatal("%s: an answer is done twice", k.name)
			}
			scribble(a.Head)
			for _, item := range a.Items {
				scribble(item.Data)
			}
		}
	} else {
		k.answered = 1
	}
	e.m.Reply(w.pair.now, in, a)
}

const scribbled = 0xee

func scribble(b []byte) {
	for i := range b {
		b[i] = scribbled
	}
}

// cancel gives a call up.
func (w *world) cancel() {
	if len(w.calls) == 0 {
		return
	}
	k := w.calls[w.rng.IntN(len(w.calls))]
	if k.returned == 0 {
		k.cancelled++
		k.from.m.Cancel(w.pair.now, &k.call)
		k.from.drive()
	}
}

// run lets a world happen.
func (w *world) run(most int) {
	client, server := w.config()
	w.t.Logf("client %+v", *client)
	w.t.Logf("server %+v", *server)
	w.byXID = [2]map[uint32]*modelCall{{}, {}}
	w.cancels, w.loses, w.fails = w.rng.IntN(2) == 0, w.rng.IntN(4) == 0, w.rng.IntN(3) == 0
	w.pair = newFakePair(w.rng, client, server, w.fatal)
	for _, e := range w.pair.ends {
		e.program = w
		if w.rng.IntN(4) == 0 {
			e.pool.scarce, w.scarce = 20, true
		}
		e.drive()
	}
	if w.rng.IntN(3) == 0 {
		w.pair.slow = 4 * time.Second
	}
	issued, idle := 0, 0
	for w.pair.ended == "" {
		switch dice := w.rng.IntN(40); {
		case dice < 2 && issued < most:
			issued++
			side := 0
			if w.rng.IntN(3) == 0 && w.pair.ends[1].m.mayMakeCalls() && server.Reverse > 0 {
				side = 1
			}
			w.issue(side)
			continue
		case dice < 6 && len(w.todo) > 0:
			w.runTodo()
			continue
		case dice == 6 && w.cancels:
			w.cancel()
			continue
		case dice == 7 && w.loses && w.rng.IntN(200) == 0:
			w.pair.end("lost")
			continue
		}
		if w.pair.step() {
			idle = 0
			continue
		}
		if len(w.todo) > 0 {
			w.runTodo()
			continue
		}
		if issued < most {
			continue
		}
		if w.over() && idle > 2 {
			break
		}
		for _, e := range w.pair.ends {
			e.drive()
		}
		if idle++; w.scarce && idle%50 != 0 {
			continue // another try of the pool takes no time
		}
		if !w.pair.pass() && idle > 200 {
			w.stuck()
		}
	}
	w.end()
}

func (w *world) runTodo() {
	at := w.rng.IntN(len(w.todo))
	f := w.todo[at]
	w.todo = append(w.todo[:at], w.todo[at+1:]...)
	f()
}

// over reports whether all calls have returned, and nothing of them is left.
func (w *world) over() bool {
	for _, k := range w.calls {
		if k.returned == 0 || k.delivered > 0 && !k.failed && k.answered == 0 {
			return false
		}
	}
	for _, e := range w.pair.ends {
		if len(e.memory) > 0 {
			return false
		}
	}
	return true
}

func (w *world) stuck() {
	w.dump()
	w.fatal("nothing happens any more")
}

// dump says what is going on.
func (w *world) dump() {
	for _, k := range w.calls {
		if k.returned == 0 || k.delivered > 0 && !k.failed && k.answered == 0 {
			w.t.Logf("%s: delivered %d, answered %d, cancelled %d, returned %d", k.name, k.delivered, k.answered, k.cancelled, k.returned)
		}
	}
	for _, e := range w.pair.ends {
		w.t.Logf("%s: %d posted, %d gone, %d receives, %d regions, credits %+v, calls %d, out %+v", e.name, len(e.posted), e.gone, len(e.receives), len(e.memory), e.m.credits, len(e.m.rsp.calls), e.m.out.list[e.m.out.first:])
		for _, in := range e.m.rsp.calls {
			w.t.Logf("%s: xid %#x in state %d, %d Reads, %d works, since %v", e.name, in.XID, in.state, in.reading, in.writing, in.since.Sub(firstMoment))
		}
	}
}

// end ends the connection, and looks at what is left.
func (w *world) end() {
	if w.pair.ended != "" && w.pair.ended != "lost" {
		w.fatal("the stream ended: %s", w.pair.ended)
	}
	w.loses = true
	for _, at := range w.rng.Perm(2) {
		w.pair.ends[at].lose()
	}
	for len(w.todo) > 0 {
		w.runTodo()
	}
	for _, e := range w.pair.ends {
		e.drive()
		if n := len(e.pool.out); n > 0 {
			w.fatal("%s: %d buffers are not given back", e.name, n)
		}
	}
	for _, k := range w.calls {
		if k.returned != 1 {
			w.fatal("%s returns %d times", k.name, k.returned)
		}
		if k.delivered > 0 && !k.failed && k.answered != 1 {
			w.fatal("%s: its answer is done %d times", k.name, k.answered)
		}
		for i, b := range k.lent {
			if k.kept && i > 0 {
				break
			}
			if len(bytes.Trim(b, string([]byte{scribbled}))) > 0 {
				w.fatal("%s: memory is written after it has returned", k.name)
			}
		}
	}
}

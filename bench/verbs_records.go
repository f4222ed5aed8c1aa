package bench

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/verbs"
)

// How a client and a server of work requests find each other. The client opens a queue pair for control
// records, and says so in its private data; the server's has how much memory it has. Then, for each plan, the
// client sends an opening, gets the key of the memory, and opens the queue pairs that are measured, which say in their
// private data whose they are. Control records are Sends: of a plan as between the ends of transactions.

// protocol is what private data begins with.
var protocol = [8]byte([]byte("dgrbench"))

// version is the only one that there was so far.
const version = 1

// Kinds of queue pairs, as their private data says.
const (
	pairControl = 1 + iota
	pairMeasured
)

// hello is the private data of a client.
type hello struct {
	Protocol [8]byte
	Version  uint32
	Kind     uint32
	Session  uint64 // of what is measured: the number that the server gave
	Peer     uint32 // and which of them
}

// AsksForVerbs says that private data is that of a [VerbsClient], of whatever version.
func AsksForVerbs(private []byte) bool { return bytes.HasPrefix(private, protocol[:]) }

// welcome is the private data of a server that has time.
type welcome struct {
	Protocol [8]byte
	Version  uint32
	Session  uint64
	Memory   uint64 // bytes that it has
	GiveUp   uint64 // ns that its client may be silent
}

// refusal is the private data of a server that has not.
type refusal struct {
	Protocol [8]byte
	Version  uint32
	Busy     busy
}

// Kinds of control records beside those that go between the ends of transactions.
const (
	kindOpen   = 16 + iota // client: what is measured; both: it is ready
	kindRefuse             // server: no, and why
	kindHere               // both: how many operations are done
)

// opening is what a client wants to be measured, or what the server has for that.
type opening struct {
	Plan    Plan
	Verb    Verb
	Receive uint32 // 1: only the server posts
	Key     key
}

// key is a [verbs.Key].
type key struct {
	STag   uint32
	Length uint32
	Offset uint64
}

func keyOf(r *verbs.Region) key {
	if r == nil {
		return key{}
	}
	k := r.Key()
	return key{k.STag, k.Length, k.Offset}
}

func (k key) key() verbs.Key { return verbs.Key{STag: k.STag, Length: k.Length, Offset: k.Offset} }

// decodeIf decodes a record that is long enough.
func decodeIf(b []byte, v any) bool {
	if len(b) < binary.Size(v) {
		return false
	}
	decode(b, v)
	return true
}

// mostRecord bounds control records.
const mostRecord = 512

// recordsWaiting is how many can come before one is looked at: more than either side sends before it has
// an answer.
const recordsWaiting = 16

// printable is a text of the other side.
func printable(b []byte) string {
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return '?'
		}
		return r
	}, string(b))
}

// controlLine is the queue pair of control records.
type controlLine struct {
	qp      *verbs.QueuePair
	buffers []verbs.Receive
	records chan control
	opened  time.Time
	heard   atomic.Int64 // when anything came, ns since it was opened: the time of day may jump
	here    func(done uint64)
	ended   chan struct{}
}

// controlReceives are what a control line is opened with.
func controlReceives() (all []verbs.Receive) {
	for i := range recordsWaiting {
		all = append(all, verbs.Receive{ID: uint64(i), Data: make([]byte, mostRecord)})
	}
	return all
}

// newControlLine reads records from a queue pair that was opened with these receives. here is told of
// what the other side has done.
func newControlLine(qp *verbs.QueuePair, buffers []verbs.Receive, here func(done uint64)) *controlLine {
	l := &controlLine{qp: qp, buffers: buffers, records: make(chan control, recordsWaiting), here: here, ended: make(chan struct{}), opened: time.Now()}
	go l.read()
	return l
}

// read ends with the queue pair.
func (l *controlLine) read() {
	defer close(l.ended)
	done := make([]verbs.Completion, recordsWaiting)
	for {
		n, err := l.qp.Received().Wait(context.Background(), done)
		if err != nil {
			return
		}
		over := false // the other side left behind its last word
		for _, c := range done[:n] {
			if c.Err != nil {
				return
			}
			b := append([]byte(nil), l.buffers[c.ID].Data[:c.Length]...)
			over = l.qp.PostReceive(l.buffers[c.ID]) != nil || over
			l.heard.Store(l.now())
			l.take(b)
		}
		if over {
			return
		}
	}
}

func (l *controlLine) take(b []byte) {
	if len(b) < 4 {
		return
	}
	r := control{kind: binary.LittleEndian.Uint32(b), data: b[4:]}
	if r.kind == kindHere {
		if len(r.data) >= 8 {
			l.here(binary.LittleEndian.Uint64(r.data))
		}
		return
	}
	select {
	case l.records <- r:
	default: // nobody of ours sends so many
	}
}

// next waits for a record. The last word of who has left comes before that.
func (l *controlLine) next(ctx context.Context) (control, error) {
	select {
	case r := <-l.records:
		return r, nil
	case <-l.ended:
	case <-ctx.Done():
		return control{}, context.Cause(ctx)
	}
	select {
	case r := <-l.records:
		return r, nil
	default:
		<-l.qp.Done()
		return control{}, l.qp.Err()
	}
}

// tell sends a record.
func (l *controlLine) tell(ctx context.Context, kind uint32, content any) error {
	b := binary.LittleEndian.AppendUint32(nil, kind)
	switch v := content.(type) {
	case nil:
	case string:
		b = append(b, v[:min(len(v), mostRecord-4)]...)
	default:
		b = append(b, encode(v)...)
	}
	return l.qp.Send(ctx, b)
}

// now is the time as heard has it.
func (l *controlLine) now() int64 { return int64(time.Since(l.opened)) }

// silent is for how long nothing has come.
func (l *controlLine) silent() time.Duration { return time.Duration(l.now() - l.heard.Load()) }

// attention is when somebody looked last whether the other side is there, and whether that was long after the time before.
type attention struct {
	at   time.Time
	late bool
}

// fellSilent says for how long, and whether that is too long. A process that was stopped reads first what came meanwhile: it looks once more.
func (l *controlLine) fellSilent(giveUp time.Duration, last *attention) (silent time.Duration, over bool) {
	now := time.Now()
	late := now.Sub(last.at) > giveUp/4
	over = !late || last.late
	*last = attention{now, late}
	silent = l.silent()
	return silent, over && silent > giveUp
}

// close ends the queue pair, and waits for the other side to end it as well.
func (l *controlLine) close(within time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	l.qp.Shutdown(ctx)
	<-l.ended
}

// decodeRecord decodes what a control record has to have.
func decodeRecord(r control, v any) error {
	if !decodeIf(r.data, v) {
		return fmt.Errorf("a control record of kind %d has %d bytes, not %d: is the other side an older one?", r.kind, len(r.data), binary.Size(v))
	}
	return nil
}

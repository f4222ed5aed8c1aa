package verbs_test

import (
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
	"github.com/dgrdma/dgrdma/verbs"
)

// fakePeer is a peer that asks and answers what a test likes, and keeps what came. It is for virtual time.
type fakePeer struct {
	*attacker
	q    *verbs.QueuePair // of this side
	last [4]uint32        // the number of the last message that it sent, by queue

	mu    sync.Mutex
	parts map[bool][]byte // of a message that is tagged, or not
	came  []arrival
}

// arrival is a message that came to a fake peer.
type arrival struct {
	ddp.Header
	payload []byte
}

func newFakePeer(t *testing.T, o *verbs.Options) *fakePeer {
	t.Helper()
	f := newDeafPeer(t, o)
	f.listen()
	return f
}

// newDeafPeer is one that takes nothing before it listens, so that what this side has to send waits.
func newDeafPeer(t *testing.T, o *verbs.Options) *fakePeer {
	t.Helper()
	here, there := net.Pipe()
	f := &fakePeer{parts: make(map[bool][]byte)}
	f.q, f.attacker = brought(t, here, there, o)
	t.Cleanup(func() { there.Close() })
	return f
}

func (f *fakePeer) listen() {
	go func() {
		for f.conn.Receive(f) == nil {
		}
	}()
}

// atOnce has several requests come while this side cannot send, and returns what it sends then, after the Send that it was at.
func (f *fakePeer) atOnce(t *testing.T, requests ...ddp.Message) []arrival {
	t.Helper()
	if err := f.q.Post(&verbs.Work{Op: verbs.OpSend}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	f.send(requests...)
	synctest.Wait()
	f.listen()
	came := f.settled()
	if len(came) == 0 || came[0].Control != 0x43 {
		t.Fatalf("%x came, and no Send first", controls(came))
	}
	return came[1:]
}

func (f *fakePeer) Place(h *ddp.Header, n int) (ddp.Span, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	parts := append(f.parts[h.Tagged], make([]byte, n)...)
	f.parts[h.Tagged] = parts
	return ddp.Span{Bytes: parts[len(parts)-n:]}, nil
}

func (f *fakePeer) Deliver(h *ddp.Header, _ uint32) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.came = append(f.came, arrival{*h, f.parts[h.Tagged]})
	f.parts[h.Tagged] = nil
	return nil
}

// settled waits until nothing happens any more, and returns what has come since it was called last.
func (f *fakePeer) settled() []arrival {
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	came := f.came
	f.came = nil
	return came
}

// say sends a message of a queue, with the STag to invalidate, and returns what comes of it.
func (f *fakePeer) say(control byte, queue, invalidate uint32, payload []byte) []arrival {
	f.last[queue]++
	m := untagged(control, queue, f.last[queue], payload)
	m.Invalidate = invalidate
	f.send(m)
	return f.settled()
}

// controls are those of messages.
func controls(list []arrival) (all []byte) {
	for _, m := range list {
		all = append(all, m.Control)
	}
	return all
}

// fault is what a Terminate says that came last, or 0.
func fault(list []arrival) ddp.Fault {
	if n := len(list); n > 0 && list[n-1].Control == 0x47 {
		b := list[n-1].payload
		return ddp.NewFault(b[0]>>4, b[0]&15, b[1])
	}
	return 0
}

// ended is why the queue pair of this side has ended, which it has by a Terminate of its own.
func (f *fakePeer) ended(t *testing.T, want ddp.Fault) {
	t.Helper()
	select {
	case <-f.q.Done():
	case <-time.After(time.Minute):
		t.Fatal("the queue pair goes on")
	}
	var e *verbs.TerminateError
	if err := f.q.Err(); !errors.As(err, &e) || e.Remote || e.Fault != want {
		t.Errorf("the queue pair ended with %v, want %v", err, want)
	}
}

// words are numbers as they are in headers: of four bytes, or of eight.
func words(parts ...any) (b []byte) {
	for _, p := range parts {
		switch p := p.(type) {
		case int:
			b = binary.BigEndian.AppendUint32(b, uint32(p))
		case uint32:
			b = binary.BigEndian.AppendUint32(b, p)
		case uint64:
			b = binary.BigEndian.AppendUint64(b, p)
		}
	}
	return b
}

// access is one thing that a peer can want of memory. The numbers are those of RFC 5040, RFC 7306 and the draft.
type access struct {
	name    string
	control byte
	needs   verbs.Rights
	answer  byte // 0: none
	changes bool // the memory
	request func(stag uint32, to uint64, n uint32) []byte
}

var accesses = []access{
	{"Write", 0x40, verbs.RemoteWrite, 0, true, nil},
	{"Read", 0x41, verbs.RemoteRead, 0x42, false, func(stag uint32, to uint64, n uint32) []byte { return words(9, uint64(5), n, stag, to) }},
	{"FetchAdd", 0x4a, verbs.RemoteAtomic, 0x4b, true, func(stag uint32, to uint64, _ uint32) []byte {
		return words(0, 1, stag, to, uint64(1), uint64(0), uint64(0), ^uint64(0))
	}},
	{"CompareSwap", 0x4a, verbs.RemoteAtomic, 0x4b, true, func(stag uint32, to uint64, _ uint32) []byte {
		return words(2, 1, stag, to, uint64(1), ^uint64(0), uint64(0), uint64(0))
	}},
	{"Flush to storage", 0x4c, verbs.FlushPersistent, 0x4d, false, func(stag uint32, to uint64, n uint32) []byte { return words(stag, n, to, 1) }},
	{"Flush to all", 0x4c, verbs.FlushGlobal, 0x4d, false, func(stag uint32, to uint64, n uint32) []byte { return words(stag, n, to, 2) }},
	{"Flush to both", 0x4c, verbs.FlushPersistent | verbs.FlushGlobal, 0x4d, false, func(stag uint32, to uint64, n uint32) []byte { return words(stag, n, to, 3) }},
	{"Verify", 0x4e, verbs.Verify, 0x4f, false, func(stag uint32, to uint64, n uint32) []byte { return words(stag, n, to) }},
	{"Atomic Write", 0x50, verbs.RemoteWrite, 0x51, true, func(stag uint32, to uint64, _ uint32) []byte { return words(stag, 8, to, uint64(0x1111)) }},
}

// do does it to n bytes, and returns what came: what answers it, or a Terminate. A Write is followed by a Read of nothing, whose
// answer says that all before it is in place.
func (a *access) do(f *fakePeer, stag uint32, to uint64, n uint32) []arrival {
	if a.request == nil {
		f.send(tagged(a.control, stag, to, slices.Repeat([]byte{0xff}, int(n))))
		return f.say(0x41, 1, 0, words(9, uint64(5), 0, 0, uint64(0)))
	}
	return f.say(a.control, 1, 0, a.request(stag, to, n))
}

// answered says that what came is the answer, and nothing else.
func (a *access) answered(came []arrival) bool {
	want := a.answer
	if want == 0 {
		want = 0x42
	}
	return len(came) == 1 && came[0].Control == want
}

// fault is what a peer is told, of a request, or of a Write in the codes of DDP.
func (a *access) fault(request, segment ddp.Fault) ddp.Fault {
	if a.request == nil {
		return segment
	}
	return request
}

package rdmap_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/dgrdma/dgrdma/rdmap"
	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// FuzzStream has a peer that sends what it likes, segment by segment, while the program of this side posts, its
// carrier sends and its executor works, in any order. Whatever comes: only memory that was granted
// changes, every request and receive completes once and in order, behind a fault comes one Terminate and nothing
// else, and what the peer makes this side keep is bounded.
func FuzzStream(f *testing.F) {
	f.Add([]byte{0, 20, 0x40, 1, 0, 8, 20, 0x41, 2, 0, 28, 30, 20, 0x42, 3, 0, 10})
	f.Add([]byte{1, 0, 5, 30, 30, 20, 0x42, 0x42, 0, 10, 20, 0x4b, 0, 0, 12})
	f.Add([]byte{0, 2, 30, 21, 0x43, 0, 0, 20, 20, 0x44, 7, 0, 20, 20, 0x47, 2, 0, 4})
	f.Add([]byte{0, 20, 0x4c, 1, 1, 20, 40, 30, 20, 0x4e, 1, 2, 28, 41, 30, 20, 0x50, 1, 3, 24, 30})
	f.Fuzz(func(t *testing.T, script []byte) {
		r := &fuzzed{t: t, script: script}
		r.run()
	})
}

// fuzzed is one end with a peer whose bytes are the script.
type fuzzed struct {
	t      *testing.T
	script []byte
	*side
	unordered bool
	stopped   bool // a fault: the carrier brings nothing more
	parted    bool // a Terminate has left

	memory  []byte // regions, and what is around them
	was     []byte
	buffers []byte // of receives and Reads, likewise
	posted  []uint64
	taken   int // messages of which nobody has said that they are sent
	job     rdmap.Job
	atWork  bool
	expect  uint32 // MSN on queue 0
}

// Regions in memory, by their STags.
var fuzzedRegions = []struct {
	stag     uint32
	from, to int
	rights   []rdmap.Access
}{
	{7 << 8, 100, 164, []rdmap.Access{rdmap.AccessWrite, rdmap.AccessRead, rdmap.AccessAtomic}},
	{8 << 8, 200, 264, []rdmap.Access{rdmap.AccessRead, rdmap.AccessVerify, rdmap.AccessFlushGlobal}},
	{9 << 8, 300, 364, []rdmap.Access{rdmap.AccessWrite, rdmap.AccessFlushPersistent}},
}

const (
	fuzzedBuffer = 48 // what of a buffer is granted; as much behind it is not
	fuzzedPosts  = 60
)

func (r *fuzzed) byte() byte {
	if len(r.script) == 0 {
		return 0
	}
	b := r.script[0]
	r.script = r.script[1:]
	return b
}

func (r *fuzzed) run() {
	r.unordered = r.byte()&1 != 0
	r.side = &side{t: r.t, name: "fuzzed", mem: make(memory)}
	r.memory, r.buffers = pattern(1, 400), bytes.Repeat([]byte{0xee}, 2*fuzzedBuffer*fuzzedPosts)
	for _, g := range fuzzedRegions {
		r.mem[g.stag] = &area{bytes: r.memory[g.from:g.to:g.to], rights: g.rights}
	}
	r.was = bytes.Clone(r.memory)
	r.Stream = rdmap.New(rdmap.Config{Extensions: everything, IRD: 2, ORD: 3, Sends: 8, Receives: 8, Unordered: r.unordered,
		Memory: r.mem, Sent: &r.sent, Received: &r.received})
	for len(r.script) > 0 {
		switch step := r.byte() % 48; {
		case step < 12:
			r.program(step)
		case step < 24:
			r.peer(step)
		case step < 36:
			r.carrier()
		default:
			r.executor()
		}
		r.check()
	}
	r.finish()
}

// program posts something.
func (r *fuzzed) program(step byte) {
	n := len(r.posted)
	if n == fuzzedPosts {
		return
	}
	buffer := r.buffers[2*fuzzedBuffer*n:][:fuzzedBuffer:fuzzedBuffer]
	if step < 3 {
		if r.PostReceive(rdmap.Receive{ID: uint64(n), Data: buffer}) == nil {
			r.posted = append(r.posted, 1<<32|uint64(n))
		}
		return
	}
	w := rdmap.Work{ID: uint64(n), Op: rdmap.Op(step - 3), STag: 1, Length: 8, Fence: r.byte()&1 != 0, Global: true}
	if w.Op == rdmap.OpRead {
		w.Data = buffer
	}
	if w.Op == rdmap.OpInvalidate {
		w.Invalidate = 9 << 8
	}
	if r.Post(&w) == nil {
		r.posted = append(r.posted, uint64(n))
	}
}

// peer sends a segment: some of its header is as it ought to be, so that more than the first check is reached.
func (r *fuzzed) peer(step byte) {
	control, a, b := r.byte(), r.byte(), r.byte()
	n := int(r.byte()) % 64
	h := ddp.Header{Tagged: control&0x20 != 0 || control&31 == 0 || control&31 == 2, Last: step < 22, Control: control &^ 0x20}
	if h.Tagged {
		h.STag, h.TO = uint32(a%10)<<8, uint64(b)
		if a == 0x42 {
			h.STag = 0x42
		}
	} else {
		h.QN, h.MSN, h.MO = uint32(a&3), uint32(b), uint32(r.byte())
		if step&1 == 0 { // the next message, whichever queue
			h.MO = 0
			if h.QN == 0 {
				r.expect++
				h.MSN = r.expect
			}
		}
	}
	payload := make([]byte, n)
	for i := range payload {
		payload[i] = r.byte()
	}
	if r.stopped {
		return
	}
	err := error(nil)
	if r.unordered {
		var span ddp.Span
		if span, err = r.Place(&h, n); err == nil {
			r.put(span, payload)
			if h.Last {
				first := h
				first.MO = 0
				err = r.Deliver(&first, uint32(n))
			}
		}
	} else {
		err = r.arriveOrdered(&h, payload)
	}
	if err != nil {
		var fault ddp.Fault
		if !errors.As(err, &fault) {
			r.t.Fatalf("%+v: an error that names no fault: %v", h, err)
		}
		r.stopped = true
	}
}

func (r *fuzzed) arriveOrdered(h *ddp.Header, payload []byte) error {
	if err := r.in.Follows(h, len(payload)); err != nil {
		r.Fail(err.(ddp.Fault), err)
		return err
	}
	span, err := r.Place(h, len(payload))
	if err != nil {
		return err
	}
	r.put(span, payload)
	if first, n := r.in.Placed(h, len(payload)); first != nil {
		return r.Deliver(first, n)
	}
	return nil
}

func (r *fuzzed) put(s ddp.Span, payload []byte) {
	if len(s.Bytes) != len(payload) {
		r.t.Fatalf("a place of %d bytes for %d", len(s.Bytes), len(payload))
	}
	if s.Enter() {
		copy(s.Bytes, payload)
		s.Leave()
	}
}

// carrier takes a message, or says that one is sent.
func (r *fuzzed) carrier() {
	if r.byte()&1 == 0 && r.taken > 0 {
		r.Sent(1)
		r.taken--
		return
	}
	var m ddp.Message
	if r.taken == 4 || !r.Next(&m) {
		return
	}
	if r.parted {
		r.t.Fatalf("a message behind a Terminate: %+v", m.Header)
	}
	sum := m.InlineSize
	for _, s := range m.Data {
		sum += len(s.Bytes)
	}
	if sum != int(m.Length) {
		r.t.Fatalf("a message of %d bytes says %d", sum, m.Length)
	}
	r.parted = !m.Tagged && m.QN == 2
	r.taken++
}

func (r *fuzzed) executor() {
	switch {
	case r.atWork:
		r.JobDone(make([]byte, 4), nil)
		r.atWork = false
	case r.Job(&r.job):
		r.atWork = true
	}
}

// check looks at what must not have changed.
func (r *fuzzed) check() {
	at := 0
	for _, g := range fuzzedRegions {
		if !bytes.Equal(r.memory[at:g.from], r.was[at:g.from]) {
			r.t.Fatal("memory that nobody granted has changed")
		}
		if g.stag == 8<<8 && !bytes.Equal(r.memory[g.from:g.to], r.was[g.from:g.to]) {
			r.t.Fatal("memory that may only be read has changed")
		}
		if a := r.mem[g.stag]; a.inside != 0 {
			r.t.Fatal("somebody is in memory still")
		}
		at = g.to
	}
	if !bytes.Equal(r.memory[at:], r.was[at:]) {
		r.t.Fatal("memory that nobody granted has changed")
	}
	for i := range fuzzedPosts {
		for _, b := range r.buffers[2*fuzzedBuffer*i+fuzzedBuffer : 2*fuzzedBuffer*(i+1)] {
			if b != 0xee {
				r.t.Fatalf("something was written behind buffer %d", i)
			}
		}
	}
}

// finish ends the stream and looks at what has completed.
func (r *fuzzed) finish() {
	if r.atWork {
		r.JobDone(nil, nil)
	}
	r.End(errors.New("over"))
	var sends, receives []uint64
	for _, id := range r.posted {
		if id>>32 == 0 {
			sends = append(sends, id)
		} else {
			receives = append(receives, id&(1<<32-1))
		}
	}
	for _, list := range []struct {
		want []uint64
		got  []rdmap.Completion
	}{{sends, r.sent.list}, {receives, r.received.list}} {
		if len(list.got) != len(list.want) {
			r.t.Fatalf("%d completions of %d", len(list.got), len(list.want))
		}
		for i, c := range list.got {
			if c.ID != list.want[i] {
				r.t.Fatalf("completion %d is of %d, want %d", i, c.ID, list.want[i])
			}
		}
	}
}

package oracle

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
)

const (
	writer = frame.EndpointID(7)
	guest  = frame.EndpointID(200)
)

// rig is a book with one flow of two slots, and a peer that does to its memory what it is told.
type rig struct {
	t    *testing.T
	book *Book
	flow *Flow
	mem  *Memory
	said []string
}

func newRig(t *testing.T, f Flow) *rig {
	r := &rig{t: t}
	r.book = NewBook("memory", func(id frame.EndpointID) bool { return id >= guest }, func(s string) { r.said = append(r.said, s) })
	f.Src, f.Size, f.Slots = writer, 100, 2
	r.flow = r.book.Add(f)
	r.begin()
	return r
}

func (r *rig) begin() {
	r.t.Helper()
	var err error
	if r.mem, err = r.book.Begin(); err != nil {
		r.t.Fatal(err)
	}
}

var cuts = []Cut{{0, 10}, {20, 0}, {32, 68}}

// messages returns a transaction as it is on the wire.
func messages(p Posting) (all []frame.Message) {
	for i, c := range cuts {
		all = append(all, frame.Message{
			Count: uint16(len(cuts)), Index: uint16(i + 1), Addr: p.Data + uint32(c.Off), Len: uint16(c.Len),
			CompletionAddr: p.Word, CompletionValue: p.Number,
		})
	}
	return all
}

// place does what an endpoint does with a message.
func (r *rig) place(p Posting, m frame.Message) {
	dst, err := r.mem.Admit(writer, &m)
	if err != nil {
		return
	}
	copy(dst, p.Bytes[m.Addr-p.Data:][:m.Len])
	if m.Len > 0 {
		r.mem.Placed(writer, &m)
	}
}

func (r *rig) complete(p Posting) { r.mem.Complete(writer, &messages(p)[0]) }

// apply does a whole transaction.
func (r *rig) apply(p Posting) {
	for _, m := range messages(p) {
		r.place(p, m)
	}
	r.complete(p)
}

// want checks what the book reported.
func (r *rig) want(says ...string) {
	r.t.Helper()
	all := strings.Join(r.said, "\n")
	for _, s := range says {
		if !strings.Contains(all, s) {
			r.t.Errorf("it did not say %q but %q", s, r.said)
		}
	}
	if len(says) == 0 && len(r.said) > 0 {
		r.t.Errorf("it said %q", r.said)
	}
}

// TestAllAsItShouldBe: transactions that are done, that fail whole, in part or late, and lives
// that end, are no violations.
func TestAllAsItShouldBe(t *testing.T) {
	r := newRig(t, Flow{Ordered: true})
	for i := range uint64(6) {
		p := r.book.Next(r.flow, int(i%2), i+1, 1, cuts)
		r.apply(p)
		r.book.Done(r.flow, int(i%2), p.Number, nil)
	}
	// One fails of which a part came, and the rest comes before its slot is used again.
	late := r.book.Next(r.flow, 0, 7, 1, cuts)
	r.place(late, messages(late)[0])
	r.book.Done(r.flow, 0, late.Number, errors.New("down"))
	next := r.book.Next(r.flow, 0, 8, 2, cuts)
	r.place(late, messages(late)[2])
	r.complete(late)
	r.apply(next)
	r.book.Done(r.flow, 0, next.Number, nil)
	// One fails that came whole: its acknowledgement was lost.
	p := r.book.Next(r.flow, 1, 9, 2, cuts)
	r.apply(p)
	r.book.Image()
	r.begin()
	r.book.Done(r.flow, 1, p.Number, errors.New("restarted"))
	// And one of which nothing came.
	p = r.book.Next(r.flow, 1, 10, 3, cuts)
	r.book.Done(r.flow, 1, p.Number, errors.New("restarted"))
	r.book.Image()
	r.want()
	if n, bytes := r.book.Applied(); n != 9 || bytes != 9*78 {
		t.Errorf("%d transactions with %d bytes", n, bytes)
	}
}

// TestViolations: what may not be is told.
func TestViolations(t *testing.T) {
	failed := errors.New("down")
	for name, c := range map[string]struct {
		does func(r *rig, p Posting)
		says string
	}{
		"wrong byte": {func(r *rig, p Posting) {
			p.Bytes = append([]byte(nil), p.Bytes...)
			p.Bytes[40] ^= 1
			r.apply(p)
		}, "differs at its completion: byte 40"},
		"lost completion": {func(r *rig, p Posting) {
			for _, m := range messages(p) {
				r.place(p, m)
			}
			r.book.Done(r.flow, 0, p.Number, nil)
		}, "is reported done and did not complete: 78 of 78 bytes"},
		"completion twice": {func(r *rig, p Posting) {
			r.apply(p)
			r.complete(p)
		}, "completes again"},
		"data after its completion": {func(r *rig, p Posting) {
			all := messages(p)
			r.place(p, all[0])
			r.complete(p)
			r.place(p, all[2])
		}, "completes with 10 of 78 bytes"},
		"data twice": {func(r *rig, p Posting) {
			r.apply(p)
			r.place(p, messages(p)[2])
		}, "was placed more than once: 146 bytes of 78"},
		"reported twice": {func(r *rig, p Posting) {
			r.apply(p)
			r.book.Done(r.flow, 0, p.Number, nil)
			r.book.Done(r.flow, 0, p.Number, nil)
		}, "reported done (<nil>) though it is not under way"},
		"changed before it is reported": {func(r *rig, p Posting) {
			r.apply(p)
			r.mem.Bytes()[p.Data] ^= 1
			r.book.Done(r.flow, 0, p.Number, nil)
		}, "differs when it is reported done: byte 0"},
		"between the cuts": {func(r *rig, p Posting) {
			r.mem.Bytes()[p.Data+15] = 1
			r.apply(p)
		}, "byte 15 is 0x1, which nobody wrote"},
		"in front of a slot": {func(r *rig, p Posting) {
			r.mem.Bytes()[p.Word-1] = 1
			r.apply(p)
		}, "byte -49 is 0x1, which nobody wrote"},
		"in another slot": {func(r *rig, p Posting) {
			r.mem.Bytes()[len(r.mem.Bytes())-1] = 1
			r.apply(p)
			r.book.Done(r.flow, 0, p.Number, nil)
			r.apply(r.book.Next(r.flow, 0, 2, 1, cuts))
		}, "meanwhile: byte 191 is 0x1, which nobody wrote"},
		"in front of all": {func(r *rig, p Posting) { r.mem.Bytes()[3] = 1; r.book.Image() }, "byte 0x3 is 0x1 and nobody's"},
		"word that nobody wrote": {func(r *rig, p Posting) {
			r.mem.Store32(p.Word, 9)
			r.book.Image()
		}, "at the end: the completion word is none that completed"},
		"not posted": {func(r *rig, p Posting) {
			p.Number++
			r.apply(p)
		}, "message of no transaction"},
		"withdrawn": {func(r *rig, p Posting) {
			r.place(p, messages(p)[0])
			r.book.Withdraw(r.flow, 0)
		}, "was not posted, and came"},
		"outside of the cuts": {func(r *rig, p Posting) {
			m := messages(p)[0]
			m.Len++
			r.place(p, m)
		}, "has no data at"},
		"from somebody else": {func(r *rig, p Posting) { r.mem.Admit(writer+1, &messages(p)[0]) }, "is 7's and came from 8"},
		"earlier life of the peer": {func(r *rig, p Posting) {
			r.book.Done(r.flow, 0, p.Number, failed)
			next := r.book.Next(r.flow, 1, 2, 2, cuts)
			r.place(next, messages(next)[0])
			r.place(p, messages(p)[0])
		}, "is of life 0x1 of 7, of whose life 0x2 something came before"},
		"earlier life of the memory": {func(r *rig, p Posting) {
			r.place(p, messages(p)[0])
			r.begin()
			r.place(p, messages(p)[2])
		}, "comes in life 2 of the memory, and came in life 1"},
		"memory that ended": {func(r *rig, p Posting) {
			old := r.mem
			r.begin()
			r.mem = old
			r.place(p, messages(p)[0])
		}, "message for life 1 of the memory in life 2"},
		"out of order": {func(r *rig, p Posting) {
			r.apply(r.book.Next(r.flow, 1, 2, 1, cuts))
			r.apply(p)
		}, "number 1 of its flow, completes behind number 2"},
		"posted before it failed and completed after the next": {func(r *rig, p Posting) {
			r.book.Done(r.flow, 0, p.Number, failed)
			r.apply(r.book.Next(r.flow, 0, 2, 2, cuts))
			r.place(p, messages(p)[0])
		}, "message of no transaction"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Flow{Ordered: true})
			c.does(r, r.book.Next(r.flow, 0, 1, 1, cuts))
			r.want(c.says)
		})
	}
}

// TestSwallowed: a memory that swallows is not written to, and its peer is told that it is done.
func TestSwallowed(t *testing.T) {
	r := newRig(t, Flow{Swallowed: true})
	for i := range uint64(6) {
		p := r.book.Next(r.flow, 0, i+1, 1, cuts)
		if r.flow.Swallows(p.Number) {
			for _, m := range messages(p) {
				r.place(p, m)
			}
		} else {
			r.apply(p)
		}
		r.book.Done(r.flow, 0, p.Number, nil)
	}
	r.book.Image()
	r.want()
	p := r.book.Next(r.flow, 0, 7, 1, cuts)
	for p.Number%3 != 0 {
		r.apply(p)
		r.book.Done(r.flow, 0, p.Number, nil)
		p = r.book.Next(r.flow, 0, 8, 1, cuts)
	}
	r.apply(p)
	r.want("was swallowed, and completes")
}

// TestUnproven: what is done when it was sent may come later, and its slot is free only then.
func TestUnproven(t *testing.T) {
	r := newRig(t, Flow{Unproven: true})
	p := r.book.Next(r.flow, 0, 1, 1, cuts)
	r.book.Done(r.flow, 0, p.Number, nil)
	if r.book.Free(r.flow, 0) || !r.book.Free(r.flow, 1) {
		t.Error("which slots are free")
	}
	r.apply(p)
	if !r.book.Free(r.flow, 0) {
		t.Error("the slot is not free")
	}
	r.book.Image()
	r.want()
}

// TestGuests: what they send is refused, and nothing else.
func TestGuests(t *testing.T) {
	r := newRig(t, Flow{})
	m := frame.Message{Addr: 3, Len: 5, CompletionAddr: 0, CompletionValue: 1}
	if _, err := r.mem.Admit(guest, &m); err == nil {
		t.Error("a guest's message is admitted")
	}
	r.book.Image()
	r.want()
}

var _ interface {
	dgrdma.Memory
	dgrdma.Placed
	fmt.Stringer
} = (*Memory)(nil)

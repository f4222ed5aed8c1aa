package verbs_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
	"github.com/dgrdma/dgrdma/verbs"
)

// kind is one way to ask for something, as a program does and as it leaves.
type kind struct {
	name   string
	w      verbs.Work
	opcode byte                                        // with the version; 0: nothing leaves
	needs  verbs.Extensions                            // what both sides have to agree on
	answer func(f *fakePeer, request arrival)          // nil: none
	done   func(w verbs.Work, c verbs.Completion) bool // says that the completion is what was answered; nil: it says nothing
}

// theirs is the STag that requests name.
const theirs = 0x700

func answerRead(f *fakePeer, r arrival) {
	f.send(tagged(0x42, binary.BigEndian.Uint32(r.payload), binary.BigEndian.Uint64(r.payload[4:]), pattern(3, int(binary.BigEndian.Uint32(r.payload[12:])))))
}

// answerWith is an answer on queue 3.
func answerWith(control byte, payload ...any) func(f *fakePeer, r arrival) {
	return func(f *fakePeer, r arrival) {
		b := words(payload...)
		if control == 0x4b {
			b = append(slices.Clone(r.payload[4:8]), b...) // the identifier
		}
		f.last[3]++
		f.send(untagged(control, 3, f.last[3], b))
	}
}

func foundOld(_ verbs.Work, c verbs.Completion) bool { return c.Old == 77 }

var kinds = []kind{
	{"Send", verbs.Work{Op: verbs.OpSend, Data: pattern(1, 5)}, 0x43, 0, nil, nil},
	{"Send with SE", verbs.Work{Op: verbs.OpSend, Solicited: true}, 0x45, 0, nil, nil},
	{"Send with Invalidate", verbs.Work{Op: verbs.OpSend, Invalidating: true, Invalidate: 9}, 0x44, 0, nil, nil},
	{"Send with SE and Invalidate", verbs.Work{Op: verbs.OpSend, Solicited: true, Invalidating: true, Invalidate: 9}, 0x46, 0, nil, nil},
	{"Immediate", verbs.Work{Op: verbs.OpImmediate}, 0x48, verbs.Immediates, nil, nil},
	{"Immediate with SE", verbs.Work{Op: verbs.OpImmediate, Solicited: true}, 0x49, verbs.Immediates, nil, nil},
	{"Write", verbs.Work{Op: verbs.OpWrite, STag: theirs, Data: pattern(2, 5)}, 0x40, 0, nil, nil},
	{"Read", verbs.Work{Op: verbs.OpRead, STag: theirs, Data: make([]byte, 10)}, 0x41, 0, answerRead, func(w verbs.Work, c verbs.Completion) bool {
		return c.Length == 10 && slices.Equal(w.Data, pattern(3, 10))
	}},
	{"FetchAdd", verbs.Work{Op: verbs.OpFetchAdd, STag: theirs}, 0x4a, verbs.Atomics, answerWith(0x4b, uint64(77)), foundOld},
	{"CompareSwap", verbs.Work{Op: verbs.OpCompareSwap, STag: theirs}, 0x4a, verbs.Atomics, answerWith(0x4b, uint64(77)), foundOld},
	{"Flush to storage", verbs.Work{Op: verbs.OpFlush, STag: theirs, Persistent: true}, 0x4c, verbs.Commit, answerWith(0x4d), nil},
	{"Flush to all", verbs.Work{Op: verbs.OpFlush, STag: theirs, Global: true}, 0x4c, verbs.Commit, answerWith(0x4d), nil},
	{"Verify", verbs.Work{Op: verbs.OpVerify, STag: theirs}, 0x4e, verbs.Commit, answerWith(0x4f, 0x01020304), func(_ verbs.Work, c verbs.Completion) bool {
		return string(c.Hash[:c.HashSize]) == "\x01\x02\x03\x04"
	}},
	{"Atomic Write", verbs.Work{Op: verbs.OpAtomicWrite, STag: theirs}, 0x50, verbs.Commit, answerWith(0x51), nil},
	{"Invalidate", verbs.Work{Op: verbs.OpInvalidate}, 0, 0, nil, nil},
}

// TestOrderOfEachKind (RDMAP-014, 016, 017, 035, 038, 043, 048, 064, 069 to 071, 075 to 077, 079, RDMAPX-019, 022, 028, 034, COMMIT-003, 009, 013, 025): requests of each kind after each other one, plain, the second with a fence,
// and where one may be outstanding. They leave in the order of posting, the second at once, or when the first is answered where one of these
// holds it back; and complete in that order, each with what the peer said, when it has: a Write or Send when it has left, whatever the peer does with it.
func TestOrderOfEachKind(t *testing.T) {
	for _, mode := range []string{"plain", "fence", "one outstanding"} {
		for _, first := range kinds {
			for _, second := range kinds {
				t.Run(fmt.Sprintf("%s after %s, %s", second.name, first.name, mode), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						d := openHost(t).Domain()
						o := &verbs.Options{Extensions: all, Domain: d}
						if mode == "one outstanding" {
							o.ORD = 1
						}
						f := newFakePeer(t, o)
						list := []verbs.Work{first.w, second.w, {Op: verbs.OpSend, ID: 3}}
						for i, k := range []kind{first, second} {
							w := &list[i]
							w.ID = uint64(i + 1)
							w.Fence = i == 1 && mode == "fence"
							switch w.Op {
							case verbs.OpRead:
								w.Data = make([]byte, len(k.w.Data))
							case verbs.OpInvalidate:
								r, err := d.Register(nil, 0, &verbs.RegionOptions{Only: f.q.Stream()})
								if err != nil {
									t.Fatal(err)
								}
								w.Invalidate = r.STag()
							}
						}
						if _, err := f.q.PostList(list); err != nil {
							t.Fatal(err)
						}
						waits := first.answer != nil && (mode == "fence" || mode == "one outstanding" && second.answer != nil)
						var leaves []byte
						for i, k := range []kind{first, second, kinds[0]} {
							if k.opcode != 0 && (i == 0 || !waits) {
								leaves = append(leaves, k.opcode)
							}
						}
						came := f.settled()
						if !slices.Equal(controls(came), leaves) {
							t.Fatalf("%x left, want %x", controls(came), leaves)
						}
						done := make([]verbs.Completion, 4)
						completed := func(ids ...uint64) {
							t.Helper()
							n := f.q.Completions().Poll(done)
							if n != len(ids) {
								t.Fatalf("%d completions: %+v, want %v", n, done[:n], ids)
							}
							for i, c := range done[:n] {
								k := append([]kind{first, second}, kinds[0])[ids[i]-1]
								if w := list[c.ID-1]; c.ID != ids[i] || c.Err != nil || c.Op != w.Op || c.QueuePair() != f.q || k.done != nil && !k.done(w, c) {
									t.Errorf("completed %+v, want %d", c, ids[i])
								}
							}
						}
						if first.answer != nil {
							completed()
							first.answer(f, came[0])
							came = append(came[1:], f.settled()...)
							if second.answer != nil {
								completed(1)
							} else {
								completed(1, 2, 3)
							}
						} else {
							if first.opcode != 0 {
								came = came[1:]
							}
							if second.answer != nil {
								completed(1)
							} else {
								completed(1, 2, 3)
							}
						}
						if second.answer != nil {
							second.answer(f, came[0])
							f.settled()
							completed(2, 3)
						}
						if err := f.q.Err(); err != nil {
							t.Error(err)
						}
					})
				})
			}
		}
	}
}

// TestExtensionsOfEachKind (RDMAP-012, 013, RDMAPX-002, 003, 005, COMMIT-004 to 007): with every set of extensions, each kind of request is taken, and each kind of
// access carried out, where its own extension is agreed on. Elsewhere posting fails and nothing leaves, and a peer that asks for it hears of an
// unexpected opcode; each queue pair of a host has its own set. No operation of a program is a Terminate.
func TestExtensionsOfEachKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHost(t)
		g := grant(t, h.Domain(), false, everyRight, verbs.RegionOptions{})
		for e := range all + 1 {
			o := &verbs.Options{Extensions: e, Domain: h.Domain(), Posted: []verbs.Receive{{Data: make([]byte, 8)}}}
			f := newFakePeer(t, o)
			for _, k := range kinds {
				err := f.q.Post(&k.w)
				came, leaves := controls(f.settled()), []byte(nil)
				agreed := k.needs&^e == 0
				if agreed && k.opcode != 0 {
					leaves = []byte{k.opcode}
				}
				if agreed && err != nil || !agreed && !errors.Is(err, verbs.ErrNotAgreed) || !slices.Equal(came, leaves) {
					t.Errorf("%s with %v: %v, and %x leaves", k.name, e, err, came)
				}
			}
			for op := verbs.OpReceive; op < 20; op++ {
				if err := f.q.Post(&verbs.Work{Op: op}); !errors.Is(err, verbs.ErrInvalid) {
					t.Errorf("%v is posted: %v", op, err)
				}
			}
			f.q.Abort()
			for _, a := range accesses {
				f := newFakePeer(t, o)
				came := a.do(f, g.Key().STag, 8, 8)
				needs := map[byte]verbs.Extensions{0x4a: verbs.Atomics, 0x4c: verbs.Commit, 0x4e: verbs.Commit, 0x50: verbs.Commit}[a.control]
				want := ddp.OperationOpcode // as is that of an Atomic Write, of which the lower bits are those of a Write
				if needs&^e == 0 {
					want = 0
				}
				if got := fault(came); got != want || want == 0 && !a.answered(came) {
					t.Errorf("%s with %v: %x came, %v", a.name, e, controls(came), got)
				}
				f.q.Abort()
			}
			for _, control := range []byte{0x48, 0x49} {
				f := newFakePeer(t, o)
				came := f.say(control, 0, 0, make([]byte, 8))
				n := f.q.Received().Poll(make([]verbs.Completion, 1))
				if agreed := e&verbs.Immediates != 0; agreed && n != 1 || !agreed && (fault(came) != ddp.OperationOpcode) {
					t.Errorf("%#x with %v: %d messages received, %x came", control, e, n, controls(came))
				}
				f.q.Abort()
			}
		}
	})
}

// TestRequestsWithinTheLimit (RDMAP-042, 079, 081, 106, RDMAPX-019, 026, COMMIT-003): of each kind of request as many may wait as Options.IRD says, whatever waits, and
// one more ends the connection. With an IRD of none the first does; with an ORD of none this side asks for none.
func TestRequestsWithinTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHost(t)
		g := grant(t, h.Domain(), false, everyRight, verbs.RegionOptions{})
		for _, ird := range []int{-1, 1, 2, 5} {
			for _, a := range accesses {
				if a.request == nil {
					continue
				}
				o := &verbs.Options{Extensions: all, Domain: h.Domain(), IRD: ird}
				f, most := newDeafPeer(t, o), max(ird, 0)
				if is, _ := f.q.Limits(); is != most {
					t.Fatalf("an IRD of %d is %d", ird, is)
				}
				var flood []ddp.Message
				for i := range most + 1 {
					flood = append(flood, untagged(a.control, 1, uint32(i+1), a.request(g.Key().STag, 8, 8)))
				}
				if came := f.atOnce(t, flood[:most]...); !bytes.Equal(controls(came), bytes.Repeat([]byte{a.answer}, most)) {
					t.Errorf("%s, an IRD of %d: %x came", a.name, ird, controls(came))
				}
				f.q.Abort()
				f = newDeafPeer(t, o)
				if came := f.atOnce(t, flood...); fault(came) != ddp.OperationStream || len(came) != 1 {
					t.Errorf("%s, one more than an IRD of %d: %x came, %v", a.name, ird, controls(came), fault(came))
				}
				f.ended(t, ddp.OperationStream)
			}
		}
		f := newFakePeer(t, &verbs.Options{Extensions: all, ORD: -1})
		for _, k := range kinds {
			if err := f.q.Post(&k.w); (err != nil) != (k.answer != nil) || err != nil && !errors.Is(err, verbs.ErrNoReads) {
				t.Errorf("%s with an ORD of none: %v", k.name, err)
			}
		}
	})
}

// TestPostReceives checks that a list of receives is taken in its order, each by one message, that it is queued as far as the queue has
// room, and that what is refused is the next one (RPC1-014, RPC1-015: all receives that are granted are posted before the peer hears of it).
func TestPostReceives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 64
		f := newFakePeer(t, &verbs.Options{Receives: most})
		list := make([]verbs.Receive, most+3)
		for i := range list {
			list[i] = verbs.Receive{ID: uint64(i), Data: make([]byte, 8)}
		}
		if n, err := f.q.PostReceives(nil); n != 0 || err != nil {
			t.Errorf("no receives: %d, %v", n, err)
		}
		if n, err := f.q.PostReceives(list[:3]); n != 3 || err != nil {
			t.Errorf("%d of 3 were queued: %v", n, err)
		}
		n, err := f.q.PostReceives(list[3:])
		if n != most-3 {
			t.Errorf("%d were queued, want %d", n, most-3)
		}
		says(t, err, []error{verbs.ErrFull}, "64 requests are not done", "Options.Receives", "wait for messages")
		done := make([]verbs.Completion, most+1)
		for i := range most {
			f.say(0x43, 0, 0, pattern(i, 8))
		}
		if n := f.q.Received().Poll(done); n != most {
			t.Fatalf("%d messages were received, want %d", n, most)
		}
		for i, c := range done[:most] {
			if c.ID != uint64(i) || c.Err != nil || !slices.Equal(list[i].Data, pattern(i, 8)) {
				t.Errorf("message %d is %+v, %x", i, c, list[i].Data)
			}
		}
		if n, err := f.q.PostReceives(list[:most]); n != most || err != nil {
			t.Errorf("%d of %d were queued again: %v", n, most, err)
		}
		if got := f.q.Stats().Receives; got != most {
			t.Errorf("%d receives are posted, want %d", got, most)
		}
		f.q.Abort()
		if n, err := f.q.PostReceives(list[:1]); n != 0 || err == nil {
			t.Errorf("after the end: %d, %v", n, err)
		}
		if n := f.q.Received().Poll(done); n != most || !errors.Is(done[0].Err, verbs.ErrFlushed) {
			t.Errorf("%d receives were flushed, the first with %v", n, done[0].Err)
		}
	})
}

package rpcrdma

import (
	"bytes"
	"testing"
	"time"
)

// call sends a Call with chunks for its Reply, and no Read list.
func (f *foreign) call(xid uint32, writes []Chunk, reply Chunk) {
	h := f.header(xid, TypeMsg)
	h.Writes, h.Reply, h.HasReply = writes, reply, reply != nil
	f.send(h, f.noise(xid, msgCall, 40).head)
}

// gather makes memory for a chunk, and returns what is written there later.
func (f *foreign) gather(n, pieces int) (Chunk, []byte) {
	b := bytes.Repeat([]byte{rubbish}, n)
	return f.lend(b, true, pieces), b
}

// TestFill checks that octets take segments in turn, each one to its end before the next, and that those of which nothing is taken are empty (RPC2-039).
func TestFill(t *testing.T) {
	for n, want := range map[int][3]uint32{0: {}, 1: {1}, 10: {10}, 11: {10, 1}, 15: {10, 5}, 16: {10, 5, 1}, 35: {10, 5, 20}} {
		c := Chunk{{1, 10, 100}, {2, 5, 200}, {3, 20, 300}}
		if c.fill(n); c[0].Length != want[0] || c[1].Length != want[1] || c[2].Length != want[2] {
			t.Errorf("%d octets fill %+v, want %v", n, c, want)
		}
	}
}

// returnsAs checks that a chunk comes back with its handles and offsets, and with n octets in segments that are filled in turn.
func returnsAs(t *testing.T, got, want Chunk, n int) {
	t.Helper()
	want = append(Chunk(nil), want...)
	want.fill(n)
	if len(got) != len(want) {
		t.Fatalf("a chunk of %d segments comes back with %d", len(want), len(got))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("segment %d comes back as %+v, want %+v", i, got[i], want[i])
		}
	}
}

// TestResultsAreWritten checks that results go into Write chunks in order, contiguously and without roundup, and that all chunks come back
// with what was written, in a Reply inline, in a Reply chunk, and in parts (RPC2-038 to RPC2-042, RPC2-050, RPC1-029 to RPC1-031). An empty
// chunk holds the place of an item that is not reduced.
func TestResultsAreWritten(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		f := newForeign(t, 11, version, nil)
		xid := uint32(0)
		for _, head := range []int{24, 3200, 9000} {
			for _, pieces := range []int{1, 5} {
				for _, withReply := range []bool{false, true} {
					if head == 9000 && !withReply && version == Version1 {
						continue
					}
					xid++
					m := f.noise(xid, msgReply, head, 5001, 302, 0, 77)
					a, aData := f.gather(5001, pieces)
					c, cData := f.gather(64, 1)
					d, dData := f.gather(100, pieces)
					e, eData := f.gather(40, 1)
					var reply Chunk
					var replyData []byte
					if withReply {
						reply, replyData = f.gather(12000, pieces)
					}
					f.call(xid, []Chunk{a, {}, c, d, e}, reply)
					f.reply(m)
					inline := insert(m.head, m.items, func(i int) bool { return i == 1 })
					var r foreignReply
					var payload []byte
					switch {
					case head == 9000 && withReply:
						r = f.take(TypeNoMsg)
						returnsAs(t, r.h.Reply, reply, len(inline))
						payload = replyData[:len(inline)]
						if len(bytes.Trim(replyData[len(inline):], "\xdb")) > 0 {
							t.Error("more is written than the Reply")
						}
					default:
						for r.h.Flags = FlagMore; r.h.Flags&FlagMore != 0; {
							r = f.take(TypeMsg)
							payload = append(payload, r.payload...)
							if r.h.Flags&FlagMore != 0 && len(r.h.Writes) > 0 {
								t.Error("a part that goes on has lists") // RPC2-057
							}
						}
						if r.h.HasReply {
							returnsAs(t, r.h.Reply, reply, 0)
						}
					}
					if !bytes.Equal(payload, inline) {
						t.Fatalf("the Reply has %d octets %s, want %d", len(payload), differ(payload, inline), len(inline))
					}
					if len(r.h.Writes) != 5 || r.h.XID != xid {
						t.Fatalf("%+v comes back", r.h)
					}
					returnsAs(t, r.h.Writes[0], a, 5001)
					returnsAs(t, r.h.Writes[1], Chunk{}, 0)
					returnsAs(t, r.h.Writes[2], c, 0)
					returnsAs(t, r.h.Writes[3], d, 77)
					returnsAs(t, r.h.Writes[4], e, 0)
					if !bytes.Equal(aData, m.items[0].Data) || !bytes.Equal(dData[:77], m.items[3].Data) {
						t.Error("wrong octets are written")
					}
					for _, rest := range [][]byte{cData, dData[77:], eData} {
						if len(bytes.Trim(rest, "\xdb")) > 0 {
							t.Error("octets are written that are none of the result")
						}
					}
				}
			}
		}
		if f.done != int(xid) {
			t.Errorf("%d of %d answers are done", f.done, xid)
		}
	})
}

// TestRepliesAtTheThreshold checks that a Reply is inline as long as it fits one Send, and no longer (RPC2-021, RPC1-021, RPC2-048, RPC1-032).
func TestRepliesAtTheThreshold(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		f := newForeign(t, 12, version, nil)
		least := (&Header{Version: version}).Size()
		for n := 4096 - least - 8; n < 4096-least+12; n += 4 {
			xid := uint32(n)
			chunk, data := f.gather(5000, 2)
			f.call(xid, nil, chunk)
			m := f.noise(xid, msgReply, n)
			f.reply(m)
			if n <= 4096-least {
				if r := f.take(TypeMsg); !bytes.Equal(r.payload, m.head) || r.h.Flags&FlagMore != 0 {
					t.Errorf("%d octets: %+v", n, r.h)
				}
				continue
			}
			r := f.take(TypeNoMsg)
			returnsAs(t, r.h.Reply, chunk, n)
			if !bytes.Equal(data[:n], m.head) {
				t.Errorf("%d octets: wrong ones are written", n)
			}
		}
	})
}

// TestRepliesThatDoNotFit checks what comes if a chunk is too short, or none is there: WRITE_RESOURCE with the number of the chunk and what it
// needs (RPC2-088); for the Reply chunk parts, since they go before an error (RPC2-051); in version 1 ERR_CHUNK (RPC1-027, RPC1-050).
// Nothing is written, and the answer is given back.
// Attack P4 (SECURITY.md).
func TestRepliesThatDoNotFit(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		f := newForeign(t, 13, version, nil)
		a, aData := f.gather(100, 2)
		b, bData := f.gather(99, 3)
		f.call(1, []Chunk{a, b}, nil)
		f.reply(f.noise(1, msgReply, 24, 100, 100))
		f.refusedWith(1, Report{Code: CodeWriteResource, Index: 2, Needed: 100})
		if len(bytes.Trim(append(aData, bData...), "\xdb")) > 0 {
			t.Error("results are written all the same")
		}
		for xid, reply := range map[uint32]Chunk{2: nil, 3: f.lend(make([]byte, 4999), true, 2), 4: {}} {
			m := f.noise(xid, msgReply, 5000)
			f.call(xid, nil, reply)
			f.reply(m)
			if version == Version1 {
				f.refusedWith(xid, Report{Code: CodeChunk})
				continue
			}
			first, last := f.take(TypeMsg), f.take(TypeMsg)
			if first.h.Flags != FlagResponse|FlagMore || last.h.Flags != FlagResponse || !bytes.Equal(append(first.payload, last.payload...), m.head) {
				t.Errorf("%+v and %+v come back", first.h, last.h)
			}
		}
		if f.done != 4 {
			t.Errorf("%d of 4 answers are done", f.done)
		}
	})
}

// TestReturnedListsFitTheReply checks that a Call is refused, before it is carried out, if the header of its Reply could not return its
// lists (RPC2-091, RPC2-087, RPC1-050).
func TestReturnedListsFitTheReply(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		f := newForeign(t, 14, version, func(c *Config) { c.Local.SendSize, c.SendSize = 1024, 1024 })
		var chunk Chunk
		for range 70 {
			chunk = append(chunk, Segment{5, 10, 0})
		}
		f.call(1, []Chunk{chunk}, nil)
		fixed := (&Header{Version: version, Writes: []Chunk{{}}}).Size()
		f.refusedWith(1, Report{Code: CodeSegments, Max: uint32((1024 - fixed) / segmentSize)})
		f.call(2, []Chunk{chunk[:(1024-fixed)/segmentSize+1]}, nil)
		f.refusedWith(2, Report{Code: CodeSegments, Max: uint32((1024 - fixed) / segmentSize)})
		f.call(2, []Chunk{chunk[:(1024-fixed)/segmentSize]}, nil)
		f.run()
		if len(f.work) != 1 {
			t.Error("a Call whose lists fit is not carried out")
		}
	})
}

// TestFail checks that an ERROR comes in place of a Reply: version 1 has one code (RPC1-050), and version 2 has the one that was
// said, or SYSTEM for what is none (RPC2-081, RPC2-083).
func TestFail(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		f := newForeign(t, 15, version, nil)
		for i, r := range []Report{{Code: CodeBadXDR}, {Code: CodeSystem}, {Code: CodeReplyResource, Needed: 12}, {Code: 77}, {}} {
			f.call(uint32(i), nil, nil)
			f.run()
			in := f.work[0]
			f.work = nil
			f.end.m.Fail(f.pair.now, in, r)
			f.end.m.Fail(f.pair.now, in, r) // the second one is not taken
			f.end.drive()
			if r.Code == 77 || r.Code == 0 {
				r = Report{Code: CodeSystem}
			}
			f.refusedWith(uint32(i), r)
		}
	})
}

// TestRepliesInvalidate checks which handle the Reply withdraws: in version 1 the only one of the Call, if the client takes that
// (RPC1-040); of several none, since one may be to stay; in version 2 exactly the one that the Call names (RPC2-063).
func TestRepliesInvalidate(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		for _, takes := range []bool{true, false} {
			f := newForeign(t, 16, version, func(c *Config) { c.Peer.Invalidate = takes })
			one, _ := f.gather(5000, 1)
			other, _ := f.gather(40, 1)
			half := Chunk{one[0], one[0]}
			half[0].Length /= 2
			half[1].Length, half[1].Offset = half[0].Length, half[1].Offset+uint64(half[0].Length)
			for i, c := range []struct {
				writes []Chunk
				reply  Chunk
				want   bool
				handle uint32
			}{
				{nil, nil, false, 0},
				{[]Chunk{other}, one, false, 0},
				{[]Chunk{half}, other, version == Version2, one[0].Handle},
				{[]Chunk{other, {}}, nil, version == Version2 || takes, other[0].Handle},
			} {
				xid := uint32(40 + i)
				h := f.header(xid, TypeMsg)
				h.Writes, h.Reply, h.HasReply = c.writes, c.reply, c.reply != nil
				if version == Version2 {
					h.InvHandle = c.handle
				}
				f.send(h, f.noise(xid, msgCall, 40).head)
				f.reply(f.noise(xid, msgReply, 24))
				if r := f.take(TypeMsg); r.invalidated != c.want || c.want && r.stag != c.handle {
					t.Errorf("%d, taken %v: withdrawn %v, %#x, want %v", i, takes, r.invalidated, r.stag, c.want)
				}
			}
			if version == Version1 {
				continue
			}
			// Of a Reply in parts the last one withdraws (RPC2-107).
			more, _ := f.gather(10, 1)
			h := f.header(50, TypeMsg)
			h.Writes, h.InvHandle = []Chunk{more}, more[0].Handle
			f.send(h, f.noise(50, msgCall, 40).head)
			f.reply(f.noise(50, msgReply, 9000))
			for i := range 3 {
				if r := f.take(TypeMsg); r.invalidated != (i == 2) || r.h.InvHandle != 0 {
					t.Errorf("part %d: withdrawn %v, %+v", i, r.invalidated, r.h)
				}
			}
		}
	})
}

// TestCallsOfALostConnection checks that a Call of which the program has not heard when the connection is lost is not carried out.
func TestCallsOfALostConnection(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		f := newForeign(t, 20, version, nil)
		m := f.noise(1, msgCall, 100, 500)
		h := f.header(1, TypeMsg)
		h.Reads = f.reads(m, 1, 0, none)
		f.send(h, m.head)
		f.end.deliver()
		f.end.hear()
		f.end.m.Lost(nil)
		if f.end.drive(); len(f.placing) > 0 || len(f.work) > 0 {
			t.Errorf("%d Calls want places, %d are to be carried out", len(f.placing), len(f.work))
		}
	})
}

// TestAnswersOfALostConnection checks that a Reply to a Call whose connection is lost is taken, and given back once, in whatever state the
// Call is, and that an ERROR for one is not kept.
func TestAnswersOfALostConnection(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		for _, failed := range []bool{false, true} {
			f := newForeign(t, 17, version, nil)
			m := f.noise(1, msgCall, 100, 500)
			h := f.header(1, TypeMsg)
			h.Reads = f.reads(m, 1, 0, none)
			f.send(h, m.head)
			f.run()
			f.call(2, nil, nil)
			chunk, _ := f.gather(6000, 1)
			f.call(3, []Chunk{chunk}, nil)
			f.call(4, nil, nil)
			f.run()
			calls := map[string]int{}
			done := func(which string) func() { return func() { calls[which]++ } }
			for _, in := range f.work {
				if in.XID == 3 {
					f.end.m.Reply(f.pair.now, in, Answer{Head: wire(3, msgReply), Items: f.noise(3, msgReply, 24, 6000).items, Done: done("on its way")})
				}
			}
			f.end.drive()
			for _, in := range f.work {
				if in.XID == 4 { // nothing of it is posted
					f.end.m.Reply(f.pair.now, in, Answer{Head: wire(4, msgReply), Done: done("waits")})
				}
			}
			late := 2
			f.end.lose()
			f.raw.memory = nil
			for _, in := range append(f.placing, f.work...) {
				if in.XID >= 3 {
					continue
				}
				if !in.Gone {
					t.Errorf("Call %d does not know that its connection is lost", in.XID)
				}
				if in.XID == 2 && failed {
					f.end.m.Fail(f.pair.now, in, Report{Code: CodeSystem})
					late = 1
					continue
				}
				f.end.m.Reply(f.pair.now, in, Answer{Head: wire(in.XID, msgReply), Done: done("late")})
			}
			f.end.drive()
			if calls["on its way"] != 1 || calls["waits"] != 1 || calls["late"] != late {
				t.Errorf("given back: %v", calls)
			}
			if n, kept := len(f.end.pool.out), f.end.m.out.len(); n != 0 || kept != 0 {
				t.Errorf("%d buffers are not given back, %d messages are kept", n, kept)
			}
		}
	})
}

// TestRoundupInTheReplyChunk checks that an item that is not reduced has its roundup in the Reply chunk, across segments of one octet as well
// (RPC2-003, RPC2-049).
func TestRoundupInTheReplyChunk(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		f := newForeign(t, 19, version, func(c *Config) { c.Window = 4 })
		m := f.noise(1, msgReply, 24, 5001, 1)
		data := bytes.Repeat([]byte{rubbish}, len(m.whole))
		chunk := f.lend(data[:len(data)-9], true, 1)
		for i := range 9 {
			chunk = append(chunk, f.lend(data[len(data)-9+i:][:1], true, 1)...)
		}
		f.call(1, nil, chunk)
		f.reply(m)
		returnsAs(t, f.take(TypeNoMsg).h.Reply, chunk, len(m.whole))
		if !bytes.Equal(data, m.whole) {
			t.Errorf("the Reply has octets %s", differ(data, m.whole))
		}
	})
}

// TestRepliesWait checks that a Reply of version 2 waits for a credit, in whatever part of it, and that its Writes do not
// (RPC2-014, RPC2-018).
func TestRepliesWait(t *testing.T) {
	f := newForeign(t, 18, Version2, nil)
	f.send(&Header{Version: Version2, Credit: Credit2(60, 20), Type: TypeNoMsg}, nil)
	f.run()
	f.end.m.credits.(*credits2).allowed = 0
	chunk, data := f.gather(300, 1)
	h := f.header(1, TypeMsg)
	h.Credit, h.Writes = Credit2(60, 1), []Chunk{chunk}
	f.send(h, f.noise(1, msgCall, 40).head)
	m := f.noise(1, msgReply, 10000, 300)
	f.reply(m)
	if r := f.take(TypeMsg); r.h.Flags&FlagMore == 0 || !f.silent() || !bytes.Equal(data, m.items[0].Data) {
		t.Fatalf("with one credit %d messages come, the first is %+v", 1+len(f.replies), r.h)
	}
	f.send(&Header{Version: Version2, Credit: Credit2(60, 1), Type: TypeNoMsg}, nil)
	f.run()
	f.take(TypeMsg)
	if !f.silent() {
		t.Error("a credit that was not granted is used")
	}
	f.send(&Header{Version: Version2, Credit: Credit2(60, 5), Type: TypeNoMsg}, nil)
	f.run()
	if r := f.take(TypeMsg); r.h.Flags&FlagMore != 0 {
		t.Error("the last part goes on")
	}
}

// TestAnswerAsksForItsCompletion checks that the completion of an answer is asked for if the program waits for it, since the peer is sent items from its memory: not if nothing
// of its memory is used by then, and not if nothing waits.
func TestAnswerAsksForItsCompletion(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		xid := uint32(0)
		for _, waits := range []bool{false, true} {
			for _, written := range []bool{false, true} {
				f := newForeign(t, 17, version, nil)
				head := 24
				if version == Version2 {
					head = 9000 // in parts
					f.send(&Header{Version: Version2, Credit: Credit2(60, 20), Type: TypeNoMsg}, nil)
				}
				xid++
				var writes []Chunk
				if written {
					w, _ := f.gather(5000, 2)
					writes = []Chunk{w}
				}
				f.call(xid, writes, nil)
				f.run()
				length := 400
				if written {
					length = 5000
				}
				m := f.noise(xid, msgReply, head, length)
				a := Answer{Head: m.head, Items: m.items}
				if waits {
					a.Done = func() {}
				}
				f.end.m.Reply(f.pair.now, f.work[0], a)
				f.end.drive()
				for _, w := range f.end.posted[:len(f.end.posted)-1] {
					if w.signaled {
						t.Errorf("waits %v, written %v: the completion of a %v that is not the last work is asked for", waits, written, w.op)
					}
				}
				last := f.end.posted[len(f.end.posted)-1]
				if last.op != OpSend || last.signaled != (waits && written) {
					t.Errorf("waits %v, written %v: the last work is %v, signaled %v", waits, written, last.op, last.signaled)
				}
			}
		}
	})
}

// TestErrorInPlaceOfPlaces checks that a Call may be answered by an ERROR while the places of its items are asked for: nothing is read.
func TestErrorInPlaceOfPlaces(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		f := newForeign(t, 20, version, nil)
		m := f.noise(1, msgCall, 100, 5000)
		h := f.header(1, TypeMsg)
		h.Reads = f.reads(m, 1, 0, none)
		f.send(h, m.head)
		f.run()
		f.end.m.Fail(f.pair.now, f.placing[0], Report{Code: CodeSystem})
		f.end.drive()
		f.refusedWith(1, Report{Code: CodeSystem})
		f.noReads()
		if len(f.end.m.rsp.calls) != 0 || f.done != 1 {
			t.Errorf("%d Calls are in work, %d answers are given back", len(f.end.m.rsp.calls), f.done)
		}
	})
}

// TestAnswersAreTakenOnce checks that a Call is answered once: a Reply or ERROR that the program gives while items are fetched, or after an answer, goes nowhere, and what it
// gave before goes as it is.
func TestAnswersAreTakenOnce(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		answers := map[string]func(f *foreign, in *Incoming){
			"Reply": func(f *foreign, in *Incoming) {
				f.end.m.Reply(f.pair.now, in, Answer{Head: rpcReply(1, 24), Done: func() {}})
			},
			"ERROR": func(f *foreign, in *Incoming) { f.end.m.Fail(f.pair.now, in, Report{Code: CodeSystem}) },
		}
		for first, answer := range answers {
			for second, again := range answers {
				f := newForeign(t, 18, version, nil)
				f.places = placeAll
				f.pair.slow = 1000 * time.Hour
				m := f.noise(1, msgCall, 100, 5000)
				h := f.header(1, TypeMsg)
				h.Reads = f.reads(m, 1, 0, none)
				f.send(h, m.head)
				f.run()
				in := f.placing[0]
				again(f, in) // while its item is fetched
				f.end.drive()
				if f.run(); !f.silent() || f.done != 0 {
					t.Errorf("a %s while items are fetched is taken", second)
				}
				f.raw.owed[0].ready = f.pair.now
				f.run()
				answer(f, in)
				again(f, in) // before it has left
				f.end.drive()
				f.run()
				again(f, in) // and afterwards
				f.end.drive()
				f.run()
				want := TypeMsg
				if first == "ERROR" {
					want = TypeError
				}
				f.take(want)
				if !f.silent() || f.done != 1 || f.closed != nil {
					t.Errorf("a %s, then a %s: %d answers are given back, %d messages more, %v", first, second, f.done, len(f.replies), f.closed)
				}
			}
		}
	})
}

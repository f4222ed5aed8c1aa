package rdmap_test

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"

	"github.com/dgrdma/dgrdma/rdmap"
	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

const everything = rdmap.Atomics | rdmap.Immediates | rdmap.Commit

// each runs a test over every carrier.
func each(t *testing.T, w world, test func(t *testing.T, p *pair)) {
	for _, c := range carriers {
		t.Run(c.String(), func(t *testing.T) {
			for seed := range uint64(8) {
				w := w
				w.carrier, w.seed = c, seed
				test(t, newPair(t, w))
			}
		})
	}
}

// RDMAP-032, 034, 046 to 048, 065: Writes are placed before the Send behind them is delivered.
func TestWriteThenSend(t *testing.T) {
	each(t, world{}, func(t *testing.T, p *pair) {
		m := p.b.expose(7<<8, 1000, rdmap.AccessWrite)
		buf := make([]byte, 500)
		p.b.receive(buf)
		data, text := pattern(1, 350), pattern(2, 250)
		p.b.received.at = func() { p.b.want("what was written before the Send", m[601:951], data) }
		w := p.a.post(rdmap.Work{Op: rdmap.OpWrite, Data: data[:100], More: [][]byte{nil, data[100:101], data[101:]}, STag: 7 << 8, TO: 601})
		s := p.a.post(rdmap.Work{Op: rdmap.OpSend, Data: text})
		p.settle()
		p.a.wantSent(w, s)
		c := p.b.wantReceived(250)
		p.b.want("the region", m[601:951], data)
		p.b.want("what was received", buf[:c.Length], text)
		p.b.want("memory outside", append(m[:601:601], m[951:]...), make([]byte, 650))
	})
}

// RDMAP-001, 040, 046: nothing is a length, too.
func TestNothing(t *testing.T) {
	each(t, world{}, func(t *testing.T, p *pair) {
		p.b.receive(nil)
		p.settle()
		ids := []uint64{
			p.a.post(rdmap.Work{Op: rdmap.OpWrite, STag: 99, TO: 1 << 63}), // DDP-009
			p.a.post(rdmap.Work{Op: rdmap.OpRead, STag: 98, TO: 1<<64 - 1}),
			p.a.post(rdmap.Work{Op: rdmap.OpSend}),
		}
		p.settle()
		p.a.wantSent(ids...)
		p.b.wantReceived(0)
	})
}

// RDMAP-037 to 043, 067, 071, 075: what is read is what was written before, and completes in order.
func TestReadAfterWrite(t *testing.T) {
	each(t, world{cfg: rdmap.Config{ORD: 2}}, func(t *testing.T, p *pair) {
		p.b.expose(7<<8, 1000, rdmap.AccessWrite, rdmap.AccessRead)
		var ids []uint64
		var got [][]byte
		for i := range 5 {
			ids = append(ids, p.a.post(rdmap.Work{Op: rdmap.OpWrite, Data: pattern(i, 200), STag: 7 << 8, TO: uint64(200 * i)}))
			b := make([]byte, 200)
			got = append(got, b)
			ids = append(ids, p.a.post(rdmap.Work{Op: rdmap.OpRead, Data: b, STag: 7 << 8, TO: uint64(200 * i)}))
		}
		p.settle()
		p.a.wantSent(ids...)
		for i, b := range got {
			p.a.want("what was read", b, pattern(i, 200))
		}
	})
}

// RDMAP-077: a fence holds a Write back that would overtake the answer to a Read.
func TestFence(t *testing.T) {
	each(t, world{}, func(t *testing.T, p *pair) {
		m := p.b.expose(7<<8, 300, rdmap.AccessWrite, rdmap.AccessRead)
		copy(m, pattern(1, 300))
		b := make([]byte, 300)
		r := p.a.post(rdmap.Work{Op: rdmap.OpRead, Data: b, STag: 7 << 8})
		w := p.a.post(rdmap.Work{Op: rdmap.OpWrite, Fence: true, Data: pattern(2, 300), STag: 7 << 8})
		p.settle()
		p.a.wantSent(r, w)
		p.a.want("what was read", b, pattern(1, 300))
		p.b.want("the region", m, pattern(2, 300))
	})
}

// RDMAP-079, 080: never more than the peer keeps are outstanding.
func TestORD(t *testing.T) {
	p := newPair(t, world{cfg: rdmap.Config{ORD: 3, IRD: 3}})
	p.b.expose(7<<8, 100, rdmap.AccessRead)
	for range 5 {
		p.a.post(rdmap.Work{Op: rdmap.OpRead, Data: make([]byte, 10), STag: 7 << 8})
	}
	var m ddp.Message
	for i := range 5 {
		if p.a.Next(&m) != (i < 3) {
			t.Fatalf("request %d: given %v", i+1, i >= 3)
		}
	}
	none := newPair(t, world{cfg: rdmap.Config{ORD: -1}})
	if err := none.a.Post(&rdmap.Work{Op: rdmap.OpRead}); !errors.Is(err, rdmap.ErrNoReads) {
		t.Errorf("a Read with an ORD of 0: %v", err)
	}
}

// S6 (docs/quirks.md): a Read of nothing is never outstanding with others.
func TestReadOfNothingStaysAlone(t *testing.T) {
	p := newPair(t, world{})
	p.b.expose(7<<8, 100, rdmap.AccessRead)
	for _, n := range []int{5, 0, 5} {
		p.a.post(rdmap.Work{Op: rdmap.OpRead, Data: make([]byte, n), STag: 7 << 8})
	}
	for i := range 3 {
		if !p.take(p.a) || p.take(p.a) {
			t.Fatalf("Read %d is not alone on the way", i+1)
		}
		for len(p.a.queue) > 0 {
			if _, err := p.move(p.a, p.b); err != nil {
				t.Fatal(err)
			}
		}
		if !p.take(p.b) {
			t.Fatalf("Read %d is not answered", i+1)
		}
		if _, err := p.move(p.b, p.a); err != nil {
			t.Fatal(err)
		}
	}
	p.a.wantSent(1, 2, 3)
}

// RDMAPX-001, 012, 013, 025, 028, 034, 035; COMMIT-031 to 035: atomics, in order, with what they found.
func TestAtomics(t *testing.T) {
	each(t, world{cfg: rdmap.Config{Extensions: everything}}, func(t *testing.T, p *pair) {
		m := p.b.expose(7<<8, 64, rdmap.AccessAtomic, rdmap.AccessRead, rdmap.AccessWrite)
		binary.NativeEndian.PutUint64(m[8:], 40)
		read := make([]byte, 8)
		ids := []uint64{
			p.a.post(rdmap.Work{Op: rdmap.OpFetchAdd, STag: 7 << 8, TO: 8, Operand: 2}),
			p.a.post(rdmap.Work{Op: rdmap.OpCompareSwap, STag: 7 << 8, TO: 8, Compare: 42, Operand: 5}),
			p.a.post(rdmap.Work{Op: rdmap.OpCompareSwap, STag: 7 << 8, TO: 8, Compare: 42, Operand: 6}),
			p.a.post(rdmap.Work{Op: rdmap.OpCompareSwap, STag: 7 << 8, TO: 8, Masked: true, Compare: 0xff01, CompareMask: 1, Operand: 0xabcd, Mask: 0xff00}),
			p.a.post(rdmap.Work{Op: rdmap.OpRead, Data: read, STag: 7 << 8, TO: 8}),
			p.a.post(rdmap.Work{Op: rdmap.OpAtomicWrite, STag: 7 << 8, TO: 16, Payload: [8]byte{1, 2, 3, 4, 5, 6, 7, 8}}),
			p.a.post(rdmap.Work{Op: rdmap.OpFetchAdd, STag: 7 << 8, TO: 8}),
		}
		p.settle()
		list := p.a.wantSent(ids...)
		for i, old := range []uint64{40, 42, 5, 5, 0, 0, 0xab05} {
			if list[i].Old != old {
				t.Errorf("operation %d found %#x, want %#x", i, list[i].Old, old)
			}
		}
		p.a.want("what was read", read, binary.NativeEndian.AppendUint64(nil, 0xab05))
		p.b.want("the marker", m[16:24], []byte{1, 2, 3, 4, 5, 6, 7, 8})
	})
}

// RDMAPX-036 to 041: immediate data takes a receive, in order with Sends.
func TestImmediate(t *testing.T) {
	each(t, world{cfg: rdmap.Config{Extensions: everything}}, func(t *testing.T, p *pair) {
		p.b.receive(nil)
		p.b.receive(make([]byte, 20))
		m := p.b.expose(7<<8, 300, rdmap.AccessWrite)
		w := p.a.post(rdmap.Work{Op: rdmap.OpWrite, STag: 7 << 8, Data: pattern(2, 300)})
		a := p.a.post(rdmap.Work{Op: rdmap.OpImmediate, Solicited: true, Payload: [8]byte{'I', 'M', 'M'}})
		b := p.a.post(rdmap.Work{Op: rdmap.OpSend, Data: pattern(1, 20)})
		p.b.received.at = func() { p.b.want("what was written before the immediate data", m, pattern(2, 300)) } // RDMAPX-040
		p.settle()
		p.a.wantSent(w, a, b)
		got := p.b.received.list
		if len(got) != 2 || !got[0].Immediate || !got[0].Solicited || got[0].Payload != [8]byte{'I', 'M', 'M'} || got[0].ID != 0 || got[1].Immediate || got[1].ID != 20 {
			t.Errorf("received %+v", got)
		}
	})
}

// RDMAP-014, 015, 049 to 051: events, and memory that is withdrawn before the program hears of the message.
func TestSendVariants(t *testing.T) {
	each(t, world{}, func(t *testing.T, p *pair) {
		for i := range 4 {
			p.b.expose(uint32(i+1)<<8, 10, rdmap.AccessWrite)
			buf := make([]byte, 10)
			p.b.receive(buf)
			w := rdmap.Work{Op: rdmap.OpSend, Data: pattern(i, 5), Solicited: i&1 != 0, Invalidating: i&2 != 0, Invalidate: uint32(i+1) << 8}
			id := p.a.post(w)
			p.settle()
			p.a.wantSent(id)
			c := p.b.wantReceived(5)
			p.b.want("what was received", buf[:5], pattern(i, 5))
			if c.Solicited != w.Solicited || c.Invalidated != w.Invalidating || c.Invalidated && c.STag != w.Invalidate {
				t.Errorf("%+v arrived as %+v", w, c)
			}
			if p.b.mem[w.Invalidate].withdrawn != w.Invalidating {
				t.Errorf("%+v: withdrawn %v", w, !w.Invalidating)
			}
			if got := rdmap.Opcode(p.a.wire[i][1] & 15); got != [...]rdmap.Opcode{rdmap.Send, rdmap.SendSE, rdmap.SendInvalidate, rdmap.SendSEInvalidate}[i] {
				t.Errorf("%+v left as %v", w, got)
			}
		}
	})
}

// COMMIT-010 to 012, 023, 026, 033: jobs are done in order, one at a time, and what is behind them waits.
func TestFlushVerifyAtomicWrite(t *testing.T) {
	each(t, world{cfg: rdmap.Config{Extensions: everything}}, func(t *testing.T, p *pair) {
		m := p.b.expose(7<<8, 64, rdmap.AccessWrite, rdmap.AccessFlushPersistent, rdmap.AccessFlushGlobal, rdmap.AccessVerify)
		ids := []uint64{
			p.a.post(rdmap.Work{Op: rdmap.OpWrite, STag: 7 << 8, Data: pattern(1, 32)}),
			p.a.post(rdmap.Work{Op: rdmap.OpFlush, STag: 7 << 8, Length: 32, Persistent: true, Global: true}),
			p.a.post(rdmap.Work{Op: rdmap.OpVerify, STag: 7 << 8, Length: 32, Hash: pattern(9, 32)}),
			p.a.post(rdmap.Work{Op: rdmap.OpAtomicWrite, STag: 7 << 8, TO: 56, Payload: [8]byte{0xff}}),
		}
		p.settle()
		p.a.wantSent(ids[0])
		var j rdmap.Job
		if !p.b.Job(&j) || j.Verify || !j.Persistent || !j.Global || j.STag != 7<<8 || j.Length != 32 {
			t.Fatalf("job %+v, want the Flush", j)
		}
		p.b.want("what is flushed", m[:32], pattern(1, 32))
		if p.b.Job(new(rdmap.Job)) {
			t.Fatal("two jobs at a time")
		}
		p.settle()
		p.a.wantSent()
		p.b.JobDone(nil, nil)
		p.settle()
		p.a.wantSent(ids[1])
		if !p.b.Job(&j) || !j.Verify || j.HashSize != 32 || j.Hash != [32]byte(pattern(9, 32)) {
			t.Fatalf("job %+v, want the Verify", j)
		}
		if m[56] != 0 {
			t.Fatal("the marker is there before the Verify is done")
		}
		p.b.JobDone(pattern(9, 32), nil)
		p.settle()
		list := p.a.wantSent(ids[2], ids[3])
		if list[0].HashSize != 32 || list[0].Hash != [32]byte(pattern(9, 32)) || m[56] != 0xff {
			t.Errorf("hash %x, marker %x", list[0].Hash, m[56])
		}
	})
}

// What leaves, octet by octet, as RFC 5040, 7306 and the draft have it.
func TestGoldenMessages(t *testing.T) {
	p := newPair(t, world{cfg: rdmap.Config{Extensions: everything}})
	p.b.expose(0x100, 0x3000, rdmap.AccessWrite)
	m := p.b.expose(0x200, 64, rdmap.AccessAtomic)
	p.b.receive(nil)
	p.a.post(rdmap.Work{Op: rdmap.OpWrite, Data: []byte("hello"), STag: 0x100, TO: 0x2000})
	p.a.post(rdmap.Work{Op: rdmap.OpImmediate, Payload: [8]byte([]byte("IMMDDATA"))})
	p.a.post(rdmap.Work{Op: rdmap.OpCompareSwap, STag: 0x200, TO: 0x10, Operand: 1, Compare: 2})
	binary.NativeEndian.PutUint64(m[0x10:], 9)
	p.settle()
	for i, want := range []string{
		"c14000000100000000000000200068656c6c6f",
		"414800000000000000000000000100000000494d4d4444415441",
		// its request identifier was chosen by another hand: ours is the MSN
		"414a0000000000000001000000010000000000000002" + "00000001" + "00000200" + "0000000000000010" + "0000000000000001ffffffffffffffff0000000000000002ffffffffffffffff",
	} {
		if got := hex.EncodeToString(p.a.wire[i]); got != want {
			t.Errorf("message %d\n got %s\nwant %s", i, got, want)
		}
	}
	if got, want := hex.EncodeToString(p.b.wire[0]), "414b00000000000000030000000100000000"+"00000001"+"0000000000000009"; got != want {
		t.Errorf("response\n got %s\nwant %s", got, want)
	}
}

// MPA-011, MPA-016: the responder waits, and the message that opens the stream is nobody's.
func TestReady(t *testing.T) {
	for _, ready := range []rdmap.Ready{rdmap.ReadyNone, rdmap.ReadyWrite, rdmap.ReadyRead, rdmap.ReadySend} {
		t.Run(fmt.Sprint(ready), func(t *testing.T) {
			p := newPair(t, world{cfg: rdmap.Config{Ready: ready, ORD: 1, IRD: 1}})
			p.a.expose(8<<8, 10, rdmap.AccessRead)
			p.b.expose(7<<8, 10, rdmap.AccessRead)
			p.a.receive(make([]byte, 10))
			p.b.receive(make([]byte, 10))
			sb := p.b.post(rdmap.Work{Op: rdmap.OpSend, Data: pattern(1, 10)})
			p.settle()
			if ready == rdmap.ReadyNone {
				if len(p.b.wire) != 0 {
					t.Fatal("the responder spoke first")
				}
			} else {
				p.b.wantSent(sb)
				p.a.wantReceived(10)
			}
			r := p.a.post(rdmap.Work{Op: rdmap.OpRead, Data: make([]byte, 10), STag: 7 << 8})
			s := p.a.post(rdmap.Work{Op: rdmap.OpSend, Data: pattern(2, 10)})
			p.settle()
			p.a.wantSent(r, s)
			p.b.wantReceived(10)
			if ready == rdmap.ReadyNone {
				p.b.wantSent(sb)
				p.a.wantReceived(10)
			}
		})
	}
}

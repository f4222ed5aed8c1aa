package rdmap_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/dgrdma/dgrdma/rdmap"
	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// layouts are the lengths of buffers that are one place together, of 24 bytes.
var layouts = [][]int{{24}, {0, 24}, {24, 0}, {1, 23}, {23, 1}, {8, 8, 8}, {0, 0, 5, 0, 19, 0}, {1, 1, 1, 1, 20}, {7, 0, 16, 1}}

// lay makes buffers of these lengths, apart from each other, with bytes around them that must stay.
func lay(lengths []int) (first []byte, more [][]byte, whole func() []byte, around func() bool) {
	var all [][]byte
	for _, n := range lengths {
		all = append(all, bytes.Repeat([]byte{0xee}, n+8))
		more = append(more, all[len(all)-1][4:4+n])
	}
	whole = func() (b []byte) {
		for _, p := range all {
			b = append(b, p[4:len(p)-4]...)
		}
		return b
	}
	around = func() bool {
		for _, p := range all {
			if string(p[:4])+string(p[len(p)-4:]) != "\xee\xee\xee\xee\xee\xee\xee\xee" {
				return false
			}
		}
		return true
	}
	return more[0], more[1:], whole, around
}

// TestScatter (RDMAP-035, 044, DDP-007): messages of every length for a receive of several buffers, and Reads into several, over every carrier,
// in segments of every length: the buffers are filled in their order, as far as the message goes, and nothing else is. A Work's list can be used again when it is posted.
func TestScatter(t *testing.T) {
	for _, c := range carriers {
		for _, lengths := range layouts {
			for _, mtu := range []int{1, 3, 8, 100} {
				t.Run(fmt.Sprint(c, lengths, mtu), func(t *testing.T) {
					p := newPair(t, world{carrier: c, mtu: mtu, seed: 1})
					defer p.close()
					memory := p.b.expose(7<<8, 24, rdmap.AccessRead)
					copy(memory, pattern(1, 24))
					for n := range 25 {
						first, more, whole, around := lay(lengths)
						if err := p.b.PostReceive(rdmap.Receive{ID: 9, Data: first, More: more}); err != nil {
							t.Fatal(err)
						}
						sent := p.a.post(rdmap.Work{Op: rdmap.OpSend, Data: pattern(2, n)})
						p.settle()
						p.a.wantSent(sent)
						if done := p.b.wantReceived(n); done.ID != 9 {
							t.Errorf("%+v", done)
						}
						if want := append(pattern(2, n), bytes.Repeat([]byte{0xee}, 24-n)...); !bytes.Equal(whole(), want) || !around() {
							t.Fatalf("%d bytes are received as %x, want %x; bytes around: %v", n, whole(), want, around())
						}
					}
					for range 2 {
						first, more, whole, around := lay(lengths)
						list := append([][]byte(nil), more...)
						read := p.a.post(rdmap.Work{Op: rdmap.OpRead, STag: 7 << 8, Data: first, More: list})
						clear(list)
						p.settle()
						if done := p.a.wantSent(read); done[0].Length != 24 || !bytes.Equal(whole(), memory) || !around() {
							t.Fatalf("%+v, %x, want %x; bytes around: %v", done, whole(), memory, around())
						}
					}
				})
			}
		}
	}
}

// TestScatterTooLong (DDP-007): a message that is longer than all buffers of its receive ends the stream, whatever of it the segment at
// fault would still have room for, and touches nothing behind them.
func TestScatterTooLong(t *testing.T) {
	for _, c := range carriers {
		for _, lengths := range layouts {
			p := newPair(t, world{carrier: c, mtu: 7, seed: 1})
			first, more, _, around := lay(lengths)
			if err := p.b.PostReceive(rdmap.Receive{Data: first, More: more}); err != nil {
				t.Fatal(err)
			}
			p.a.post(rdmap.Work{Op: rdmap.OpSend, Data: pattern(2, 25)})
			if _, err := p.run(); err == nil || p.b.Err() == nil || !bytes.Contains([]byte(err.Error()), []byte(ddp.UntaggedTooLong.Error())) {
				t.Errorf("%v, %v: %v, %v", c, lengths, err, p.b.Err())
			}
			if !around() {
				t.Errorf("%v, %v: bytes around the buffers changed", c, lengths)
			}
			p.close()
		}
	}
}

// TestScatterEmptySegments (DDP-007): a last segment of nothing, behind all that has come, has its place in buffers that are several.
func TestScatterEmptySegments(t *testing.T) {
	for _, lengths := range layouts {
		p := newPair(t, world{})
		first, more, whole, _ := lay(lengths)
		if err := p.b.PostReceive(rdmap.Receive{Data: first, More: more}); err != nil {
			t.Fatal(err)
		}
		h := ddp.Header{Control: 0x43, MSN: 1}
		for _, n := range []int{0, 24} {
			if err := p.b.put(h, pattern(3, n)); err != nil {
				t.Fatal(err)
			}
		}
		h.MO, h.Last = 24, true
		if err := p.b.put(h, nil); err != nil {
			t.Fatal(err)
		}
		if err := p.b.Deliver(&ddp.Header{Control: 0x43, MSN: 1, Last: true}, 24); err != nil {
			t.Fatal(err)
		}
		p.b.wantReceived(24)
		p.b.want("the receive", whole(), pattern(3, 24))
	}
}

package dgrdma

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestZeroCompletion checks that a transaction that names no completion word writes none. Word 0,
// where one without an address would go, stays as it was.
func TestZeroCompletion(t *testing.T) {
	for _, c := range []struct {
		name string
		word CompletionWord
		want []byte // of words 0 and 1
	}{
		{"none", CompletionWord{}, []byte{9, 9, 9, 9, 9, 9, 9, 9}},
		{"all ones", Word(frame.NoCompletion, frame.NoCompletion), []byte{9, 9, 9, 9, 9, 9, 9, 9}},
		{"zero at 0", Word(0, 0), []byte{0, 0, 0, 0, 9, 9, 9, 9}},
		{"at 4", Word(4, 0x04030201), []byte{9, 9, 9, 9, 1, 2, 3, 4}},
	} {
		for _, data := range [][]byte{nil, []byte("data"), make([]byte, 5000)} {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t, pairConfig{})
				defer p.close()
				mem := p.memB.Bytes()
				copy(mem, bytes.Repeat([]byte{9}, 8))
				x := &Transaction{Completion: c.word}
				if data != nil {
					x.Segments = []Segment{{16, data}}
				}
				if err := p.toB.Write(t.Context(), x); err != nil {
					t.Fatal(err)
				}
				if got := mem[:8]; !bytes.Equal(got, c.want) || !bytes.Equal(mem[16:16+len(data)], data) {
					t.Errorf("%s, %d bytes: words %v, want %v", c.name, len(data), got, c.want)
				}
				if x.Completion != c.word {
					t.Errorf("%s: %+v after the write", c.name, x.Completion)
				}
			})
		}
	}
}

// TestZeroCompletionRefused checks that a transaction without a completion word is an error for a
// peer that needs one, before anything is sent (quirks F10, L6).
func TestZeroCompletionRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{})
		defer p.close()
		fpga := FPGA()
		c, err := p.a.Connect(Peer{ID: 9, Addr: simnet.Addr(9), Profile: &fpga})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Post(&Transaction{Segments: []Segment{{0, make([]byte, 16)}}}); !errors.Is(err, ErrNoCompletion) {
			t.Error(err)
		}
		dg2 := OpenCPI2()
		half, err := p.a.Connect(Peer{ID: 9, Addr: simnet.Addr(10), Profile: &dg2})
		if err != nil {
			t.Fatal(err)
		}
		if err := half.Post(&Transaction{Completion: Word(0, frame.NoCompletion)}); !errors.Is(err, ErrNoCompletion) {
			t.Error(err) // quirk D2-7
		}
		for _, c := range []*Conn{c, half} {
			if s := c.Stats(); s.FramesSent != 0 {
				t.Errorf("%d frames were sent", s.FramesSent)
			}
		}
	})
}

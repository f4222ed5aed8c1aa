package endpoint

import (
	"testing"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// TestIntroductionsHaveIDs of their own, which no other frame has, as long as there are any;
// else they tell which is next.
func TestIntroductionsHaveIDs(t *testing.T) {
	for _, crowded := range []bool{false, true} {
		p := Native()
		if crowded {
			p.Window, p.Span, p.FreshAlone = 1, 1, true
		}
		var told []ack.Wide
		r := newHalfRig(t, 1, p, Config{Trace: &Trace{FrameSent: func(_ PeerName, b []byte, _ bool) {
			if f, err := frame.Parse(b); err != nil {
				t.Error(err)
			} else if _, ok := helloOf(&f); ok {
				told = append(told, ack.Wide(f.HelloID()))
			}
		}}})
		r.come(1 << 20)
		r.posts(8)
		asks := r.named(1 << 20)
		asks.Tells = false
		r.introduces(asks)
		want := r.c.tx.sender.NextWide()
		r.serve()
		if got := told[len(told)-1]; got != want {
			t.Errorf("introduced under id %d, want %d", got, want)
		}
		if own := r.c.tx.sender.NextWide() != want; own == crowded {
			t.Errorf("the id is its own: %v, when none was left: %v", own, crowded)
		}
	}
}

// TestFirstIDIsDrawn where the peer does not insist on one.
func TestFirstIDIsDrawn(t *testing.T) {
	const drawn = 31_000
	for _, p := range []Profile{Native(), OpenCPI(false), OpenCPI2(), FPGA()} {
		r := newHalfRig(t, 1, p, Config{Entropy: func() uint32 { return drawn }})
		want := ack.Wide(p.FirstFrame)
		switch {
		case p.Session:
			want = drawn + 1 // behind its introduction
		case want == 0:
			want = p.begin(drawn)
		}
		if got := r.c.tx.sender.NextWide(); got != want {
			t.Errorf("%s: ids begin at %d, want %d", p.Name, got, want)
		}
	}
}

package tests

import (
	"fmt"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
)

// forgedPeer sends frames by hand, as a peer with the given profile does.
type forgedPeer struct {
	*rig
	id  frame.Seq
	txn uint32
}

// forgedTests runs a test for every kind of peer without introduction.
func forgedTests(t *testing.T, f func(p *forgedPeer)) {
	for _, name := range []string{"fpga", "opencpi", "opencpi2", "opencpi-legacy"} {
		t.Run(name, func(t *testing.T) {
			rigTest(t, 1, func(t *testing.T, r *rig) {
				profile, err := dgrdma.ProfileByName(name, false)
				if err != nil {
					t.Fatal(err)
				}
				r.dial(profile, dgrdma.Config{})
				f(&forgedPeer{rig: r})
			})
		})
	}
}

// word sends a frame that writes the next word, under the next id.
func (p *forgedPeer) word() {
	p.t.Helper()
	p.id++
	p.txn++
	p.wordAgain()
}

// wordAgain sends the last frame again.
func (p *forgedPeer) wordAgain() {
	p.t.Helper()
	quirkRawTo(p.t, p.there, rigOurs, frame.Header{Dst: 1, Src: 2, Seq: p.id}, []quirkMessage{
		{Message: frame.Message{Txn: p.txn, CompletionAddr: 0x100, CompletionValue: p.txn}},
	})
	time.Sleep(5 * time.Millisecond)
}

// empty sends a frame without messages.
func (p *forgedPeer) empty(id frame.Seq) {
	p.t.Helper()
	quirkRawTo(p.t, p.there, rigOurs, frame.Header{Dst: 1, Src: 2, Seq: id}, nil)
	time.Sleep(5 * time.Millisecond)
}

func (p *forgedPeer) wrote() bool { return p.region.Load32(0x100) == p.txn }

// Attack A11 (SECURITY.md): one forged frame without messages, whatever its id,
// must not make old what the peer sends next. Nor must one with messages, if its
// id is far from where the peer is.
func TestForgedFrameFarAhead(t *testing.T) {
	for _, ahead := range []int{300, 8000, 8192, 16384, 20000, 32000, 32767, -32768, -20000, -300} {
		t.Run(fmt.Sprint(ahead), func(t *testing.T) {
			forgedTests(t, func(p *forgedPeer) {
				for _, forge := range []func(){
					func() { p.empty(p.id.Add(ahead)) },
					func() {
						id, txn := p.id, p.txn
						p.id, p.txn = p.id.Add(ahead), 0xFFFF
						p.wordAgain()
						p.id, p.txn = id, txn
					},
				} {
					for range 5 {
						p.word()
						if !p.wrote() {
							p.t.Fatalf("frame %d was not applied: %+v", p.id, p.conn.Stats().Counters)
						}
					}
					forge()
				}
				for range 5 {
					p.word()
					if !p.wrote() {
						p.t.Fatalf("frame %d was not applied: %+v", p.id, p.conn.Stats().Counters)
					}
				}
			})
		})
	}
}

// A peer that does nothing but acknowledge uses up ids, and all of these frames
// may be lost. What it sends then is applied: at once after two of these frames
// that came, else when it comes for the second time, or at once from peers that
// never repeat it.
func TestIDsUsedUpUnseen(t *testing.T) {
	for _, lost := range []frame.Seq{100, 255, 1000, 4000, 30000} {
		t.Run(fmt.Sprint(lost), func(t *testing.T) {
			forgedTests(t, func(p *forgedPeer) {
				for range 5 {
					p.word()
				}
				p.id += lost
				p.empty(p.id + 1)
				p.empty(p.id + 2)
				p.id += 2
				p.word()
				if !p.wrote() {
					p.t.Fatalf("frame %d was not applied after two empty ones: %+v", p.id, p.conn.Stats().Counters)
				}
				p.id += lost
				p.word()
				if profile := p.conn.Profile(); !p.wrote() && (!profile.NeverRetransmits || lost > 4000) {
					p.wordAgain()
				}
				if !p.wrote() {
					p.t.Fatalf("frame %d was not applied: %+v", p.id, p.conn.Stats().Counters)
				}
				p.word()
				if !p.wrote() {
					p.t.Fatalf("frame %d was not applied: %+v", p.id, p.conn.Stats().Counters)
				}
			})
		})
	}
}

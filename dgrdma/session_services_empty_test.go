package dgrdma

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestNothingServedIsTold checks that what is posted to a peer that serves nothing fails, and does not wait for ever, whichever side
// connects and however long frames are at either end: also where a frame of the handshake has no room for a list, to say so.
func TestNothingServedIsTold(t *testing.T) {
	const brief = 120 // no list fits into the frames of the handshake
	for _, mtu := range [][2]int{{0, 0}, {brief, 0}, {0, brief}, {brief, brief}} {
		inEachWay(t, Config{MTU: mtu[0]}, Config{MTU: mtu[1], Memory: noMemory{}}, func(t *testing.T, p *couple) {
			done := make(chan error, 1)
			x := write(64, pattern(1, 8), 0, 1)
			x.Done = func(_ *Transaction, err error) { done <- err }
			if err := p.toB.Post(x); err != nil {
				done <- err
			}
			time.Sleep(time.Minute)
			select {
			case err := <-done:
				if !errors.Is(err, ErrNoService) {
					t.Errorf("frames of %v bytes: %v", mtu, err)
				}
			default:
				t.Errorf("frames of %v bytes: it waits", mtu)
			}
		})
	}
}

// TestServiceAfterAWelcomeToAnUnknownSource checks that a peer hears of a service that was added after the WELCOME that it begins its
// session with, which it was told as an unknown source, although both ask and the frames that say more are lost.
func TestServiceAfterAWelcomeToAnUnknownSource(t *testing.T) {
	for _, closed := range []bool{false, true} { // there was a connection before, which told that
		synctest.Test(t, func(t *testing.T) {
			n := simnet.New(1)
			defer n.Close()
			p := &pair{t: t, net: n}
			e := p.open(addrB, &Config{ID: 2, Memory: p.region(4096), AcceptAny: true})
			defer e.Close()
			s := newStranger(t, n, addrA, 1, 2, addrB)
			if closed {
				s.greet(60)
				s.recv(time.Millisecond)
			}
			s.shake(frame.Handshake{Kind: frame.HandshakeHello, Sender: 70})
			shakes, _ := s.sessionFrames(time.Millisecond)
			if len(shakes) != 1 || shakes[0].Kind != frame.HandshakeWelcome {
				t.Fatalf("%+v", shakes)
			}
			told := shakes[0].Sender
			if closed {
				e.Conns()[0].Close()
				s.recv(time.Second)
			}
			serve(t, e, newShelf("late", 1<<16))
			p.connect(e, Peer{ID: 1, Addr: addrA})
			if asked := s.asked(); asked != told {
				t.Fatalf("asks under %#x, and told %#x", asked, told)
			}
			s.welcome(70, told, serviceAt("memory", 0)) // what the CONFIRM says is lost
			s.acks(0)
			if lists := s.told(time.Millisecond, true); len(lists) != 1 || lists[0] != "memory, late" {
				t.Errorf("there was a connection %v: told of %q", closed, lists)
			}
		})
	}
}

package dgrdma

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestSessionEndedAsItRises checks that a callback which hears that the peer is there, and closes or resets the connection, is the end of the
// session: the frame by which the peer showed that changes nothing in memory and is not acknowledged.
func TestSessionEndedAsItRises(t *testing.T) {
	for name, ends := range map[string]func(*Conn) error{"Close": (*Conn).Close, "Reset": func(c *Conn) error { return c.Reset(0) }} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := simnet.New(1)
				defer n.Close()
				p := &pair{t: t, net: n}
				mem := p.region(4096)
				ups := 0
				e := p.open(addrB, &Config{ID: 2, Memory: mem, OnEvent: func(ev Event) {
					if ev.Kind == PeerUp {
						ups++
						if err := ends(ev.Conn); err != nil {
							t.Error(err)
						}
					}
				}})
				defer e.Close()
				c := p.connect(e, Peer{ID: 1, Addr: addrA})
				s := newStranger(t, n, addrA, 1, 2, addrB)
				s.welcome(life, s.asked(), serviceAt("memory", 0))
				s.recv(time.Millisecond)
				for id := range uint16(3) { // in a batch
					s.send(1+Seq(id), data(life, 3, 1+id, 64+8*uint32(id), pattern(1, 8)))
				}
				got := s.recv(time.Millisecond)
				if ups != 1 {
					t.Errorf("the peer is up %d times", ups)
				}
				if b := mem.Bytes(); b[64] != 0 || b[72] != 0 || mem.Load32(0) != 0 {
					t.Errorf("the memory has %v", b[64:88])
				}
				if acked(got, 1) {
					t.Error("the frame is acknowledged")
				}
				if st := c.Stats(); st.MessagesPlaced != 0 || st.Open != 0 {
					t.Errorf("%d messages were placed, %d transactions are open; %s", st.MessagesPlaced, st.Open, fmt.Sprint(st.RefusedReasons()))
				}
			})
		})
	}
}

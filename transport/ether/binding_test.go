package ether_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/ether"
)

// replug deletes the cable and makes another one with interfaces of the same
// names, with these addresses, the first with that number if it is not 0.
func replug(t *testing.T, macs [2]net.HardwareAddr, index int) {
	t.Helper()
	check(t, netlink.LinkDel(link(t, "d0")))
	time.Sleep(20 * time.Millisecond) // who waits for frames notices
	check(t, netlink.LinkAdd(&netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: "d0", MTU: 1500, Index: index, HardwareAddr: macs[0]}, PeerName: "d1", PeerMTU: 1500, PeerHardwareAddr: macs[1],
	}))
	up(t, "d0", "d1")
}

// listener receives in the background.
type listener struct {
	heard chan []byte
	ended chan error
}

func inBackground(t *testing.T, c *ether.Conn) *listener {
	l := &listener{make(chan []byte, 1000), make(chan error, 1)}
	go func() {
		in := make([]transport.Datagram, 8)
		for {
			n, err := c.Recv(in, transport.Forever)
			if err != nil || n == 0 {
				l.ended <- err
				return
			}
			for _, d := range in[:n] {
				l.heard <- append([]byte(nil), d.Data...)
			}
		}
	}()
	return l
}

// chatter sends frames until stopped.
func chatter(from *ether.Conn, to transport.Addr) (stop func()) {
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-end:
				return
			case <-time.After(100 * time.Microsecond):
				from.Send([]transport.Outgoing{{To: &to, Buf: frame(2, 60, 0)}})
			}
		}
	}()
	return func() {
		close(end)
		<-done
	}
}

// TestInterfaceMadeAgain (attack A16, SECURITY.md): an interface is deleted and made
// again under its name, and those who listen and send there are heard again.
func TestInterfaceMadeAgain(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, ring bool) {
		for name, c := range map[string]struct{ sending, sameNumber bool }{
			"at rest": {}, "sending meanwhile": {sending: true}, "with the same number": {sameNumber: true},
		} {
			t.Run(name, func(t *testing.T) {
				cable(t, 1500)
				a, b := listen(t, ether.Config{NoRing: !ring, NoXDP: !ring, Interface: "d0", ID: 1}), listen(t, ether.Config{NoRing: !ring, Interface: "d1", ID: 2})
				to := [2]*listener{inBackground(t, a), inBackground(t, b)}
				index := 0
				if c.sameNumber {
					index = link(t, "d0").Attrs().Index
				}
				stop := func() {}
				if c.sending {
					stop = chatter(a, b.LocalAddr())
					<-to[1].heard
				}
				defer func() { stop() }()
				for range 3 {
					replug(t, [2]net.HardwareAddr{hardware(a), hardware(b)}, index)
					through := func(from, at *ether.Conn, id uint16, l *listener) {
						t.Helper()
						marker := frame(id, 77, 200)
						for deadline := time.Now().Add(10 * time.Second); ; {
							if time.Now().After(deadline) {
								t.Fatalf("nothing comes through again; %+v, %+v", from.Stats(), at.Stats())
							}
							if !c.sending || from == b {
								send(t, from, at.LocalAddr(), marker)
							}
							select {
							case <-l.heard:
								return
							case err := <-l.ended:
								t.Fatal(err)
							case <-time.After(10 * time.Millisecond):
							}
						}
					}
					for len(to[1].heard) > 0 {
						<-to[1].heard
					}
					through(a, b, 2, to[1])
					through(b, a, 1, to[0])
				}
				stop()
				stop = func() {}
				// Ids that are selected later are heard, too.
				check(t, b.Select(7))
				send(t, a, b.LocalAddr(), frame(7, 99, 0))
				for got := []byte(nil); len(got) != 99; {
					select {
					case got = <-to[1].heard:
					case <-time.After(5 * time.Second):
						t.Fatal("an id selected afterwards is not heard")
					}
				}
			})
		}
	})
}

// TestInterfaceMadeAgainDiffers: under another address nobody reaches this endpoint:
// it ends, and says why.
func TestInterfaceMadeAgainDiffers(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, ring bool) {
		cable(t, 1500)
		a := listen(t, ether.Config{NoRing: !ring, NoXDP: !ring, Interface: "d0"})
		to := inBackground(t, a)
		other := net.HardwareAddr{2, 0, 0, 0, 0, 9}
		replug(t, [2]net.HardwareAddr{other, hardware(a)}, 0)
		select {
		case err := <-to.ended:
			for _, says := range []string{"interface d0", other.String(), hardware(a).String(), "open it again"} {
				if err == nil || !strings.Contains(err.Error(), says) {
					t.Errorf("%v does not say %q", err, says)
				}
			}
		case <-time.After(5 * time.Second):
			t.Fatal("silence")
		}
		if _, err := a.Send([]transport.Outgoing{{To: new(a.LocalAddr()), Buf: frame(1, 60, 0)}}); err == nil {
			// Once in lookAgain.
			time.Sleep(200 * time.Millisecond)
			if _, err := a.Send([]transport.Outgoing{{To: new(a.LocalAddr()), Buf: frame(1, 60, 0)}}); err == nil {
				t.Error("sending works")
			}
		}
	})
}

// TestRenamed: an interface that has another name now is the same, though another one has
// its name: what comes over it is heard, and nobody goes on looking for the name.
func TestRenamed(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, ring bool) {
		for _, swapped := range []bool{false, true} {
			cable(t, 1500)
			a, b := listen(t, ether.Config{Interface: "d0"}), listen(t, ether.Config{NoRing: !ring, NoXDP: !ring, Interface: "d1", Buffer: 1})
			to := inBackground(t, b)
			d1 := link(t, "d1")
			down(t, "d1")
			for i := 0; !b.Away(); i++ {
				if i == 5000 {
					t.Fatal("it does not notice that the interface is down")
				}
				time.Sleep(time.Millisecond)
			}
			check(t, netlink.LinkSetName(d1, "x1"))
			if swapped {
				check(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "d1"}, PeerName: "y1"}))
				up(t, "d1", "y1")
			}
			up(t, "x1", "d0")
			for i := 0; b.Away() || len(to.heard) == 0; i++ {
				if i == 5000 {
					t.Fatalf("swapped %v: away %v, %d frames heard", swapped, b.Away(), len(to.heard))
				}
				send(t, a, b.LocalAddr(), frame(1, 60, 0))
				select {
				case err := <-to.ended:
					t.Fatal(err)
				case <-time.After(time.Millisecond):
				}
			}
			check(t, b.Close())
		}
	})
}

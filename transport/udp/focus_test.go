package udp

import (
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/tests/netns"
	"github.com/dgrdma/dgrdma/transport"
)

// TestPeersAfterOne: a socket that had one peer hears one at another address, when it has two.
func TestPeersAfterOne(t *testing.T) {
	netns.Require(t)
	pair := netns.NewPair(t, 1500)
	second := map[bool]netip.Addr{true: netip.MustParseAddr("10.77.0.52"), false: netip.MustParseAddr("fd77::52")} // by whether it is IPv4
	for _, ip := range second {
		pair[1].Give(t, netns.Device, ip)
	}
	for _, x := range []struct {
		at    string
		asked netip.Addr
	}{
		{"10.77.0.1", netns.IPv4(0)}, {"fd77::1", netns.IPv6(0)}, {"::", netns.IPv4(0)}, {"::", netns.IPv6(0)}, {"0.0.0.0", netns.IPv4(0)},
	} {
		var c *Conn
		pair[0].In(func() { c = listen(t, x.at, Config{}) })
		there := net.UDPAddrFromAddrPort(netip.AddrPortFrom(x.asked, c.LocalAddr().AddrPort().Port()))
		first := netns.IPv4(1)
		if x.asked.Is6() {
			first = netns.IPv6(1)
		}
		for _, from := range []netip.Addr{first, second[x.asked.Is4()], first} {
			var client net.PacketConn
			var err error
			pair[1].In(func() { client, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, 0))) })
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			if _, err := client.WriteTo(make([]byte, 100), there); err != nil {
				t.Fatal(err)
			}
			_, froms := collect(t, c, 1, 1)
			c.Focus(froms[0])
			if n, err := c.Send([]transport.Outgoing{outgoing(froms[0], 0, 100)}); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			client.SetReadDeadline(time.Now().Add(patience))
			if _, back, err := client.ReadFrom(make([]byte, 200)); err != nil || back.String() != there.String() {
				t.Fatalf("%s: from %v, asked %v: %v", x.at, back, there, err)
			}
			c.Focus(transport.Addr{})
		}
	}
}

// numbers sends n frames to a peer, the first of which has that number.
func numbers(t *testing.T, c *Conn, to transport.Addr, first, n int) {
	t.Helper()
	for i := range n {
		if sent, err := c.Send([]transport.Outgoing{outgoing(to, first+i, 100)}); sent != 1 || err != nil {
			t.Fatal(sent, err)
		}
	}
}

// TestFocusChanges: what came before Focus was called, to either socket, is received after it as well, from the
// same address; and the second sockets are closed.
func TestFocusChanges(t *testing.T) {
	for _, p := range places() {
		a := listen(t, p.at, Config{})
		b, other := listen(t, p.at, Config{}), listen(t, p.at, Config{})
		fromB, fromOther := p.seen(t, b, a), p.seen(t, other, a)
		before, sent, heard := descriptors(t), 0, true
		for _, to := range []transport.Addr{fromB, {}, fromB, fromOther, fromB, {}} {
			if heard {
				numbers(t, b, p.seen(t, a, b), sent, 3)
				sent += 3
			}
			a.Focus(to)
			if heard = to != fromOther; !heard {
				continue
			}
			numbers(t, b, p.seen(t, a, b), sent, 3)
			sent += 3
			got, froms := collect(t, a, sent, 2)
			for i := range got {
				if n := binary.BigEndian.Uint32(got[i]); n != uint32(i) || froms[i] != fromB {
					t.Errorf("%v: frame %d from %v is the %dth", p, n, froms[i], i)
				}
			}
			sent = 0
		}
		if n, err := a.Recv(make([]transport.Datagram, 1), 0); n != 0 || err != nil {
			t.Errorf("%v: %d more: %v", p, n, err)
		}
		if after := descriptors(t); after != before {
			t.Errorf("%v: %d descriptors, and %d before", p, after, before)
		}
	}
}

// descriptors returns how many this process has.
func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// TestFocusWhileReceiving: whoever waits for datagrams goes on to do so where they come, and Close ends it.
func TestFocusWhileReceiving(t *testing.T) {
	for _, p := range places() {
		a, b := listen(t, p.at, Config{}), listen(t, p.at, Config{})
		to, back := p.seen(t, b, a), p.seen(t, a, b)
		came := make(chan int, 1000)
		var done sync.WaitGroup
		done.Go(func() {
			defer close(came)
			in := make([]transport.Datagram, 8)
			for {
				n, err := a.Recv(in, transport.Forever)
				if err != nil {
					return
				}
				for _, d := range in[:n] {
					came <- int(binary.BigEndian.Uint32(d.Data))
				}
			}
		})
		for i := range 200 {
			a.Focus([]transport.Addr{to, {}}[i%2])
			numbers(t, a, to, i, 1) // which goroutine closes a socket makes no difference to the one that sends
			numbers(t, b, back, i, 1)
			select {
			case n := <-came:
				if n != i {
					t.Fatalf("%v: frame %d, want %d", p, n, i)
				}
			case <-time.After(patience):
				t.Fatalf("%v: frame %d did not come", p, i)
			}
		}
		collect(t, b, 200, 8)
		a.Focus(to)
		a.Close()
		done.Wait()
		a.Focus(to) // of no use, and harmless
	}
}

// TestFocusElsewhere: from another network namespace than that of the socket, which can open no second
// one in it, everyone is heard as before.
func TestFocusElsewhere(t *testing.T) {
	netns.Require(t)
	pair := netns.NewPair(t, 1500)
	var a, b *Conn
	pair[0].In(func() { a = listen(t, "::", Config{}) })
	pair[1].In(func() { b = listen(t, "::", Config{}) })
	to, err := a.Towards(transport.UDPAddr(netip.AddrPortFrom(netns.IPv4(1), b.LocalAddr().AddrPort().Port())))
	if err != nil {
		t.Fatal(err)
	}
	a.Focus(to)
	numbers(t, a, to, 1, 1)
	_, froms := collect(t, b, 1, 1)
	numbers(t, b, froms[0], 2, 1)
	if _, froms = collect(t, a, 1, 1); froms[0] != to {
		t.Errorf("from %v, want %v", froms[0], to)
	}
}

// TestFocusKeepsThePort: another socket cannot have the port, though the second one has.
func TestFocusKeepsThePort(t *testing.T) {
	for _, p := range places() {
		a, b := listen(t, p.at, Config{}), listen(t, p.at, Config{})
		a.Focus(p.seen(t, b, a))
		fd, err := open(p.ip.Is6())
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		sharePort(fd, 1)
		if err := unix.Bind(fd, sockaddr(p.of(a).AddrPort(), p.ip.Is6())); err != unix.EADDRINUSE {
			t.Errorf("%v: %v", p, err)
		}
	}
}

// TestFocusedPeerComesBack: nobody is at the peer's port for a while, of which ICMP tells a connected socket. That
// is loss, and the peer is reached once it is back.
func TestFocusedPeerComesBack(t *testing.T) {
	for _, p := range places() {
		a, b := listen(t, p.at, Config{}), listen(t, p.at, Config{})
		at, to := p.of(b).AddrPort(), p.seen(t, b, a)
		a.Focus(to)
		b.Close()
		for i := range 20 {
			numbers(t, a, to, i, 1)
			if n, err := a.Recv(make([]transport.Datagram, 1), 0); n != 0 || err != nil {
				t.Fatalf("%v: %d, %v", p, n, err)
			}
		}
		b, err := Listen(Config{Addr: at})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		numbers(t, a, to, 20, 1)
		collect(t, b, 1, 1)
		if gso, _ := a.Offload(); !gso {
			t.Errorf("%v: offload is off", p)
		}
	}
}

// TestReportsOfNarrowPathsAreNotBelieved: whoever invents one has a connected socket fail once, and not leave
// offload alone.
func TestReportsOfNarrowPathsAreNotBelieved(t *testing.T) {
	netns.Require(t)
	pair := netns.NewPair(t, 1500)
	for _, at := range []string{netns.IPv4(0).String(), "0.0.0.0", "::"} {
		var a, b *Conn
		pair[0].In(func() { a = listen(t, at, Config{}) })
		pair[1].In(func() { b = listen(t, netns.IPv4(1).String(), Config{}) })
		to, err := a.Towards(b.LocalAddr())
		if err != nil {
			t.Fatal(err)
		}
		before, _ := a.Offload()
		pair[0].In(func() { a.Focus(to) })
		for range 3 {
			pair[1].In(func() { sendTooBig(t, netip.AddrPortFrom(netns.IPv4(0), a.local.Port()), b.local) })
			if n, err := a.Send(run(to, 5, 1000)); n != 5 || err != nil {
				t.Fatal(n, err)
			}
			collect(t, b, 5, 5)
		}
		if after, _ := a.Offload(); after != before {
			t.Errorf("%s: offload was %v and is %v", at, before, after)
		}
		if s := a.Stats(); s.SendDrops != 0 {
			t.Errorf("%s: %+v", at, s)
		}
	}
}

// sendTooBig tells the socket at that address that a datagram to there was too long for the way.
func sendTooBig(t *testing.T, socket, there netip.AddrPort) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	b := make([]byte, 8+20+8)
	b[0], b[1] = 3, 4 // destination unreachable, fragmentation needed
	binary.BigEndian.PutUint16(b[6:], 600)
	ip := b[8:]
	ip[0], ip[8], ip[9] = 4<<4|5, 64, unix.IPPROTO_UDP
	binary.BigEndian.PutUint16(ip[2:], 1028)
	copy(ip[12:], socket.Addr().AsSlice())
	copy(ip[16:], there.Addr().AsSlice())
	binary.BigEndian.PutUint16(ip[20:], socket.Port())
	binary.BigEndian.PutUint16(ip[22:], there.Port())
	var sum uint32
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum>>16 != 0 {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(b[2:], ^uint16(sum))
	if err := unix.Sendto(fd, b, 0, &unix.SockaddrInet4{Addr: socket.Addr().As4()}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond) // it has come, or it does no harm
}

// TestFocusedFromAnAddressThatIsGone: what is sent to the peer is lost as long as this machine does not have
// the address, and no longer.
func TestFocusedFromAnAddressThatIsGone(t *testing.T) {
	for _, s := range []string{"10.77.0.50", "fd77::50"} {
		h := newHomes(t)
		ip := netip.MustParseAddr(s)
		c := h.listen(t, "::", Config{})
		client := h.dial(t, ip, c)
		if _, err := client.Write(make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		to, _ := heard(t, c)
		h.Pair[0].In(func() { c.Focus(to) })
		h.Pair[0].Take(t, netns.Device, ip)
		numbers(t, c, to, 1, 10)
		h.Pair[0].Give(t, netns.Device, ip)
		client.SetReadDeadline(time.Now().Add(patience))
		for in := make([]byte, 200); ; {
			numbers(t, c, to, 42, 1)
			if _, err := client.Read(in); err != nil {
				t.Fatalf("%v: %v", ip, err)
			}
			if binary.BigEndian.Uint32(in[prefix:]) == 42 {
				break
			}
		}
		// The kernel may have to look for the address that was gone.
		in := make([]transport.Datagram, 1)
		for deadline, n := time.Now().Add(patience), 0; n == 0; {
			if _, err := client.Write(make([]byte, 100)); err != nil {
				t.Fatal(err)
			}
			var err error
			if n, err = c.Recv(in, 100*time.Millisecond); err != nil || time.Now().After(deadline) {
				t.Fatalf("%v: nothing comes: %v", ip, err)
			}
		}
		if in[0].From != to {
			t.Errorf("from %v, want %v", in[0].From, to)
		}
	}
}

package ether_test

import (
	"bytes"
	"math"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/ether"
)

// TestLentFramesSurviveClose: what Recv returned is good until the next Recv,
// though the Conn was closed, as long as somebody knows that.
func TestLentFramesSurviveClose(t *testing.T) {
	cable(t, 1500)
	a, b := listen(t, ether.Config{Interface: "d0"}), listen(t, ether.Config{Interface: "d1", Buffer: 1})
	want := frame(1, 1500, 0)
	send(t, a, b.LocalAddr(), want, want)
	in := make([]transport.Datagram, 1)
	for range 2 {
		n, err := b.Recv(in, transport.Forever)
		check(t, err)
		if n != 1 || !bytes.Equal(in[0].Data, want) {
			t.Fatal("wrong frame")
		}
	}
	check(t, b.Close())
	if !bytes.Equal(in[0].Data, want) {
		t.Error("frame changed with Close")
	}
	if n := packetSockets(t); n != 2 {
		t.Errorf("%d packet sockets, want 2: frames are still lent", n)
	}
	if _, err := b.Recv(in, transport.Forever); err == nil {
		t.Error("Recv after Close: no error")
	}
	if n := packetSockets(t); n != 1 {
		t.Errorf("%d packet sockets, want 1", n)
	}
}

// TestPollWaits: no longer than it was told, and no longer than until something
// comes; with and without shared memory.
func TestPollWaits(t *testing.T) {
	cable(t, 1500)
	a := listen(t, ether.Config{Interface: "d0"})
	in := make([]transport.Datagram, 4)
	for _, ring := range []bool{false, true} {
		b := listen(t, ether.Config{Interface: "d1", NoRing: !ring, NoXDP: !ring, Buffer: 1})
		const wait = 20 * time.Millisecond
		began := time.Now()
		if n, err := b.Recv(in, wait); n != 0 || err != nil || time.Since(began) < wait {
			t.Errorf("ring %v: %d, %v after %v, want nothing after %v", ring, n, err, time.Since(began), wait)
		}
		send(t, a, b.LocalAddr(), frame(1, 60, 0))
		began = time.Now()
		if n, err := b.Recv(in, time.Minute); n != 1 || err != nil || time.Since(began) > time.Minute/2 {
			t.Errorf("ring %v: %d, %v after %v, want a frame at once", ring, n, err, time.Since(began))
		}
		check(t, b.Close())
	}
}

// TestNoRoom: who has no room gets nothing, at once, and keeps what it got before; what
// waits is not lost, and nothing is held.
func TestNoRoom(t *testing.T) {
	inBothModes(t, func(t *testing.T, ring bool) {
		cable(t, 1500)
		a, b := listen(t, ether.Config{Interface: "d0"}), listen(t, ether.Config{Interface: "d1", NoRing: !ring, NoXDP: !ring, Buffer: 1})
		in := make([]transport.Datagram, 1)
		for i := range byte(3) {
			send(t, a, b.LocalAddr(), frame(1, 60, i))
			for _, wait := range []time.Duration{0, time.Minute, transport.Forever} {
				if n, err := b.Recv(nil, wait); n != 0 || err != nil {
					t.Fatal(n, err)
				}
			}
			if i > 0 && !bytes.Equal(in[0].Data, frame(1, 60, i-1)) {
				t.Errorf("frame %d changed", i-1)
			}
			if n, err := b.Recv(in, time.Second); n != 1 || err != nil || !bytes.Equal(in[0].Data, frame(1, 60, i)) {
				t.Errorf("frame %d: %d, %v", i, n, err)
			}
		}
		b.Recv(in, 0)
		b.Recv(nil, 0)
		check(t, b.Close())
		if n := packetSockets(t); n != 1 {
			t.Errorf("%d packet sockets, want 1", n)
		}
	})
}

// TestAbandoned: a Conn that nobody knows any more leaves nothing, whether it was closed or
// not, though frames were lent.
func TestAbandoned(t *testing.T) {
	inBothModes(t, func(t *testing.T, ring bool) {
		for _, closed := range []bool{false, true} {
			cable(t, 1500)
			a := listen(t, ether.Config{Interface: "d0"})
			had := descriptors(t)
			func() {
				b, err := ether.Listen(ether.Config{Interface: "d1", NoRing: !ring, NoXDP: !ring, Buffer: 1})
				check(t, err)
				send(t, a, b.LocalAddr(), frame(1, 60, 0))
				_, err = b.Recv(make([]transport.Datagram, 4), transport.Forever)
				check(t, err)
				if closed {
					check(t, b.Close())
				}
			}()
			for i := 0; packetSockets(t) != 1 || descriptors(t) > had; i++ {
				if i == 500 {
					t.Fatalf("closed %v: %d packet sockets and %d descriptors more than before", closed, packetSockets(t)-1, descriptors(t)-had)
				}
				runtime.GC()
				time.Sleep(10 * time.Millisecond)
			}
		}
	})
}

// descriptors counts those of the process.
func descriptors(t *testing.T) int {
	all, err := os.ReadDir("/proc/self/fd")
	check(t, err)
	return len(all)
}

// packetSockets counts those of the test's namespace.
func packetSockets(t *testing.T) int { return len(packetInodes(t)) }

// packetInodes returns their inodes.
func packetInodes(t *testing.T) (inodes []string) {
	b, err := os.ReadFile("/proc/thread-self/net/packet")
	check(t, err)
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n")[1:] {
		columns := strings.Fields(line)
		inodes = append(inodes, columns[len(columns)-1])
	}
	return inodes
}

// packetDescriptor returns the descriptor of the only packet socket.
func packetDescriptor(t *testing.T) (fd int) {
	inodes := packetInodes(t)
	all, err := os.ReadDir("/proc/self/fd")
	check(t, err)
	for _, e := range all {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && len(inodes) == 1 && to == "socket:["+inodes[0]+"]" {
			fd, err = strconv.Atoi(e.Name())
			check(t, err)
			return fd
		}
	}
	t.Fatalf("%d packet sockets, want one", len(inodes))
	return 0
}

// TestClosedTakesNoMore: a socket that is closed while frames are lent is there still, and
// the kernel puts no more frames into its ring.
func TestClosedTakesNoMore(t *testing.T) {
	cable(t, 1500)
	b := listen(t, ether.Config{Interface: "d1", Buffer: 1})
	fd := packetDescriptor(t)
	a := listen(t, ether.Config{Interface: "d0"})
	send(t, a, b.LocalAddr(), frame(1, 60, 0))
	in := make([]transport.Datagram, 1)
	_, err := b.Recv(in, transport.Forever)
	check(t, err)
	check(t, b.Close())
	took := func() uint32 {
		s, err := unix.GetsockoptTpacketStats(fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
		check(t, err)
		return s.Packets
	}
	before := took()
	send(t, a, b.LocalAddr(), frame(1, 60, 0), frame(1, 60, 0))
	time.Sleep(20 * time.Millisecond)
	if after := took(); before != 1 || after != 0 {
		t.Errorf("took %d frames before Close, want 1, and %d behind it, want none", before, after)
	}
	b.Recv(in, 0)
}

// TestPollNoticesReturn: who never sleeps learns that the interface was away, too, and
// is bound to the one that took its place; also who looks now and then, in time.
func TestPollNoticesReturn(t *testing.T) {
	for pause, looks := range map[time.Duration]int{0: math.MaxInt, 5 * time.Millisecond: 100} {
		t.Run(pause.String(), func(t *testing.T) {
			inBothModes(t, func(t *testing.T, ring bool) {
				cable(t, 1500)
				a, b := listen(t, ether.Config{Interface: "d0"}), listen(t, ether.Config{Interface: "d1", NoRing: !ring, NoXDP: !ring, Buffer: 1})
				replug(t, [2]net.HardwareAddr{hardware(a), hardware(b)}, 0)
				a = listen(t, ether.Config{Interface: "d0"})
				in := make([]transport.Datagram, 4)
				for left, end := looks, time.Now().Add(10*time.Second); ; left-- {
					send(t, a, b.LocalAddr(), frame(1, 60, 0))
					n, err := b.Recv(in, 0)
					check(t, err)
					if n > 0 {
						return
					}
					if left == 0 || time.Now().After(end) {
						t.Fatal("nothing comes through again")
					}
					time.Sleep(pause)
				}
			})
		})
	}
}

package ether_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/ether"
)

// byXDP listens, and fails where frames do not leave by AF_XDP then. The kernel frees the queue of a socket that was
// closed in the background: as long as it is in use, byXDP listens again.
func byXDP(t testing.TB, cfg ether.Config) *ether.Conn {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		c := listen(t, cfg)
		err := c.WithoutXDP()
		switch {
		case err == nil:
			return c
		case !errors.Is(err, unix.EBUSY) || time.Now().After(deadline):
			t.Fatalf("%s: %v", cfg.Interface, err)
		}
		check(t, c.Close())
	}
}

// byCalls listens, and fails where frames leave by AF_XDP all the same, or for another reason than this one.
func byCalls(t testing.TB, cfg ether.Config, why string) *ether.Conn {
	t.Helper()
	c := listen(t, cfg)
	if err := c.WithoutXDP(); err == nil || !strings.Contains(err.Error(), why) {
		t.Fatalf("frames leave by calls because of %q, want %q", err, why)
	}
	return c
}

// TestXDPOnInterfaces checks that an interface of each kind, with frames of each length, sends by AF_XDP
// without being told.
func TestXDPOnInterfaces(t *testing.T) {
	for _, mtu := range []int{128, 1500, 2018, 2032, 2033, 4080, 4081, 9000, 65535} {
		t.Run(fmt.Sprint("veth ", mtu), func(t *testing.T) {
			cable(t, mtu)
			passes(t, byXDP(t, ether.Config{Interface: "d0", NeedXDP: true}), byXDP(t, ether.Config{Interface: "d1"}), mtu)
		})
	}
	t.Run("lo", func(t *testing.T) {
		cable(t, 1500)
		check(t, netlink.LinkSetUp(link(t, "lo")))
		passes(t, byXDP(t, ether.Config{Interface: "lo", ID: 2}), listen(t, ether.Config{Interface: "lo", ID: 1}), 65535)
	})
	for _, kind := range []string{"macvlan", "bridge", "vlan", "bond"} {
		t.Run(kind, func(t *testing.T) {
			cable(t, 1500)
			for _, at := range []string{"0", "1"} {
				attrs, over := netlink.LinkAttrs{Name: "x" + at}, link(t, "d"+at)
				var l netlink.Link
				switch kind {
				case "macvlan":
					attrs.ParentIndex = over.Attrs().Index
					l = &netlink.Macvlan{LinkAttrs: attrs}
				case "vlan":
					attrs.ParentIndex = over.Attrs().Index
					l = &netlink.Vlan{LinkAttrs: attrs, VlanId: 5}
				case "bridge":
					l = &netlink.Bridge{LinkAttrs: attrs}
				case "bond":
					l = netlink.NewLinkBond(attrs)
				}
				if err := netlink.LinkAdd(l); errors.Is(err, unix.EOPNOTSUPP) {
					t.Logf("this kernel has no interfaces of the kind %s", kind)
					return
				} else {
					check(t, err)
				}
				switch kind {
				case "bond":
					check(t, netlink.LinkSetDown(over))
					fallthrough
				case "bridge":
					check(t, netlink.LinkSetMaster(over, l))
				}
			}
			up(t, "x0", "x1")
			passes(t, byXDP(t, ether.Config{Interface: "x0"}), byXDP(t, ether.Config{Interface: "x1"}), 1500)
		})
	}
}

// passes sends frames of all lengths, until one has come: a bridge learns, and forwards after a while.
func passes(t *testing.T, from, to *ether.Conn, mtu int) {
	t.Helper()
	in := make([]transport.Datagram, 16)
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(time.Millisecond) {
		send(t, from, to.LocalAddr(), frame(1, 70, 0))
		if n, err := to.Recv(in, 100*time.Millisecond); n > 0 || err != nil {
			check(t, err)
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing comes through")
		}
	}
	for n := 1; n > 0; {
		var err error
		n, err = to.Recv(in, 0)
		check(t, err)
	}
	for size := 2; ; size = min(size+1+size/2, mtu) {
		send(t, from, to.LocalAddr(), frame(1, size, byte(size)), frame(1, size, byte(size+1)))
		for i, d := range collect(t, to, 2) {
			if d.From != from.LocalAddr() || !bytes.Equal(d.Data, frame(1, size, byte(size+i))) {
				t.Fatalf("%d bytes: %d came, from %v", size, len(d.Data), d.From)
			}
		}
		if size == mtu {
			break
		}
	}
	if s := from.Stats(); s.SendDrops != 0 {
		t.Errorf("%+v", s)
	}
	check(t, from.WithoutXDP())
}

// TestBothWaysSendTheSame checks that what arrives is the same to the byte whichever way frames leave:
// short frames are not padded, and addresses of groups are sent to as they are.
func TestBothWaysSendTheSame(t *testing.T) {
	for _, mtu := range []int{1500, 9000} {
		cable(t, mtu)
		seen := everything(t, "d1")
		var arrived [2][][]byte
		for i, cfg := range []ether.Config{{Interface: "d0", NoXDP: true, EtherType: 0x88b5}, {Interface: "d0", NeedXDP: true, EtherType: 0x88b5}} {
			from := listen(t, cfg)
			for _, to := range [][6]byte{[6]byte(link(t, "d1").Attrs().HardwareAddr), {2, 3, 4, 5, 6, 7}, {1, 0, 0x5e, 1, 2, 3}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}} {
				for size := 2; size <= mtu; size += 1 + size/3 {
					send(t, from, transport.EtherAddr(to), frame(1, size, byte(size)))
					arrived[i] = append(arrived[i], seen.frame(t, 0x88b5))
				}
			}
			check(t, from.Close())
		}
		for i, b := range arrived[0] {
			if x := arrived[1][i]; !bytes.Equal(b, x) {
				t.Errorf("by calls %d bytes %.40x, by AF_XDP %d bytes %.40x", len(b), b, len(x), x)
			}
		}
	}
}

// TestCaptureOnTheSender checks what a capture on the sender's interface sees of frames: all that leave by
// calls, and none that leave by AF_XDP.
func TestCaptureOnTheSender(t *testing.T) {
	cable(t, 1500)
	seen, arrived := everything(t, "d0"), everything(t, "d1")
	for i, cfg := range []ether.Config{{Interface: "d0", NeedXDP: true}, {Interface: "d0", NoXDP: true}} {
		from := listen(t, cfg)
		for range 3 {
			send(t, from, transport.EtherAddr([6]byte(link(t, "d1").Attrs().HardwareAddr)), frame(1, 60, byte(i)))
			arrived.frame(t, ether.EtherType)
		}
		check(t, from.Close())
	}
	for range 3 {
		if b := seen.frame(t, ether.EtherType); !bytes.Equal(b[14:], frame(1, 60, 1)) {
			t.Errorf("the sender's capture has %.40x", b)
		}
	}
}

// everything sees all frames that pass an interface, either way.
func everything(t *testing.T, name string) watcher {
	w := watch(t, name)
	check(t, unix.SetsockoptInt(w.fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 0))
	return w
}

// frame returns the next frame with that EtherType.
func (w watcher) frame(t *testing.T, etherType uint16) []byte {
	t.Helper()
	b := make([]byte, 1<<16)
	for {
		n, _, err := unix.Recvfrom(w.fd, b, 0)
		check(t, err)
		if n >= 14 && binary.BigEndian.Uint16(b[12:]) == etherType {
			return bytes.Clone(b[:n])
		}
	}
}

// TestXDPQueueInUse checks that the second one on an interface takes the next queue, and sends by calls where
// there is none; or fails, if it was told to, and says what to do. Who comes when the first has gone has its queue.
func TestXDPQueueInUse(t *testing.T) {
	cable(t, 1500)
	first := byXDP(t, ether.Config{Interface: "d0"})
	second := byCalls(t, ether.Config{Interface: "d0"}, "device or resource busy")
	refused(t, ether.Config{Interface: "d0", NeedXDP: true}, "Ethernet d0: an AF_XDP socket for sending cannot be had: bind: device or resource busy",
		"end the program that has it", "xdp=off")
	at := listen(t, ether.Config{Interface: "d1"})
	for i, from := range []*ether.Conn{first, second} {
		send(t, from, at.LocalAddr(), frame(1, 60, byte(i)))
		if got := collect(t, at, 1)[0].Data; !bytes.Equal(got, frame(1, 60, byte(i))) {
			t.Errorf("%x", got)
		}
	}
	check(t, first.Close())
	soonByXDP(t, second, at)

	const queues = 3
	check(t, netlink.LinkAdd(&netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: "q0", NumTxQueues: queues, NumRxQueues: queues}, PeerName: "q1", PeerNumTxQueues: queues, PeerNumRxQueues: queues,
	}))
	up(t, "q0", "q1")
	at = listen(t, ether.Config{Interface: "q1"})
	for i := range byte(queues) {
		c := byXDP(t, ether.Config{Interface: "q0"})
		send(t, c, at.LocalAddr(), frame(1, 60, i))
		if got := collect(t, at, 1)[0].Data; !bytes.Equal(got, frame(1, 60, i)) {
			t.Errorf("queue %d: %x", i, got)
		}
	}
	byCalls(t, ether.Config{Interface: "q0"}, "device or resource busy")
}

// soonByXDP sends until frames leave by AF_XDP, and checks that each comes once, in its turn.
func soonByXDP(t *testing.T, from, to *ether.Conn) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for i := byte(0); ; i++ {
		before := from.WithoutXDP()
		send(t, from, to.LocalAddr(), frame(1, 60, i))
		if got := collect(t, to, 1)[0].Data; !bytes.Equal(got, frame(1, 60, i)) {
			t.Fatalf("frame %d: %x", i, got)
		}
		if before == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("frames still leave by calls: %v", before)
		}
	}
}

// TestShapedInterface checks that what shapes traffic is passed by only where that is asked for.
func TestShapedInterface(t *testing.T) {
	cable(t, 1500)
	tbf := &netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: link(t, "d0").Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
		Rate:       1 << 20, Limit: 1 << 20, Buffer: 1 << 20,
	}
	check(t, netlink.QdiscAdd(tbf))
	auto := byCalls(t, ether.Config{Interface: "d0"}, "the queueing discipline tbf")
	c := byXDP(t, ether.Config{Interface: "d0", NeedXDP: true})
	check(t, c.Close())
	other := byXDP(t, ether.Config{Interface: "d1"}) // what is on another interface is no reason
	check(t, netlink.QdiscDel(tbf))
	soonByXDP(t, auto, other)
	// It is noticed also when it comes later.
	check(t, netlink.QdiscAdd(tbf))
	for deadline := time.Now().Add(time.Minute); auto.WithoutXDP() == nil; {
		send(t, auto, other.LocalAddr(), frame(1, 60, 0))
		collect(t, other, 1)
		if time.Now().After(deadline) {
			t.Fatal("a queueing discipline that came later is not noticed")
		}
	}
	if why := auto.WithoutXDP().Error(); !strings.Contains(why, "the queueing discipline tbf") {
		t.Errorf("%q", why)
	}
	// A filter of what is sent, and one of what is received.
	for kind, passed := range map[string]bool{"clsact": false, "ingress": true} {
		cable(t, 1500)
		q := &netlink.GenericQdisc{
			QdiscAttrs: netlink.QdiscAttrs{LinkIndex: link(t, "d0").Attrs().Index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_INGRESS}, QdiscType: kind,
		}
		check(t, netlink.QdiscAdd(q))
		if passed {
			byXDP(t, ether.Config{Interface: "d0"})
		} else {
			byCalls(t, ether.Config{Interface: "d0"}, "the queueing discipline clsact")
		}
	}
}

// TestNarrowedWhileSending checks that frames leave by calls when the interface carries less than it did:
// there the kernel refuses those that are too long.
func TestNarrowedWhileSending(t *testing.T) {
	cable(t, 1500)
	from, at := byXDP(t, ether.Config{Interface: "d0"}), listen(t, ether.Config{Interface: "d1"})
	send(t, from, at.LocalAddr(), frame(1, 1500, 0))
	collect(t, at, 1)
	check(t, netlink.LinkSetMTU(link(t, "d0"), 1000))
	for i := 0; from.WithoutXDP() == nil; i++ {
		if i == 5000 {
			t.Fatal("it is not noticed")
		}
		send(t, from, at.LocalAddr(), frame(1, 900, 0))
		collect(t, at, 1)
	}
	if why := from.WithoutXDP().Error(); !strings.Contains(why, "MTU 1500, but interface d0 has 1000 now") {
		t.Errorf("%q", why)
	}
	send(t, from, at.LocalAddr(), frame(1, 1500, 0), frame(1, 900, 1))
	if got := collect(t, at, 1)[0].Data; len(got) != 900 || from.Stats().SendDrops != 1 {
		t.Errorf("%d bytes came, %+v", len(got), from.Stats())
	}
	// As soon as it carries as much again, frames leave by AF_XDP.
	check(t, netlink.LinkSetMTU(link(t, "d0"), 1500))
	soonByXDP(t, from, at)
	// Made wider, it is a matter of course that longer frames pass.
	check(t, netlink.LinkSetMTU(link(t, "d0"), 9000))
	wide := byCalls(t, ether.Config{Interface: "d0", NoXDP: true}, "xdp=off")
	send(t, wide, at.LocalAddr(), frame(1, 1500, 0))
	collect(t, at, 1)
}

// TestXDPComesBack checks that after an interface was down, or was deleted and made again, frames leave by AF_XDP
// as before, and that what was given up meanwhile was counted.
func TestXDPComesBack(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		cable(t, 1500)
		from, at := byXDP(t, ether.Config{Interface: "d0"}), listen(t, ether.Config{Interface: "d1"})
		heard := inBackground(t, at)
		send(t, from, at.LocalAddr(), frame(1, 60, 0))
		<-heard.heard
		if deleted {
			check(t, netlink.LinkDel(link(t, "d0")))
		} else {
			down(t, "d0")
		}
		send(t, from, at.LocalAddr(), frame(1, 60, 1), frame(1, 60, 2), frame(1, 60, 3))
		if s := from.Stats(); s.SendDrops != 3 || from.WithoutXDP() == nil {
			t.Errorf("deleted %v: %+v, %v", deleted, s, from.WithoutXDP())
		}
		if deleted {
			check(t, netlink.LinkAdd(&netlink.Veth{
				LinkAttrs: netlink.LinkAttrs{Name: "d0", MTU: 1500, HardwareAddr: hardware(from)}, PeerName: "d1", PeerMTU: 1500, PeerHardwareAddr: hardware(at),
			}))
		}
		up(t, "d0", "d1")
		deadline := time.Now().Add(time.Minute)
		for through := false; !through || from.WithoutXDP() != nil; {
			if time.Now().After(deadline) {
				t.Fatalf("deleted %v: nothing comes through again, or by calls: %v", deleted, from.WithoutXDP())
			}
			send(t, from, at.LocalAddr(), frame(1, 60, 9))
			select {
			case got := <-heard.heard:
				if through = bytes.Equal(got, frame(1, 60, 9)); !through {
					t.Fatalf("deleted %v: %x, which was given up", deleted, got)
				}
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
}

// TestXDPRefused checks that frames leave by calls where the system has no AF_XDP, or refuses some part of it;
// that who insists is told what to do; and that nothing is left.
func TestXDPRefused(t *testing.T) {
	for _, c := range []struct {
		name           string
		call, argument int
		word           uint32
		with           unix.Errno
		says           string
	}{
		{"no sockets", unix.SYS_SOCKET, 0, unix.AF_XDP, unix.EAFNOSUPPORT, "CONFIG_XDP_SOCKETS"},
		{"forbidden", unix.SYS_SOCKET, 0, unix.AF_XDP, unix.EPERM, "do without it (xdp=off)"},
		{"no memory", unix.SYS_SETSOCKOPT, 2, unix.XDP_UMEM_REG, unix.ENOBUFS, "ulimit -l"},
		{"no ring", unix.SYS_SETSOCKOPT, 1, unix.SOL_XDP, unix.ENOPROTOOPT, "xdp=off"},
		{"no offsets", unix.SYS_GETSOCKOPT, 1, unix.SOL_XDP, unix.ENOPROTOOPT, "getsockopt"},
		{"no mapping", unix.SYS_MMAP, 3, unix.MAP_SHARED | unix.MAP_POPULATE, unix.ENOMEM, "mmap"},
		{"not bound", unix.SYS_BIND, 2, unix.SizeofSockaddrXDP, unix.EINVAL, "bind"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cable(t, 1500)
			at := listen(t, ether.Config{Interface: "d1", NoXDP: true})
			sandboxed(t, c.call, c.argument, c.word, c.with)
			had := descriptors(t)
			if err := refused(t, ether.Config{Interface: "d0", NeedXDP: true}, "an AF_XDP socket for sending cannot be had", c.says); !errors.Is(err, c.with) {
				t.Errorf("%v is no %v", err, c.with)
			}
			for i := 0; descriptors(t) > had || packetSockets(t) != 1; i++ { // what watches the interface ends behind Listen
				if i == 5000 {
					t.Fatalf("%d descriptors are left, and %d packet sockets", descriptors(t)-had, packetSockets(t)-1)
				}
				time.Sleep(time.Millisecond)
			}
			from := byCalls(t, ether.Config{Interface: "d0"}, c.says)
			send(t, from, at.LocalAddr(), frame(1, 1500, 0))
			if got := collect(t, at, 1)[0].Data; !bytes.Equal(got, frame(1, 1500, 0)) {
				t.Errorf("%.40x", got)
			}
		})
	}
}

// TestMemoryToLock checks that a user who may lock little memory sends by AF_XDP with less of it, and by calls
// where that is too much, too.
func TestMemoryToLock(t *testing.T) {
	var had unix.Rlimit
	check(t, unix.Getrlimit(unix.RLIMIT_MEMLOCK, &had))
	defer unix.Setrlimit(unix.RLIMIT_MEMLOCK, &had) // which counts only for who has not the capability
	cable(t, 1500)
	without(t, unix.CAP_IPC_LOCK)
	for kilobytes, enough := range map[uint64]bool{64: false, 1024: true} {
		check(t, unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: kilobytes << 10, Max: had.Max}))
		if !enough {
			byCalls(t, ether.Config{Interface: "d0"}, "ulimit -l")
			continue
		}
		c := byXDP(t, ether.Config{Interface: "d0"})
		passes(t, c, listen(t, ether.Config{Interface: "d1", NoXDP: true}), 1500)
		check(t, c.Close())
	}
}

// without takes a capability from this thread, which ends with the test.
func without(t *testing.T, capability int) {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	check(t, unix.Capget(&head, &data[0]))
	data[capability/32].Effective &^= 1 << (capability % 32)
	check(t, unix.Capset(&head, &data[0]))
}

// TestDeviceTakesNothing checks that who sends to a device that takes nothing more waits for no longer than a
// socket's buffer is waited for, that what finds no room is counted, and that it is the kernel's word that is
// believed.
func TestDeviceTakesNothing(t *testing.T) {
	cable(t, 1500)
	from := byXDP(t, ether.Config{Interface: "d0", NeedXDP: true})
	at := transport.EtherAddr([6]byte(link(t, "d1").Attrs().HardwareAddr))
	sandboxed(t, unix.SYS_SENDTO, 3, unix.MSG_DONTWAIT, unix.EAGAIN)
	batch := make([][]byte, 100)
	for i := range batch {
		batch[i] = frame(1, 1500, byte(i))
	}
	began := time.Now()
	for range 20 { // more than there is room for
		send(t, from, at, batch...)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	// All chunks are in use, each by a frame.
	if s := from.Stats(); s.SendDrops != 20*100-1024 {
		t.Errorf("%+v", s)
	}
	check(t, from.WithoutXDP())
}

// TestCallFails checks that frames leave by calls when the system refuses to go on with AF_XDP, and that those
// that were queued are counted as lost.
func TestCallFails(t *testing.T) {
	for _, e := range []unix.Errno{unix.EOPNOTSUPP, unix.EPERM, unix.EBUSY} {
		t.Run(e.Error(), func(t *testing.T) {
			cable(t, 1500)
			from, at := byXDP(t, ether.Config{Interface: "d0", NeedXDP: true}), listen(t, ether.Config{Interface: "d1"})
			sandboxed(t, unix.SYS_SENDTO, 3, unix.MSG_DONTWAIT, e)
			send(t, from, at.LocalAddr(), frame(1, 60, 1), frame(1, 60, 2))
			if err := from.WithoutXDP(); !errors.Is(err, e) {
				t.Errorf("%v", err)
			}
			if s := from.Stats(); e != unix.EBUSY && s.SendDrops != 2 {
				t.Errorf("%+v", s)
			}
			send(t, from, at.LocalAddr(), frame(1, 60, 3))
			if got := collect(t, at, 1)[0].Data; !bytes.Equal(got, frame(1, 60, 3)) {
				t.Errorf("%x", got)
			}
		})
	}
}

// TestNoAddress checks that a frame to what is no Ethernet address is given up, and the others leave.
func TestNoAddress(t *testing.T) {
	inBothModes(t, func(t *testing.T, ring bool) {
		cable(t, 1500)
		from, at := listen(t, ether.Config{Interface: "d0", NoXDP: !ring, NeedXDP: ring}), listen(t, ether.Config{Interface: "d1"})
		to, none := new(at.LocalAddr()), new(transport.Addr)
		batch := []transport.Outgoing{{To: none, Buf: frame(1, 60, 0)}, {To: to, Buf: frame(1, 61, 1)}, {To: none, Buf: frame(1, 62, 2)}, {To: to, Buf: frame(1, 63, 3)}, {To: none, Buf: frame(1, 64, 4)}}
		if n, err := from.Send(batch); n != len(batch) || err != nil {
			t.Fatal(n, err)
		}
		got := collect(t, at, 2)
		if !bytes.Equal(got[0].Data, batch[1].Buf) || !bytes.Equal(got[1].Data, batch[3].Buf) || from.Stats().SendDrops != 3 {
			t.Errorf("%x, %x, %+v", got[0].Data, got[1].Data, from.Stats())
		}
	})
}

// TestUnreadableInLongFrames checks that a frame of several chunks that cannot be read takes none, wherever that
// is found.
func TestUnreadableInLongFrames(t *testing.T) {
	cable(t, 9000)
	from, at := byXDP(t, ether.Config{Interface: "d0", NeedXDP: true}), listen(t, ether.Config{Interface: "d1"})
	gone, err := unix.Mmap(-1, 0, 3*4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	check(t, err)
	defer unix.Munmap(gone)
	check(t, unix.Mprotect(gone[2*4096:], unix.PROT_NONE))
	to := new(at.LocalAddr())
	const rounds = 400 // more than there are chunks for
	for range rounds {
		batch := []transport.Outgoing{{To: to, Buf: frame(1, 60, 0), Rest: gone[:8800]}, {To: to, Buf: frame(1, 9000, 0)}, {To: to, Buf: frame(1, 60, 0), Tail: gone[2*4096:][:9]}}
		if n, err := from.Send(batch); n != len(batch) || err != nil {
			t.Fatal(n, err)
		}
		if got := collect(t, at, 1)[0].Data; !bytes.Equal(got, frame(1, 9000, 0)) {
			t.Fatalf("%d bytes came", len(got))
		}
	}
	if s := from.Stats(); s.SendDrops != 2*rounds {
		t.Errorf("%+v", s)
	}
}

// TestXDPFromAnotherNamespace checks that who sends from a thread in another network namespace than the interface's
// has an AF_XDP socket on that interface all the same, and never on the one that has its number there.
func TestXDPFromAnotherNamespace(t *testing.T) {
	cable(t, 1500)
	from, at := byXDP(t, ether.Config{Interface: "d0"}), listen(t, ether.Config{Interface: "d1", NoXDP: true})
	d0 := link(t, "d0")
	down(t, "d0")
	send(t, from, at.LocalAddr(), frame(1, 60, 0)) // in vain
	up(t, "d0", "d1")
	cable(t, 1500) // another namespace, whose d0 has the same number
	if link(t, "d0").Attrs().Index != d0.Attrs().Index {
		t.Fatal("the other d0 has another number")
	}
	for deadline := time.Now().Add(time.Minute); from.WithoutXDP() != nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(from.WithoutXDP())
		}
		send(t, from, at.LocalAddr(), frame(1, 60, 0))
	}
	in := make([]transport.Datagram, 16)
	for n := 1; n > 0; { // what came before
		var err error
		n, err = at.Recv(in, 50*time.Millisecond)
		check(t, err)
	}
	send(t, from, at.LocalAddr(), frame(1, 60, 77))
	if got := collect(t, at, 1)[0].Data; !bytes.Equal(got, frame(1, 60, 77)) {
		t.Errorf("%x", got)
	}
}

// TestInterfaceChangesWhileSending checks that who sends without a pause while an interface becomes narrower, goes
// down, is shaped, or is deleted and made again, never fails and sends nothing wrong, and that frames leave by
// AF_XDP in the end.
func TestInterfaceChangesWhileSending(t *testing.T) {
	cable(t, 1500)
	from, at := byXDP(t, ether.Config{Interface: "d0"}), listen(t, ether.Config{Interface: "d1", NoXDP: true})
	end, ended := make(chan struct{}), make(chan error, 2)
	var heard atomic.Uint32 // 1 + the number of the last frame
	go func() {
		in := make([]transport.Datagram, 64)
		for {
			n, err := at.Recv(in, 10*time.Millisecond)
			for _, d := range in[:n] {
				number := binary.BigEndian.Uint32(d.Data[2:])
				if number < heard.Load() || !bytes.Equal(d.Data, countedFrame(number)) {
					ended <- fmt.Errorf("%.40x after frame %d", d.Data, heard.Load()-1)
					return
				}
				heard.Store(number + 1)
			}
			select {
			case <-end:
				err = net.ErrClosed
			default:
			}
			if err != nil {
				ended <- nil
				return
			}
		}
	}()
	var sent atomic.Uint32
	go func() {
		to := new(at.LocalAddr())
		for {
			batch := make([]transport.Outgoing, 7)
			for i := range batch {
				batch[i] = transport.Outgoing{To: to, Buf: countedFrame(sent.Add(1))}
			}
			n, err := from.Send(batch)
			select {
			case <-end:
				ended <- nil
				return
			default:
			}
			if n != len(batch) || err != nil {
				ended <- fmt.Errorf("sent %d of %d: %v", n, len(batch), err)
				return
			}
		}
	}()
	tbf := func() *netlink.Tbf {
		return &netlink.Tbf{
			QdiscAttrs: netlink.QdiscAttrs{LinkIndex: link(t, "d0").Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
			Rate:       1 << 30, Limit: 1 << 20, Buffer: 1 << 20,
		}
	}
	for i := range 3 {
		for _, change := range []func(){
			func() { check(t, netlink.LinkSetMTU(link(t, "d0"), 700)) },
			func() { check(t, netlink.LinkSetMTU(link(t, "d0"), 1500)) },
			func() { down(t, "d0") },
			func() { up(t, "d0", "d1") },
			func() { down(t, "d1") }, // there is no carrier
			func() { up(t, "d0", "d1") },
			func() { check(t, netlink.QdiscAdd(tbf())) },
			func() { check(t, netlink.QdiscDel(tbf())) },
			func() { check(t, netlink.LinkDel(link(t, "d0"))) },
			func() {
				check(t, netlink.LinkAdd(&netlink.Veth{
					LinkAttrs: netlink.LinkAttrs{Name: "d0", MTU: 1500, HardwareAddr: hardware(from)}, PeerName: "d1", PeerMTU: 1500, PeerHardwareAddr: hardware(at),
				}))
				up(t, "d0", "d1")
			},
		} {
			change()
			time.Sleep(time.Duration(i*i) * 20 * time.Millisecond)
		}
	}
	for deadline := time.Now().Add(time.Minute); from.WithoutXDP() != nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(from.WithoutXDP())
		}
		if len(ended) > 0 {
			t.Fatal(<-ended)
		}
	}
	now := sent.Load()
	for deadline := time.Now().Add(time.Minute); heard.Load() < now; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("nothing comes through after frame %d of %d", heard.Load(), now)
		}
		if len(ended) > 0 {
			t.Fatal(<-ended)
		}
	}
	close(end)
	check(t, errors.Join(<-ended, <-ended))
}

// countedFrame returns a frame whose bytes follow from its number, of 80 to 1500 bytes.
func countedFrame(number uint32) []byte {
	b := frame(1, 80+int(number*7919%1421), byte(number))
	binary.BigEndian.PutUint32(b[2:], number)
	return b
}

// TestQueueTakenAway checks that the device keeps the queue that is in use, or frames leave by another one: what
// "ethtool -L" asks for is refused by kernels that see the socket.
func TestQueueTakenAway(t *testing.T) {
	cable(t, 1500)
	const queues = 2
	check(t, netlink.LinkAdd(&netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: "q0", NumTxQueues: queues, NumRxQueues: queues}, PeerName: "q1", PeerNumTxQueues: queues, PeerNumRxQueues: queues,
	}))
	up(t, "q0", "q1")
	at := listen(t, ether.Config{Interface: "q1", NoXDP: true})
	var conns [queues]*ether.Conn
	for i := range conns {
		conns[i] = byXDP(t, ether.Config{Interface: "q0"})
	}
	for _, n := range []uint32{1, queues} {
		t.Logf("%d queues: %v", n, setQueues(t, "q0", n))
		for i, c := range conns {
			deadline := time.Now().Add(time.Minute)
			for through := false; !through; {
				send(t, c, at.LocalAddr(), frame(1, 60, byte(i)))
				in := make([]transport.Datagram, 1)
				k, err := at.Recv(in, 10*time.Millisecond)
				check(t, err)
				if through = k == 1 && bytes.Equal(in[0].Data, frame(1, 60, byte(i))); !through && time.Now().After(deadline) {
					t.Fatalf("endpoint %d: nothing comes through: %v", i, c.WithoutXDP())
				}
			}
		}
	}
	// The first queue is not in the way of fewer.
	check(t, conns[1].Close())
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		err := setQueues(t, "q0", 1)
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the second queue cannot be taken away: %v", err)
		}
	}
	check(t, conns[0].WithoutXDP())
	send(t, conns[0], at.LocalAddr(), frame(1, 60, 9))
	collect(t, at, 1)
	check(t, conns[0].WithoutXDP())
}

// setQueues does what "ethtool -L NAME rx N tx N" does.
func setQueues(t *testing.T, name string, n uint32) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	check(t, err)
	defer unix.Close(fd)
	// struct ethtool_channels: command, four maxima, and four numbers of queues: rx, tx, other, combined.
	channels := &[9]uint32{unix.ETHTOOL_SCHANNELS, 0, 0, 0, 0, n, n, 0, 0}
	var request struct {
		name [unix.IFNAMSIZ]byte
		data *[9]uint32
		_    [16]byte
	}
	copy(request.name[:], name)
	request.data = channels
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request))); e != 0 {
		return e
	}
	return nil
}

// TestReceiverTakesNothing checks that frames to a device whose other side takes nothing are dropped and counted, and
// that sending does not wait for them: a tap that nobody reads.
func TestReceiverTakesNothing(t *testing.T) {
	cable(t, 1500)
	tap := &netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: "t0", TxQLen: 100}, Mode: netlink.TUNTAP_MODE_TAP, Flags: netlink.TUNTAP_NO_PI | netlink.TUNTAP_ONE_QUEUE, NonPersist: true, Queues: 1}
	if err := netlink.LinkAdd(tap); errors.Is(err, os.ErrNotExist) {
		t.Log("this kernel has no tap interfaces")
		return
	} else {
		check(t, err)
	}
	defer tap.Fds[0].Close()
	check(t, netlink.LinkSetUp(link(t, "t0")))
	from := byXDP(t, ether.Config{Interface: "t0"})
	batch := make([][]byte, 50)
	for i := range batch {
		batch[i] = frame(1, 1000, byte(i))
	}
	began := time.Now()
	for range 200 {
		send(t, from, transport.EtherAddr([6]byte{2, 3, 4, 5, 6, 7}), batch...)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
	check(t, from.WithoutXDP())
	if dropped := from.Stats().SendDrops; dropped < 200*50-2000 || dropped > 200*50 {
		t.Errorf("%d of %d were dropped", dropped, 200*50)
	}
	// What the other side takes at last are the first frames, whole.
	b := make([]byte, 1<<16)
	for i := range 50 {
		n := 0
		for n < 14 || binary.BigEndian.Uint16(b[12:]) != ether.EtherType {
			var err error
			n, err = tap.Fds[0].Read(b)
			check(t, err)
		}
		if !bytes.Equal(b[14:n], batch[i]) {
			t.Fatalf("frame %d: %.40x", i, b[14:n])
		}
	}
}

// TestSlowFartherOn checks that memory of frames that wait farther on, behind a bridge that shapes traffic, is not
// written until they have left: what arrives is what was sent.
func TestSlowFartherOn(t *testing.T) {
	cable(t, 1500)
	check(t, netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "b"}}))
	check(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "e0", MTU: 1500}, PeerName: "e1", PeerMTU: 1500}))
	check(t, netlink.LinkSetMaster(link(t, "d1"), link(t, "b")))
	check(t, netlink.LinkSetMaster(link(t, "e0"), link(t, "b")))
	up(t, "b", "e0", "e1")
	check(t, netlink.QdiscAdd(&netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: link(t, "e0").Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
		Rate:       2 << 20, Limit: 64 << 20, Buffer: 4000,
	}))
	from, at := byXDP(t, ether.Config{Interface: "d0"}), listen(t, ether.Config{Interface: "e1", NoXDP: true})
	passes(t, from, at, 100)
	in, next := make([]transport.Datagram, 64), uint32(1)
	heard := func(n int) {
		for _, d := range in[:n] {
			number := binary.BigEndian.Uint32(d.Data[2:])
			if number < next || !bytes.Equal(d.Data, countedFrame(number)) {
				t.Fatalf("%.40x after frame %d", d.Data, next-1)
			}
			next = number + 1
		}
	}
	const frames = 3000 // more than there is memory for
	for i := uint32(1); i <= frames; i++ {
		send(t, from, at.LocalAddr(), countedFrame(i))
		n, err := at.Recv(in, 0)
		check(t, err)
		heard(n)
	}
	for deadline := time.Now().Add(time.Minute); ; {
		n, err := at.Recv(in, 2*time.Second)
		check(t, err)
		if heard(n); n == 0 || time.Now().After(deadline) {
			break
		}
	}
	if dropped := from.Stats().SendDrops; next < frames/10 || dropped > frames {
		t.Errorf("frame %d came last, %d dropped", next-1, dropped)
	}
	check(t, from.WithoutXDP())
}

// TestMovedToAnotherNamespace checks that who sends by an interface that was moved to another network namespace
// gives frames up, and goes on by AF_XDP when it is back.
func TestMovedToAnotherNamespace(t *testing.T) {
	cable(t, 1500)
	here, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	check(t, err)
	defer unix.Close(here)
	from, at := byXDP(t, ether.Config{Interface: "d0"}), listen(t, ether.Config{Interface: "d1", NoXDP: true})
	mac := hardware(from)
	send(t, from, at.LocalAddr(), frame(1, 60, 0))
	collect(t, at, 1)
	d0 := link(t, "d0")
	cable(t, 1500)
	there, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	check(t, err)
	defer unix.Close(there)
	check(t, netlink.LinkDel(link(t, "d0")))
	check(t, unix.Setns(here, unix.CLONE_NEWNET))
	check(t, netlink.LinkSetNsFd(d0, there))
	for deadline := time.Now().Add(time.Minute); from.WithoutXDP() == nil; {
		send(t, from, at.LocalAddr(), frame(1, 60, 1))
		if time.Now().After(deadline) {
			t.Fatal("it is not noticed")
		}
	}
	if s := from.Stats(); s.SendDrops == 0 {
		t.Errorf("%+v", s)
	}
	check(t, unix.Setns(there, unix.CLONE_NEWNET))
	check(t, netlink.LinkSetNsFd(link(t, "d0"), here))
	check(t, unix.Setns(here, unix.CLONE_NEWNET))
	check(t, netlink.LinkSetHardwareAddr(link(t, "d0"), mac))
	up(t, "d0", "d1")
	for deadline := time.Now().Add(time.Minute); from.WithoutXDP() != nil; time.Sleep(time.Millisecond) {
		send(t, from, at.LocalAddr(), frame(1, 60, 2))
		if time.Now().After(deadline) {
			t.Fatal(from.WithoutXDP())
		}
	}
	send(t, from, at.LocalAddr(), frame(1, 60, 3))
	for through := false; !through; {
		for _, d := range collect(t, at, 1) {
			if through = bytes.Equal(d.Data, frame(1, 60, 3)); !through && !bytes.Equal(d.Data, frame(1, 60, 2)) {
				t.Fatalf("%x", d.Data)
			}
		}
	}
}

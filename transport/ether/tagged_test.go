package ether_test

import (
	"bytes"
	"encoding/binary"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/ether"
)

// tag is that of a VLAN: its EtherType, and priority and number.
type tag struct{ kind, value uint16 }

// TestTagged: frames of VLANs that have no interface here are another host's, in
// whatever wrapping; one with nothing but a priority is ours. The frames are made by
// hand, so that this does not depend on what the kernel has, and a witness tells that
// they arrive.
func TestTagged(t *testing.T) {
	const customer, service = 0x8100, 0x88a8
	inBothModes(t, func(t *testing.T, ring bool) {
		cable(t, 1500)
		a := listen(t, ether.Config{Interface: "d0"})
		one, all := listen(t, ether.Config{Interface: "d1", ID: 1, NoRing: !ring, NoXDP: !ring}), listen(t, ether.Config{Interface: "d1", NoRing: !ring})
		in, seen := inject(t, "d0"), watch(t, "d1")
		for _, c := range []struct {
			tags []tag
			ours bool
		}{
			{nil, true},
			{[]tag{{customer, 5}}, false},
			{[]tag{{customer, 5 | 7<<13}}, false},
			{[]tag{{customer, 0xffe | 1<<12}}, false},
			{[]tag{{customer, 0 | 3<<13}}, true},
			{[]tag{{service, 5}}, false},
			{[]tag{{service, 5}, {customer, 6}}, false},
			{[]tag{{customer, 5}, {customer, 6}}, false},
			{[]tag{{customer, 0}, {customer, 6}}, false},
			{[]tag{{service, 0}, {customer, 6}}, false},
		} {
			data := frame(1, 60, byte(len(c.tags)))
			b := append(append([]byte(nil), hardware(one)...), in.own...)
			for _, x := range c.tags {
				b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, x.kind), x.value)
			}
			b = append(binary.BigEndian.AppendUint16(b, ether.EtherType), data...)
			in.raw(t, hardware(one), b)
			if outer := seen.next(t, 60); len(c.tags) > 0 && outer != c.tags[0] {
				t.Fatalf("%x: arrived at the interface with %x", c.tags, outer)
			}
			for _, at := range []*ether.Conn{one, all} {
				if c.ours {
					if got := collect(t, at, 1)[0]; !bytes.Equal(got.Data, data) {
						t.Errorf("%x: received %.40x", c.tags, got.Data)
					}
				}
			}
			marker := frame(1, 50, 200)
			send(t, a, one.LocalAddr(), marker)
			for _, at := range []*ether.Conn{one, all} {
				if got := collect(t, at, 1)[0]; !bytes.Equal(got.Data, marker) {
					t.Errorf("%x: received %.40x", c.tags, got.Data)
					collect(t, at, 1)
				}
			}
		}
		// The kernel's filter sees to it: nobody is woken.
		if s := one.Stats(); s != (transport.Stats{}) {
			t.Errorf("%+v", s)
		}
	})
}

// watcher sees all frames that an interface receives.
type watcher struct{ fd int }

func watch(t *testing.T, name string) watcher {
	t.Helper()
	ifi, err := net.InterfaceByName(name)
	check(t, err)
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	check(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	check(t, unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1))
	check(t, unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1))
	check(t, unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 5}))
	all := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_ALL))
	check(t, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: ifi.Index}))
	return watcher{fd}
}

// next returns the outermost tag of the next frame of at least that size that has
// our EtherType, or a tag: the kernel has taken it off and tells it beside.
func (w watcher) next(t *testing.T, size int) tag {
	t.Helper()
	b, beside := make([]byte, 2000), make([]byte, 200)
	for {
		n, length, _, _, err := unix.Recvmsg(w.fd, b, beside, 0)
		check(t, err)
		messages, err := unix.ParseSocketControlMessage(beside[:length])
		check(t, err)
		var outer tag
		for _, m := range messages {
			// struct tpacket_auxdata
			if status := binary.NativeEndian.Uint32(m.Data); m.Header.Type == unix.PACKET_AUXDATA && status&unix.TP_STATUS_VLAN_VALID != 0 {
				outer = tag{binary.NativeEndian.Uint16(m.Data[18:]), binary.NativeEndian.Uint16(m.Data[16:])}
			}
		}
		if kind := binary.BigEndian.Uint16(b[12:]); n >= size+14 && (kind == ether.EtherType || outer.kind != 0) {
			return outer
		}
	}
}

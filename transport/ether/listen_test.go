package ether_test

import (
	"bytes"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/transport/ether"
)

func refused(t *testing.T, cfg ether.Config, says ...string) error {
	t.Helper()
	c, err := ether.Listen(cfg)
	if err == nil {
		c.Close()
		t.Errorf("%+v: no error", cfg)
		return nil
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%+v: %q does not say %q", cfg, err, s)
		}
	}
	return err
}

func TestListenRefuses(t *testing.T) {
	cable(t, 1500)
	check(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "asleep", MTU: 1500}, PeerName: "other"}))
	check(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "narrow", MTU: 100}, PeerName: "narrow1"}))
	check(t, netlink.LinkSetUp(link(t, "narrow")))
	mac := [6]byte(link(t, "d1").Attrs().HardwareAddr)
	refused(t, ether.Config{}, "need the name or the address")
	refused(t, ether.Config{Interface: "eth9"}, "Ethernet eth9", "no interface eth9; there are ", "d0 (", net.HardwareAddr(mac[:]).String())
	refused(t, ether.Config{MAC: &[6]byte{2, 3}}, "no interface with the address 02:03:00:00:00:00; there are ")
	refused(t, ether.Config{Interface: "d0", MAC: &mac}, "interface d0 has the address ", "not "+net.HardwareAddr(mac[:]).String())
	refused(t, ether.Config{Interface: "lo", MAC: &mac}, "interface lo has the address 00:00:00:00:00:00, not "+net.HardwareAddr(mac[:]).String())
	refused(t, ether.Config{Interface: "asleep"}, "interface asleep is down", "ip link set asleep up")
	refused(t, ether.Config{Interface: "narrow"}, "MTU 100, need at least 128")
	refused(t, ether.Config{Interface: "d0", MTU: 9000}, "MTU 9000, but interface d0 has 1500")
	refused(t, ether.Config{Interface: "d0", MTU: 100}, "MTU 100, need 128 to 1500")
	refused(t, ether.Config{Interface: "d0", EtherType: 1500}, "EtherType 0x05dc")
}

func TestListenByAddress(t *testing.T) {
	cable(t, 1500)
	mac := [6]byte(link(t, "d1").Attrs().HardwareAddr)
	for _, cfg := range []ether.Config{{MAC: &mac}, {MAC: &mac, Interface: "d1"}} {
		if c := listen(t, cfg); c.LocalAddr().MAC() != mac {
			t.Errorf("%v", c.LocalAddr())
		}
	}
	check(t, netlink.LinkSetHardwareAddr(link(t, "d0"), mac[:])) // as a VLAN has its parent's
	refused(t, ether.Config{MAC: &mac}, "is that of ", "d1", "d0", "name one of them")
}

// TestListenLoopback: the interface lo has no address of its own.
func TestListenLoopback(t *testing.T) {
	cable(t, 1500)
	check(t, netlink.LinkSetUp(link(t, "lo")))
	a, b := listen(t, ether.Config{Interface: "lo", ID: 1}), listen(t, ether.Config{Interface: "lo", ID: 2, MTU: 4000})
	send(t, a, b.LocalAddr(), frame(2, 40_000, 0))
	collect(t, b, 1)
}

// TestWithoutCapability: the error names what is missing and how to grant it.
func TestWithoutCapability(t *testing.T) {
	cable(t, 1500)
	// Of this thread only, and it ends with the test.
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	check(t, unix.Capget(&head, &data[0]))
	data[0].Effective &^= 1 << unix.CAP_NET_RAW
	check(t, unix.Capset(&head, &data[0]))
	program, err := os.Executable()
	check(t, err)
	err = refused(t, ether.Config{Interface: "d0"}, "Ethernet d0: socket: operation not permitted: raw Ethernet needs the capability CAP_NET_RAW", "setcap cap_net_raw+ep "+program)
	if !errors.Is(err, os.ErrPermission) {
		t.Errorf("%v is no os.ErrPermission", err)
	}
}

// sandboxed has the system refuse calls of this thread, which ends with the test: those
// that have that word as argument of that number.
func sandboxed(t *testing.T, call, argument int, word uint32, with unix.Errno) {
	t.Helper()
	raw, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 0, Size: 4}, // struct seccomp_data: the call's number
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(call), SkipFalse: 3},
		bpf.LoadAbsolute{Off: uint32(16 + 8*argument), Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: word, SkipFalse: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(with)},
		bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW},
	})
	check(t, err)
	program := make([]unix.SockFilter, len(raw))
	for i, in := range raw {
		program[i] = unix.SockFilter{Code: in.Op, Jt: in.Jt, Jf: in.Jf, K: in.K}
	}
	p := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	check(t, unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	check(t, unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&p)), 0, 0))
}

// TestRingRefused: where the system refuses the ring, system calls are made, unless the
// ring was asked for; then the error says so, and nothing is left.
func TestRingRefused(t *testing.T) {
	for _, c := range []struct {
		name           string
		call, argument int
		word           uint32
		with           unix.Errno
	}{
		{"EPERM", unix.SYS_SETSOCKOPT, 2, unix.PACKET_RX_RING, unix.EPERM},
		{"ENOPROTOOPT", unix.SYS_SETSOCKOPT, 2, unix.PACKET_RX_RING, unix.ENOPROTOOPT},
		{"ENOMEM", unix.SYS_MMAP, 3, unix.MAP_SHARED, unix.ENOMEM},
	} {
		t.Run(c.name, func(t *testing.T) {
			cable(t, 1500)
			a := listen(t, ether.Config{Interface: "d0"})
			sandboxed(t, c.call, c.argument, c.word, c.with)
			had := descriptors(t)
			if err := refused(t, ether.Config{Interface: "d1", NeedRing: true}, "a receive ring of 8192 KiB cannot be had", "sockbuf=", "ring=off"); !errors.Is(err, c.with) {
				t.Errorf("%v is no %v", err, c.with)
			}
			if n := descriptors(t); n > had || packetSockets(t) != 1 {
				t.Errorf("%d descriptors are left, and %d packet sockets", n-had, packetSockets(t)-1)
			}
			b := listen(t, ether.Config{Interface: "d1"})
			for i := range byte(3) {
				send(t, a, b.LocalAddr(), frame(1, 1500, i))
				if got := collect(t, b, 1)[0]; !bytes.Equal(got.Data, frame(1, 1500, i)) {
					t.Errorf("received %.40x", got.Data)
				}
			}
		})
	}
}

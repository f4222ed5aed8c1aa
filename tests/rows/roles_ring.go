package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"runtime"

	"golang.org/x/sys/unix"
)

// ring is a packet socket that finds frames in memory that it shares with the kernel, without a call, and sends by one call each. It looks
// again at once.
type ring struct {
	fd     int
	memory []byte
	slot   int // that is looked at
	out    []byte
}

const (
	ethernetHead = 14
	ringType     = 0x88b5 // for local experiments (IEEE 802)
	ringSlots    = 64
	ringSlot     = 2048 // one page has whole slots
)

// Where a slot has what the kernel says of its frame (struct tpacket2_hdr).
const (
	slotStatus = 0
	slotLength = 8
	slotFrame  = 12
)

func openRing(device string) (*ring, error) {
	i, err := net.InterfaceByName(device)
	if err != nil {
		return nil, err
	}
	runtime.LockOSThread()
	r := &ring{out: make([]byte, ethernetHead+pingSize)}
	copy(r.out[6:], i.HardwareAddr)
	binary.BigEndian.PutUint16(r.out[12:], ringType)
	if r.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0); err != nil {
		return nil, err
	}
	const network = ringType&0xff<<8 | ringType>>8
	err = errors.Join(
		unix.SetsockoptInt(r.fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1),
		unix.SetsockoptInt(r.fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V2),
		unix.SetsockoptTpacketReq(r.fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &unix.TpacketReq{
			Block_size: ringSlots * ringSlot, Block_nr: 1, Frame_size: ringSlot, Frame_nr: ringSlots}),
	)
	if err == nil {
		r.memory, err = unix.Mmap(r.fd, 0, ringSlots*ringSlot, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err == nil {
		err = unix.Bind(r.fd, &unix.SockaddrLinklayer{Protocol: network, Ifindex: i.Index})
	}
	return r, err
}

// receive copies what comes next, without its header, and answers to whom it came from.
func (r *ring) receive(b []byte) (n int) {
	slot := r.memory[r.slot*ringSlot:][:ringSlot]
	for binary.NativeEndian.Uint32(slot[slotStatus:])&unix.TP_STATUS_USER == 0 {
	}
	frame := slot[binary.NativeEndian.Uint16(slot[slotFrame:]):][:binary.NativeEndian.Uint32(slot[slotLength:])]
	copy(r.out[:6], frame[6:12])
	n = copy(b, frame[ethernetHead:])
	binary.NativeEndian.PutUint32(slot[slotStatus:], unix.TP_STATUS_KERNEL)
	r.slot = (r.slot + 1) % ringSlots
	return n
}

func (r *ring) send(b []byte) error {
	copy(r.out[ethernetHead:], b)
	_, err := unix.Write(r.fd, r.out[:ethernetHead+len(b)])
	return err
}

func echoRing(device string) error {
	r, err := openRing(device)
	if err != nil {
		return err
	}
	for b := make([]byte, pingSize); ; {
		if err := r.send(b[:r.receive(b)]); err != nil {
			return err
		}
	}
}

// pingRing pings whoever has a hardware address.
func pingRing(device, to, count string) error {
	mac, err := net.ParseMAC(to)
	if err != nil || len(mac) != 6 {
		return fmt.Errorf("no hardware address: %q", to)
	}
	n, err := pingsOf(count)
	if err != nil {
		return err
	}
	r, err := openRing(device)
	if err != nil {
		return err
	}
	copy(r.out, mac)
	b := make([]byte, pingSize)
	return oneWay(n, func() error {
		err := r.send(b)
		r.receive(b)
		return err
	})
}

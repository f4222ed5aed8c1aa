package captured

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"golang.org/x/net/bpf"

	"github.com/dgrdma/dgrdma/capture/capturetest"
	"github.com/dgrdma/dgrdma/frame"
)

// startMachine runs plausibleStart as the kernel does, on the data of a datagram.
func startMachine(t testing.TB) *bpf.VM {
	t.Helper()
	vm, err := bpf.NewVM(append([]bpf.Instruction{bpf.LoadConstant{Dst: bpf.RegX, Val: 0}}, plausibleStart...))
	if err != nil {
		t.Fatal(err)
	}
	return vm
}

// The kernel drops what other programs say to each other.
func TestFilterDropsOthers(t *testing.T) {
	vm := startMachine(t)
	_, f := capturetest.Frame()
	with := func(at int, v byte) []byte { return capturetest.PatchByte(append([]byte{2, 0}, f...), at, v) }
	for name, c := range map[string]struct {
		data []byte
		want bool
	}{
		"frame":           {with(0, 2), true},
		"prefix 0":        {with(0, 0), true},
		"prefix 3":        {with(0, 3), false},
		"prefix 0x102":    {with(1, 1), false},
		"no destination":  {with(2, 0), false},
		"to nobody":       {capturetest.PatchByte(with(2, 0), 0, 0), true},
		"from nobody":     {with(4, 0), true},
		"between nobody":  {capturetest.PatchByte(capturetest.PatchByte(with(2, 0), 0, 0), 4, 0), false},
		"flags":           {with(2+9, 5), false},
		"flag 8":          {with(2+9, 8), false},
		"session":         {with(2+9, 4), true},
		"short":           {with(0, 2)[:11], false},
		"nothing":         {nil, false},
		"question to DNS": {[]byte("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03foo\x00\x00\x01\x00\x01"), false},
		"QUIC":            {[]byte("\xc3\x00\x00\x00\x01\x08\x83\x94\xc8\xf0\x3e\x51\x57\x08\x00\x00"), false},
	} {
		if n, err := vm.Run(c.data); err != nil || n > 0 != c.want {
			t.Errorf("%s: %d, %v; want %v", name, n, err, c.want)
		}
	}
	if f := (Options{Ports: []uint16{7}}).Filter(); f.Datagram != nil || len(f.Ports) != 1 || f.EtherType != frame.EtherType {
		t.Errorf("%+v: with ports, everything there is a frame", f)
	}
}

// FuzzFilter: what the recogniser takes for a frame, the kernel takes.
func FuzzFilter(f *testing.F) {
	vm := startMachine(f)
	r := Options{}.recogniser()
	dirty, clean := capturetest.Frame()
	ack := []byte{2, 0, 1, 0, 5, 0, 9, 0, 1, 0}
	for _, b := range [][]byte{dirty, clean, ack, hello(0, 3, asks), hello(3, 0, refuses)} {
		f.Add(append([]byte{0, 0}, b...))
		f.Add(append([]byte{2, 0}, b...))
	}
	for _, b := range sealedKinds(f) {
		f.Add(append([]byte{0, 0}, b...))
		f.Add(append([]byte{2, 0}, b...))
	}
	for _, checks := range []bool{false, true} {
		for _, s := range capturetest.Sessions(checks) {
			f.Add(append([]byte{0, 0}, s.Data...))
			f.Add(append([]byte{2, 0}, s.Data...))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, ok := r.Datagram(netip.AddrPort{}, netip.AddrPort{}, data, len(data))
		n, err := vm.Run(data)
		if err != nil || ok && n == 0 {
			t.Fatalf("%d, %v: % x is a frame", n, err, data)
		}
		if n > 0 && (len(data) < frame.PrefixSize+frame.HeaderSize || binary.LittleEndian.Uint32(data[2:]) == 0) {
			t.Fatalf("% x is taken", data)
		}
	})
}

// asks asks who is there, and refuses and welcomes are the answers.
var welcomes = frame.Handshake{Kind: frame.HandshakeWelcome, Sender: 9, Receiver: 7}

var asks, refuses = frame.Handshake{Kind: frame.HandshakeHello, Sender: 7}, frame.Handshake{Kind: frame.HandshakeRefused, Sender: 7, Receiver: 7}

// hello returns a frame of a handshake between two ids.
func hello(dst, src frame.EndpointID, h frame.Handshake) []byte {
	b := make([]byte, frame.HandshakeSize)
	h.Put(b, dst, src)
	return b
}

package captured

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/google/gopacket"

	"github.com/dgrdma/dgrdma/capture/capturetest"
	"github.com/dgrdma/dgrdma/frame"
)

func TestOptions(t *testing.T) {
	all := wrapped(t)
	garbage := capturetest.Of(101, capturetest.Serialize(t, capturetest.IPv4(), capturetest.UDP(), gopacket.Payload("x")))
	for _, tt := range []struct {
		name   string
		packet capturetest.Packet
		o      Options
		want   int
	}{
		{"otherType", all["ethernet"], Options{EtherType: 0xF055}, 0},
		{"sourcePort", all["raw4"], Options{Ports: []uint16{1, 40001}}, 1},
		{"destinationPort", all["raw6"], Options{Ports: []uint16{40002}}, 1},
		{"otherPort", all["raw4"], Options{Ports: []uint16{40003}}, 0},
		{"garbageOnPort", garbage, Options{Ports: []uint16{40002}}, 1},
		{"garbage", garbage, Options{}, 0},
		{"emptyOnPort", capturetest.Of(101, capturetest.Serialize(t, capturetest.IPv4(), capturetest.UDP())), Options{Ports: []uint16{40002}}, 0},
		{"ethernetWithPorts", all["ethernet"], Options{Ports: []uint16{1}}, 1},
	} {
		got, _, err := readAll(capturetest.Pcap(binary.LittleEndian, false, tt.packet), tt.o)
		if err != nil || len(got) != tt.want {
			t.Errorf("%s: %d frames, %v; want %d", tt.name, len(got), err, tt.want)
		}
	}
}

// checkedFrame gives a frame a checksum.
func checkedFrame(b []byte) []byte {
	return frame.AddChecksum(append(make([]byte, 0, frame.CheckedSize(len(b))), b...))
}

func TestPlausible(t *testing.T) {
	_, f := capturetest.Frame()
	ack := []byte{2, 0, 1, 0, 5, 0, 9, 0, 1, 0}
	patch := capturetest.PatchByte
	for _, tt := range []struct {
		name   string
		prefix uint16
		data   []byte
		length int
		want   bool
	}{
		{"messages", 2, f, len(f), true},
		{"zeroPrefix", 0, f, len(f), true},
		{"otherPrefix", 3, f, len(f), false},
		{"trailing", 2, append(bytes.Clone(f), 1, 2, 3), len(f) + 3, true},
		{"ack", 2, ack, 10, true},
		{"noDestination", 0, patch(f, 0, 0), len(f), false},
		{"noSource", 2, patch(f, 2, 0), len(f), false},
		{"question", 0, hello(0, 3, asks), 34, true},
		{"itsAnswer", 0, hello(3, 0, refuses), 34, true},
		{"itsWelcome", 0, hello(3, 0, welcomes), 34, true},
		{"questionOfNobody", 0, hello(3, 0, asks), 34, false},
		{"nobodyToNobody", 0, hello(0, 0, refuses), 34, false},
		{"flags", 2, patch(f, 9, 5), len(f), false},
		{"checksum", 2, checkedFrame(f), len(f) + 4, true},
		{"wrongChecksum", 2, patch(checkedFrame(f), len(f), 1), len(f) + 4, true},
		{"checkedAck", 2, checkedFrame(plainAck(1)[frame.PrefixSize:]), 46, false}, // between our kind it is of a session
		{"nothing", 2, patch(ack, 8, 0), 10, false},
		{"longAck", 2, append(bytes.Clone(ack), 0), 11, false},
		{"type", 2, patch(f, 10+22, 4), len(f), false},
		{"index", 2, patch(f, 42+14, 3), len(f), false},
		{"length", 2, patch(f, 42+20, 4), len(f), false},
		{"cut", 2, f[:50], len(f), true},
		{"cutHeader", 2, f[:9], len(f), false},
		{"cutType", 2, patch(f, 10+22, 4)[:50], len(f), false},
	} {
		p := ofFrame(tt.data, tt.length)
		p.Prefix = binary.LittleEndian.AppendUint16(nil, tt.prefix)
		if got := plausible(&p); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

package text_test

import (
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/captured"
	"github.com/dgrdma/dgrdma/inspect/text"
)

func end(t *testing.T, s string) capture.End {
	t.Helper()
	e, err := capture.ParseEnd(s)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestFilters(t *testing.T) {
	ranges := func(s string) text.Filter {
		r, err := text.ParseRange(s)
		if err != nil {
			t.Fatal(err)
		}
		return text.Filter{Ranges: []text.Range{r}}
	}
	for _, c := range []struct {
		name, capture string
		filter        text.Filter
		want          string // records
	}{
		{"nothing", "ether-multi", text.Filter{}, "1 2 3 4 5"},
		{"id", "ether-multi", text.Filter{IDs: []frame.EndpointID{2}}, "1 2 3 4 5"},
		{"other id", "ether-multi", text.Filter{IDs: []frame.EndpointID{3, 7}}, ""},
		{"transactions", "fpga-send-w4-ocpi-dg2", text.Filter{Txns: []uint32{3, 1}}, "1 4"},
		{"transaction without completion", "fpga-send-w4-ocpi-dg2", text.Filter{Txns: []uint32{4}}, "4"},
		{"first byte", "fpga-send-w4-ocpi-dg2", ranges("0x11000"), "1"},
		{"byte before", "fpga-send-w4-ocpi-dg2", ranges("0x10fff"), ""},
		{"last byte", "fpga-send-w4-ocpi-dg2", ranges("0x11AEF"), "2"},
		{"two frames", "fpga-send-w4-ocpi-dg2", ranges("0x11aef+2"), "2 3"},
		{"stretch", "fpga-send-w4-ocpi-dg2", ranges("0x11aef-81560"), "2 3 4"},
		{"completion word", "fpga-send-w4-ocpi-dg2", ranges("0x43"), "1 2 3 4"},
		{"before the word", "fpga-send-w4-ocpi-dg2", ranges("0-0x3f"), ""},
		{"behind the word", "fpga-send-w4-ocpi-dg2", ranges("0x44+16"), ""},
		{"no word is written", "fpga-send-w4-ocpi-dg2", ranges("0xffffffff"), ""},
		{"no data is written", "udp-flagonly", ranges("0"), ""},
		{"address", "udp-single", text.Filter{Ends: []capture.End{end(t, "127.0.0.1")}}, "1 2"},
		{"port", "udp-single", text.Filter{Ends: []capture.End{end(t, "127.0.0.1:33024")}}, "1 2"},
		{"other port", "udp-single", text.Filter{Ends: []capture.End{end(t, "127.0.0.1:33025")}}, ""},
		{"mapped", "udp-single", text.Filter{Ends: []capture.End{end(t, "[::ffff:127.0.0.1]:33024")}}, "1 2"},
		{"hardware address", "ether-single", text.Filter{Ends: []capture.End{end(t, "02:00:00:00:00:0A")}}, "1 2"},
		{"other hardware address", "ether-single", text.Filter{Ends: []capture.End{end(t, "02-00-00-00-00-0c")}}, ""},
		{"hardware address over UDP", "udp-single", text.Filter{Ends: []capture.End{end(t, "00:00:00:00:00:00")}}, ""},
		{"IP address on Ethernet", "ether-single", text.Filter{Ends: []capture.End{end(t, "127.0.0.1")}}, ""},
		{"all of several", "fpga-send-w4-ocpi-dg2", text.Filter{Txns: []uint32{2}, Ranges: ranges("0x11000+10").Ranges, IDs: []frame.EndpointID{1}}, "1"},
	} {
		var got []string
		for line := range strings.Lines(printed(t, c.capture, text.Printer{}, c.filter)) {
			got = append(got, strings.Fields(line)[0])
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: records %v, want %s", c.name, got, c.want)
		}
	}
}

// TestFiltersOnWhatIsNotThere checks that a frame too short for a header has no ids, and a HELLO no transaction.
func TestFiltersOnWhatIsNotThere(t *testing.T) {
	var v text.View
	v.Decode(&captured.Packet{Packet: capture.Packet{Data: make([]byte, 9), Length: 9}})
	if f := (text.Filter{IDs: []frame.EndpointID{0}}); f.Match(&v) {
		t.Error("nine bytes have an id")
	}
	b := make([]byte, frame.HandshakeSize)
	(&frame.Handshake{Kind: frame.HandshakeHello, Sender: 5}).Put(b, 2, 1)
	v.Decode(&captured.Packet{Packet: capture.Packet{Data: b, Length: len(b)}})
	for _, f := range []text.Filter{{Txns: []uint32{5}}, {Ranges: []text.Range{{0, 1<<32 - 1}}}} {
		if v.Kind != text.Hello || f.Match(&v) {
			t.Errorf("%+v takes a %v", f, v.Kind)
		}
	}
}

func TestParseRange(t *testing.T) {
	for s, want := range map[string]text.Range{
		"64": {64, 64}, "0x40-0x43": {64, 67}, "0x40+4": {64, 67}, "0-4294967295": {0, 1<<32 - 1}, "0+0x100000000": {0, 1<<32 - 1}, "4294967295+1": {1<<32 - 1, 1<<32 - 1},
	} {
		if got, err := text.ParseRange(s); got != want || err != nil {
			t.Errorf("%s: %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "x", "-", "+", "4-", "4+", "4-3", "4+0", "4294967296", "1+0x100000000", "0-4294967296", "-1", "1-2-3"} {
		if got, err := text.ParseRange(s); err == nil || !strings.Contains(err.Error(), "FIRST-LAST") {
			t.Errorf("%q: %v, %v", s, got, err)
		}
	}
}

package text_test

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/captured"
	"github.com/dgrdma/dgrdma/inspect/text"
)

// services is a list of them as an introduction carries it.
func services(t testing.TB, all ...string) []byte {
	t.Helper()
	var s frame.Services
	for i, name := range all {
		n, err := frame.ParseServiceName(name)
		if err != nil || !s.Add(frame.Service{Name: n, Base: uint32(i) * 0xFFFF0000}) {
			t.Fatalf("%s: %v", name, err)
		}
	}
	b := make([]byte, frame.ServicesSize)
	s.Put(b)
	return b
}

// introduction is a captured hello, what is behind its message, and how much of that
// was on the wire beyond what was captured.
func introduction(behind []byte, missing int) *captured.Packet {
	b := make([]byte, frame.HeaderSize+frame.MessageHeaderSize)
	h := frame.Header{Dst: 2, Src: 1, Flags: frame.FlagMessages}
	h.SetHelloID(0x10009)
	h.Put(b)
	m := frame.Hello{Life: 7}.Message()
	m.Put(b[frame.HeaderSize:])
	b = append(b, behind...)
	return &captured.Packet{Packet: capture.Packet{
		Record: 1, Time: time.Unix(0, 0), Data: b, Length: len(b) + missing,
		Src: capture.Addr{MAC: [6]byte{5: 1}}, Dst: capture.Addr{MAC: [6]byte{5: 2}},
	}}
}

func damaged(list []byte) []byte {
	list = bytes.Clone(list)
	list[3] = 1
	return list
}

func knows(list []byte) []byte {
	list = bytes.Clone(list)
	list[2] = 2
	return list
}

func TestServicesAreShown(t *testing.T) {
	two, none := services(t, "memory", "link"), services(t)
	const begin = "1      0.000000000 00:00:00:00:00:01 > 00:00:00:00:00:02 1->2 id 9 [hello from life 7 to anyone"
	for name, tt := range map[string]struct {
		packet       *captured.Packet
		line, fields string
		json         string
		padding      int
	}{
		"told":       {introduction(two, 0), ", serves memory, link]", "  service memory from 0x0\n  service link from 0xffff0000\n", `,"services":[{"name":"memory","base":0},{"name":"link","base":4294901760}],"knows":0`, 0},
		"padded":     {introduction(append(two, 9, 9), 0), ", serves memory, link]", "  service memory from 0x0\n  service link from 0xffff0000\n  padding 2 bytes 0909\n", `,"services":[{"name":"memory","base":0},{"name":"link","base":4294901760}],"knows":0`, 2},
		"none":       {introduction(none, 0), ", no service]", "  no service\n", `,"services":[],"knows":0`, 0},
		"knows":      {introduction(knows(two), 0), ", serves memory, link (knows 2)]", "  service memory from 0x0\n  service link from 0xffff0000\n  knows 2\n", `,"services":[{"name":"memory","base":0},{"name":"link","base":4294901760}],"knows":2`, 0},
		"knows only": {introduction(knows(none), 0), ", no service (knows 2)]", "  no service (knows 2)\n", `,"services":[],"knows":2`, 0},
		"not told":   {introduction(nil, 0), "]", "", "", 0},
		"damaged":    {introduction(damaged(two), 0), "]", "  padding 100 bytes 530200016d656d6f7279000000000000" + "6c696e6b000000000000ffff" + strings.Repeat("00", 8) + "...\n", "", 100},
		"cut before": {introduction(nil, 100), "] cut: 34 of 134 bytes", "", "", 0},
		"cut within": {introduction(two[:7], 93), "] cut: 41 of 134 bytes", "  padding 7 bytes 530200006d656d\n", "", 7},
		"cut behind": {introduction(two, 2), ", serves memory, link] cut: 134 of 136 bytes", "  service memory from 0x0\n  service link from 0xffff0000\n", `,"services":[{"name":"memory","base":0},{"name":"link","base":4294901760}],"knows":0`, 0},
	} {
		var v text.View
		v.Decode(tt.packet)
		p := text.Printer{Start: time.Unix(0, 0)}
		if got, want := string(p.Append(nil, &v)), begin+tt.line+"\n"; got != want {
			t.Errorf("%s:\n got %swant %s", name, got, want)
		}
		p.Style = text.Fields
		if _, got, _ := strings.Cut(string(p.Append(nil, &v)), "\n  hello from life 7 to anyone\n"); got != tt.fields {
			t.Errorf("%s:\n got %swant %s", name, got, tt.fields)
		}
		p.Style, p.Bytes = text.JSON, true
		line := string(p.Append(nil, &v))
		if want := `"hello":{"life":7,"peer":0,"answer":false,"id":65545` + tt.json + `},"messages":[`; !strings.Contains(line, want) {
			t.Errorf("%s:\n got %swant %s", name, line, want)
		}
		o := objectOf(t, line)
		if got := o.bytes(t); o.Padding != tt.padding || !bytes.Equal(got, tt.packet.Data) {
			t.Errorf("%s: JSON has %d bytes of padding and says\n %s, want\n %s", name, o.Padding, hex.EncodeToString(got), hex.EncodeToString(tt.packet.Data))
		}
	}
}

// A View that served another frame before remembers nothing of it.
func TestServicesAreForgotten(t *testing.T) {
	var v text.View
	v.Decode(introduction(services(t, "memory"), 0))
	if !v.Told || v.Services.String() != "memory" {
		t.Fatalf("%v, %v", v.Told, v.Services.String())
	}
	v.Decode(introduction(nil, 0))
	if v.Told || v.Services != (frame.Services{}) {
		t.Errorf("%v, %v", v.Told, v.Services.String())
	}
}

// TestGoodbyeIsShown as what it is, in every style.
func TestGoodbyeIsShown(t *testing.T) {
	packet := introduction(nil, 0)
	m := frame.Hello{Life: 7, Peer: 9, Leaves: true}.Message()
	m.Put(packet.Data[frame.HeaderSize:])
	var v text.View
	v.Decode(packet)
	p := text.Printer{Start: time.Unix(0, 0)}
	for style, want := range map[text.Style]string{
		text.Line: "[goodbye from life 7 to life 9]\n", text.Fields: "\n  goodbye from life 7 to life 9\n",
		text.JSON: `"hello":{"life":7,"peer":9,"answer":false,"goodbye":true,"id":65545},`,
	} {
		p.Style = style
		if got := string(p.Append(nil, &v)); !strings.Contains(got, want) {
			t.Errorf("%s does not say %s", got, want)
		}
	}
}

// TestIdentityIsShown in every style.
func TestIdentityIsShown(t *testing.T) {
	packet := introduction(nil, 0)
	m := frame.Hello{Life: 7, Peer: 7, Refers: true}.Message()
	m.Put(packet.Data[frame.HeaderSize:])
	packet.Data = packet.Data[:frame.HeaderSize+frame.MessageHeaderSize]
	packet.Data = append(packet.Data, make([]byte, frame.IdentitySize)...)
	frame.Identity{ID: 5, Size: 64}.Put(packet.Data[frame.HeaderSize+frame.MessageHeaderSize:])
	packet.Length = len(packet.Data)
	var v text.View
	v.Decode(packet)
	p := text.Printer{Start: time.Unix(0, 0)}
	for style, want := range map[text.Style]string{
		text.Line: "[another endpoint is here, life 7: endpoint 5 with 64 bytes]\n", text.Fields: "\n  another endpoint is here, life 7\n  is endpoint 5 with 64 bytes\n",
		text.JSON: `"hello":{"life":7,"peer":7,"answer":false,"refers":true,"id":65545,"identity":{"id":5,"size":64}},`,
	} {
		p.Style = style
		if got := string(p.Append(nil, &v)); !strings.Contains(got, want) || len(v.Padding) > 0 {
			t.Errorf("%s does not say %s", got, want)
		}
	}
}

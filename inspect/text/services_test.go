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

// services is a list of them as a frame of a handshake has it.
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

// introduction is a captured HELLO, what follows its message, and how much of that
// was on the wire beyond what was captured.
func introduction(behind []byte, missing int) *captured.Packet {
	return shaken(2, 1, frame.Handshake{Kind: frame.HandshakeHello, Sender: 7}, behind, missing)
}

// shaken is introduction of any frame of a handshake.
func shaken(dst, src frame.EndpointID, h frame.Handshake, behind []byte, missing int) *captured.Packet {
	b := make([]byte, frame.HandshakeSize)
	h.Put(b, dst, src)
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
	const begin = "1      0.000000000 00:00:00:00:00:01 > 00:00:00:00:00:02 1->2 [HELLO from epoch 7"
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
		if _, got, _ := strings.Cut(string(p.Append(nil, &v)), "\n  HELLO from epoch 7\n"); got != tt.fields {
			t.Errorf("%s:\n got %swant %s", name, got, tt.fields)
		}
		p.Style, p.Bytes = text.JSON, true
		line := string(p.Append(nil, &v))
		if want := `"session":{"sender":7,"receiver":0,"check":0` + tt.json + `},"messages":[`; !strings.Contains(line, want) {
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

// TestHandshakeIsShown checks how each kind of handshake frame is shown in each style.
func TestHandshakeIsShown(t *testing.T) {
	why := func(r frame.Refusal) []byte {
		b := make([]byte, frame.RefusalSize)
		r.Put(b)
		return b
	}
	const none = ",\"services\":[],\"knows\":0"
	for _, c := range []struct {
		packet             *captured.Packet
		line, fields, json string
	}{
		{shaken(2, 1, frame.Handshake{Kind: frame.HandshakeHello, Sender: 7}, services(t), 0), "1->2 [HELLO from epoch 7, no service]\n",
			"  frame from endpoint 1 to endpoint 2, check 0, flags 0x1 (hello)\n  MESSAGE\n  HELLO from epoch 7\n  no service\n",
			`"kind":"hello","src":1,"dst":2,"flags":1,"session":{"sender":7,"receiver":0,"check":0` + none + `},"messages":[`},
		{shaken(0, 1, frame.Handshake{Kind: frame.HandshakeHello, Sender: 7}, nil, 0), "1->0 [HELLO from epoch 7, asks who is there]\n",
			" (hello)\n  MESSAGE\n  HELLO from epoch 7, asks who is there\n", `"kind":"hello","src":1,"dst":0,"flags":1,"session":{"sender":7,"receiver":0,"check":0},"messages":[`},
		{shaken(1, 2, frame.Handshake{Kind: frame.HandshakeWelcome, Sender: 9, Receiver: 7, Check: 65545}, services(t), 0), "2->1 [WELCOME from epoch 9 to epoch 7, no service]\n",
			"  frame from endpoint 2 to endpoint 1, check 65545, flags 0x1 (welcome)\n  MESSAGE\n  WELCOME from epoch 9 to epoch 7\n  no service\n",
			`"kind":"welcome","src":2,"dst":1,"flags":1,"session":{"sender":9,"receiver":7,"check":65545` + none + `},"messages":[`},
		{shaken(2, 1, frame.Handshake{Kind: frame.HandshakeConfirm, Sender: 7, Receiver: 9, Check: 65545}, services(t), 0), "1->2 [CONFIRM from epoch 7 to epoch 9, no service]\n",
			", check 65545, flags 0x1 (confirm)\n  MESSAGE\n  CONFIRM from epoch 7 to epoch 9\n  no service\n",
			`"kind":"confirm","src":1,"dst":2,"flags":1,"session":{"sender":7,"receiver":9,"check":65545` + none + `},"messages":[`},
		{shaken(1, 2, frame.Handshake{Kind: frame.HandshakeReject, Sender: 9, Receiver: 7, Check: 65545}, nil, 0), "2->1 [REJECT from epoch 9 to epoch 7]\n",
			", check 65545, flags 0x1 (reject)\n  MESSAGE\n  REJECT from epoch 9 to epoch 7\n",
			`"kind":"reject","src":2,"dst":1,"flags":1,"session":{"sender":9,"receiver":7,"check":65545},"messages":[`},
		{shaken(1, 2, frame.Handshake{Kind: frame.HandshakeRefused, Sender: 7, Receiver: 7}, why(frame.Refusal{ID: 2, Size: 64, Why: 2}), 0), "2->1 [REFUSED to epoch 7: there is no room, endpoint 2 with 64 bytes]\n",
			" (refused)\n  MESSAGE\n  REFUSED to epoch 7: there is no room, endpoint 2 with 64 bytes\n",
			`"kind":"refused","src":2,"dst":1,"flags":1,"session":{"sender":7,"receiver":7,"check":0,"refusal":{"why":2,"id":2,"size":64}},"messages":[`},
		{shaken(1, 0, frame.Handshake{Kind: frame.HandshakeRefused, Sender: 7, Receiver: 7}, why(frame.Refusal{ID: 5}), 0), "0->1 [REFUSED to epoch 7: another id is here, endpoint 5]\n",
			" (refused)\n  MESSAGE\n  REFUSED to epoch 7: another id is here, endpoint 5\n",
			`"kind":"refused","src":0,"dst":1,"flags":1,"session":{"sender":7,"receiver":7,"check":0,"refusal":{"why":0,"id":5,"size":0}},"messages":[`},
		{shaken(1, 2, frame.Handshake{Kind: frame.HandshakeRefused, Sender: 7, Receiver: 7}, nil, 12), "2->1 [REFUSED to epoch 7] cut: 34 of 46 bytes\n",
			" (refused)\n  MESSAGE\n  REFUSED to epoch 7\n", `"session":{"sender":7,"receiver":7,"check":0},"messages":[`},
	} {
		var v text.View
		v.Decode(c.packet)
		p := text.Printer{Start: time.Unix(0, 0)}
		for style, want := range map[text.Style]string{text.Line: c.line, text.Fields: c.fields, text.JSON: c.json} {
			p.Style = style
			got := string(p.Append(nil, &v))
			if style == text.Fields {
				before, after, _ := strings.Cut(got, "  message at byte 10: ")
				_, after, _ = strings.Cut(after, "\n")
				got = before + "  MESSAGE\n" + after
			}
			if !strings.Contains(got, want) || len(v.Padding) > 0 {
				t.Errorf("%s\ndoes not say\n%s", got, want)
			}
		}
		f, err := frame.Parse(c.packet.Data)
		if err != nil || !strings.HasPrefix(c.line, f.String()) {
			t.Errorf("%v, %v, want %s", f, err, c.line)
		}
		if filter := (text.Filter{Txns: []uint32{7, 9}}); filter.Match(&v) {
			t.Errorf("%v is of a transaction", f)
		}
	}
}

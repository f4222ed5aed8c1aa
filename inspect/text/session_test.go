package text_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/capture/capturetest"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/captured"
	"github.com/dgrdma/dgrdma/inspect/text"
)

// sessionPackets are frames of a session, of each kind.
func sessionPackets(checks bool) (all []captured.Packet) {
	for i, s := range capturetest.Sessions(checks) {
		p := captured.Packet{Packet: capture.Packet{Record: i + 1, Time: time.Unix(1e9, int64(i)), Data: s.Data, Length: len(s.Data)}}
		p.Src.MAC, p.Dst.MAC = [6]byte{2, 0, 0, 0, 0, 1}, [6]byte{2, 0, 0, 0, 0, 2}
		all = append(all, p)
	}
	return all
}

// TestSessionLines checks how frames of a session of each kind are shown in each style, with a checksum and without.
func TestSessionLines(t *testing.T) {
	for i, want := range []struct{ line, fields, json string }{
		{
			"1->2 data id 131073 up to 65538 tag 0xcafe [txn 7 1/2 13 bytes at 0x1000 then 0x1 at 0x40] [txn 7 2/2 13 bytes at 0x1010 then 0x1 at 0x40]",
			"  session frame 131073 from endpoint 1 to endpoint 2, copy 0, tag 0xcafe, acknowledges all up to 65538, flags FLAGS (write)\n  message at byte 18: transaction 7, index 1 of 2, ",
			`"kind":"write","src":1,"dst":2,"id":131073,"flags":FLAGS,"session":{"tag":51966,"copy":0,"up_to":65538},`,
		},
		{
			"1->2 data id 131073 copy 7 up to 65538 tag 0xcafe [txn 7 1/2 ",
			"  session frame 131073 from endpoint 1 to endpoint 2, copy 7, tag 0xcafe, ",
			`"id":131073,"flags":FLAGS,"session":{"tag":51966,"copy":7,"up_to":65538},`,
		},
		{
			"1->2 BELL id 131074 copy 1 up to 65538 tag 0xcafe\n",
			"  session frame 131074 from endpoint 1 to endpoint 2, copy 1, tag 0xcafe, acknowledges all up to 65538, flags FLAGS (bell)\n",
			`"kind":"bell","src":1,"dst":2,"id":131074,"flags":FLAGS,"session":{"tag":51966,"copy":1,"up_to":65538},"messages":[]`,
		},
		{
			"1->2 ACK of id 65545 up to 65538 tag 0xcafe [copy 2, had come before, 1000 µs ago, also 65540+1 65544+2]\n",
			"  session frame from endpoint 1 to endpoint 2, tag 0xcafe, acknowledges all up to 65538, flags FLAGS (ack)\n" +
				"  frame 65545 came last: copy 2, had come before, 1000 µs ago\n  acknowledges 1 from 65540\n  acknowledges 2 from 65544\n",
			`"kind":"ack","src":1,"dst":2,"flags":FLAGS,"session":{"tag":51966,"up_to":65538,"echo":{"id":65545,"copy":2,"again":true,"delay_us":1000},` +
				`"ranges":[{"first":65540,"count":1},{"first":65544,"count":2}]},"messages":[]`,
		},
		{
			"1->2 BYE up to 65538 tag 0xcafe [reason 3, epoch 131072 to epoch 65536]\n",
			"acknowledges all up to 65538, flags FLAGS (bye)\n  reason 3, epoch 131072 to epoch 65536\n",
			`"kind":"bye","src":1,"dst":2,"flags":FLAGS,"session":{"tag":51966,"up_to":65538,"reason":3,"sender":131072,"receiver":65536},"messages":[]`,
		},
		{
			"1->2 PROBE up to 65538 tag 0xcafe [1400 bytes]\n", "(probe)\n  asks whether frames of 1400 bytes arrive\n",
			`"kind":"probe","src":1,"dst":2,"flags":FLAGS,"session":{"tag":51966,"up_to":65538,"size":1400},"messages":[],"padding":0}`,
		},
		{
			"1->2 PROBED up to 65538 tag 0xcafe [1400 bytes]\n", "(probed)\n  answers: the longest question that came had 1400 bytes\n",
			`"kind":"probed","src":1,"dst":2,"flags":FLAGS,"session":{"tag":51966,"up_to":65538,"size":1400},"messages":[],`,
		},
		{
			"1->2 RESET of id 65541 copy 3 up to 131072 tag 0xcafe\n",
			"  session frame from endpoint 1 to endpoint 2, tag 0xcafe, flags FLAGS (reset)\n" +
				"  answers frame 65541, copy 3, which acknowledged all up to 131072: it is of a session that its receiver does not have\n",
			`"kind":"reset","src":1,"dst":2,"flags":FLAGS,"session":{"tag":51966,"answers":{"id":65541,"copy":3,"up_to":131072}},"messages":[]`,
		},
		{
			"1->2 ACK of id 65545 up to 65538 tag 0xcafe [1000 µs ago, came 5 ECT(0) and 2 CE, also 65540+1]\n",
			"  frame 65545 came last: 1000 µs ago, came 5 ECT(0) and 2 CE\n  acknowledges 1 from 65540\n",
			`"echo":{"id":65545,"copy":0,"again":false,"delay_us":1000},"ranges":[{"first":65540,"count":1}],"marks":{"ect0":5,"ce":2}},"messages":[]`,
		},
	} {
		for _, checks := range []bool{false, true} {
			p := sessionPackets(checks)[i]
			var v text.View
			v.Decode(&p)
			if v.Malformed != nil {
				t.Errorf("checksum %v: %v", checks, v.Malformed)
			}
			line, object := want.line, want.json
			if checks {
				line = strings.Replace(line, "0xcafe", "0xcafe checksum", 1)
				object = strings.Replace(object, `},"messages"`, `},"checksum_right":true,"messages"`, 1)
			}
			flags := int(p.Data[9])
			for style, want := range map[text.Style]string{
				text.Line: line, text.Fields: strings.ReplaceAll(want.fields, "FLAGS", fmt.Sprintf("%#x", flags)),
				text.JSON: strings.ReplaceAll(object, "FLAGS", strconv.Itoa(flags)),
			} {
				printer := text.Printer{Style: style}
				if got := string(printer.Append(nil, &v)); !strings.Contains(got, want) {
					t.Errorf("checksum %v, style %d:\n%s\nhas not\n%s", checks, style, got, want)
				}
			}
		}
	}
}

// TestCutSessionLines checks that frames of a session that a snap length cut are shown as far as they go, and that only a length that
// cannot be is called wrong.
func TestCutSessionLines(t *testing.T) {
	for i, whole := range sessionPackets(false) {
		for n := range whole.Data {
			p := whole
			p.Data = p.Data[:n:n]
			var v text.View
			v.Decode(&p)
			printer := text.Printer{}
			if line := string(printer.Append(nil, &v)); v.Malformed != nil || !strings.Contains(line, fmt.Sprintf(" cut: %d of %d bytes", n, p.Length)) {
				t.Errorf("frame %d: %s", i, line)
			}
			for _, style := range []text.Style{text.Fields, text.JSON} {
				printer.Style = style
				printer.Append(nil, &v)
			}
		}
	}
	p := sessionPackets(false)[0]
	p.Length, p.Data = 60, p.Data[:50]
	var v text.View
	if v.Decode(&p); v.Malformed == nil || v.Malformed.Reason != frame.ShortMessage {
		t.Errorf("a message after the end of the frame: %v", v.Malformed)
	}
}

// TestWrongSessionLines checks what is said of frames of a session that cannot be.
func TestWrongSessionLines(t *testing.T) {
	patch := capturetest.PatchByte
	all := sessionPackets(false)
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"unknown control":  {patch(all[2].Data, 18, 9), "1->2 flags 0x4c malformed at byte 18 of 19: control frame is of an unknown kind"},
		"BYE that ends":    {all[4].Data[:24], "1->2 BYE up to 65538 tag 0xcafe malformed at byte 18 of 24: control frame is cut off"},
		"header that ends": {all[0].Data[:12], "1->2 flags 0x4 malformed at byte 0 of 12: session header needs 18 bytes"},
		"data that ends":   {all[0].Data[:45], "1->2 data id 131073 up to 65538 tag 0xcafe [txn 7 1/2 13 bytes at 0x1000 then 0x1 at 0x40] malformed at byte 18 of 45: data length"},
	} {
		p := all[0]
		p.Data, p.Length = c.b, len(c.b)
		var v text.View
		v.Decode(&p)
		printer := text.Printer{}
		if line := string(printer.Append(nil, &v)); !strings.Contains(line, c.want) {
			t.Errorf("%s: %s, want %s", name, line, c.want)
		}
	}
}

// handshakes are frames of each kind of a handshake for a session, from 1 to 2.
func handshakes(t testing.TB) (all [][]byte) {
	for _, h := range []frame.Handshake{
		{Kind: frame.HandshakeHello, Sender: 7},
		{Kind: frame.HandshakeWelcome, Sender: 7, Receiver: 9, Check: 0x12345678},
		{Kind: frame.HandshakeConfirm, Sender: 7, Receiver: 9, Check: 0x12345678},
		{Kind: frame.HandshakeReject, Sender: 7, Receiver: 9, Check: 0x12345678},
		{Kind: frame.HandshakeRefused, Sender: 9, Receiver: 9},
	} {
		b := make([]byte, frame.HandshakeSize)
		h.Put(b, 2, 1)
		switch h.Kind {
		case frame.HandshakeConfirm:
			b = append(b, services(t, "memory")...)
		case frame.HandshakeRefused:
			said := make([]byte, frame.RefusalSize)
			frame.Refusal{ID: 1, Size: 64, Why: 2}.Put(said)
			b = append(b, said...)
		}
		all = append(all, b)
	}
	return all
}

// TestServicesInSessions checks that a message of a session that lists services is shown with them.
func TestServicesInSessions(t *testing.T) {
	var s frame.Services
	for _, name := range []string{"memory", "link"} {
		n, err := frame.ParseServiceName(name)
		if err != nil || !s.Add(frame.Service{Name: n, Base: 4096}) {
			t.Fatal(name, err)
		}
	}
	b := make([]byte, frame.SessionHeaderSize+frame.MessageHeaderSize+frame.ServicesLen(&s))
	h := frame.SessionHeader{Dst: 2, Src: 1, ID: 7, Tag: 5, Ack: 3}
	h.Put(b)
	m := frame.Message{Txn: 9, CompletionAddr: frame.NoCompletion, CompletionValue: frame.NoCompletion, Type: frame.TypeServices, Len: uint16(frame.ServicesLen(&s))}
	m.Put(b[frame.SessionHeaderSize:])
	s.Put(b[frame.SessionHeaderSize+frame.MessageHeaderSize:])
	p := sessionPackets(false)[0]
	p.Data, p.Length = b, len(b)
	var v text.View
	v.Decode(&p)
	for style, want := range map[text.Style]string{
		text.Line:   "1->2 data id 7 up to 3 tag 0x5 [txn 9 0/0 28 bytes at 0x0 type 2, serves memory, link]\n",
		text.Fields: "  service memory from 0x1000\n  service link from 0x1000\n",
		text.JSON:   `"more":false,"services":[{"name":"memory","base":4096},{"name":"link","base":4096}],"knows":0}]`,
	} {
		printer := text.Printer{Style: style}
		if got := string(printer.Append(nil, &v)); !strings.Contains(got, want) {
			t.Errorf("style %d:\n%s\nhas not\n%s", style, got, want)
		}
	}
}

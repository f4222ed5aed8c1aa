package wireshark_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/capture/capturetest"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/captured"
	"github.com/dgrdma/dgrdma/inspect/text"
	"github.com/dgrdma/dgrdma/transport/tap"
)

var sessionFields = []string{
	"dgrdma.dst", "dgrdma.src", "dgrdma.flags", "dgrdma.flags.session", "dgrdma.session.id", "dgrdma.session.copy", "dgrdma.session.tag", "dgrdma.session.up_to", "dgrdma.session.control",
	"dgrdma.session.echo", "dgrdma.session.echo.copy", "dgrdma.session.echo.again", "dgrdma.session.echo.delay", "dgrdma.session.range.first", "dgrdma.session.range.count", "dgrdma.session.marks.ect0", "dgrdma.session.marks.ce",
	"dgrdma.session.reason", "dgrdma.session.sender", "dgrdma.session.receiver", "dgrdma.session.probe", "dgrdma.session.quoted.id", "dgrdma.session.quoted.copy", "dgrdma.session.quoted.up_to",
	"dgrdma.checksum.right", "dgrdma.msg.txn", "dgrdma.cut", "dgrdma.malformed", "dgrdma.flags.bad", "dgrdma.seq", "_ws.col.Info",
}

// wantSession is what tshark is to say of a frame of a session that came alone, by field.
func wantSession(p *captured.Packet) row {
	r := row{}
	id, _ := p.Header()
	r["dgrdma.dst"], r["dgrdma.src"], r["dgrdma.flags"] = strconv.Itoa(int(id.Dst)), strconv.Itoa(int(id.Src)), fmt.Sprintf("0x%02x", id.Flags)
	r["dgrdma.flags.session"] = "1"
	number := func(field string, n uint32) { r["dgrdma."+field] = strconv.FormatUint(uint64(n), 10) }
	var v text.View
	v.Decode(p)
	if h := &v.SessionHeader; v.Kind != text.None {
		r["dgrdma.session.tag"] = fmt.Sprintf("0x%08x", h.Tag)
		if h.Control != frame.NoControl {
			number("session.control", uint32(h.Control))
		}
		switch v.Kind {
		case text.Write, text.Bell:
			number("session.id", h.ID)
			number("session.copy", uint32(h.Copy))
			number("session.up_to", h.Ack)
		case text.Reset:
			number("session.quoted.id", h.ID)
			number("session.quoted.copy", uint32(h.Copy))
			number("session.quoted.up_to", h.Ack)
		default:
			number("session.up_to", h.Ack)
		}
	}
	if a, ok := v.Session.SessionAck(); ok {
		number("session.echo", v.SessionHeader.ID)
		number("session.echo.copy", uint32(a.Copy))
		r["dgrdma.session.echo.again"] = map[bool]string{true: "1", false: "0"}[a.Again]
		number("session.echo.delay", uint32(a.Delay))
		var first, count []string
		for i := range a.Ranges.Len() {
			first = append(first, fmt.Sprint(a.Ranges.At(i).First))
			count = append(count, fmt.Sprint(a.Ranges.At(i).Count))
		}
		if m := a.Marks; m != (frame.Marks{}) {
			number("session.marks.ect0", m.Capable)
			number("session.marks.ce", m.Congested)
		}
		r["dgrdma.session.range.first"], r["dgrdma.session.range.count"] = strings.Join(first, ","), strings.Join(count, ",")
	}
	if y, ok := v.Session.Bye(); ok {
		number("session.reason", uint32(y.Reason))
		number("session.sender", y.Sender)
		number("session.receiver", y.Receiver)
	}
	if size, ok := v.Session.Probe(); ok {
		number("session.probe", uint32(size))
	}
	var txns []string
	for _, m := range v.Messages {
		txns = append(txns, fmt.Sprint(m.Txn))
	}
	r["dgrdma.msg.txn"] = strings.Join(txns, ",")
	if v.Checksum == frame.RightChecksum {
		r["dgrdma.checksum.right"] = "1"
	}
	line := strings.TrimSuffix(string((&text.Printer{}).Append(nil, &v)), "\n")
	_, line, _ = strings.Cut(line, " > ")
	_, line, _ = strings.Cut(line, " ")
	if words, _, bad := strings.Cut(line, " malformed "); bad {
		line = words + " (malformed)"
		r["dgrdma.malformed"] = "1"
	}
	if words, _, cut := strings.Cut(line, " cut: "); cut {
		line = words + " (cut)"
		r["dgrdma.cut"] = "1"
	}
	if n := len(v.Messages); n > 3 {
		parts := strings.SplitAfterN(line, "]", 4)
		line = strings.Join(parts[:3], "") + fmt.Sprintf(" and %d more", n-3)
	}
	r["_ws.col.Info"] = line
	return r
}

// checkSession compares what tshark says of a frame of a session, but of others.
func checkSession(t *testing.T, name string, got, want row) {
	t.Helper()
	info := got["_ws.col.Info"]
	if strings.HasPrefix(info, "[") { // what is between frames: other tests look at that
		_, info, _ = strings.Cut(info, "] ")
	}
	for _, f := range sessionFields {
		is := got[f]
		if f == "_ws.col.Info" {
			is = info
		}
		if is != want[f] {
			t.Errorf("%s: %s is %q, want %q", name, f, is, want[f])
		}
	}
}

// checkSessions compares what tshark says of the frames of a capture, each of a session, with what package text does.
func checkSessions(t *testing.T, name string, capture []byte, args ...string) {
	t.Helper()
	file := save(t, capture)
	got := rows(t, file, sessionFields, args...)
	n := 0
	for p, err := range captured.ReadFile(file, captured.Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		r, want := got[p.Record], wantSession(p)
		checkSession(t, fmt.Sprintf("%s, packet %d, %x of %d", name, p.Record, p.Data, p.Length), r, want)
	}
	if n == 0 || len(got) != n {
		t.Errorf("%s: %d packets are shown, and %d are frames", name, len(got), n)
	}
}

// TestSessions checks that the dissector shows frames of a session of each kind as package text does, with a checksum and without, on each wire, whole,
// cut by a snap length, and malformed.
func TestSessions(t *testing.T) {
	requireTshark(t)
	for _, checks := range []bool{false, true} {
		for _, wire := range []string{"ethernet", "raw4"} {
			var whole, cut []capturetest.Packet
			for _, s := range capturetest.Sessions(checks) {
				c := capturetest.Wrapped(t, s.Data)[wire]
				whole = append(whole, c)
				before := len(c.Data) - len(s.Data)
				if wire == "ethernet" {
					before = 14
				}
				for n := frame.HeaderSize; n < min(len(s.Data), 60); n++ {
					short := c
					short.Length, short.Data = len(c.Data), c.Data[:before+n]
					cut = append(cut, short)
				}
			}
			name := fmt.Sprintf("%s, checksum %v", wire, checks)
			checkSessions(t, name, capturetest.Pcap(binary.LittleEndian, true, whole...))
			if wire == "ethernet" { // over UDP what is cut within its header is not known for a frame
				checkSessions(t, name+", cut", capturetest.Pcap(binary.LittleEndian, true, cut...))
			}
		}
	}
	patch := capturetest.PatchByte
	all := capturetest.Sessions(false)
	var wrong []capturetest.Packet
	for _, b := range [][]byte{
		patch(all[2].Data, 18, 9), patch(all[3].Data, 22, 65), patch(all[3].Data, 24, 1), patch(all[3].Data, 22, 30), patch(all[5].Data, 20, 7), patch(all[0].Data, 18+20, 255),
	} {
		b = append(b, make([]byte, max(0, 46-len(b)))...)
		wrong = append(wrong, capturetest.Wrapped(t, b)["ethernet"])
	}
	checkSessions(t, "malformed", capturetest.Pcap(binary.LittleEndian, true, wrong...))
}

// TestSessionAnalysis checks what is told between frames of a session: copies by their number, acknowledgements up to an id and by ranges, and which frame a RESET
// quotes.
func TestSessionAnalysis(t *testing.T) {
	requireTshark(t)
	for wire := range wires {
		r := newRecorder(t, wire, tap.Options{})
		data := func(id uint32, copied uint8) {
			b := make([]byte, frame.SessionHeaderSize+frame.MessageHeaderSize+4)
			h := frame.SessionHeader{Dst: 2, Src: 1, ID: id, Copy: copied, Tag: 5, Ack: 99}
			h.Put(b)
			(&frame.Message{Txn: id, CompletionAddr: frame.NoCompletion, CompletionValue: frame.NoCompletion, Count: 1, Index: 1, Len: 4}).Put(b[frame.SessionHeaderSize:])
			r.send(0, b)
		}
		data(0xFFFFFFFE, 0) // 1
		data(0xFFFFFFFF, 0) // 2
		data(2, 0)          // 3: two are missing
		data(0xFFFFFFFF, 1) // 4
		data(0xFFFFFFFF, 1) // 5: the network doubled it
		b := make([]byte, 64)
		h := frame.SessionHeader{Dst: 1, Src: 2, ID: 0xFFFFFFFF, Tag: 6, Ack: 0xFFFFFFFE}
		r.send(1, b[:frame.PutSessionAckFrame(b, &h, false, 1, 9, []frame.Range{{First: 2, Count: 1}})]) // 6
		h.Ack = 0xFFFFFFFF
		r.send(1, b[:frame.PutSessionAckFrame(b, &h, true, 1, 9, nil)])                                                 // 7
		r.send(1, b[:frame.PutReset(b, frame.SessionHeader{Dst: 2, Src: 1, ID: 0xFFFFFFFF, Copy: 1, Tag: 5, Ack: 99})]) // 8
		data(5, 1)                                                                                                      // 9: sent again,
		data(5, 0)                                                                                                      // 10: and overtook what was sent before
		data(5, 0)                                                                                                      // 11: which the network doubled
		got := rows(t, r.save(), []string{
			"dgrdma.analysis.retransmission_of", "dgrdma.analysis.duplicate_of", "dgrdma.analysis.acked_in", "dgrdma.analysis.acks", "dgrdma.analysis.missing", "dgrdma.session.quoted.frame",
			"dgrdma.session.reset", "dgrdma.txn.acked_in",
		}, "-2")
		for number, want := range map[int]row{
			1: {"dgrdma.analysis.acked_in": "6", "dgrdma.txn.acked_in": "6"},
			2: {"dgrdma.analysis.acked_in": "7", "dgrdma.txn.acked_in": "7"},
			3: {"dgrdma.analysis.acked_in": "6", "dgrdma.txn.acked_in": "6", "dgrdma.analysis.missing": "2"},
			4: {"dgrdma.analysis.acked_in": "7", "dgrdma.txn.acked_in": "7", "dgrdma.analysis.retransmission_of": "2"},
			5: {"dgrdma.analysis.acked_in": "7", "dgrdma.txn.acked_in": "7", "dgrdma.analysis.duplicate_of": "2"},
			6: {"dgrdma.analysis.acks": "1,3"},
			7: {"dgrdma.analysis.acks": "2"},
			8: {"dgrdma.session.quoted.frame": "5", "dgrdma.session.reset": "1"},

			9:  {"dgrdma.analysis.missing": "2"},
			10: {"dgrdma.analysis.retransmission_of": "9"},
			11: {"dgrdma.analysis.duplicate_of": "9"},
		} {
			for f, v := range got[number] {
				if v != want[f] {
					t.Errorf("%s, packet %d: %s is %q, want %q", wire, number, f, v, want[f])
				}
			}
		}
	}
}

// TestJoinedSessions checks that frames of a session that the capturing host joined are taken apart as package captured does.
func TestJoinedSessions(t *testing.T) {
	requireTshark(t)
	for _, checks := range []bool{false, true} {
		var datagrams [][]byte
		for i := range uint32(20) {
			b := make([]byte, frame.SessionHeaderSize+frame.MessageHeaderSize+1000-int(i/19*300))
			h := frame.SessionHeader{Dst: 2, Src: 1, ID: 0xFFFFFFF8 + i, Tag: 5, Ack: 99, Checks: checks}
			h.Put(b)
			(&frame.Message{Txn: i, Count: 1, Len: uint16(len(b) - frame.SessionHeaderSize - frame.MessageHeaderSize)}).Put(b[frame.SessionHeaderSize:])
			if checks {
				b = frame.AddChecksum(append(make([]byte, 0, frame.CheckedSize(len(b))), b...))
			}
			datagrams = append(datagrams, append([]byte{2, 0}, b...))
		}
		joined := capturetest.Joined(t, datagrams...)
		delete(joined, "unsaid") // lengths of 0, of which Wireshark makes no datagrams of UDP
		for wire, c := range joined {
			got := rows(t, save(t, capturetest.Pcap(binary.LittleEndian, true, c)), []string{"dgrdma.session.id", "_ws.col.Info", "dgrdma.checksum.bad"})
			if ids := got[1].numbers(t, "dgrdma.session.id"); len(ids) != 20 || ids[0] != 0xFFFFFFF8 || ids[19] != 11 || got[1]["dgrdma.checksum.bad"] != "" ||
				!strings.HasPrefix(got[1]["_ws.col.Info"], "20 frames, ids 4294967288..11: 1->2 data id 4294967288 up to 99 tag 0x5") {
				t.Errorf("%s, checksum %v: %v", wire, checks, got[1])
			}
		}
	}
}

// TestHandshakesOfSessions checks that frames of a handshake of each kind are shown as package text does.
func TestHandshakesOfSessions(t *testing.T) {
	requireTshark(t)
	list := introduction(t, 0, "memory")[frame.HandshakeSize:]
	refusal := make([]byte, frame.RefusalSize)
	frame.Refusal{ID: 1, Size: 64, Why: 1}.Put(refusal)
	another := make([]byte, frame.RefusalSize)
	frame.Refusal{ID: 5}.Put(another)
	identity := bytes.Clone(list)
	frame.PutIdentity(identity, frame.Refusal{ID: 5, Size: 64})
	for wire := range wires {
		r := newRecorder(t, wire, tap.Options{})
		kinds := []string{"0", "0", "1", "5", "6", "4", "4", "1"}
		for i, h := range []frame.Handshake{
			{Kind: frame.HandshakeHello, Sender: 7}, {Kind: frame.HandshakeHello, Sender: 7},
			{Kind: frame.HandshakeWelcome, Sender: 9, Receiver: 7, Check: 1<<31 + 5}, {Kind: frame.HandshakeConfirm, Sender: 7, Receiver: 9, Check: 5},
			{Kind: frame.HandshakeReject, Sender: 7, Receiver: 9, Check: 5}, {Kind: frame.HandshakeRefused, Sender: 9, Receiver: 9},
			{Kind: frame.HandshakeRefused, Sender: 9, Receiver: 9}, {Kind: frame.HandshakeWelcome, Sender: 9, Receiver: 7},
		} {
			b := make([]byte, frame.HandshakeSize)
			h.Put(b, 2, 1)
			switch {
			case i == 0:
				h.Put(b, 0, 1)
			case i == 7:
				h.Put(b, 2, 0)
				b = append(b, identity...)
			case h.Kind.HasServices():
				b = append(b, list...)
			case i == 5:
				b = append(b, refusal...)
			case i == 6:
				h.Put(b, 2, 0)
				b = append(b, another...)
			}
			r.send(0, b)
		}
		file := r.save()
		got := rows(t, file, []string{"_ws.col.Info", "dgrdma.session.handshake", "dgrdma.session.refused", "dgrdma.session.refused.by", "dgrdma.padding"})
		n := 0
		for p, err := range captured.ReadFile(file, captured.Options{}) {
			if err != nil {
				t.Fatal(err)
			}
			var v text.View
			v.Decode(p)
			line := strings.TrimSuffix(string((&text.Printer{}).Append(nil, &v)), "\n")
			info := got[p.Record]["_ws.col.Info"]
			if n++; info == "" || !strings.HasSuffix(line, " "+info) || got[p.Record]["dgrdma.padding"] != "" || got[p.Record]["dgrdma.session.handshake"] != kinds[n-1] {
				t.Errorf("%s, packet %d: %v, want %s", wire, p.Record, got[p.Record], line)
			}
		}
		if n != len(kinds) || got[6]["dgrdma.session.refused"] != "1" || got[6]["dgrdma.session.refused.by"] != "1" || got[7]["dgrdma.session.refused"] != "0" || got[7]["dgrdma.session.refused.by"] != "5" ||
			got[8]["dgrdma.session.refused"] != "" || got[8]["dgrdma.session.refused.by"] != "5" {
			t.Errorf("%s: %d frames, %v", wire, n, got)
		}
	}
}

package text_test

import (
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/capture/tcp"
	"github.com/dgrdma/dgrdma/inspect/iwarp"
	"github.com/dgrdma/dgrdma/inspect/rpcrdma"
	"github.com/dgrdma/dgrdma/inspect/text"
	codec "github.com/dgrdma/dgrdma/rpcrdma"
)

// rpcLines prints the messages of RPC-over-RDMA in a capture of Linux that a filter chooses.
func rpcLines(t testing.TB, name string, p *text.Printer, f *text.Filter) (all []string) {
	t.Helper()
	file, err := os.Open("../../rpcrdma/testdata/" + name + ".pcap.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	src, err := capture.NewFile(file)
	if err != nil {
		t.Fatal(err)
	}
	d := rpcrdma.New()
	streams := iwarp.New(iwarp.Options{}, func(e *iwarp.Event) error {
		if m := d.Event(e); m != nil && f.MatchRPC(m, e) {
			all = append(all, string(p.AppendRPC(nil, m)))
		}
		return nil
	})
	for n := 1; ; n++ {
		r, err := src.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if p.Start.IsZero() {
			p.Start = r.Time
		}
		if err := streams.Add(n, &r); err != nil {
			t.Fatal(err)
		}
	}
	if err := streams.End(); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestRPCLines checks what a line says of Calls and Replies: inline, with Read and Write chunks, and with a Reply chunk of several segments.
func TestRPCLines(t *testing.T) {
	all := rpcLines(t, "v3-size-65536", &text.Printer{}, &text.Filter{})
	for _, want := range []string{
		"8      0.006470000 10.97.0.3:37082 > 10.97.0.2:20049 RPC-over-RDMA 1 Call XID 0xcb67c810 NFS 3 NULL, MSG, 128 credits asked, 40 bytes inline\n",
		"9      0.007242000 10.97.0.2:20049 > 10.97.0.3:37082 RPC-over-RDMA 1 Reply XID 0xcb67c810 NFS 3 NULL, MSG, 64 credits granted, 24 bytes inline; answers XID 0xcb67c810 in record 8 after 772µs: success\n",
		"30     0.092133000 10.97.0.3:37082 > 10.97.0.2:20049 RPC-over-RDMA 1 Call XID 0xd567c810 NFS 3 READ, MSG, 128 credits asked, Write chunk of 16384 bytes at STag 0x97fec001 TO 0xd567c81007eec000, 100 bytes inline\n",
		"46     0.097396000 10.97.0.2:20049 > 10.97.0.3:37082 RPC-over-RDMA 1 Reply XID 0xd567c810 NFS 3 READ, MSG, 64 credits granted, Write chunk of 16384 bytes at STag 0x97fec001 TO 0xd567c81007eec000, 128 bytes inline; answers XID 0xd567c810 in record 30 after 5.263ms: success, 16384 bytes by RDMA Write\n",
		"208    0.129636000 10.97.0.2:20049 > 10.97.0.3:37082 RPC-over-RDMA 1 Reply XID 0xd967c810 NFSACL 3 GETACL, NOMSG, 64 credits granted, Reply chunk of 136 bytes at STag 0x2847e102 TO 0xd967c81008629800 + 0 bytes at STag 0xe2a36a01 TO 0xd967c8100858e000 + 0 bytes at STag 0xec733501 TO 0xd967c81008629900; answers XID 0xd967c810 in record 206 after 1.835ms: success, 136 bytes by RDMA Write\n",
		"212    0.193693000 10.97.0.3:37082 > 10.97.0.2:20049 RPC-over-RDMA 1 Call XID 0xdb67c810 NFS 3 WRITE, MSG, 128 credits asked, Read chunk at Position 108 of 65536 bytes at STag 0xce660d02 TO 0xdb67c81006c24000, 108 bytes inline\n",
		"290    0.215610000 10.97.0.2:20049 > 10.97.0.3:37082 RPC-over-RDMA 1 Reply XID 0xdb67c810 NFS 3 WRITE, MSG, 64 credits granted, 136 bytes inline; answers XID 0xdb67c810 in record 212 after 21.917ms: success, 65536 bytes by RDMA Read\n",
	} {
		if !strings.Contains(strings.Join(all, ""), want) {
			t.Errorf("no line %s", want)
		}
	}
	if len(all) != 54 {
		t.Errorf("%d lines", len(all))
	}
}

// TestRPCFilters checks that messages are chosen by the operation of their frame, by their own, by the STags of their chunks and of what they
// invalidate, and by their XIDs.
func TestRPCFilters(t *testing.T) {
	const stag = 0x97fec001 // of a READ, whose Reply invalidates it
	for _, c := range []struct {
		filter text.Filter
		want   int
	}{
		{text.Filter{STags: []uint32{stag}}, 2},
		{text.Filter{STags: []uint32{1}}, 0},
		{text.Filter{Operations: []text.Operation{{RPC: true}}}, 54},
		{text.Filter{Operations: []text.Operation{{RPC: true}}, STags: []uint32{stag}}, 2},
		{text.Filter{Operations: []text.Operation{{Opcode: 3}}}, 43},
		{text.Filter{Operations: []text.Operation{{Opcode: 4}}}, 11},
		{text.Filter{Operations: []text.Operation{{Opcode: 0}}}, 0},
		{text.Filter{Txns: []uint32{1}}, 0},
		{text.Filter{XIDs: []uint32{0xd567c810}}, 2},
		{text.Filter{XIDs: []uint32{0xd567c810, 0xdb67c810}}, 4},
		{text.Filter{XIDs: []uint32{0xd567c810}, STags: []uint32{stag}}, 2},
		{text.Filter{XIDs: []uint32{0xdb67c810}, STags: []uint32{stag}}, 0},
	} {
		if all := rpcLines(t, "v3-size-65536", &text.Printer{}, &c.filter); len(all) != c.want {
			t.Errorf("%+v: %d lines, want %d", c.filter, len(all), c.want)
		}
	}
}

// TestRPCJSON checks the keys of messages.
func TestRPCJSON(t *testing.T) {
	type segment struct {
		Length, STag int
		To           string
	}
	type message struct {
		Record  int
		Kind    string
		Message string
		Version int
		XID     int
		Credits int
		Type    string
		Reads   []struct {
			Position int
			Segments []segment
		}
		Writes     [][]segment
		ReplyChunk []segment `json:"reply_chunk"`
		Inline     int
		Procedure  string
		RPC        struct{ Program, Version, Procedure int }
		Answers    struct {
			Record int
			After  int `json:"after_ns"`
		}
		Status        string
		Written, Read int
	}
	var got []message
	for _, line := range rpcLines(t, "v3-size-65536", &text.Printer{Style: text.JSON}, &text.Filter{}) {
		var m message
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if m.Kind != "rpc" || m.Version != 1 || m.RPC.Version != 3 || m.XID == 0 {
			t.Errorf("%s", line)
		}
		got = append(got, m)
	}
	find := func(record int) *message {
		for i := range got {
			if got[i].Record == record {
				return &got[i]
			}
		}
		t.Fatalf("no record %d", record)
		return nil
	}
	if m := find(212); m.Message != "Call" || m.Credits != 128 || m.Type != "MSG" || m.Inline != 108 || len(m.Reads) != 1 || m.Reads[0].Position != 108 ||
		m.Reads[0].Segments[0] != (segment{65536, 0xce660d02, "0xdb67c81006c24000"}) || m.Procedure != "NFS 3 WRITE" || m.RPC.Program != 100003 || m.RPC.Procedure != 7 {
		t.Errorf("%+v", m)
	}
	if m := find(46); m.Message != "Reply" || m.Credits != 64 || len(m.Writes) != 1 || m.Writes[0][0].Length != 16384 || m.Answers.Record != 30 || m.Answers.After != 5263000 ||
		m.Status != "success" || m.Written != 16384 || m.Read != 0 {
		t.Errorf("%+v", m)
	}
	if m := find(208); m.Type != "NOMSG" || len(m.ReplyChunk) != 3 || m.ReplyChunk[0].Length != 136 {
		t.Errorf("%+v", m)
	}
}

// TestCompoundJSON checks the keys of a COMPOUND of NFS 4, and of the status of its Reply.
func TestCompoundJSON(t *testing.T) {
	const want = `"procedure":"NFS 4.1 COMPOUND (SEQUENCE, PUTFH, LOOKUP, GETFH, GETATTR)","rpc":{"program":100003,"version":4,"procedure":1,"minor":1,"operations":["SEQUENCE","PUTFH","LOOKUP","GETFH","GETATTR"]}`
	lines := rpcLines(t, "v4.1-basic", &text.Printer{Style: text.JSON}, &text.Filter{})
	n := 0
	for _, line := range lines {
		if strings.Contains(line, want) {
			if n++; !json.Valid([]byte(line)) || strings.Contains(line, `"message":"Reply"`) && !strings.Contains(line, `"status":"NFS4ERR_NOENT at LOOKUP"`) {
				t.Error(line)
			}
		}
	}
	if n != 6 {
		t.Errorf("%d of %d lines are of such a LOOKUP", n, len(lines))
	}
}

// TestRPCVersion2 checks what is said of credits of version 2, of which the first number is how many may wait, as in version 1, and the second how many of them are new
// (RPC2-019), of properties, and, with all fields, of numbers and segments.
func TestRPCVersion2(t *testing.T) {
	conn := &rpcrdma.Connection{IWARP: &iwarp.Connection{Number: 1, TCP: &tcp.Connection{}}}
	for _, c := range []struct {
		m                  rpcrdma.Message
		line, fields, json string
	}{
		{
			rpcrdma.Message{Length: 60, Kind: rpcrdma.Properties, Header: &codec.Header{
				Version: 2, XID: 5, Credit: codec.Credit2(64, 1), Type: codec.TypeConnProp,
				Properties: []codec.Property{
					{ID: codec.PropertyReceiveSize, Data: []byte{0, 0, 32, 0}}, {ID: codec.PropertySegmentCount}, {ID: 9, Data: []byte{1, 2, 3}},
				},
			}},
			"RPC-over-RDMA 2 properties XID 0x5, CONNPROP, 64 credits granted, 1 of them new, receive size 8192, segment count as by default, unknown 9 of 3 bytes\n",
			"  a Send of 60 bytes, of which 0 follow the header, flags 0x0, most outstanding 64, newly granted 1\n" +
				"  property receive size 8192\n  property segment count as by default\n  property unknown 9 of 3 bytes\n",
			`"type":"CONNPROP","credits":64,"credits_new":1,"flags":0,"may_invalidate":0,` +
				`"properties":[{"id":2,"name":"receive size","data":"00002000"},{"id":4,"name":"segment count","data":""},{"id":9,"data":"010203"}]}`,
		},
		{
			rpcrdma.Message{Length: 200, Payload: 100, Kind: rpcrdma.CallKind, Call: &rpcrdma.Call{RPC: rpcrdma.RPC{Known: true, Program: 100003, ProgramVersion: 3, Procedure: 7}}, Header: &codec.Header{
				Version: 1, XID: 6, Credit: 128, Type: codec.TypeMsg, Reads: []codec.ReadChunk{{Position: 108, Segments: codec.Chunk{{Handle: 1, Length: 10, Offset: 16}, {Handle: 2, Length: 20, Offset: 32}}}},
			}},
			"RPC-over-RDMA 1 Call XID 0x6 NFS 3 WRITE, MSG, 128 credits asked, Read chunk at Position 108 of 10 bytes at STag 0x1 TO 0x10 + 20 bytes at STag 0x2 TO 0x20, 100 bytes inline\n",
			"  a Send of 200 bytes, of which 100 follow the header, credits 128\n  RPC program 100003 version 3 procedure 7\n" +
				"  Read segment at Position 108: 10 bytes at STag 0x1 TO 0x10\n  Read segment at Position 108: 20 bytes at STag 0x2 TO 0x20\n",
			`"credits":128,"reads":[{"position":108`,
		},
	} {
		c.m.Conn = conn
		for style, want := range map[text.Style]string{text.Line: c.line, text.Fields: c.line + c.fields, text.JSON: c.json} {
			p := text.Printer{Style: style}
			if got := string(p.AppendRPC(nil, &c.m)); !strings.Contains(got, want) || style == text.Line && strings.Count(got, "\n") != 1 {
				t.Errorf("style %d:\n%s\nhas not\n%s", style, got, want)
			}
		}
	}
}

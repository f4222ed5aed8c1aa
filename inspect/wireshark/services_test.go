package wireshark_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/captured"
	"github.com/dgrdma/dgrdma/transport/tap"
)

// asks is the message of a HELLO.
var asks = frame.Message{Txn: 7, CompletionAddr: frame.NoCompletion, CompletionValue: frame.NoCompletion}

// refuses is that of a REFUSED.
var refuses = frame.Message{Txn: 7, Addr: 7, Index: 4, CompletionAddr: frame.NoCompletion, CompletionValue: frame.NoCompletion}

// introduction is a HELLO from endpoint 1 to endpoint 2 that lists services.
func introduction(t testing.TB, seq int, names ...string) []byte {
	t.Helper()
	var s frame.Services
	for i, name := range names {
		n, err := frame.ParseServiceName(name)
		if err != nil || !s.Add(frame.Service{Name: n, Base: uint32(i) * 0xFFFF0000}) {
			t.Fatalf("%s: %v", name, err)
		}
	}
	list := make([]byte, frame.ServicesSize)
	s.Put(list)
	return append(made(from1(seq), asks), list...)
}

// TestServices checks that what frames of handshakes list is shown as package frame describes it, and what is no list
// is padding.
func TestServices(t *testing.T) {
	requireTshark(t)
	const list = frame.HeaderSize + frame.MessageHeaderSize
	eight := strings.Split("a b c d e f g 01234-67", " ")
	patched := func(at int, v ...byte) []byte {
		b := introduction(t, 1, "memory", "link")
		copy(b[list+at:], v)
		return b
	}
	answer := introduction(t, 1, "link")
	answer[frame.HeaderSize+14], answer[frame.HeaderSize+16] = 1, 9
	completion := introduction(t, 1, "memory")
	completion[frame.HeaderSize+14] = frame.NotHandshake
	behind := made(from1(1), data(1, 1, 1, 8), asks)
	acknowledgement := made(from2(1, 5, 1))
	for _, b := range []*[]byte{&behind, &acknowledgement} {
		*b = append(*b, introduction(t, 1, "memory")[list:]...)
	}
	cases := []struct {
		name string
		data []byte
		want string // the end
	}{
		{"two", introduction(t, 1, "memory", "link"), ", serves memory, link]"},
		{"none", introduction(t, 1), ", no service]"},
		{"eight", introduction(t, 1, eight...), ", serves a, b, c, d, e, f, g, 01234-67]"},
		{"padded", append(introduction(t, 1, "link"), 1, 2, 3), ", serves link]"},
		{"in an answer", answer, ", serves link]"},
		{"rubbish behind the last one", patched(4+2*12, 1, 2, 3), ", serves memory, link]"},
		{"not told", introduction(t, 1)[:list], "epoch 7]"},
		{"short by one", introduction(t, 1, "link")[:list+frame.ServicesSize-1], "epoch 7]"},
		{"another mark", patched(0, 0x54), "epoch 7]"},
		{"nine", patched(1, 9), "epoch 7]"},
		{"knows", patched(2, 8), ", serves memory, link (knows 8)]"},
		{"knows nine", patched(2, 9), "epoch 7]"},
		{"reserved", patched(3, 1), "epoch 7]"},
		{"no name", patched(1, 3), "epoch 7]"},
		{"zero in front", patched(4, 0), "epoch 7]"},
		{"capital", patched(4, 'M'), "epoch 7]"},
		{"beyond letters", patched(4, '{'), "epoch 7]"},
		{"underscore", patched(4, '_'), "epoch 7]"},
		{"high", patched(4, 0xE9), "epoch 7]"},
		{"behind its end", patched(16+5, 'x'), "epoch 7]"},
		{"twice", patched(16, []byte("memory\x00\x00")...), "epoch 7]"},
		{"who is there", made(frame.Header{Src: 1, Flags: frame.FlagMessages}, asks), "1->0 [HELLO from epoch 7, asks who is there]"},
		{"another id", append(made(frame.Header{Dst: 1, Src: 9, Seq: 2, Flags: frame.FlagMessages}, refuses), 0x49, 0, 5, 0, 64, 0, 0, 0, 0, 0, 0, 0),
			"[REFUSED to epoch 7: another id is here, endpoint 5 with 64 bytes]"},
		{"its own id", append(made(frame.Header{Dst: 1, Src: 5, Seq: 2, Flags: frame.FlagMessages}, refuses), 0x49, 0, 5, 0, 64, 0, 0, 0, 0, 0, 0, 0),
			"[REFUSED to epoch 7]"},
		{"behind a completion", completion, "[txn 7 2/0]"},
		{"behind data", behind, ""},
		{"behind an acknowledgement", acknowledgement, "ack 5+1"},
	}
	for _, wire := range []string{"Ethernet", "IPv4"} {
		r := newRecorder(t, wire, tap.Options{})
		for _, tt := range cases {
			r.send(0, tt.data)
		}
		file := r.save()
		all := model(t, file, captured.Options{Ports: []uint16{40000}})
		got := rows(t, file, plainFields, "-o", "dgrdma.ports:40000")
		for i, tt := range cases {
			if !bytes.Equal(all[i].data, tt.data) {
				t.Fatalf("%s, %s: captured as % x", wire, tt.name, all[i].data)
			}
			checkPlain(t, all[i], got[i+1])
			if info := got[i+1]["_ws.col.Info"]; !strings.HasSuffix(info, tt.want) || strings.Contains(info, "serves") != strings.Contains(tt.want, "serves") {
				t.Errorf("%s, %s: info is %q, want ...%q", wire, tt.name, info, tt.want)
			}
		}
		if tree := tshark(t, file, "-V"); !strings.Contains(tree, "\n            Service link from 0xffff0000\n") {
			t.Errorf("%s: the tree has no service", wire)
		}
	}
}

// Wherever a snap length cuts, a list of services is shown if all of it is there, and
// nothing is called padding that may be part of one.
func TestServicesCut(t *testing.T) {
	requireTshark(t)
	r := newRecorder(t, "Ethernet", tap.Options{})
	r.send(0, append(introduction(t, 1, "memory", "link"), 1, 2, 3))
	one := records(t, r.file.Bytes())[0]
	const begin = frame.HeaderSize + frame.MessageHeaderSize
	const end = begin + frame.ServicesSize
	var all []record
	for n := range end + 4 {
		all = append(all, record{one.data[:headersOf["Ethernet"]+n], one.length})
	}
	got := rows(t, save(t, pcapOf(1, all)), []string{"_ws.col.Info", "dgrdma.session.services", "dgrdma.padding", "dgrdma.cut", "dgrdma.malformed"})
	for n := frame.HeaderSize; n < end+4; n++ {
		count, padding := "", ""
		if n >= end {
			count, padding = "2", "010203"[:2*(n-end)]
		}
		p := got[n+1]
		if p["dgrdma.session.services"] != count || p["dgrdma.padding"] != padding || (p["dgrdma.cut"] != "") != (n < end+3) || p["dgrdma.malformed"] != "" {
			t.Errorf("cut to %d: %v", n, p)
		}
		if told := strings.Contains(p["_ws.col.Info"], "HELLO from epoch 7, serves memory, link]"); told != (count != "") {
			t.Errorf("cut to %d: info is %q", n, p["_ws.col.Info"])
		}
	}
}

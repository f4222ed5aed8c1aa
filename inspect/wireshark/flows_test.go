package wireshark_test

import (
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/tap"
)

// findings are the expert fields, without the name of the protocol.
var findings = []string{
	"malformed", "cut", "zero_id", "flags.bad", "checksum.bad", "msg.type.bad", "msg.index.bad", "msg.count.zero", "msg.len.zero", "msg.addr.wraps",
	"msg.completion.unaligned", "msg.txn.differs", "analysis.retransmission", "analysis.live_header", "analysis.duplicate", "analysis.gap",
	"analysis.out_of_order", "analysis.restart", "analysis.ack_unseen",
}

func findingFields() (all []string) {
	for _, f := range findings {
		all = append(all, "dgrdma."+f)
	}
	return all
}

// found lists the findings about a packet.
func found(r row) string {
	var all []string
	for _, f := range findings {
		if r["dgrdma."+f] != "" {
			all = append(all, f)
		}
	}
	return strings.Join(all, " ")
}

// step is a frame, from which end it is, and what is to be found about it.
type step struct {
	from int
	data []byte
	want string
}

func TestFindings(t *testing.T) {
	requireTshark(t)
	t.Parallel()
	with := func(m frame.Message, change func(*frame.Message)) frame.Message {
		change(&m)
		return m
	}
	withHeader := func(h frame.Header, change func(*frame.Header)) frame.Header {
		change(&h)
		return h
	}
	patched := func(b []byte, at int, v ...byte) []byte {
		copy(b[at:], v)
		return b
	}
	none := frame.Message{Txn: 40, CompletionAddr: frame.NoCompletion, CompletionValue: frame.NoCompletion, Count: 1, Index: 1, Addr: 8, Len: 8}
	cases := []struct {
		name  string
		steps []step
	}{
		{"nothing", []step{
			{0, made(from1(1), data(1, 1, 2, 8)), ""},
			{0, made(from1(2), data(1, 2, 2, 8), none), ""},
			{1, made(from2(9, 1, 2)), ""},
			{1, made(from2(10, 2, 1), data(7, 1, 1, 4)), ""},
		}},
		{"sent again", []step{
			{0, made(from1(1), data(1, 1, 2, 8)), ""},
			{0, made(from1(1), data(1, 1, 2, 8)), "analysis.retransmission"},
			{1, made(from2(1, 1, 1)), ""},
			{0, made(withHeader(from1(1), func(h *frame.Header) { h.AckStart, h.AckCount = 1, 1 }), data(1, 1, 2, 8)), "analysis.retransmission analysis.duplicate"},
			{1, made(from2(1, 1, 1)), "analysis.duplicate"},
			{1, made(from2(1, 1, 2)), "analysis.ack_unseen"}, // the id serves again
		}},
		{"gap, and what was overtaken", []step{
			{0, made(from1(65534), data(1, 1, 9, 8)), ""},
			{0, made(from1(1), data(1, 2, 9, 8)), "analysis.gap"},
			{0, made(from1(0), data(1, 3, 9, 8)), "analysis.out_of_order"},
			{0, made(from1(2), data(1, 4, 9, 8)), ""},
			{0, made(from1(0), data(1, 3, 9, 8)), "analysis.retransmission"},
		}},
		{"restart", []step{
			{0, made(from1(100), data(1, 1, 1, 8)), ""},
			{0, made(from1(101), data(2, 1, 1, 8)), ""},
			{0, made(from1(100), data(9, 1, 1, 8)), "analysis.restart"},
			{0, made(from1(101), data(10, 1, 1, 8)), ""},
			{0, made(from1(30000), data(11, 1, 1, 8)), "analysis.restart"},
			{0, made(from1(30001), data(12, 1, 1, 8)), ""},
		}},
		{"directions are apart", []step{
			{0, made(from1(5), data(1, 1, 1, 8)), ""},
			{1, made(frame.Header{Dst: 1, Src: 2, Seq: 5}, data(1, 1, 1, 8)), ""},
			{0, made(frame.Header{Dst: 3, Src: 1, Seq: 5}, data(1, 1, 1, 8)), ""},
			{0, made(frame.Header{Dst: 2, Src: 4, Seq: 5}, data(1, 1, 1, 8)), ""},
		}},
		{"transactions", []step{
			{0, made(from1(1), data(1, 1, 2, 8)), ""},
			{0, made(from1(2), with(data(1, 2, 2, 8), func(m *frame.Message) { m.CompletionValue = 5 })), "msg.txn.differs"},
			{0, made(from1(3), data(2, 1, 1, 8)), ""},
			{0, made(from1(4), data(2, 1, 1, 8)), ""}, // an old driver uses ids again
		}},
		{"fields", []step{
			{0, made(from1(1), data(1, 0, 2, 8)), "msg.index.bad"},
			{0, made(from1(2), data(2, 3, 2, 8)), "msg.index.bad"},
			{0, made(from1(3), data(3, 1, 0, 8)), "msg.count.zero"},
			{0, made(from1(4), data(4, 1, 1, 0)), "msg.len.zero"},
			{0, made(from1(5), with(data(5, 1, 1, 8), func(m *frame.Message) { m.Addr = 1<<32 - 7 })), "msg.addr.wraps"},
			{0, made(from1(6), with(data(6, 1, 1, 8), func(m *frame.Message) { m.CompletionAddr = 6 })), "msg.completion.unaligned"},
			{0, made(from1(7), with(data(7, 1, 1, 8), func(m *frame.Message) { m.Type = 4 })), "msg.type.bad"},
			{0, made(from1(8), with(data(8, 1, 1, 8), func(m *frame.Message) { m.Type = 3 })), ""},
			{0, made(withHeader(from1(9), func(h *frame.Header) { h.Flags = 0x80 }), data(9, 1, 1, 8)), "flags.bad"},
			{0, frame.AddChecksum(made(from1(10), data(10, 1, 1, 8))), ""},
			{0, patched(frame.AddChecksum(made(from1(11), data(11, 1, 1, 8))), 35, 0xee), "checksum.bad"},
			{0, made(withHeader(from1(9), func(h *frame.Header) { h.Dst = 0 }), data(9, 1, 1, 8)), "zero_id"},
		}},
		{"malformed", []step{
			{0, made(from1(1))[:9], "malformed"},
			{0, nil, "malformed"},
			{0, made(from1(1), data(1, 1, 1, 8))[:33], "malformed"},
			{0, made(from1(1), data(1, 1, 1, 8))[:41], "malformed"},
			{0, patched(made(from1(1), data(1, 1, 1, 7)), 33, 1), "malformed"},
			// Who receives such a frame drops it: its id was never used.
			{0, made(from1(1), data(2, 1, 1, 8)), ""},
		}},
	}
	var all []record
	for i, tt := range cases {
		r := newRecorder(t, "Ethernet", tap.Options{})
		for _, s := range tt.steps {
			r.send(s.from, s.data)
		}
		all = append(all, elsewhere(1+i, records(t, r.file.Bytes()))...)
	}
	got := rows(t, save(t, pcapOf(1, all)), append(findingFields(), "dgrdma.analysis.missing"))
	number := 0
	for _, tt := range cases {
		for i, s := range tt.steps {
			number++
			if f := found(got[number]); f != s.want {
				t.Errorf("%s, packet %d: found %q, want %q", tt.name, i+1, f, s.want)
			}
			if n := got[number].number(t, "dgrdma.analysis.missing"); (n != 0) != strings.Contains(s.want, "gap") || n > 2 {
				t.Errorf("%s, packet %d: %d ids are missing", tt.name, i+1, n)
			}
		}
	}
}

// Ids that come round again are others, even if they carry the same as before.
// On the way there are gaps, so that the capture is short.
func TestIdsComeRound(t *testing.T) {
	requireTshark(t)
	r := newRecorder(t, "Ethernet", tap.Options{})
	type mark struct {
		ackedIn int
		found   string
	}
	want := make(map[int]mark)
	packets, answers := 0, 65500
	say := func(id int, found string) {
		r.send(0, made(from1(id), data(id, 1, 1, 4)))
		r.send(1, made(from2(answers, id, 1)))
		packets, answers = packets+2, answers+1
		want[packets-1] = mark{packets, found}
	}
	for id := range 3 * 65536 {
		switch near := id % 16384; {
		case near == 0 && id > 0:
			say(id%65536, "analysis.gap")
		case near < 20:
			say(id%65536, "")
		}
	}
	got := rows(t, r.save(), append(findingFields(), "dgrdma.analysis.acked_in"), "-2")
	for i := 1; i <= packets; i++ {
		w := want[i] // of answers: nothing
		if f, in := found(got[i]), got[i].number(t, "dgrdma.analysis.acked_in"); f != w.found || in != w.ackedIn {
			t.Errorf("packet %d: found %q, acknowledged in %d; want %q and %d", i, f, in, w.found, w.ackedIn)
		}
	}
	// Three rounds, four places in each, the same ones.
	if packets != 2*20*12 {
		t.Errorf("%d packets", packets)
	}
}

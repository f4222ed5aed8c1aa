package wireshark_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/tap"
)

// findings are the expert fields, without the name of the protocol.
var findings = []string{
	"malformed", "cut", "zero_id", "flags.bad", "msg.type.bad", "msg.index.bad", "msg.count.zero", "msg.len.zero", "msg.addr.wraps",
	"msg.completion.unaligned", "msg.txn.differs", "analysis.retransmission", "analysis.duplicate", "analysis.gap",
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
	for _, tt := range []struct {
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
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRecorder(t, "Ethernet", tap.Options{})
			for _, s := range tt.steps {
				r.send(s.from, s.data)
			}
			got := rows(t, r.save(), append(findingFields(), "dgrdma.analysis.missing"))
			for i, s := range tt.steps {
				if f := found(got[i+1]); f != s.want {
					t.Errorf("packet %d: found %q, want %q", i+1, f, s.want)
				}
				if n := got[i+1].number(t, "dgrdma.analysis.missing"); (n != 0) != strings.Contains(s.want, "gap") || n > 2 {
					t.Errorf("packet %d: %d ids are missing", i+1, n)
				}
			}
		})
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

// Captures of hosts with segmentation offload have many frames in one packet.
func TestFramesInOneDatagram(t *testing.T) {
	requireTshark(t)
	join := func(frames ...[]byte) (all []byte) {
		for i, f := range frames {
			if i > 0 {
				all = append(all, 0, 0)
			}
			all = append(all, f...)
		}
		return all
	}
	full := func(seq, index int) []byte { return made(from1(seq), data(1, index, 9, 100)) }
	padded := func(seq, index int) []byte { return append(made(from1(seq), data(1, index, 9, 99)), "abcde"...) }
	stamped := func(seq int) []byte {
		b := append(made(from2(seq, 5, 3)), make([]byte, 12)...)
		copy(b[10:], []byte{1, 2, 3, 4, byte(seq), byte(seq >> 8), 9, 0, 5, 0, 1, 0})
		return b
	}
	other := full(3, 3)
	other[0] = 7
	cases := []struct {
		name string
		data []byte
		want string // ids
		rest int    // bytes of padding
	}{
		{"one", full(1, 1), "1", 0},
		{"equal", join(full(1, 1), full(2, 2), full(3, 3)), "1,2,3", 0},
		{"last is shorter", join(full(1, 1), full(2, 2), made(from1(3), data(1, 3, 9, 8))), "1,2,3", 0},
		{"last has no messages", join(full(1, 1), made(frame.Header{Dst: 2, Src: 1, Seq: 2, AckStart: 9, AckCount: 1})), "1,2", 0},
		{"padded by OpenCPI", join(padded(1, 1), padded(2, 2), padded(3, 3)), "1,2,3", 15},
		{"acknowledgements", join(made(from2(4, 1, 1)), made(from2(5, 3, 2))), "4,5", 0},
		{"stamps", join(stamped(7), stamped(8), stamped(9)), "7,8,9", 0},
		{"last is longer", join(made(from1(1), data(1, 1, 9, 8)), full(2, 2)), "1", 136},
		{"another destination", join(full(1, 1), full(2, 2), other), "1", 272},
		{"garbage behind", append(full(1, 1), make([]byte, 50)...), "1", 50},
		{"garbage as long", append(full(1, 1), make([]byte, 136)...), "1", 136},
		{"many", join(slices.Repeat([][]byte{full(5, 5)}, 60)...), strings.TrimSuffix(strings.Repeat("5,", 60), ","), 0},
	}
	r := newRecorder(t, "IPv4", tap.Options{})
	for _, tt := range cases {
		r.send(0, tt.data)
	}
	got := rows(t, r.save(), []string{"dgrdma.seq", "dgrdma.padding", "_ws.col.Info"}, "-o", "dgrdma.ports:40000")
	for i, tt := range cases {
		p := got[i+1]
		rest := len(strings.ReplaceAll(p["dgrdma.padding"], ",", "")) / 2
		if p["dgrdma.seq"] != tt.want || rest != tt.rest {
			t.Errorf("%s: ids %s and %d bytes of padding, want %s and %d", tt.name, p["dgrdma.seq"], rest, tt.want, tt.rest)
		}
		frames := strings.Count(tt.want, ",") + 1
		if many := strings.HasPrefix(p["_ws.col.Info"], fmt.Sprintf("%d frames", frames)); many != (frames > 1) {
			t.Errorf("%s: info is %q", tt.name, p["_ws.col.Info"])
		}
	}
}

package wireshark_test

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
	"github.com/dgrdma/dgrdma/rdmap/mpa"
	"github.com/dgrdma/dgrdma/verbs"
)

// iwarpFields are those of tshark's own dissector for iWARP.
var iwarpFields = []string{
	"tcp.srcport", "tcp.dstport", "_ws.malformed",
	"iwarp_mpa.req", "iwarp_mpa.rep", "iwarp_mpa.marker_flag", "iwarp_mpa.crc_flag", "iwarp_mpa.rej_flag", "iwarp_mpa.rev", "iwarp_mpa.pdlength", "iwarp_mpa.privatedata",
	"iwarp_mpa.ulpdulength", "iwarp_mpa.pad", "iwarp_mpa.crc", "iwarp_mpa.crc_check",
	"iwarp_ddp.tagged_flag", "iwarp_ddp.last_flag", "iwarp_ddp.rsvd", "iwarp_ddp.dv",
	"iwarp_ddp.stag", "iwarp_ddp.tagged_offset", "iwarp_ddp.qn", "iwarp_ddp.msn", "iwarp_ddp.mo",
	"iwarp_rdma.version", "iwarp_rdma.rsv", "iwarp_rdma.opcode", "iwarp_rdma.inval_stag", "iwarp_rdma.reserved",
	"iwarp_rdma.sinkstag", "iwarp_rdma.sinkto", "iwarp_rdma.rdmardsz", "iwarp_rdma.srcstag", "iwarp_rdma.srcto",
	"iwarp_rdma.term_layer", "iwarp_rdma.term_etype_rdma", "iwarp_rdma.term_etype_ddp", "iwarp_rdma.term_errcode_rdma",
	"iwarp_rdma.term_errcode_ddp_tagged", "iwarp_rdma.term_errcode_ddp_untagged", "iwarp_rdma.term_hdrct_m", "iwarp_rdma.hdrct_d", "iwarp_rdma.hdrct_r",
	"iwarp_rdma.term_rsvd", "iwarp_rdma.term_ddp_seg_len", "iwarp_rdma.term_ddp_h", "iwarp_rdma.term_rdma_h",
	"iwarp_rdma.atomic.opcode", "iwarp_rdma.atomic.request_identifier", "iwarp_rdma.atomic.remote_stag", "iwarp_rdma.atomic.remote_tagged_offset",
	"iwarp_rdma.atomic.add_data", "iwarp_rdma.atomic.add_mask", "iwarp_rdma.atomic.swap_data", "iwarp_rdma.atomic.swap_mask",
	"iwarp_rdma.atomic.compare_data", "iwarp_rdma.atomic.compare_mask",
	"iwarp_rdma.atomic.original_request_identifier", "iwarp_rdma.atomic.original_remote_data_value",
}

// TestIWARP: tshark reads everything that verbs say as it was meant: every operation of both sides over frames of all
// kinds, each kind of opening message, and Terminates. Behind the set-up there is nothing else (RDMAP-011).
func TestIWARP(t *testing.T) {
	requireTshark(t)
	hosts := [2]*verbs.Host{}
	for i := range hosts {
		h, err := verbs.Open("tcp:127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		hosts[i] = h
	}
	l, err := hosts[1].Listen("0")
	if err != nil {
		t.Fatal(err)
	}
	r := newRelay(t, l.Addr().String())
	const all = verbs.Atomics | verbs.Immediates | verbs.Commit
	var talks []*talk
	start := func(wrap bool, oa, ob verbs.Options) *talk {
		k := meet(t, r, l, hosts[0], hosts[1], wrap, oa, ob)
		talks = append(talks, k)
		return k
	}
	for _, o := range []verbs.Options{{}, {NoCRC: true}, {Strict: true}, {Strict: true, NoCRC: true}, {Revision: 1}} {
		for _, wrap := range []bool{false, true} {
			o.Extensions = all
			k := start(wrap, o, verbs.Options{Extensions: all, NoCRC: o.NoCRC})
			k.everything(0, true)
			k.everything(1, true)
		}
	}
	for _, ready := range []mpa.Ready{mpa.ReadyWrite, mpa.ReadyRead, mpa.ReadySend} {
		k := start(false, verbs.Options{PeerToPeer: true, Ready: ready}, verbs.Options{})
		switch ready {
		case mpa.ReadyWrite:
			k.say(0, "the Write that opens", 0, tagged(0, 1, 0), nil)
		case mpa.ReadyRead:
			k.ask(0, "the Read that opens", 1, 28, map[string]string{"iwarp_rdma.sinkstag": "0x00000000", "iwarp_rdma.sinkto": quad(0),
				"iwarp_rdma.rdmardsz": "0", "iwarp_rdma.srcstag": "0x00000001", "iwarp_rdma.srcto": quad(0)})
			k.say(1, "its answer", 0, tagged(2, 0, 0), nil)
		case mpa.ReadySend:
			k.send(0, 3, 0, "")
		}
		k.everything(1, false)
		k.everything(0, false)
	}
	for side := range 2 {
		for _, crc := range []bool{true, false} {
			open := func() *talk {
				k := start(false, verbs.Options{NoCRC: !crc}, verbs.Options{NoCRC: !crc})
				k.read(0, 1) // the initiator speaks first
				return k
			}
			post := func(k *talk, w verbs.Work) { k.t.Helper(); k.do("posting", k.qp[side].Post(&w)) }

			k := open()
			far := k.key[1-side].Offset + 1<<18
			post(k, verbs.Work{Op: verbs.OpWrite, STag: k.key[1-side].STag, TO: far, Data: make([]byte, 9)})
			k.say(side, "Write beyond", 9, tagged(0, k.key[1-side].STag, far), nil)
			k.fault(side, ddp.TaggedBounds, fmt.Sprintf("c140%08x%016x", k.key[1-side].STag, far), 9, "")

			k = open()
			stag := k.key[1-side].STag ^ 1
			post(k, verbs.Work{Op: verbs.OpRead, STag: stag, TO: 5 << 32, Data: make([]byte, 9)})
			k.ask(side, "Read of a wrong key", 1, 28, map[string]string{"iwarp_rdma.srcstag": fmt.Sprintf("0x%08x", stag)})
			k.fault(side, ddp.ProtectionSTag, fmt.Sprintf("414100000000%08x%08x00000000", 1, k.asks[side]), 28, fmt.Sprintf("%08x%08x%08x", 9, stag, 5)) // the rest tshark looks for too early

			k = open()
			post(k, verbs.Work{Op: verbs.OpSend, Solicited: true, Invalidating: true, Invalidate: 0x12345678, Data: make([]byte, 3)})
			k.send(side, 6, 3, "0x12345678")
			k.fault(side, ddp.ProtectionInvalidate, fmt.Sprintf("414612345678%08x%08x00000000", 0, k.sends[side]), 3, "")

			k = open()
			post(k, verbs.Work{Op: verbs.OpSend, Invalidating: true, Invalidate: 0x12345678})
			k.send(side, 4, 0, "0x12345678")
			k.fault(side, ddp.ProtectionInvalidate, fmt.Sprintf("414412345678%08x%08x00000000", 0, k.sends[side]), 0, "")

			k = open()
			post(k, verbs.Work{Op: verbs.OpSend, Data: make([]byte, 1<<18+1)})
			k.send(side, 3, 1<<18+1, "")
			k.fault(side, ddp.UntaggedTooLong, "", 0, "") // which segment, is the carrier's affair
		}
	}
	checkTalks(t, r, talks)
}

// checkTalks has tshark read what passed the relay.
func checkTalks(t *testing.T, r *relay, talks []*talk) {
	args := []string{"-o", "tcp.try_heuristic_first:TRUE", "--disable-protocol", "rpcordma"}
	file := save(t, r.capture())
	var more []string
	for _, f := range iwarpFields {
		more = append(more, "-e", f)
	}
	out := runTshark(t, t.TempDir(), file, slices.Concat(args, []string{"-Y", "iwarp_mpa", "-T", "fields", "-E", "occurrence=a", "-E", "aggregator=,", "-E", "separator=/t", "-e", "frame.number"}, more)...)
	frames := make([][2][]row, len(talks))
	all := table(t, out, iwarpFields)
	for _, number := range slices.Sorted(maps.Keys(all)) {
		f := all[number]
		src, dst := f.number(t, "tcp.srcport"), f.number(t, "tcp.dstport")
		side := 0
		if src > dst {
			src, side = dst, 1
		}
		frames[src-40000][side] = append(frames[src-40000][side], f)
	}
	checked := 0
	for i, k := range talks {
		for side := range 2 {
			if len(frames[i][side]) == 0 {
				t.Fatalf("connection %d: tshark sees nothing that side %d says", i, side)
			}
			checkSetUp(t, k, side, frames[i][side][0])
			k.check(frames[i][side][1:], fmt.Sprintf("connection %d, side %d", i, side))
			if n := len(frames[i][side]) - 1; n != r.connections[i].frames[side] {
				t.Errorf("connection %d, side %d: tshark finds %d frames, %d passed", i, side, n, r.connections[i].frames[side])
			}
			if k.crc {
				checked += len(frames[i][side]) - 1
			}
		}
	}
	text := runTshark(t, t.TempDir(), file, slices.Concat(args, []string{"-O", "iwarp_mpa", "-V"})...)
	if good, bad := strings.Count(text, "(Good CRC32)"), strings.Count(text, "Bad CRC32"); good != checked || bad != 0 {
		t.Errorf("tshark finds %d good CRCs and %d bad ones, want %d good", good, bad, checked)
	}
}

func checkSetUp(t *testing.T, k *talk, side int, f row) {
	t.Helper()
	kind := []string{"iwarp_mpa.req", "iwarp_mpa.rep"}[side]
	private := hex.EncodeToString(k.key[side].Bytes())
	if f[kind] == "" || f["iwarp_mpa.marker_flag"] != "0" || f["iwarp_mpa.rej_flag"] != "0" || f["iwarp_mpa.crc_flag"] != map[bool]string{true: "1", false: "0"}[k.crc] ||
		!strings.HasSuffix(f["iwarp_mpa.privatedata"], private) || f.number(t, "iwarp_mpa.pdlength")*2 != len(f["iwarp_mpa.privatedata"]) {
		t.Errorf("set-up of side %d: %v", side, f)
	}
}

// check compares the frames of one direction with what was told there.
func (k *talk) check(frames []row, where string) {
	t := k.t
	t.Helper()
	side := int(where[len(where)-1] - '0')
	for _, m := range k.told[side] {
		n := 0
		for first := true; ; first = false {
			if len(frames) == 0 {
				t.Errorf("%s: tshark does not see %s, or not all", where, m.what)
				return
			}
			f := frames[0]
			frames = frames[1:]
			payload := k.checkFrame(where+": "+m.what, f, &m, n)
			n += payload
			if first && f["iwarp_ddp.last_flag"] == "1" {
				k.checkOnce(where+": "+m.what, f, &m)
			}
			if f["iwarp_ddp.last_flag"] == "1" {
				break
			}
			if payload == 0 {
				t.Errorf("%s: %s has an empty frame", where, m.what)
			}
		}
		if n != m.n {
			t.Errorf("%s: %s has %d octets, tshark sees %d", where, m.what, m.n, n)
		}
	}
	if len(frames) != 0 {
		t.Errorf("%s: tshark sees %d more frames, as %v", where, len(frames), frames[0])
	}
}

// checkFrame compares one frame, n octets into a message, and returns how much payload it has.
func (k *talk) checkFrame(where string, f row, m *told, n int) int {
	t := k.t
	t.Helper()
	for name, want := range m.fields {
		if name == "iwarp_ddp.tagged_offset" {
			to, _ := strconv.ParseUint(want, 0, 64)
			want = quad(to + uint64(n))
		}
		if !same(f[name], want) {
			t.Errorf("%s: %s is %q, want %q", where, name, f[name], want)
		}
	}
	header := 14
	if f["iwarp_ddp.tagged_flag"] == "0" {
		header = 18
		if f["iwarp_ddp.mo"] != strconv.Itoa(n) {
			t.Errorf("%s: MO is %s, want %d", where, f["iwarp_ddp.mo"], n)
		}
	}
	length := f.number(t, "iwarp_mpa.ulpdulength")
	if pad := strings.Repeat("00", -(2+length)&3); f["iwarp_mpa.pad"] != pad {
		t.Errorf("%s: the pad is %q, want %q", where, f["iwarp_mpa.pad"], pad)
	}
	if f["iwarp_ddp.rsvd"] != "0x00" || f.number(t, "iwarp_ddp.dv") != 1 || f.number(t, "iwarp_rdma.version") != 1 {
		t.Errorf("%s: control octets %v", where, f)
	}
	// tshark knows four bits of the opcode, and takes the one above for reserved: 0x11 is a Read Request without a request to it.
	if (f.number(t, "iwarp_rdma.rsv") != 0) != strings.HasPrefix(m.what, "Atomic Write") || (f["_ws.malformed"] != "") != (m.what == "Atomic Write Response") {
		t.Errorf("%s: reserved %s, malformed %q", where, f["iwarp_rdma.rsv"], f["_ws.malformed"])
	}
	if !k.crc && f["iwarp_mpa.crc"] != "0x00000000" || k.crc == (f["iwarp_mpa.crc_check"] == "") {
		t.Errorf("%s: CRC %q, checked %q", where, f["iwarp_mpa.crc"], f["iwarp_mpa.crc_check"])
	}
	return length - header
}

// same compares numbers as such, since tshark's notation of them differs; and what ends in the same way if want begins with a star.
func same(got, want string) bool {
	a, err := strconv.ParseUint(got, 0, 64)
	if b, other := strconv.ParseUint(want, 0, 64); err == nil && other == nil {
		return a == b
	}
	if end, ok := strings.CutPrefix(want, "*"); ok {
		return strings.HasSuffix(got, end)
	}
	return got == want
}

// checkOnce compares what only messages of one frame have.
func (k *talk) checkOnce(where string, f row, m *told) {
	k.t.Helper()
	for name, want := range m.once {
		if !same(f[name], want) {
			k.t.Errorf("%s: %s is %q, want %q", where, name, f[name], want)
		}
	}
}

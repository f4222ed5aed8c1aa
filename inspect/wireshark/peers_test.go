package wireshark_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/dgrdma/dgrdma/transport/tap"
)

// OpenCPI's first C++ driver resends what a request says now: if that was posted
// again meanwhile, the frame has its old id and the transaction of a later one.
// It is a copy, and no other life. Observation V3, V8 (docs/peers.md).
func TestLiveHeaders(t *testing.T) {
	requireTshark(t)
	r := newRecorder(t, "Ethernet", tap.Options{})
	elsewhere := data(505, 1, 1, 8)
	elsewhere.Addr = 8
	for i := range 4 {
		r.send(0, made(from1(101+i), data(501+i, 1, 1, 8)))
	}
	r.send(0, made(from1(102), data(504, 1, 1, 8))) // 5
	r.send(0, made(from1(105), data(505, 1, 1, 8))) // 6
	r.send(0, made(from1(103), data(505, 1, 1, 8))) // 7
	r.send(1, made(from2(1, 101, 5)))               // 8
	r.send(0, made(from1(104), elsewhere))          // 9
	got := rows(t, r.save(), append(findingFields(), "dgrdma.analysis.retransmission_of", "dgrdma.analysis.acked_in"), "-2")
	for packet, want := range map[int]string{
		5: "analysis.retransmission analysis.live_header", 6: "", 7: "analysis.retransmission analysis.live_header", 9: "analysis.restart",
	} {
		if f := found(got[packet]); f != want {
			t.Errorf("packet %d: found %q, want %q", packet, f, want)
		}
	}
	for packet, first := range map[int]int{5: 2, 7: 3} {
		if n := got[packet].number(t, "dgrdma.analysis.retransmission_of"); n != first {
			t.Errorf("packet %d is a retransmission of %d, want %d", packet, n, first)
		}
	}
	for packet := 1; packet <= 7; packet++ {
		if n := got[packet].number(t, "dgrdma.analysis.acked_in"); n != 8 {
			t.Errorf("packet %d was acknowledged in %d, want 8", packet, n)
		}
	}
}

// What other fragments have, or an error of the network did not quote, is not
// missing in the frame. Observation V8 (docs/peers.md).
func TestPartsAreNotMalformed(t *testing.T) {
	requireTshark(t)
	b, err := os.ReadFile(filepath.Join(vectors, "udp-multi.pcap"))
	if err != nil {
		t.Fatal(err)
	}
	whole := records(t, b)[0]
	const kept = 14 + 20 + 200
	part := record{bytes.Clone(whole.data[:kept]), kept}
	binary.BigEndian.PutUint16(part.data[14+2:], kept-14)
	part.data[14+6] = 0x20 // more fragments
	snapped := record{part.data[:kept-60], kept}
	_, quoted := wrapped("quoted", whole)
	if len(whole.data) <= kept {
		t.Fatalf("the datagram has %d bytes only", len(whole.data))
	}
	for _, tt := range []struct {
		name string
		r    record
		args []string
	}{
		{"fragment", part, []string{"-o", "ip.defragment:FALSE"}},
		{"fragment with a snap length", snapped, nil},
		{"quoted", quoted, nil},
	} {
		got := rows(t, save(t, pcapOf(1, []record{tt.r, whole})), append(findingFields(), "dgrdma.seq", "dgrdma.cut"), tt.args...)
		if got[1]["dgrdma.seq"] != "1" || got[1]["dgrdma.cut"] == "" || got[1]["dgrdma.malformed"] != "" {
			t.Errorf("%s is shown as %v", tt.name, got[1])
		}
		if got[2]["dgrdma.cut"] != "" || got[2]["dgrdma.malformed"] != "" {
			t.Errorf("%s: the whole one is shown as %v", tt.name, got[2])
		}
	}
}

// Acknowledgements are known by their looks also where an error of the network quotes
// them, which does not say how long they were.
func TestQuotedAcknowledgements(t *testing.T) {
	requireTshark(t)
	r := newRecorder(t, "IPv4", tap.Options{})
	nothing := made(from1(9))
	r.send(1, made(from2(7, 5, 3)), made(from2(8, 5, 3)))
	r.send(0, nothing)
	var all []record
	for _, one := range records(t, r.file.Bytes()) {
		_, quote := wrapped("quoted", one)
		all = append(all, quote)
	}
	got := rows(t, save(t, pcapOf(1, all)), []string{"dgrdma.seq"})
	if got[1]["dgrdma.seq"] != "7" || got[2]["dgrdma.seq"] != "8" || got[3] != nil {
		t.Errorf("shown are %v", got)
	}
}

package wireshark_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/captured"
	"github.com/dgrdma/dgrdma/seal/datagram"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/tap"
)

// headersOf returns how many bytes come before the frame.
var headersOf = map[string]int{"Ethernet": 14, "IPv4": 14 + 20 + 8 + 2, "IPv6": 14 + 40 + 8 + 2}

// damage changes some bytes of a frame, often those that lengths and counts
// are in, and sometimes the end of what was captured.
func damage(random *rand.Rand, r record, wire string) record {
	headers := headersOf[wire]
	r.data = bytes.Clone(r.data)
	if len(r.data) <= headers {
		return r
	}
	f := r.data[headers:]
	for range random.IntN(4) {
		at := random.IntN(min(len(f), []int{10, 34, 80, len(f)}[random.IntN(4)]))
		f[at] = []byte{0, 1, 0xff, f[at] + 1, byte(random.Uint32())}[random.IntN(5)]
	}
	switch random.IntN(4) {
	case 0: // a snap length
		r.data = r.data[:headers+random.IntN(len(f)+1)]
	case 1: // an end that came too early, on the wire
		r.data = r.data[:headers+random.IntN(len(f)+1)]
		r.length = len(r.data)
		datagram := uint16(2 + 8 + r.length - headers)
		switch be := binary.BigEndian; wire {
		case "IPv4":
			be.PutUint16(r.data[14+2:], 20+datagram)
			be.PutUint16(r.data[14+20+4:], datagram)
		case "IPv6":
			be.PutUint16(r.data[14+4:], datagram)
			be.PutUint16(r.data[14+40+4:], datagram)
		}
	}
	return r
}

// Whatever is in a capture, there are no errors in Lua; what package frame
// refuses is malformed, and nothing else is.
func TestDamagedCaptures(t *testing.T) {
	requireTshark(t)
	t.Parallel()
	const seed = 11
	t.Logf("seed %d", seed)
	for wire, addrs := range wires {
		t.Run(wire, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, uint64(headersOf[wire])))
			file, _ := conversation(t, addrs, seed)
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			whole := records(t, b)
			if wire == "Ethernet" {
				// With real peers, whose captures have no more than a header of 14 bytes.
				for _, name := range []string{"ether-loss5-pingpong", "fpga-many", "ether2-coalesce", "fpga-send-w1-ocpi-dg"} {
					if b, err = os.ReadFile(filepath.Join(vectors, name+".pcap")); err != nil {
						t.Fatal(err)
					}
					whole = append(whole, records(t, b)...)
				}
			}
			hellos := newRecorder(t, wire, tap.Options{})
			for i := range 120 {
				hellos.send(0, introduction(t, i+1, []string{"memory", "link", "rdma-1"}[:i%4]...))
			}
			whole = append(whole, records(t, hellos.file.Bytes())...)
			var bad []record
			for range 4 {
				for _, r := range whole {
					bad = append(bad, damage(random, r, wire))
				}
			}
			var o captured.Options
			args := []string{"-2"}
			if addrs[0].Kind() == transport.KindUDP {
				o.Ports = []uint16{40000}
				args = append(args, "-o", "dgrdma.ports:40000")
			}
			damaged := save(t, pcapOf(1, bad))
			if out := tshark(t, damaged, append(args, "-V")...); !strings.Contains(out, "Malformed: data length") {
				t.Error("the tree shows nothing malformed")
			}
			got := rows(t, damaged, slices.Concat(findingFields(), serviceFields, []string{"dgrdma.seq", "dgrdma.flags.sealed", "dgrdma.flags.session"}), args...)
			refused, cut, told, spoilt := 0, 0, 0, 0
			var sessions struct{ refused, cut int }
			for p, err := range captured.ReadFile(damaged, o) {
				if err != nil {
					t.Fatal(err)
				}
				r, ok := got[p.Record]
				if !ok {
					t.Fatalf("packet %d is not shown", p.Record)
				}
				if p.Segments > 0 {
					continue // r speaks of several frames
				}
				if p.Seal() != datagram.Plain { // its flags were damaged to that
					if r["dgrdma.seq"] != "" || r["dgrdma.flags.sealed"] != "1" {
						t.Fatalf("packet %d, %x, is sealed: %v", p.Record, p.Data, r)
					}
					continue
				}
				content, _ := p.Whole()
				malformed := r["dgrdma.malformed"] != ""
				if p.Session() { // some likewise
					_, err := frame.ParseSession(content)
					switch {
					case p.Cut():
						sessions.cut++
					case err != nil:
						sessions.refused++
					}
					if r["dgrdma.seq"] != "" || r["dgrdma.flags.session"] != "1" || !p.Cut() && malformed != (err != nil) {
						t.Fatalf("packet %d, %x, is of a session, %v: %v", p.Record, p.Data, err, r)
					}
					continue
				}
				f, err := frame.Parse(content)
				switch {
				case p.Cut():
					cut++
				case malformed != (err != nil):
					t.Fatalf("packet %d: malformed %v, package frame says %v", p.Record, malformed, err)
				case err != nil:
					refused++
				}
				if checkServices(t, &packet{number: p.Record, frame: f}, r); t.Failed() {
					t.FailNow()
				}
				if _, ok := f.Services(); ok {
					told++
				} else if len(f.Rest()) == frame.ServicesSize {
					spoilt++
				}
				if h, ok := p.Header(); ok && r.numbers(t, "dgrdma.seq")[0] != int(h.Seq) {
					t.Fatalf("packet %d: id %s, want %d", p.Record, r["dgrdma.seq"], h.Seq)
				}
				// A wrong length can be told even where the end is missing.
				if cut := r["dgrdma.cut"] != ""; p.Cut() && cut == malformed {
					t.Fatalf("packet %d is cut: found %q, %x of %d", p.Record, found(r), p.Data, p.Length)
				}
			}
			if refused < 50 || cut < 100 || sessions.refused < 100 || sessions.cut < 100 || told < 10 || spoilt < 10 {
				t.Errorf("only %d malformed and %d cut frames, %+v of sessions, of %d, %d lists of services and %d damaged ones", refused, cut, sessions, len(bad), told, spoilt)
			}
		})
	}
}

// A snap length takes data away, and nothing else as long as headers are there.
func TestSnapLength(t *testing.T) {
	requireTshark(t)
	file := filepath.Join(vectors, "udp-loss7.pcap")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := records(t, b)
	for i := range all {
		all[i].data = all[i].data[:min(len(all[i].data), 14+20+8+2+34)]
	}
	fields := []string{"dgrdma.seq", "dgrdma.analysis.retransmission_of", "dgrdma.analysis.acked_in", "dgrdma.ack.count"}
	want := rows(t, file, fields, "-2")
	got := rows(t, save(t, pcapOf(1, all)), append(slices.Clone(fields), "dgrdma.cut", "dgrdma.malformed"), "-2")
	if len(got) != len(want) {
		t.Fatalf("%d frames, want %d", len(got), len(want))
	}
	for n, r := range got {
		for _, f := range fields {
			if r[f] != want[n][f] {
				t.Errorf("packet %d: %s is %q, want %q", n, f, r[f], want[n][f])
			}
		}
		if cut := all[n-1].length > len(all[n-1].data); (r["dgrdma.cut"] != "") != cut || r["dgrdma.malformed"] != "" {
			t.Errorf("packet %d: cut is %q, malformed %q", n, r["dgrdma.cut"], r["dgrdma.malformed"])
		}
	}
}

// wrapped puts an Ethernet packet into something else.
func wrapped(kind string, r record) (linkType uint32, _ record) {
	b := r.data
	be := binary.BigEndian
	switch kind {
	case "VLAN":
		b = slices.Concat(b[:12], []byte{0x81, 0, 0, 7}, b[12:])
	case "QinQ":
		b = slices.Concat(b[:12], []byte{0x88, 0xa8, 0, 7, 0x81, 0, 0, 9}, b[12:])
	case "cooked":
		return 113, record{slices.Concat([]byte{0, 0, 0, 1, 0, 6}, b[6:12], []byte{0, 0}, b[12:]), len(b) + 2}
	case "cooked2":
		head := slices.Concat(b[12:14], []byte{0, 0, 0, 0, 0, 2, 0, 1, 0, 6}, b[6:12], []byte{0, 0})
		return 276, record{slices.Concat(head, b[14:]), len(b) + 6}
	case "raw":
		return 101, record{b[14:], len(b) - 14}
	case "quoted": // an ICMP error with the beginning of the packet
		quote := b[14:min(len(b), 14+200)]
		ip := bytes.Clone(b[14:34])
		ip[9] = 1
		be.PutUint16(ip[2:], uint16(28+len(quote)))
		b = slices.Concat(b[:14], ip, []byte{3, 3, 0, 0, 0, 0, 0, 0}, quote)
	}
	return 1, record{b, len(b)}
}

func TestWrappings(t *testing.T) {
	requireTshark(t)
	t.Parallel()
	for _, tt := range []struct {
		capture string
		kinds   []string
	}{
		{"ether-loss5-pingpong", []string{"VLAN", "QinQ", "cooked", "cooked2"}},
		{"udp-many", []string{"VLAN", "cooked", "cooked2", "raw"}},
	} {
		file, err := os.ReadFile(filepath.Join(vectors, tt.capture+".pcap"))
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range tt.kinds {
			t.Run(tt.capture+"/"+kind, func(t *testing.T) {
				t.Parallel()
				var all []record
				var link uint32
				for _, r := range records(t, file) {
					var w record
					link, w = wrapped(kind, r)
					all = append(all, w)
				}
				capture := save(t, pcapOf(link, all))
				packets := model(t, capture, captured.Options{})
				got := rows(t, capture, slices.Concat(plainFields, linkFields), "-2")
				for _, p := range packets {
					checkPlain(t, p, got[p.number])
				}
				if kind != "cooked" && kind != "cooked2" || tt.capture == "udp-many" {
					checkLinks(t, packets, got)
				}
			})
		}
	}
}

// A packet that an error of the network quotes was sent once.
func TestQuotedPackets(t *testing.T) {
	requireTshark(t)
	file, err := os.ReadFile(filepath.Join(vectors, "udp-single.pcap"))
	if err != nil {
		t.Fatal(err)
	}
	one := records(t, file)[0]
	_, quote := wrapped("quoted", one)
	got := rows(t, save(t, pcapOf(1, []record{one, quote, one})), []string{"dgrdma.analysis.retransmission_of", "dgrdma.seq"})
	if n := got[3].number(t, "dgrdma.analysis.retransmission_of"); n != 1 {
		t.Errorf("the third packet is a retransmission of %d", n)
	}
	if got[2]["dgrdma.seq"] != "1" || got[2]["dgrdma.analysis.retransmission_of"] != "" {
		t.Errorf("the quotation is shown as %v", got[2])
	}
}

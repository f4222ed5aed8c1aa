package wireshark_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/capture/capturetest"
	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/captured"
	"github.com/dgrdma/dgrdma/inspect/text"
	"github.com/dgrdma/dgrdma/seal"
	"github.com/dgrdma/dgrdma/seal/datagram"
	"github.com/dgrdma/dgrdma/transport/simnet"
	"github.com/dgrdma/dgrdma/transport/tap"
)

var sealedFields = []string{
	"dgrdma.dst", "dgrdma.src", "dgrdma.flags", "dgrdma.flags.sealed", "dgrdma.flags.handshake", "dgrdma.sealed.counter", "dgrdma.sealed.key", "dgrdma.sealed.salt",
	"dgrdma.sealed.length", "dgrdma.sealed.data", "dgrdma.sealed.tag", "dgrdma.handshake", "dgrdma.handshake.nonce", "dgrdma.handshake.challenge", "dgrdma.handshake.mac", "dgrdma.handshake.noise",
	"dgrdma.handshake.unasked", "dgrdma.handshake.key_unknown",
	"dgrdma.cut", "dgrdma.malformed", "dgrdma.flags.bad", "dgrdma.seq", "_ws.col.Info",
}

// wantSealed is what tshark is to say of a packet that came alone, by field.
func wantSealed(p *captured.Packet) row {
	b, k := p.Data, p.Seal()
	bytesIn := func(from, to int) string { return hex.EncodeToString(b[min(from, len(b)):min(to, len(b))]) }
	h, _ := p.Header()
	r := row{
		"dgrdma.dst": strconv.Itoa(int(h.Dst)), "dgrdma.src": strconv.Itoa(int(h.Src)), "dgrdma.flags": fmt.Sprintf("0x%02x", h.Flags),
		"dgrdma.flags.sealed": "1", "dgrdma.flags.handshake": "0",
	}
	if k == datagram.Sealed {
		r["dgrdma.sealed.counter"] = strconv.FormatUint(datagram.Counter(b), 10)
		r["dgrdma.sealed.key"] = strconv.Itoa(int(datagram.Index(b)))
		r["dgrdma.sealed.salt"] = bytesIn(10, 17)
		r["dgrdma.sealed.length"] = strconv.Itoa(p.Length - 29)
		r["dgrdma.sealed.data"], r["dgrdma.sealed.tag"] = bytesIn(17, p.Length-16), bytesIn(p.Length-16, p.Length)
	} else {
		r["dgrdma.flags.handshake"], r["dgrdma.handshake"] = "1", strconv.Itoa(int(k-datagram.Question))
		r["dgrdma.handshake.nonce"] = bytesIn(10, 18)
		r["dgrdma.handshake.mac"] = bytesIn(34, 46)
		switch k {
		case datagram.Challenge:
			r["dgrdma.handshake.challenge"] = bytesIn(18, 34)
			if bytesIn(10, 18) == strings.Repeat("0", 16) {
				r["dgrdma.handshake.unasked"], r["dgrdma.handshake.key_unknown"] = "1", "1"
			}
		case datagram.First, datagram.Second:
			r["dgrdma.handshake.challenge"], r["dgrdma.handshake.noise"] = bytesIn(18, 34), bytesIn(46, 104)
		}
	}
	var v text.View
	v.Decode(p)
	line := strings.TrimSuffix(string((&text.Printer{}).Append(nil, &v)), "\n")
	_, line, _ = strings.Cut(line, " > ")
	_, line, _ = strings.Cut(line, " ")
	line, _, cut := strings.Cut(line, " cut: ")
	if cut {
		line += " (cut)"
		r["dgrdma.cut"] = "1"
	}
	r["_ws.col.Info"] = line
	return r
}

// checkSealed compares what tshark says of packets that are sealed with what package captured finds, and returns how many there are of each kind.
func checkSealed(t *testing.T, file string, o captured.Options, args ...string) map[datagram.Kind]int {
	t.Helper()
	got := rows(t, file, sealedFields, args...)
	kinds := map[datagram.Kind]int{}
	found := 0
	for p, err := range captured.ReadFile(file, o) {
		if err != nil {
			t.Fatal(err)
		}
		r, ok := got[p.Record]
		if found++; !ok {
			t.Fatalf("packet %d is not shown", p.Record)
		}
		k := p.Seal()
		kinds[k]++
		switch {
		case k == datagram.Plain && len(p.Data) > datagram.FlagsAt && p.Segments == 0:
			if r["dgrdma.flags.sealed"] != "" || r["dgrdma.handshake"] != "" {
				t.Fatalf("packet %d, %x of %d, is none: %v", p.Record, p.Data, p.Length, r)
			}
		case k == datagram.Plain || p.Segments > 0:
		default:
			want := wantSealed(p)
			for _, f := range sealedFields {
				if r[f] != want[f] {
					t.Fatalf("packet %d: %s is %q, want %q; %x of %d", p.Record, f, r[f], want[f], p.Data, p.Length)
				}
			}
		}
	}
	return kinds
}

// sealedConversation records what two endpoints with a key say to each other, at the first one, over a bad network.
func sealedConversation(t *testing.T, wire string, seed uint64) (file string, whole []byte) {
	t.Helper()
	addrs := wires[wire]
	var capture bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		network := simnet.New(seed)
		defer network.Close()
		for i, at := range addrs {
			network.Link(at, addrs[1-i], simnet.Link{Latency: 100 * time.Microsecond, Loss: 0.05, Duplicate: 0.05, Reorder: 0.05, ReorderBy: 300 * time.Microsecond})
		}
		tapped, err := tap.New(network.Attach(addrs[0], simnet.Config{MTU: 1490}), &capture, tap.Options{})
		if err != nil {
			t.Fatal(err)
		}
		memory, err := dgrdma.NewRegion(1 << 20)
		if err != nil {
			t.Fatal(err)
		}
		keys := &seal.Ring{All: &seal.Key{3}}
		a, err := dgrdma.New(tapped, &dgrdma.Config{ID: 1, Keys: keys})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		for range 2 { // lives of the second, which forget their keys
			b, err := dgrdma.New(network.Attach(addrs[1], simnet.Config{MTU: 1490}), &dgrdma.Config{ID: 2, Memory: memory, AcceptAny: true, Keys: keys})
			if err != nil {
				t.Fatal(err)
			}
			c, err := a.Connect(dgrdma.Peer{ID: 2, Addr: addrs[1], Size: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			for n := range 30 {
				if err := c.Write(t.Context(), &dgrdma.Transaction{Segments: []dgrdma.Segment{{Addr: 64, Bytes: make([]byte, 1+300*n)}}}); err != nil {
					t.Fatal(err)
				}
			}
			c.Close()
			b.Close()
			time.Sleep(time.Second)
		}
	})
	return save(t, capture.Bytes()), capture.Bytes()
}

// What two endpoints of ours with a key say to each other is shown as our decoder shows it, whole and damaged, and there are no errors in Lua.
func TestSealedConversations(t *testing.T) {
	requireTshark(t)
	t.Parallel()
	const seed = 17
	for wire := range wires {
		t.Run(wire, func(t *testing.T) {
			t.Parallel()
			file, whole := sealedConversation(t, wire, seed)
			kinds := checkSealed(t, file, captured.Options{})
			for _, k := range []datagram.Kind{datagram.Sealed, datagram.Question, datagram.Challenge, datagram.First, datagram.Second} {
				if kinds[k] == 0 {
					t.Errorf("the capture has none that is %v: %v", k, kinds)
				}
			}
			if kinds[datagram.Plain] > 0 {
				t.Errorf("%d are not sealed", kinds[datagram.Plain])
			}
			random := rand.New(rand.NewPCG(seed, uint64(headersOf[wire])))
			var bad []record
			for range 3 {
				for _, r := range records(t, whole) {
					bad = append(bad, damage(random, r, wire))
				}
			}
			o, args := captured.Options{}, []string{}
			if wire != "Ethernet" {
				o.Ports, args = []uint16{40000}, []string{"-o", "dgrdma.ports:40000"}
			}
			damaged := save(t, pcapOf(1, bad))
			kinds = checkSealed(t, damaged, o, args...)
			if kinds[datagram.Plain] < 20 || kinds[datagram.Sealed] < 20 {
				t.Errorf("damaged: %v", kinds)
			}
			if out := tshark(t, damaged, append(args, "-V")...); !strings.Contains(out, "Sealed frame") {
				t.Error("the tree shows nothing sealed")
			}
		})
	}
}

// Without ports, tshark takes the same datagrams as package captured, and takes runs apart as that does, wherever they are cut.
func TestSealedRuns(t *testing.T) {
	requireTshark(t)
	t.Parallel()
	r, other, asks := capturetest.Sealed(t, 1, 2), capturetest.Sealed(t, 1, 7), capturetest.Sealed(t, 1, 0)
	frames := func(n, length int) (all [][]byte) {
		for range n {
			all = append(all, r.There(seal.Salt{1, 2, 3, 4, 5, 6, 7}, length))
		}
		return all
	}
	patch := capturetest.PatchByte
	cases := []struct {
		name string
		data []byte
		want int // datagrams
	}{
		{"frame", frames(1, 100)[0], 1},
		{"run", join(frames(9, 200)...), 9},
		{"last is shorter", join(append(frames(3, 200), frames(1, 30)...)...), 4},
		{"batches of one", join(r.There(seal.Salt{1}, 99), r.There(seal.Salt{2}, 99), r.There(seal.Salt{3}, 20)), 3},
		{"two ids", join(r.There(seal.Salt{1, 2, 3}, 99), other.There(seal.Salt{1, 2, 3}, 99), r.There(seal.Salt{1, 2, 3}, 99)), 3},
		{"first behind", join(append(frames(2, 200), r.First)...), 3},
		{"frame behind first", join(r.First, frames(1, 22)[0]), 2},
		{"questions", join(r.Question, r.Question), 2},
		{"longer behind", join(frames(1, 100)[0], frames(1, 101)[0]), 1},
		{"noise behind", append(frames(1, 100)[0], bytes.Repeat([]byte{0x5a}, 300)...), 1},
		{"salt in it", append(frames(1, 100)[0], 1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 5, 6, 7), 1},
		{"question", r.Question, 1},
		{"challenge", r.Challenge, 1},
		{"unasked", r.Unasked, 1},
		{"first", r.First, 1},
		{"second", r.Second, 1},
		{"question for nobody", asks.Question, 1},
		{"its challenge", asks.Challenge, 1},
		{"its first", asks.First, 1},
		{"its second", asks.Second, 1},
		{"who is there", asks.There(seal.Salt{}, 134), 1},
		{"its answer", asks.Back(seal.Salt{}, 46), 1},
		{"of nobody", append(make([]byte, 4), frames(1, 100)[0][4:]...), 0},
		{"much for nobody", patch(asks.There(seal.Salt{}, 134), 6, 1), 0},
		{"question with a counter", patch(r.Question, 5, 1), 0},
		{"question of nobody", append([]byte{2, 0, 0, 0}, r.Question[4:]...), 0},
		{"reserved flag", patch(frames(1, 100)[0], 9, 0xa0), 0},
		{"long question", append(bytes.Clone(r.Question), 0), 0},
	}
	rec := newRecorder(t, "IPv4", tap.Options{})
	for _, c := range cases {
		rec.send(0, c.data)
	}
	whole := records(t, rec.file.Bytes())
	file := rec.save()
	found := map[int]int{}
	for p, err := range captured.ReadFile(file, captured.Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		found[p.Record]++
	}
	got := rows(t, file, []string{"dgrdma.dst"})
	for i, c := range cases {
		if n := len(got[i+1].list("dgrdma.dst")); n != c.want || found[i+1] != c.want {
			t.Errorf("%s: tshark shows %d datagrams, package captured %d, want %d", c.name, n, found[i+1], c.want)
		}
	}
	checkSealed(t, file, captured.Options{})
	var all []record
	for _, one := range whole[:10] {
		for n := headersOf["IPv4"] + frame.HeaderSize; n <= len(one.data); n += 3 {
			all = append(all, record{one.data[:n], one.length})
		}
	}
	file = save(t, pcapOf(1, all))
	found = map[int]int{}
	for p, err := range captured.ReadFile(file, captured.Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Data) >= frame.HeaderSize {
			found[p.Record]++
		}
	}
	got = rows(t, file, []string{"dgrdma.dst"})
	for i := range all {
		if n := len(got[i+1].list("dgrdma.dst")); n != found[i+1] {
			t.Errorf("%d of %d bytes: tshark shows %d datagrams, package captured finds %d", len(all[i].data), all[i].length, n, found[i+1])
		}
	}
}

// Filters choose by what can be read.
func TestSealedFilters(t *testing.T) {
	requireTshark(t)
	t.Parallel()
	file, _ := sealedConversation(t, "Ethernet", 3)
	count := map[string]int{}
	for p, err := range captured.ReadFile(file, captured.Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		switch k := p.Seal(); {
		case k == datagram.Sealed:
			if count["dgrdma.sealed"]++; datagram.Counter(p.Data) == 5 {
				count["dgrdma.sealed.counter == 5"]++
			}
		case k == datagram.Second:
			count["dgrdma.handshake == 3"]++
			fallthrough
		default:
			count["dgrdma.handshake"]++
		}
	}
	for filter, want := range count {
		if got := strings.Count(tshark(t, file, "-Y", filter), "\n"); got != want || want == 0 {
			t.Errorf("%s: %d packets, want %d", filter, got, want)
		}
	}
}

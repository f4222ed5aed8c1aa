package wireshark_test

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/captured"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
	"github.com/dgrdma/dgrdma/transport/tap"
)

// vectors are captures of real peers; ORIGIN.md there tells where they are from.
var vectors = filepath.Join("..", "..", "frame", "testdata", "captures")

// check compares everything that tshark says about a capture with what package
// frame makes of each packet, and with the model of what belongs together.
func check(t *testing.T, file string, o captured.Options, args ...string) []*packet {
	t.Helper()
	all := model(t, file, o)
	got := rows(t, file, allFields(), append(args, "-2")...)
	if len(got) != len(all) {
		t.Fatalf("tshark finds %d frames of %d", len(got), len(all))
	}
	for _, p := range all {
		if checkPlain(t, p, got[p.number]); t.Failed() {
			t.Fatalf("the frame is %v", p.frame)
		}
	}
	checkLinks(t, all, got)
	return all
}

// allFields are those of frames, of a session and of none, and between frames.
func allFields() []string {
	all := slices.Concat(plainFields, linkFields, sessionFields)
	slices.Sort(all)
	return slices.Compact(all)
}

func TestCapturesOfRealPeers(t *testing.T) {
	requireTshark(t)
	t.Parallel()
	// As counted by a decoder written apart from these.
	again := map[string]int{"ether-loss5-pingpong": 8, "fpga-lost-ack-stalls": 56, "udp-loss7": 74}
	files, err := filepath.Glob(filepath.Join(vectors, "*.pcap"))
	if err != nil || len(files) != 22 {
		t.Fatalf("%d captures, %v", len(files), err)
	}
	var joined []record
	var of []string // which capture each is of
	for i, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(file[:len(file)-len(".pcap")])
		all := elsewhere(1+i, records(t, b)) // of UDP, each capture has other ports
		t.Logf("%s: packets %d to %d", name, len(joined)+1, len(joined)+len(all))
		joined = append(joined, all...)
		of = append(of, slices.Repeat([]string{name}, len(all))...)
	}
	retransmissions := make(map[string]int)
	for _, p := range check(t, save(t, pcapOf(1, joined)), captured.Options{}) {
		name := of[p.number-1]
		if p.first != p && p.hasData() {
			retransmissions[name]++
		}
		for _, n := range []int{p.first.number, p.ackedIn} {
			if n != 0 && of[n-1] != name {
				t.Errorf("packet %d of %s has to do with packet %d of %s", p.number, name, n, of[n-1])
			}
		}
	}
	if !maps.Equal(retransmissions, again) {
		t.Errorf("retransmissions %v, want %v", retransmissions, again)
	}
}

// wires are the addresses of two endpoints.
var wires = map[string][2]transport.Addr{
	"Ethernet": {transport.EtherAddr([6]byte{2, 0, 0, 0, 0, 1}), transport.EtherAddr([6]byte{2, 0, 0, 0, 0, 2})},
	"IPv4":     {udp("192.0.2.1:18077"), udp("198.51.100.2:40000")},
	"IPv6":     {udp("[2001:db8::1]:18077"), udp("[2001:db8::2]:40000")},
}

func udp(s string) transport.Addr { return transport.UDPAddr(netip.MustParseAddrPort(s)) }

// sent is what the sender says about a frame.
type sent struct {
	id    uint32 // of data, and bells
	again bool
}

// conversation records the traffic of two endpoints of ours, seen at the first
// one, while both write to each other over a bad network. Their ids wrap.
func conversation(t *testing.T, addrs [2]transport.Addr, seed uint64) (file string, said []sent) {
	t.Helper()
	var capture bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		network := simnet.New(seed)
		defer network.Close()
		var eps [2]*dgrdma.Endpoint
		var conns [2]*dgrdma.Conn
		var mu sync.Mutex
		for i, at := range addrs {
			bad := simnet.Link{
				Latency: time.Duration(100+i) * time.Microsecond, Loss: 0.05, Duplicate: 0.02,
				Reorder: 0.02, ReorderBy: 400 * time.Microsecond,
			}
			network.Link(at, addrs[1-i], bad)
			var wire transport.Conn = network.Attach(at, simnet.Config{MTU: 1490})
			memory, err := dgrdma.NewRegion(1 << 20)
			if err != nil {
				t.Fatal(err)
			}
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			cfg := dgrdma.Config{ID: frame.EndpointID(i + 1), Memory: memory, FirstFrame: frame.Seq(65400 + i), Entropy: random.Uint32, Checksum: seed%10 == 5}
			if i == 0 {
				if wire, err = tap.New(wire, &capture, tap.Options{}); err != nil {
					t.Fatal(err)
				}
				cfg.Trace = &dgrdma.Trace{FrameSent: func(_ dgrdma.PeerName, b []byte, again bool) {
					mu.Lock()
					defer mu.Unlock()
					h, ok := frame.SessionHeaderOf(b)
					if ok && (h.Control == frame.NoControl || h.Control == frame.ControlBell) {
						said = append(said, sent{h.ID, again})
					}
				}}
			}
			if eps[i], err = dgrdma.New(wire, &cfg); err != nil {
				t.Fatal(err)
			}
			defer eps[i].Close()
		}
		for i, ep := range eps {
			var err error
			peer := dgrdma.Peer{ID: frame.EndpointID(2 - i), Addr: addrs[1-i], Size: 1 << 20}
			if conns[i], err = ep.Connect(peer); err != nil {
				t.Fatal(err)
			}
		}
		var group sync.WaitGroup
		for i, c := range conns {
			group.Go(func() {
				// Completions alone, small ones that share a frame, large ones.
				for n, size := range []int{0, 10, 20, 4000, 0, 100, 60_000, 7, 1, 200_000, 30, 5000} {
					results := make(chan error, 4)
					for k := range 4 {
						tx := &dgrdma.Transaction{
							Completion: dgrdma.Word(uint32(4*k), uint32(n+1+i)),
							Done:       func(_ *dgrdma.Transaction, err error) { results <- err },
						}
						if size > 0 {
							tx.Segments = []dgrdma.Segment{{Addr: uint32(1000 + k*size), Bytes: bytes.Repeat([]byte{byte(n)}, size)}}
						}
						if err := c.Post(tx); err != nil {
							t.Error(err)
							return
						}
					}
					for range 4 {
						if err := <-results; err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		group.Wait()
	})
	return save(t, capture.Bytes()), said
}

func TestConversations(t *testing.T) {
	requireTshark(t)
	t.Parallel()
	const seed = 5
	for name, addrs := range wires {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Logf("seed %d", seed)
			file, said := conversation(t, addrs, seed)
			var o captured.Options
			if addrs[0].Kind() == transport.KindUDP {
				o.Ports = []uint16{40000}
			}
			all := check(t, file, o)
			once := rows(t, file, allFields())
			twice := rows(t, file, []string{"_ws.col.Info"}, "-2")
			for _, p := range all {
				checkPlain(t, p, once[p.number])
				if first, second := once[p.number]["_ws.col.Info"], twice[p.number]["_ws.col.Info"]; first != second {
					t.Errorf("packet %d: info is %q, then %q", p.number, first, second)
				}
			}
			checkAgainstSender(t, all, once, said)
			kinds := make(map[string]int)
			for _, p := range all {
				switch {
				case p.isHello():
					kinds["hello"]++
				case p.session == nil:
					t.Errorf("packet %d is of no session: %v", p.number, p.frame)
				case p.hasData() && p.first != p:
					kinds["again"]++
				default:
					kinds[p.session.Control.String()]++
				}
			}
			t.Log(kinds)
			for _, k := range []string{"hello", "again", "data", "ACK"} {
				if kinds[k] == 0 {
					t.Errorf("the capture has no frames of kind %q", k)
				}
			}
		})
	}
}

// checkAgainstSender: what the first endpoint sent again is, in the capture, a
// retransmission of the frame that it first sent under that id, and nothing
// else of what it sent is.
func checkAgainstSender(t *testing.T, all []*packet, got map[int]row, said []sent) {
	t.Helper()
	first := make(map[uint32]int)
	for _, p := range all {
		if p.frame.Src != 1 || !p.hasData() {
			continue
		}
		if len(said) == 0 || said[0].id != p.session.ID {
			t.Fatalf("packet %d has id %d, the sender says %v", p.number, p.session.ID, said[:min(1, len(said))])
		}
		s := said[0]
		said = said[1:]
		want := 0
		if s.again {
			want = first[s.id]
		} else {
			first[s.id] = p.number
		}
		if n := got[p.number].number(t, "dgrdma.analysis.retransmission_of"); n != want {
			t.Errorf("packet %d, %v: retransmission of %d, want %d", p.number, p.frame, n, want)
		}
	}
	if len(said) != 0 {
		t.Errorf("%d frames are not in the capture", len(said))
	}
}

// TestIntroductions checks that answers in a handshake are linked to questions.
func TestIntroductions(t *testing.T) {
	requireTshark(t)
	file, _ := conversation(t, wires["IPv6"], 7)
	all := model(t, file, captured.Options{Ports: []uint16{40000}})
	got := rows(t, file, []string{"dgrdma.session.answers", "dgrdma.session.answered_in"}, "-2")
	byNumber := make(map[int]*packet)
	answers := make(map[frame.HandshakeKind]int)
	for _, p := range all {
		byNumber[p.number] = p
		is, ok := p.handshake()
		if n := got[p.number].number(t, "dgrdma.session.answers"); ok && n != 0 {
			answers[is.Kind]++
			q := byNumber[n]
			if asks, ok := q.handshake(); !ok || is.Kind == frame.HandshakeHello || q.frame.Src == p.frame.Src || asks.Sender != is.Receiver {
				t.Errorf("%v answers %v", p.frame, q.frame)
			}
			if back := got[n].number(t, "dgrdma.session.answered_in"); back != p.number {
				t.Errorf("packet %d is answered in %d, want %d", n, back, p.number)
			}
		}
	}
	if answers[frame.HandshakeWelcome] == 0 || answers[frame.HandshakeConfirm] == 0 {
		t.Errorf("answers %v", answers)
	}
}

// Where only a display filter needs fields, the dissector leaves others out.
func TestDisplayFilters(t *testing.T) {
	requireTshark(t)
	t.Parallel()
	file := filepath.Join(vectors, "udp-loss7.pcap")
	all := model(t, file, captured.Options{})
	txn := func(p *packet, id uint32) bool {
		return slices.ContainsFunc(p.msgs, func(m frame.Message) bool { return m.Txn == id })
	}
	for filter, matches := range map[string]func(*packet) bool{
		"dgrdma":                            func(*packet) bool { return true },
		"dgrdma.src == 2":                   func(p *packet) bool { return p.frame.Src == 2 },
		"dgrdma.msg.txn == 3":               func(p *packet) bool { return txn(p, 3) },
		"dgrdma.msg.data[0:2] == 01:08":     func(p *packet) bool { return len(p.bytes) > 0 && bytes.HasPrefix(p.bytes[0], []byte{1, 8}) },
		"dgrdma.txn.begins_in == 1":         func(p *packet) bool { return txn(p, 1) },
		"dgrdma.analysis.retransmission_of": func(p *packet) bool { return p.first != p },
		"dgrdma.ack.count && !dgrdma.msg && dgrdma.ack.start > 9": func(p *packet) bool {
			return len(p.msgs) == 0 && p.frame.AckStart > 9
		},
		"dgrdma.malformed": func(*packet) bool { return false },
	} {
		var want, got []string
		for _, p := range all {
			if matches(p) {
				want = append(want, strconv.Itoa(p.number))
			}
		}
		for line := range strings.Lines(tshark(t, file, "-Y", filter)) {
			got = append(got, strings.Fields(line)[0])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: packets %v, want %v", filter, got, want)
		}
		if len(want) == 0 && filter != "dgrdma.malformed" {
			t.Errorf("%s matches nothing", filter)
		}
	}
}

package inspect_test

import (
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/capture/capturetest"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/captured"
	"github.com/dgrdma/dgrdma/inspect"
	"github.com/dgrdma/dgrdma/inspect/iwarp"
)

// records are a source.
type records []capture.Record

func (r *records) Next() (capture.Record, error) {
	if len(*r) == 0 {
		return capture.Record{}, io.EOF
	}
	one := (*r)[0]
	*r = (*r)[1:]
	return one, nil
}

// wholeReport analyzes all that a capture has, as the command does.
func wholeReport(t testing.TB, o captured.Options, src records) *inspect.Report {
	t.Helper()
	for i := range src {
		src[i].Time = time.Unix(1e9, int64(i)*1e6)
	}
	a := inspect.New()
	d := iwarp.New(iwarp.Options{Failed: a.Attempt}, func(e *iwarp.Event) error { a.Event(e); return nil })
	r := captured.NewReader(&iwarp.Tap{Source: &inspect.Tap{Source: &src, Analyzer: a, Frames: o}, Decoder: d}, o)
	for {
		p, err := r.Next()
		if err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		a.Add(p)
	}
	a.Counted(r.Stats())
	return a.Report()
}

func packet(link int, b []byte) capture.Record {
	return capture.Record{LinkType: link, Data: b, Length: len(b)}
}

// udp is a datagram between ports of hosts of 10.0.0.
func udp(t testing.TB, from, to byte, sport, dport layers.UDPPort, data []byte) []byte {
	ip := capturetest.IPv4()
	ip.SrcIP, ip.DstIP = net.IP{10, 0, 0, from}, net.IP{10, 0, 0, to}
	return capturetest.Serialize(t, ip, &layers.UDP{SrcPort: sport, DstPort: dport}, gopacket.Payload(data))
}

// told is ICMP of a host to another one.
func told(t testing.TB, from, to, kind, code byte, mtu uint16, quoted []byte) capture.Record {
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolICMPv4, SrcIP: net.IP{10, 0, 0, from}, DstIP: net.IP{10, 0, 0, to}}
	return packet(101, capturetest.Serialize(t, ip, &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(kind, code), Seq: mtu}, gopacket.Payload(quoted)))
}

// asksFor is ARP: who asks for a host, or answers that it is it.
func asksFor(op, from, of byte) capture.Record {
	b := make([]byte, 12, 60)
	b = append(b, 8, 6, 0, 1, 8, 0, 6, 4, 0, op, 2, 0, 0, 0, 0, from, 10, 0, 0, from, 0, 0, 0, 0, 0, 0, 10, 0, 0, of)
	return packet(1, b[:60])
}

// TestNotices: what ICMP and ARP say is told of packets of DG/RDMA and iWARP, of others only where a capture has none of these.
func TestNotices(t *testing.T) {
	question := make([]byte, frame.PrefixSize+frame.HandshakeSize)
	(&frame.Handshake{Kind: frame.HandshakeHello, Sender: 7}).Put(question[frame.PrefixSize:], 0, 5)
	data := append([]byte{0, 0}, frameWith(5, 6, 9, frame.Message{Txn: 1, Count: 1, Index: 1, CompletionAddr: 8, CompletionValue: 1})...)
	ack := frameWith(6, 5, 0)
	frame.PutAck(ack, 9, 1)
	asked := udp(t, 1, 2, 41, 42, question)
	there, back := udp(t, 1, 2, 41, 42, data), udp(t, 2, 1, 42, 41, append([]byte{0, 0}, ack...))
	elsewhere := udp(t, 1, 9, 51, 53, []byte("who is who"))
	noPort := func(of []byte) capture.Record { return told(t, 2, 1, 3, 3, 0, of) }
	syn := talk(t, "A1 > B7 SYN")[0]
	agreed := talk(t, "A1 > B7 SYN", "B7 > A1 SYN ack", "A1 > B7 request ack", "B7 > A1 reply ack")
	const noAnswer, noFrames = "problem no answer [1]: Endpoint 5", "note no frames []: No frames of DG/RDMA"
	const nobody = " asked twice who has the address 10.0.0.77 (ARP), and nobody answered: unless only this direction was captured, no host of its network has it."
	for _, c := range []struct {
		name string
		o    captured.Options
		src  records
		want []string
	}{
		{"nothing listens", captured.Options{}, records{packet(101, asked), noPort(asked), packet(101, asked), noPort(asked)},
			[]string{noAnswer, "problem no port [2]: 10.0.0.2 told 10.0.0.1 twice that nothing listens at its UDP port 42 (ICMP)."}},
		{"who only asks for the port", captured.Options{}, records{packet(101, asked), packet(101, asked), noPort(udp(t, 1, 2, 99, 42, nil))},
			[]string{noAnswer, "problem no port [3]: 10.0.0.2 told 10.0.0.1 once that nothing listens at its UDP port 42"}},
		{"a firewall", captured.Options{}, records{packet(101, asked), told(t, 3, 1, 3, 13, 0, asked), packet(101, asked)},
			[]string{noAnswer, "problem prohibited [2]: 10.0.0.3 told 10.0.0.1 once that packets to 10.0.0.2:42, UDP, are prohibited: a firewall rejects them (ICMP)."}},
		{"a firewall that says there is no port", captured.Options{}, records{packet(101, asked), told(t, 3, 1, 3, 3, 0, asked)},
			[]string{"problem no port [2]: 10.0.0.3 told 10.0.0.1 once that nothing listens at UDP port 42 of 10.0.0.2 (ICMP)."}},
		{"no host", captured.Options{}, records{packet(101, asked), told(t, 3, 1, 3, 1, 0, asked)}, []string{"problem no host [2]: 10.0.0.3 told 10.0.0.1 once that it does not reach the host 10.0.0.2 (ICMP)."}},
		{"no route", captured.Options{}, records{packet(101, asked), told(t, 3, 1, 3, 0, 0, asked)}, []string{"problem no route [2]: 10.0.0.3 told 10.0.0.1 once that it has no route to 10.0.0.2 (ICMP)."}},
		{"too large", captured.Options{}, records{packet(101, there), packet(101, back), told(t, 3, 1, 3, 4, 1400, there), told(t, 3, 1, 3, 4, 1300, there)}, []string{
			"problem too large [3]: 10.0.0.3 told 10.0.0.1 twice that packets to 10.0.0.2:42, UDP, are too large for the next link, which carries 1,300 bytes: such frames do not arrive, choose a smaller MTU (ICMP)."}},
		{"gone", captured.Options{}, records{packet(101, there), packet(101, back), noPort(there), noPort(there)}, []string{
			"warning no port [3]: 10.0.0.2 told 10.0.0.1 twice that nothing listens at its UDP port 42 any more (ICMP)."}},
		{"gone when all was done", captured.Options{}, records{packet(101, there), packet(101, back), noPort(there)}, []string{"note no port [3]: 10.0.0.2 told 10.0.0.1 once that"}},
		{"of a frame that was not captured itself", captured.Options{}, records{packet(101, there), packet(101, back), told(t, 4, 1, 3, 3, 0, udp(t, 1, 4, 41, 42, question))}, []string{"problem no port [3]: 10.0.0.4"}},
		{"at a port that is named", captured.Options{Ports: []uint16{42}}, records{packet(101, there), packet(101, back), told(t, 4, 1, 3, 3, 0, udp(t, 1, 4, 41, 42, []byte("x")))}, []string{"problem no port [3]: 10.0.0.4"}},
		{"of something else", captured.Options{}, records{packet(101, there), packet(101, back), told(t, 9, 1, 3, 3, 0, elsewhere)}, nil},
		{"of something else, in a capture of nothing else", captured.Options{}, records{told(t, 9, 1, 3, 3, 0, elsewhere)}, []string{
			"warning no port [1]: 10.0.0.9 told 10.0.0.1 once that nothing listens at its UDP port 53 (ICMP).", noFrames}},
		{"TCP is rejected", captured.Options{}, append(append(records{}, agreed...), told(t, 4, 1, 3, 13, 0, talk(t, "A9 > D7 SYN")[0].Data), talk(t, "A9 > D7 SYN")[0], talk(t, "A9 > D7 SYN")[0]), []string{
			"problem no connection [6]", "problem prohibited [5]: 10.0.0.4 told 10.0.0.1 once that packets to 10.0.0.4:7, TCP, are prohibited"}},
		{"TCP adapts", captured.Options{}, append(append(records{}, agreed...), told(t, 3, 1, 3, 4, 1400, syn.Data)), []string{"note too large [5]"}},
		{"TCP of something else", captured.Options{}, append(append(records{}, agreed...), told(t, 4, 1, 3, 3, 0, talk(t, "A9 > D22 SYN")[0].Data)), nil},

		{"nobody has the address", captured.Options{}, records{asksFor(1, 1, 77), asksFor(1, 1, 77)}, []string{"warning no neighbour [1]: 10.0.0.1" + nobody, noFrames}},
		{"nobody has the address, of who speaks to others", captured.Options{}, records{packet(101, there), packet(101, back), asksFor(1, 1, 77), asksFor(1, 1, 77)}, []string{"warning no neighbour [3]: 10.0.0.1" + nobody}},
		{"nobody has the address to which frames go", captured.Options{}, records{packet(101, udp(t, 1, 77, 41, 42, question)), asksFor(1, 1, 77), asksFor(1, 1, 77)}, []string{"problem no neighbour [2]: 10.0.0.1" + nobody}},
		{"others ask", captured.Options{}, records{packet(101, there), packet(101, back), asksFor(1, 3, 77), asksFor(1, 3, 77)}, nil},
		{"it answers", captured.Options{}, records{packet(101, there), packet(101, back), asksFor(1, 1, 77), asksFor(1, 1, 77), asksFor(2, 77, 1)}, nil},
		{"it is there", captured.Options{}, records{packet(101, there), packet(101, back), asksFor(1, 1, 2), asksFor(1, 1, 2)}, nil},
		{"it may still answer", captured.Options{}, records{asksFor(1, 1, 77)}, []string{noFrames}},
	} {
		got := findingsOf(wholeReport(t, c.o, c.src))
		ok := len(got) == len(c.want)
		for i := range min(len(got), len(c.want)) {
			ok = ok && strings.HasPrefix(got[i], c.want[i])
		}
		if !ok {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// TestNoticesAreBounded: who is told of another address each time fills no memory, and the report says so.
func TestNoticesAreBounded(t *testing.T) {
	const most, more = 1024, 7
	var src records
	for i := range most + more {
		r := asksFor(1, 1, 77)
		binary.BigEndian.PutUint16(r.Data[40:], uint16(1000+i))
		src = append(src, r, r)
	}
	r := wholeReport(t, captured.Options{}, src)
	told := map[string]int{}
	for _, f := range r.Findings {
		told[f.Kind] += 1 + f.More
	}
	if told["no neighbour"] != most || told["more failures"] != 1 || !strings.Contains(strings.Join(findingsOf(r), "\n"), "14 further failures,") {
		t.Errorf("%v\n%s", told, strings.Join(findingsOf(r), "\n"))
	}
}

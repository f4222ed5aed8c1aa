package inspect_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/inspect"
	"github.com/dgrdma/dgrdma/inspect/iwarp"
)

// talk reads segments of TCP, as "A1 > B7 SYN", "B7 > A1 RST ack seq=1 data": A and B are hosts, what is behind them ports.
func talk(t testing.TB, lines ...string) (records []capture.Record) {
	t.Helper()
	next := map[string]uint32{}
	for _, line := range lines {
		words := strings.Fields(line)
		end := func(s string) netip.AddrPort {
			var port uint16
			fmt.Sscan(s[1:], &port)
			return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, s[0] - 'A' + 1}), port)
		}
		from, to := end(words[0]), end(words[2])
		var flags byte
		var data []byte
		for _, w := range words[3:] {
			switch w {
			case "SYN":
				flags |= capture.SYN
			case "FIN":
				flags |= capture.FIN
			case "RST":
				flags |= capture.RST
			case "ack":
				flags |= capture.ACK
			case "request":
				data = []byte("MPA ID Req Frame\x40\x01\x00\x00")
			case "reply":
				data = []byte("MPA ID Rep Frame\x40\x01\x00\x00")
			default:
				data = []byte(strings.ReplaceAll(w, "_", " "))
			}
		}
		there, back := words[0]+words[2], words[2]+words[0]
		b := make([]byte, 40, 40+len(data))
		b[0], b[9], b[32], b[33], b[34] = 0x45, 6, 5<<4, flags, 1
		binary.BigEndian.PutUint16(b[2:], uint16(40+len(data)))
		copy(b[12:], from.Addr().AsSlice())
		copy(b[16:], to.Addr().AsSlice())
		binary.BigEndian.PutUint16(b[20:], from.Port())
		binary.BigEndian.PutUint16(b[22:], to.Port())
		binary.BigEndian.PutUint32(b[24:], next[there])
		binary.BigEndian.PutUint32(b[28:], next[back])
		if flags&capture.SYN != 0 {
			next[there] = 1 // one that is sent again has its number
		}
		if next[there] += uint32(len(data)); flags&capture.FIN != 0 {
			next[there]++
		}
		b = append(b, data...)
		if flags&capture.SYN != 0 {
			clear(b[24:28])
		}
		records = append(records, capture.Record{LinkType: 101, Data: b, Length: len(b)})
	}
	return records
}

// reportOf analyzes records, as the command does.
func reportOf(t testing.TB, o iwarp.Options, records []capture.Record) *inspect.Report {
	t.Helper()
	a := inspect.New()
	o.Failed = a.Attempt
	d := iwarp.New(o, func(e *iwarp.Event) error { a.Event(e); return nil })
	for i := range records {
		if err := d.Add(i+1, &records[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.End(); err != nil {
		t.Fatal(err)
	}
	return a.Report()
}

// TestSetUpsThatFail: what is said of connections that did not come about, or where the other side does not speak iWARP; and that nothing is
// said of those of other protocols.
func TestSetUpsThatFail(t *testing.T) {
	open := func(a, b string) []string {
		return []string{a + " > " + b + " SYN", b + " > " + a + " SYN ack", a + " > " + b + " request ack"}
	}
	agreed := slices.Clip(append(open("A1", "B7"), "B7 > A1 reply ack"))
	named := iwarp.Options{Ports: []uint16{7}}
	refusal := func(from, to string) []string {
		return []string{from + " > " + to + " SYN", to + " > " + from + " RST ack"}
	}
	silence := func(from, to string, n int) (all []string) {
		for range n {
			all = append(all, from+" > "+to+" SYN")
		}
		return all
	}
	const refused = "10.0.0.2:7 refused 1 connection of TCP from 10.0.0.1 (RST): nothing listens at that port, or a firewall rejects it."
	const silent = " asked 10.0.0.3:7 3 times for a connection of TCP (SYN), and nothing of an answer is in the capture: unless only this direction was captured, nobody is there, or a firewall drops it."
	const noFrames = "note no frames []: No frames of DG/RDMA"
	for _, c := range []struct {
		name  string
		o     iwarp.Options
		lines []string
		want  []string
		state string
	}{
		{"refused, at a port that is named", named, refusal("A1", "B7"), []string{"problem refused [1 2]: " + refused, noFrames}, ""},
		{"refused, at another port", named, refusal("A1", "B8"), []string{noFrames}, ""},
		{"refused, in a capture of nothing else", iwarp.Options{}, refusal("A1", "B7"), []string{"warning refused [1 2]: " + refused, noFrames}, ""},
		{"refused twice", named, append(refusal("A1", "B7"), refusal("A2", "B7")...), []string{"problem refused [1 2]: 10.0.0.2:7 refused 2 connections of TCP from 10.0.0.1 ", noFrames}, ""},
		{"refused, where iWARP is spoken", iwarp.Options{}, append(agreed, refusal("C1", "B7")...), []string{"problem refused [5 6]: 10.0.0.2:7 refused 1 connection of TCP from 10.0.0.3"}, "agreed"},
		{"refused at another port, between hosts that speak iWARP", iwarp.Options{}, append(agreed, refusal("A2", "B9")...), []string{"problem refused [5 6]: 10.0.0.2:9"}, "agreed"},
		{"refused to others elsewhere", iwarp.Options{}, append(agreed, refusal("A2", "C9")...), nil, "agreed"},
		{"a reset of something else", iwarp.Options{}, append(agreed, "A2 > B7 SYN", "B7 > A2 SYN ack", "B7 > A2 RST ack"), nil, "agreed"},
		{"who asked refuses the answer", named, []string{"B7 > A1 SYN ack", "A1 > B7 RST ack"}, []string{noFrames}, ""},
		{"never answered", named, silence("A1", "C7", 3), []string{"problem no connection [1]: 10.0.0.1" + silent, noFrames}, ""},
		{"never answered, where iWARP is spoken", iwarp.Options{}, append(agreed, silence("A2", "C7", 3)...), []string{"problem no connection [5]: 10.0.0.1" + silent}, "agreed"},
		{"never answered, elsewhere", iwarp.Options{}, append(agreed, silence("A2", "C9", 3)...), nil, "agreed"},
		{"never answered, in a capture of nothing else", iwarp.Options{}, silence("A1", "C7", 3), []string{"warning no connection [1]: 10.0.0.1" + silent, noFrames}, ""},
		{"may still be answered", named, silence("A1", "C7", 1), []string{noFrames}, ""},
		{"the answers were not captured", named, append(silence("A1", "C7", 2), "A1 > C7 ack"), []string{noFrames}, ""},
		{"answered in HTTP", iwarp.Options{}, append(open("A1", "B7"), "A1 > B7 FIN ack", "B7 > A1 <!DOCTYPE_HTML> ack", "A1 > B7 RST"), []string{
			`problem not iWARP [3 5]: Who answers at 10.0.0.2:7 does not speak iWARP: to the set-up request of 10.0.0.1:1 came what begins with "<!DOCTYPE HTML>", which is HTTP.`}, "not iWARP"},
		{"answered in TLS", iwarp.Options{}, append(open("A1", "B7"), "B7 > A1 \x15\x03\x01\x00\x02 ack"), []string{
			`problem not iWARP [3 4]: Who answers at 10.0.0.2:7 does not speak iWARP: to the set-up request of 10.0.0.1:1 came what begins with the bytes 1503010002, which is TLS.`}, "not iWARP"},
		{"who answers speaks first", named, []string{"A1 > B7 SYN", "B7 > A1 SYN ack", "B7 > A1 SSH-2.0 ack", "A1 > B7 request ack"}, []string{
			`problem not iWARP [4 3]: Who answers at 10.0.0.2:7 does not speak iWARP: to the set-up request of 10.0.0.1:1 came what begins with "SSH-2.0", which is SSH.`}, "not iWARP"},
		{"another protocol at a port that is named", named, []string{"A1 > B7 SYN", "B7 > A1 SYN ack", "A1 > B7 GET_/ ack", "B7 > A1 HTTP/1.0 ack"}, []string{
			`warning not iWARP [3]: The connection between 10.0.0.1:1 and 10.0.0.2:7 is none of iWARP: what 10.0.0.1:1 sent begins with "GET /", which is HTTP.`, noFrames}, "not iWARP"},
		{"a reply where a request belongs (3)", iwarp.Options{}, []string{"A1 > B7 SYN", "B7 > A1 SYN ack", "A1 > B7 reply ack", "B7 > A1 FIN ack", "A1 > B7 FIN ack"}, []string{
			"problem no request [3]: 10.0.0.1:1 opened the connection to 10.0.0.2:7 and sent an MPA reply where a request belongs."}, "no request"},
		{"a reply to nothing", iwarp.Options{}, []string{"A1 > B7 SYN", "B7 > A1 SYN ack", "A1 > B7 ack", "B7 > A1 reply ack", "A1 > B7 FIN ack"}, []string{
			"problem no request [4]: 10.0.0.2:7 answered with an MPA reply, and 10.0.0.1:1 had sent no request."}, "no request"},
		{"a reply of which the request was not captured", iwarp.Options{}, []string{"B7 > A1 reply ack"}, nil, "not captured"},
		{"reset by who should answer", iwarp.Options{}, append(open("A1", "B7"), "B7 > A1 RST ack"), []string{
			"problem no reply [3 4]: The request of 10.0.0.1:1 was never answered by 10.0.0.2:7. The responder reset the connection instead."}, "no reply"},
		{"reset by who asked", iwarp.Options{}, append(open("A1", "B7"), "A1 > B7 RST ack"), []string{
			"problem no reply [3]: The request of 10.0.0.1:1 was never answered by 10.0.0.2:7. The initiator gave up after"}, "no reply"},
	} {
		r := reportOf(t, c.o, talk(t, c.lines...))
		got := findingsOf(r)
		ok := len(got) == len(c.want)
		for i := range min(len(got), len(c.want)) {
			ok = ok && strings.HasPrefix(got[i], c.want[i])
		}
		state := ""
		if len(r.Connections) > 0 {
			if first := r.Connections[0]; first.From != "10.0.0.1:1" || first.To != "10.0.0.2:7" {
				t.Errorf("%s: the initiator is %s, towards %s", c.name, first.From, first.To)
			}
			state = r.Connections[0].State
		}
		if !ok || state != c.state {
			t.Errorf("%s: %s\n%s\nwant %s\n%s", c.name, state, strings.Join(got, "\n"), c.state, strings.Join(c.want, "\n"))
		}
	}
}

// TestNoFramesAtPorts checks that a report of nothing asks for other ports where some were named, and else for ports (2).
func TestNoFramesAtPorts(t *testing.T) {
	for _, c := range []struct {
		udp, tcp bool
		want     string
	}{
		{false, false, "of this capture. Another Ethernet type, ports of UDP or TCP that have to be named, or"},
		{true, false, "of this capture: none of DG/RDMA at the ports of UDP named by --port. Another Ethernet type, other ports of UDP, ports of TCP that have to be named, or"},
		{false, true, "of this capture: none of iWARP at the ports of TCP named by --port. Another Ethernet type, other ports of TCP, ports of UDP that have to be named, or"},
		{true, true, "of this capture: none at the ports named by --port. Another Ethernet type, other ports, or"},
	} {
		a := inspect.New()
		a.OnlyPorts(c.udp, c.tcp)
		if got := findingsOf(a.Report()); len(got) != 1 || !strings.Contains(got[0], c.want) {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// TestFailuresAreBounded: a scan of ports, or a flood of SYNs under addresses that nobody has, makes a report neither grow without a bound nor be silent about it.
func TestFailuresAreBounded(t *testing.T) {
	var lines []string
	const most, more = 1024, 10
	for port := range most + more {
		lines = append(lines, fmt.Sprintf("A%d > B7 SYN", port+1), fmt.Sprintf("B7 > A%d RST ack", port+1))
	}
	records := talk(t, lines...)
	for i, r := range records { // from another host each
		at := 12 + 4*(i%2)
		records[i].Data = bytes.Clone(r.Data)
		binary.BigEndian.PutUint16(records[i].Data[at+2:], uint16(1000+i/2))
	}
	r := reportOf(t, iwarp.Options{Ports: []uint16{7}}, records)
	told := map[string]int{}
	for _, f := range r.Findings {
		told[f.Kind] += 1 + f.More
	}
	if told["refused"] != most || told["more failures"] != 1 || !strings.Contains(fmt.Sprint(findingsOf(r)), "10 further failures, of connections of TCP that came to nothing") {
		t.Errorf("%v\n%s", told, strings.Join(findingsOf(r), "\n"))
	}
}

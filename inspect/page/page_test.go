package page_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/captured"
	"github.com/dgrdma/dgrdma/inspect"
	"github.com/dgrdma/dgrdma/inspect/iwarp"
	"github.com/dgrdma/dgrdma/inspect/page"
)

func render(t *testing.T, r *inspect.Report, title string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := page.Write(&b, r, page.Options{Title: title}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func reportOf(t *testing.T, name string) *inspect.Report {
	t.Helper()
	a := inspect.New()
	for p, err := range captured.ReadFile(filepath.Join("..", "..", "frame", "testdata", "captures", name+".pcap"), captured.Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		a.Add(p)
	}
	return a.Report()
}

// crowded is a capture with as much of everything as a report keeps: many flows,
// copies, duplicates, gaps, late frames, restarts and unfinished transactions.
func crowded() *inspect.Report {
	a := inspect.New()
	at := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	record := 0
	add := func(from, to frame.EndpointID, b []byte) {
		record++
		at = at.Add(37 * time.Microsecond)
		p := &captured.Packet{Packet: capture.Packet{Record: record, Time: at, Data: b, Length: len(b)}}
		p.Src.MAC, p.Dst.MAC = [6]byte{0x02, 0xff, 0xee, 0xdd, 0, byte(from)}, [6]byte{0x02, 0xff, 0xee, 0xdd, 0, byte(to)}
		a.Add(p)
	}
	for pair := range frame.EndpointID(64) {
		n, from, to := 300, 2*pair+1, 2*pair+2
		if pair < 5 {
			n = 40_000
		}
		for i := range n {
			id := frame.Seq(60_000 + i)
			switch {
			case i%50 == 7:
				continue // a gap
			case i%50 == 9:
				id -= 3 // a copy
			case i%50 == 12:
				id = frame.Seq(60_000 + i - 5) // one that fills a gap late
			case i%9000 == 8999:
				id = 30_000
			}
			b := make([]byte, frame.HeaderSize+frame.MessageHeaderSize+100)
			(&frame.Header{Src: from, Dst: to, Seq: id, Flags: frame.FlagMessages}).Put(b)
			(&frame.Message{Txn: 4_000_000_000 + uint32(id)/7, Count: 7, Index: uint16(id%7) + 1, Len: 100, Addr: uint32(id)}).Put(b[frame.HeaderSize:])
			add(from, to, b)
			if i%40 == 3 {
				add(from, to, b) // doubled
			}
			if i%16 == 15 {
				b := make([]byte, frame.HeaderSize)
				(&frame.Header{Src: to, Dst: from, Seq: frame.Seq(i / 16), AckStart: id - 20, AckCount: 16}).Put(b)
				add(to, from, b)
			}
			if i%5000 == 4000 {
				at = at.Add(time.Second)
			}
		}
	}
	return a.Report()
}

func reports(t *testing.T) map[string]*inspect.Report {
	all := map[string]*inspect.Report{"empty": inspect.New().Report(), "crowded": crowded()}
	for _, name := range []string{"udp-loss7", "udp-many", "ether2-single", "ether-loss5-pingpong", "fpga-lost-ack-stalls", "fpga-many"} {
		all[name] = reportOf(t, name)
	}
	return all
}

// A page stands alone, whatever is in the capture, and does not grow without end.
func TestPagesStandAlone(t *testing.T) {
	for name, r := range reports(t) {
		b := render(t, r, name)
		if len(b) > 2<<20 {
			t.Errorf("%s: %d bytes", name, len(b))
		}
		if bytes.Contains(b, []byte("by the network")) {
			t.Errorf("%s: blames the network for copies that their sender may have made: observation V8 (docs/peers.md)", name)
		}
		for _, outside := range []string{"<script", "http:", "https:", "src=", "url(", "@import", "<link", "javascript:", "ZgotmplZ", "NaN", "Inf", "%!"} {
			if bytes.Contains(b, []byte(outside)) {
				t.Errorf("%s: has %q", name, outside)
			}
		}
		for _, m := range regexp.MustCompile(`href="#([^"]*)"`).FindAllSubmatch(b, -1) {
			if !bytes.Contains(b, fmt.Appendf(nil, ` id="%s"`, m[1])) {
				t.Errorf("%s: a link to #%s, which is not there", name, m[1])
			}
		}
		for _, tag := range []string{"section", "figure", "div", "svg", "table", "tr", "i", "p", "ol", "ul", "span"} {
			opened, closed := bytes.Count(b, []byte("<"+tag+" "))+bytes.Count(b, []byte("<"+tag+">")), bytes.Count(b, []byte("</"+tag+">"))
			if opened != closed {
				t.Errorf("%s: <%s> is opened %d times and closed %d times", name, tag, opened, closed)
			}
		}
	}
}

func TestTitleIsEscaped(t *testing.T) {
	r := inspect.New().Report()
	r.Findings[0].Text = `<img onerror="x">`
	b := string(render(t, r, `</title><script>alert(1)</script>`))
	if strings.Contains(b, "<script>") || strings.Contains(b, "<img") || !strings.Contains(b, "&lt;img onerror") {
		t.Error(b)
	}
}

// What the pictures of a small capture show can be counted.
func TestPicturesShowEveryFrame(t *testing.T) {
	b := string(render(t, reportOf(t, "udp-loss7"), "udp-loss7.pcap"))
	frames := regexp.MustCompile(`<path class="frames" d="([^"]*)"`).FindStringSubmatch(b)
	if frames == nil || strings.Count(frames[1], "M") != 50 {
		t.Error("the first copies of 50 frames are not in the picture")
	}
	if n := strings.Count(b, `<i class="mark resent"`); n != 74 {
		t.Errorf("%d marks of frames sent again, want 74", n)
	}
	if n := strings.Count(b, `<div class="row"`); n != 10 {
		t.Errorf("%d rows of transactions, want 10", n)
	}
	for _, want := range []string{
		`title="frame 4 sent for the 2nd time at 202 ms, record 23"`,
		`title="transaction 1, 2.01 KB in 6 of 6 messages: begins at 0 s (record 1), last message after 41 µs, acknowledged after 164 ms"`,
		"41 of 50 frames from endpoint 1 to endpoint 2 were sent again",
	} {
		if !strings.Contains(b, want) {
			t.Errorf("no %s", want)
		}
	}
}

func TestServicesAreNamed(t *testing.T) {
	r := reportOf(t, "udp-single")
	r.Flows[0].Services = []inspect.Service{{Name: "memory", Base: 0}, {Name: "link", Base: 1 << 16}}
	r.Flows[1].Services = []inspect.Service{}
	b := string(render(t, r, "udp-single"))
	if !strings.Contains(b, `<td class="end" data-name="From" title="serves memory from 0x0, link from 0x10000"><b>1</b>`) || !strings.Contains(b, `<td class="end" data-name="From"><b>2</b>`) {
		t.Error(b)
	}
}

func TestOneFlowIsChosen(t *testing.T) {
	r := reportOf(t, "ether-many-doorbell")
	for flow, want := range map[int]string{0: "[1 2]", 1: "[1]", 2: "[2]"} {
		var b bytes.Buffer
		if err := page.Write(&b, r, page.Options{Flow: flow}); err != nil {
			t.Fatal(err)
		}
		var drawn []int
		for _, m := range regexp.MustCompile(`<section class="flow" id="flow(\d)"`).FindAllStringSubmatch(b.String(), -1) {
			drawn = append(drawn, int(m[1][0]-'0'))
		}
		if fmt.Sprint(drawn) != want {
			t.Errorf("--flow %d draws %v, want %s", flow, drawn, want)
		}
	}
	if err := page.Write(io.Discard, r, page.Options{Flow: 3}); err == nil || err.Error() != "there is no flow 3: the capture has 2" {
		t.Error(err)
	}
}

// streams has an Analyzer see two of Linux's siw.
func streams(t *testing.T, a *inspect.Analyzer) {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "rdmap", "mpa", "testdata", "siw-zero-read-stale.pcap"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	src, err := capture.NewFile(f)
	if err != nil {
		t.Fatal(err)
	}
	tap := iwarp.Tap{Source: src, Decoder: iwarp.New(iwarp.Options{}, func(e *iwarp.Event) error { a.Event(e); return nil })}
	for err == nil {
		_, err = tap.Next()
	}
	if err != io.EOF {
		t.Fatal(err)
	}
}

// TestPageSaysWhatItIsOf: the heads, the facts and the words below are of the protocols that the capture has.
func TestPageSaysWhatItIsOf(t *testing.T) {
	both := inspect.New()
	streams(t, both)
	for p, err := range captured.ReadFile(filepath.Join("..", "..", "frame", "testdata", "captures", "udp-single.pcap"), captured.Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		both.Add(p)
	}
	alone := inspect.New()
	streams(t, alone)
	for _, c := range []struct {
		r                *inspect.Report
		title, kicker    string
		dgrdma, protocol bool
	}{
		{inspect.New().Report(), "x · report", "Capture report", false, true}, // a finding says what was looked for
		{reportOf(t, "udp-single"), "x · DG/RDMA report", "DG/RDMA capture report", true, true},
		{alone.Report(), "x · iWARP report", "iWARP capture report", false, false},
		{both.Report(), "x · DG/RDMA and iWARP report", "DG/RDMA and iWARP capture report", true, true},
	} {
		page := string(render(t, c.r, "x"))
		if !strings.Contains(page, "<title>"+c.title+"</title>") || !strings.Contains(page, `<p class="kicker">`+c.kicker+"</p>") {
			t.Errorf("%s: another title than %s, or another head than %s", c.kicker, c.title, c.kicker)
		}
		for _, word := range []string{"<dt>Flows</dt>", "<dt>Transactions</dt>", "an acknowledgement that was lost"} {
			if strings.Contains(page, word) != c.dgrdma {
				t.Errorf("%s: %s: %v, want %v", c.kicker, word, !c.dgrdma, c.dgrdma)
			}
		}
		if strings.Contains(page, "DG/RDMA") != c.protocol {
			t.Errorf("%s: names DG/RDMA: %v", c.kicker, !c.protocol)
		}
	}
}

// TestConnectionsOnThePage: what was set up, operations with their round trips, and findings that lead to their connection.
func TestConnectionsOnThePage(t *testing.T) {
	a := inspect.New()
	streams(t, a)
	page := string(render(t, a.Report(), "x"))
	for _, want := range []string{
		"<h2>Connections of iWARP</h2>", `<tr id="connection1">`, `<a href="#connection1">connection 1</a>`, "10.99.0.3:58888 ended the connection with a Terminate", "agreed <small>revision 2",
		`<td data-name="Operation">Read Request</td>`, `<td class="n" data-name="Answered">3</td>`, "<dt>Connections</dt><dd>1 ", `<td class="n" data-name="Reads at a time">4</td>`, `<td class="end" data-name="Responder">10.99.0.2:7000</td>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(page, "There is nothing to draw") {
		t.Error("a page with connections says that it is empty")
	}
}

// TestRPCOnThePage: connections of RPC-over-RDMA have a table of theirs, and one of what was called; other connections have none.
func TestRPCOnThePage(t *testing.T) {
	r := &inspect.Report{
		Capture:     inspect.Capture{FPDUs: 9},
		Connections: []inspect.Connection{{Number: 1, Sides: [2]inspect.Side{{Operations: []inspect.Operation{}}, {Operations: []inspect.Operation{}}}}},
	}
	if page := string(render(t, r, "x")); strings.Contains(page, "RPC-over-RDMA") {
		t.Error("a page without RPC-over-RDMA tells of it")
	}
	r.Connections[0].RPC = &inspect.RPC{Client: "10.0.0.3:1000", Version: 1, InUse: 17, Granted: 64, ReverseInUse: 2, ReverseGranted: 16, Placed: 1234567, Fetched: 7650, Procedures: []inspect.RPCProcedure{
		{Name: "NFS 3 READ", Calls: 12345, Replies: 12344, Failed: 3, Errors: 71, Placed: 1234567, Min: time.Millisecond, Median: 2 * time.Millisecond, Max: 3 * time.Second, MaxXID: "0x614e9044", MaxRecord: 12},
		{Name: "NFS callback 1 CB_COMPOUND", Reverse: true, Calls: 1},
	}, Slowest: []inspect.SlowCall{
		{XID: "0x614e9044", Procedure: "NFS 3 READ", Record: 12, Reply: 3456, Took: 3 * time.Second, Reads: time.Second, Writes: 20 * time.Millisecond, Server: 1980 * time.Millisecond},
	}}
	page := string(render(t, r, "x"))
	for _, want := range []string{
		"<h2>RPC-over-RDMA</h2>", `data-name="Client">10.0.0.3:1000<`, `data-name="Credits in use">17 <small>reverse 2</small>`, `data-name="Granted">64 <small>reverse 16</small>`, `data-name="Placed">1.23 MB<`,
		`data-name="Fetched">7.65 KB<`, `data-name="Procedure">NFS 3 READ<`, `data-name="Calls">12,345<`, `data-name="Answered">12,344<`, `data-name="Refused">3<`, `data-name="Errors">71<`, `data-name="Shortest">1 ms<`, `data-name="Median">2 ms<`,
		`data-name="Longest">3 s <small>record 12, XID 0x614e9044</small>`, `data-name="XID">0x614e9044<`, `data-name="Record">12<`, `data-name="Reply">3,456<`, `data-name="Took">3 s<`,
		`data-name="Reads waited">1 s<`, `data-name="Writes took">20 ms<`, `data-name="Server">1.98 s<`, `CB_COMPOUND <small>reverse</small>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s", want)
		}
	}
}

// Endpoints with keys have a table, also where nothing but what is sealed was captured.
func TestSealedOnThePage(t *testing.T) {
	r := &inspect.Report{
		Capture: inspect.Capture{Frames: 9, Sealed: 7, Handshakes: 2},
		Sealed: []inspect.Sealed{{
			Number: 1, From: inspect.End{Address: "a", ID: 1}, To: inspect.End{Address: "b", ID: 2}, Last: time.Second,
			Frames: 7654, Inside: 9000, Keys: 2, Missing: 1234, Copies: 3, Ended: 1, Unended: 4, Unsealed: 5, Questions: 6,
		}},
	}
	var b strings.Builder
	if err := page.Write(&b, r, page.Options{Title: "sealed"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Endpoints with keys", ">7,654<", ">9 KB<", ">1,234<", "and 4 in vain", "questions 6", ">1 s<"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(b.String(), "nothing to draw") {
		t.Error("the page says that there is nothing")
	}
}

// Where a snap length hides frames, the page draws no transactions: all of them would look unfinished.
func TestHiddenFramesOnThePage(t *testing.T) {
	for _, hidden := range []int{0, 5} {
		r := reportOf(t, "udp-single")
		for i := range r.Flows {
			r.Flows[i].Hidden = hidden
		}
		const says = "Frames lie behind the snap length: when transactions completed is not known."
		if got := strings.Contains(string(render(t, r, "x")), says); got != (hidden > 0) {
			t.Errorf("%d hidden: says so %v", hidden, got)
		}
	}
}

package inspect_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/inspect"
	"github.com/dgrdma/dgrdma/inspect/iwarp"
)

// connectionsIn analyzes a capture of siw, of which change can make another.
func connectionsIn(t testing.TB, name string, change func(number int, r *capture.Record) bool) *inspect.Report {
	t.Helper()
	f, err := os.Open("../rdmap/mpa/testdata/" + name + ".pcap")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	src, err := capture.NewFile(f)
	if err != nil {
		t.Fatal(err)
	}
	a := inspect.New()
	d := iwarp.New(iwarp.Options{}, func(e *iwarp.Event) error { a.Event(e); return nil })
	for n := 1; ; n++ {
		r, err := src.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if change != nil && !change(n, &r) {
			continue
		}
		if err := d.Add(n, &r); err != nil {
			t.Fatal(err)
		}
	}
	d.End()
	return a.Report()
}

func findingsOf(r *inspect.Report) (all []string) {
	for _, f := range r.Findings {
		all = append(all, fmt.Sprintf("%s %s %v: %s", f.Severity, f.Kind, f.Records, f.Text))
	}
	return all
}

// TestPacketsTwice: "any" is named as the reason where the capture can be of it.
func TestPacketsTwice(t *testing.T) {
	for name, c := range map[string]struct {
		change func(number int, r *capture.Record) bool
		says   string
	}{
		"one interface": {nil, ", or the capture has packets twice."},
		"two interfaces": {func(number int, r *capture.Record) bool {
			r.Interface = number % 2
			return true
		}, `, or the capture has packets twice (interface "any").`},
		"cooked": {func(_ int, r *capture.Record) bool {
			r.LinkType, r.Length = 113, r.Length+2
			r.Data = append([]byte{0, 0, 3, 4, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0}, r.Data[14:]...)
			return true
		}, `, or the capture has packets twice (interface "any").`},
	} {
		all := findingsOf(connectionsIn(t, "perf-read-1", c.change))
		n := 0
		for _, f := range all {
			if strings.Contains(f, "segments sent again") && strings.HasSuffix(f, c.says) {
				n++
			}
		}
		if n != 2 {
			t.Errorf("%s: %q, want two that end in %q", name, all, c.says)
		}
	}
}

// TestFindingsOfConnections: what is said of siw's captures, which their own table tells, and of what was done to them.
func TestFindingsOfConnections(t *testing.T) {
	drop := func(numbers ...int) func(int, *capture.Record) bool {
		return func(n int, _ *capture.Record) bool {
			for _, d := range numbers {
				if n == d {
					return false
				}
			}
			return true
		}
	}
	from := func(first int) func(int, *capture.Record) bool {
		return func(n int, _ *capture.Record) bool { return n >= first }
	}
	before := func(end int) func(int, *capture.Record) bool {
		return func(n int, _ *capture.Record) bool { return n < end }
	}
	spoil := func(number, fromEnd int) func(int, *capture.Record) bool {
		return func(n int, r *capture.Record) bool {
			if n == number {
				r.Data[len(r.Data)-fromEnd] ^= 1
			}
			return true
		}
	}
	flag := func(number int, flags byte, window uint16) func(int, *capture.Record) bool {
		return func(n int, r *capture.Record) bool {
			if n == number {
				r.Data[14+20+13] = flags
				binary.BigEndian.PutUint16(r.Data[14+20+14:], window)
			}
			return true
		}
	}
	lasting := func(d time.Duration) func(int, *capture.Record) bool { // the window of 0 in record 31
		var since time.Time
		return func(n int, r *capture.Record) bool {
			if n == 31 {
				since = r.Time
			} else if n > 31 {
				r.Time = since.Add(d)
			}
			return flag(31, capture.ACK, 0)(n, r)
		}
	}
	const again = "note segments sent again [20]: TCP sent 1 segment from 10.99.0.3:40515 again" // siw's, in ops-short
	for _, c := range []struct {
		name, capture string
		change        func(int, *capture.Record) bool
		want          []string // in this order, nothing else
	}{
		{"all is well", "rping-rev2-crc", nil, nil},
		{"Terminate", "term-write-bounds", nil, []string{
			"problem terminate [8 10]: 10.99.0.2:7000 ended the connection with a Terminate: DDP: tagged buffer: base or bounds violation (1/1/01). It is about a Write, 100 bytes to STag 0xa46e4200 at offset 0x7fa2eb5e7fb8."}},
		{"Terminate of a Read", "term-read-bounds", nil, []string{"problem terminate [8 10]: 10.99.0.2:7000 ended the connection with a Terminate: RDMAP: remote protection error: base or bounds violation (0/1/01). It is about a Read Request.", "note unanswered"}},
		{"Terminate of a Send", "term-send-no-receive", nil, []string{"problem terminate [8 10]: 10.99.0.2:7000 ended the connection with a Terminate: DDP: untagged buffer: no buffer for the message (1/2/02). It is about a Send, "}},
		{"S6", "siw-zero-read-stale", nil, []string{
			"problem terminate [22 23]: 10.99.0.3:58888 ended the connection with a Terminate: DDP: tagged buffer: base or bounds violation (1/1/01). It is about a Read Response, 5 bytes",
			"problem out of order [22]: 1 frame from 10.99.0.2:7000 is not as the protocol has it. The first: a Read Response has 5 bytes, and the Read asked for 0."}},
		{"rejected, with words", "reject-private-data", nil, []string{`problem rejected [4 6]: 10.99.0.2:7000 rejected the connection from 10.99.0.3:51124. It says "No, thanks".`}},
		{"rejected, without", "reject-no-private-data", nil, []string{"problem rejected [4 6]: 10.99.0.2:7000 rejected the connection"}},
		{"rejected for CRC", "reject-crc-strict", nil, []string{"problem rejected [4 6]: 10.99.0.2:7000 rejected the connection from 10.99.0.3:42409. The request asks for CRC, and the reply has none: the responder forbids it."}},
		{"no reply", "rping-rev2-crc", before(6), []string{"problem no reply [4]: The request of "}},
		{"mid-connection", "rping-rev2-crc", from(8), []string{"note mid-connection [8]: The beginning of the connection"}},
		{"CRC", "term-write-bounds", spoil(8, 1), []string{"problem bad CRC [8]: 1 frame from 10.99.0.3:52196 has a wrong CRC.", "problem terminate"}},
		{"TCP sent something again", "perf-read-1", nil, []string{"note segments sent again [17]: TCP sent 1 segment from 10.99.0.3:45473 again, 5.56 %,", "note segments sent again [11]"}},
		{"reset", "ops-short", flag(34, capture.RST|capture.ACK, 1), []string{again, "note reset [34]: 10.99.0.3:40515 reset the connection; nothing was under way that the capture shows."}},
		{"reset amid a Read", "ops-short", func(n int, r *capture.Record) bool {
			return flag(25, capture.RST|capture.ACK, 1)(n, r) && n <= 25
		}, []string{"problem unanswered [19]: 1 request of 10.99.0.3:40515 was never answered. The first is a Read Request in this record.", "problem reset", again}},
		{"a zero window for a moment", "ops-short", lasting(18 * time.Microsecond), []string{again,
			"note zero window [31]: 10.99.0.2:7000 told its peer once to send nothing (a TCP window of 0), for 18 µs at most: its buffer was full for a moment, as it may be at full rate."}},
		{"a zero window that lasts", "ops-short", lasting(10 * time.Millisecond), []string{"warning zero window [31]: 10.99.0.2:7000 told its peer once to send nothing (a TCP window of 0), for 10 ms at most, from this record on: its program or memory does not keep up.", again}},
		{"a packet that the capture has not", "write-65537", drop(20, 21, 22, 23, 24, 25), []string{"warning not captured ["}},
		{"without CRC there is no way back", "send-65537-nocrc", drop(20, 21, 22, 23, 24, 25), []string{"warning not captured", "warning given up ["}},
		{"long frames", "write-65537-gso", nil, nil},
	} {
		got := findingsOf(connectionsIn(t, c.capture, c.change))
		ok := len(got) == len(c.want)
		for i := range min(len(got), len(c.want)) {
			ok = ok && strings.HasPrefix(got[i], c.want[i])
		}
		if !ok {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// TestConnectionStatistics: operations of each side, their bytes and round trips, and what was agreed on, as the table of the captures has them.
func TestConnectionStatistics(t *testing.T) {
	r := connectionsIn(t, "ops-short", nil)
	if len(r.Connections) != 1 {
		t.Fatalf("%d connections", len(r.Connections))
	}
	c := r.Connections[0]
	if c.From != "10.99.0.3:40515" || c.To != "10.99.0.2:7000" || !c.Known || c.State != "agreed" || c.Revision != 2 || c.CRC != "on" || c.Reads != [2]int{4, 4} || c.FirstRecord != 4 || c.LastRecord != 35 {
		t.Errorf("%+v", c)
	}
	var got []string
	for _, s := range c.Sides {
		for _, o := range s.Operations {
			got = append(got, fmt.Sprint(s.Address, " ", o.Name, " ", o.Messages, " ", o.Bytes))
			if trip := o.RoundTrip; (trip != nil) != (o.Name == "Read Request") || trip != nil && (trip.Count != 2 || trip.Max != 133886*time.Microsecond || trip.Min != 2041*time.Microsecond) {
				t.Errorf("%s: %+v", o.Name, trip)
			}
		}
	}
	want := []string{"10.99.0.3:40515 Write 4 6", "10.99.0.3:40515 Read Request 2 56", "10.99.0.3:40515 Send 6 43", "10.99.0.3:40515 Send with Invalidate 1 9", "10.99.0.3:40515 Send with SE 1 2",
		"10.99.0.2:7000 Read Response 2 6"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if b, err := json.Marshal(r); err != nil || !strings.Contains(string(b), `"connections":[{"number":1,"from":"10.99.0.3:40515"`) {
		t.Errorf("%v, %.300s", err, b)
	}
}

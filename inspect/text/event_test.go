package text_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/inspect/iwarp"
	"github.com/dgrdma/dgrdma/inspect/text"
	"github.com/dgrdma/dgrdma/rdmap"
	"github.com/dgrdma/dgrdma/verbs"
)

const siwCaptures = "../../rdmap/mpa/testdata"

// printedEvents returns the text of what is iWARP in a source.
func printedEvents(t testing.TB, src capture.Source, p text.Printer, f text.Filter) string {
	t.Helper()
	var b []byte
	tap := iwarp.Tap{Source: src, Decoder: iwarp.New(iwarp.Options{}, func(e *iwarp.Event) error {
		if p.Start.IsZero() {
			p.Start = e.Last.Time
		}
		if f.MatchEvent(e) {
			b = p.AppendEvent(b, e)
		}
		return nil
	})}
	for {
		if _, err := tap.Next(); err == io.EOF {
			return string(b)
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func siwCapture(t testing.TB, name string) capture.Source {
	t.Helper()
	f, err := os.Open(filepath.Join(siwCaptures, name+".pcap"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	src, err := capture.NewFile(f)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// TestGoldenEvents compares what is printed of siw's captures with a file that was read line by line beside what
// tshark and the decoder of the captures' own texts say of them.
func TestGoldenEvents(t *testing.T) {
	var got strings.Builder
	for _, c := range []struct {
		name    string
		printer text.Printer
	}{
		{"ops-short", text.Printer{}}, {"ops-short", text.Printer{Style: text.JSON}}, {"rping-p2p-read-crc", text.Printer{}}, {"rping-p2p-write-crc", text.Printer{}},
		{"rping-rev2-crc-by-initiator", text.Printer{}}, {"rev1-ops", text.Printer{Absolute: true}}, {"zero-length", text.Printer{}}, {"rping-gso-flag", text.Printer{}},
		{"reject-private-data", text.Printer{}}, {"reject-no-private-data", text.Printer{}}, {"reject-crc-strict", text.Printer{}}, {"setup-private-data", text.Printer{Style: text.Fields, Bytes: true}},
		{"siw-zero-read-stale", text.Printer{}}, {"write-65537-gso", text.Printer{File: "one.pcap"}}, {"server-first", text.Printer{}},
		{"term-write-bad-stag", text.Printer{}}, {"term-write-bad-key", text.Printer{}}, {"term-write-bounds", text.Printer{Style: text.JSON}}, {"term-write-bounds-nocrc", text.Printer{}},
		{"term-write-no-right", text.Printer{}}, {"term-read-bad-stag", text.Printer{}}, {"term-read-bounds", text.Printer{Style: text.Fields}}, {"term-send-no-receive", text.Printer{}},
		{"term-inv-then-write", text.Printer{}}, {"setup/probe-setup", text.Printer{}},
	} {
		got.WriteString("== " + c.name + "\n" + printedEvents(t, siwCapture(t, c.name), c.printer, text.Filter{}))
	}
	file := filepath.Join("testdata", "iwarp.golden")
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	gotLines, wantLines := strings.Split(got.String(), "\n"), strings.Split(string(want), "\n")
	for i, line := range wantLines {
		if i >= len(gotLines) || gotLines[i] != line {
			t.Fatalf("line %d is\n%s\nwant\n%s", i+1, slices.Concat(gotLines, make([]string, i+1))[i], line)
		}
	}
	if len(gotLines) != len(wantLines) {
		t.Errorf("%d lines, want %d", len(gotLines), len(wantLines))
	}
}

// TestEventsAreJSON: one object in each line, with the same keys as lines of DG/RDMA where they mean the same.
func TestEventsAreJSON(t *testing.T) {
	files, err := filepath.Glob(siwCaptures + "/*.pcap")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".pcap")
		out := printedEvents(t, siwCapture(t, name), text.Printer{Style: text.JSON, Bytes: true, File: "a\"b"}, text.Filter{})
		for line := range strings.Lines(out) {
			var o struct {
				File, Wire, From, To, Kind, CRC, Operation, Data string
				Record, Connection, Length                       int
				Time                                             *time.Time
			}
			if err := json.Unmarshal([]byte(line), &o); err != nil {
				t.Fatalf("%s: %v: %s", name, err, line)
			}
			if o.File != `a"b` || o.Wire != "tcp" || o.Record == 0 || o.Connection == 0 || o.Time == nil || o.Kind == "fpdu" && (o.Operation == "" || o.CRC == "" || len(o.Data) != 2*o.Length) {
				t.Fatalf("%s: %s", name, line)
			}
		}
	}
}

func TestEventFilter(t *testing.T) {
	end, _ := capture.ParseEnd("10.99.0.3")
	other, _ := capture.ParseEnd("10.99.0.3:7000")
	for _, c := range []struct {
		name, capture string
		f             text.Filter
		want          int
	}{
		{"nothing", "ops-short", text.Filter{}, 20},
		{"end", "ops-short", text.Filter{Ends: []capture.End{end}}, 20},
		{"another end", "ops-short", text.Filter{Ends: []capture.End{other}}, 0},
		{"what DG/RDMA has", "ops-short", text.Filter{Txns: []uint32{1}}, 0},
		{"Reads", "ops-short", text.Filter{Operations: []text.Operation{{Opcode: rdmap.ReadRequest}, {Opcode: rdmap.ReadResponse}}}, 4},
		{"STag, of Writes, Reads and what is invalidated", "ops-short", text.Filter{STags: []uint32{0x94771200}}, 4 + 2 + 1},
		{"STag of the sink", "ops-short", text.Filter{STags: []uint32{0x3f087b00}}, 4},
		{"both", "ops-short", text.Filter{STags: []uint32{0x94771200}, Operations: []text.Operation{{Opcode: rdmap.Write}}}, 4},
		{"STag of a Terminate", "term-write-bounds", text.Filter{STags: []uint32{0xa46e4200}, Operations: []text.Operation{{Opcode: rdmap.Terminate}}}, 1},
	} {
		out := printedEvents(t, siwCapture(t, c.capture), text.Printer{}, c.f)
		if n := strings.Count(out, "\n"); n != c.want {
			t.Errorf("%s: %d lines, want %d\n%s", c.name, n, c.want, out)
		}
	}
	if (&text.Filter{STags: []uint32{1}}).Match(&text.View{}) {
		t.Error("a frame of DG/RDMA has an STag")
	}
}

// recorder is a connection that keeps what passes, as segments of TCP.
type recorder struct {
	net.Conn
	mu      sync.Mutex
	seq     [2]uint32
	records []capture.Record
}

func (r *recorder) add(side int, b []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(b) > 0 {
		part := b[:min(len(b), 60_000)]
		p := make([]byte, 40, 40+len(part))
		p[0], p[9], p[32], p[33], p[34] = 0x45, 6, 5<<4, capture.ACK, 1
		binary.BigEndian.PutUint16(p[2:], uint16(40+len(part)))
		p[15], p[19], p[21], p[23] = byte(1+side), byte(2-side), byte(1+side), byte(2-side)
		binary.BigEndian.PutUint32(p[24:], r.seq[side])
		binary.BigEndian.PutUint32(p[28:], r.seq[1-side])
		r.records = append(r.records, capture.Record{LinkType: 101, Data: append(p, part...), Length: 40 + len(part)})
		r.seq[side] += uint32(len(part))
		b = b[len(part):]
	}
}

func (r *recorder) Write(b []byte) (int, error) {
	r.add(0, b)
	return r.Conn.Write(b)
}

func (r *recorder) Read(b []byte) (int, error) {
	n, err := r.Conn.Read(b)
	r.add(1, b[:n])
	return n, err
}

// Next implements [capture.Source].
func (r *recorder) Next() (capture.Record, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.records) == 0 {
		return capture.Record{}, io.EOF
	}
	rec := r.records[0]
	r.records = r.records[1:]
	return rec, nil
}

// TestExtensions: the operations of RFC 7306 and of draft-talpey-rdma-commit-01 are told with what they ask for and what is answered; and a
// Terminate in the bit order of RFC 5040, of this project's verbs.
func TestExtensions(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	a, err := verbs.Open("tcp:127.0.0.1")
	check(err)
	defer a.Close()
	b, err := verbs.Open("tcp:127.0.0.1")
	check(err)
	defer b.Close()
	l, err := b.Listen("0")
	check(err)
	g, err := b.Domain().Register(make([]byte, 4096), verbs.RemoteRead|verbs.RemoteWrite|verbs.RemoteAtomic|verbs.FlushGlobal|verbs.Verify, &verbs.RegionOptions{Algorithm: verbs.SHA256})
	check(err)
	key := g.Key()
	o := verbs.Options{Extensions: verbs.Atomics | verbs.Immediates | verbs.Commit}
	accepted := make(chan error, 1)
	go func() {
		r, err := l.Accept(ctx)
		if err == nil {
			o := o
			o.Posted = []verbs.Receive{{}, {}}
			_, err = r.Accept(ctx, &o)
		}
		accepted <- err
	}()
	nc, err := net.Dial("tcp", l.Addr().String())
	check(err)
	rec := &recorder{Conn: nc, seq: [2]uint32{1000, 1<<32 - 100}}
	q, err := a.Connect(ctx, rec, &o)
	check(err)
	check(<-accepted)
	_, err = q.FetchAdd(ctx, key, 8, 0x11)
	check(err)
	_, err = q.CompareSwap(ctx, key, 8, 0x11, 5)
	check(err)
	check(q.Post(&verbs.Work{Op: verbs.OpImmediate, Solicited: true, Payload: [8]byte{1, 2, 3}}))
	check(q.Flush(ctx, key, 0, 100, verbs.FlushGlobal))
	sum, err := q.Verify(ctx, key, 16, 100, nil)
	check(err)
	_, err = q.Verify(ctx, key, 16, 100, sum)
	check(err)
	check(q.AtomicWrite(ctx, key, 8, [8]byte{7}))
	if err := q.Write(ctx, key, 0, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	check(q.Post(&verbs.Work{Op: verbs.OpWrite, STag: key.STag, TO: key.Offset + 4096, Data: make([]byte, 9)}))
	<-q.Done()

	records := slices.Clone(rec.records)
	out := printedEvents(t, rec, text.Printer{}, text.Filter{})
	where := placeOf(key, 8)
	for _, want := range []string{
		`FetchAdd QN 1 MSN 1 MO 0 52 bytes, whole: at ` + where + ` add 0x11 mask 0x0 request 0x1, CRC good`,
		`Atomic Response QN 3 MSN 1 MO 0 12 bytes, whole: was 0x0 request 0x1, CRC good, answers record 4`,
		`CmpSwap QN 1 MSN 2 MO 0 52 bytes, whole: at ` + where + ` compare 0x11 mask 0xffffffffffffffff swap 0x5 mask 0xffffffffffffffff request 0x2, CRC good`,
		`Atomic Response QN 3 MSN 2 MO 0 12 bytes, whole: was 0x11 request 0x2`,
		`Immediate Data with SE QN 0 MSN 1 MO 0 8 bytes, whole: 0102030000000000, CRC good`,
		`Flush Request QN 1 MSN 3 MO 0 20 bytes, whole: 100 bytes at ` + placeOf(key, 0) + ` global, CRC good`,
		`Flush Response QN 3 MSN 3 MO 0 0 bytes, whole, CRC good, answers record`,
		`Verify Request QN 1 MSN 4 MO 0 16 bytes, whole: 100 bytes at \S+ \S+ TO \S+, CRC good`,
		`Verify Response QN 3 MSN 4 MO 0 32 bytes, whole: hash [0-9a-f]{64}, CRC good, answers record`,
		`Verify Request QN 1 MSN 5 MO 0 48 bytes, whole: 100 bytes at \S+ \S+ TO \S+ hash [0-9a-f]{64}, CRC good`,
		`Atomic Write Request QN 1 MSN 6 MO 0 24 bytes, whole: 0700000000000000 to ` + where + `, CRC good`,
		`Atomic Write Response QN 3 MSN 6 MO 0 0 bytes, whole, CRC good, answers record`,
		`Terminate QN 2 MSN 1 MO 0 20 bytes, whole: DDP: tagged buffer: base or bounds violation \(1/1/01\), for a Write ` + placeOf(key, 4096) + ` of 9 bytes, CRC good`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("no %s", want)
		}
	}
	for atomic, request := range map[string]string{"FetchAdd": "request 0x1", "CmpSwap": "request 0x2"} {
		f := text.Filter{Operations: []text.Operation{{Opcode: rdmap.AtomicRequest, Atomic: atomic}, {Opcode: rdmap.AtomicResponse, Atomic: atomic}}}
		lines := printedEvents(t, &recorder{records: records}, text.Printer{}, f)
		if strings.Count(lines, "\n") != 2 || strings.Count(lines, request) != 2 || !strings.Contains(lines, atomic) {
			t.Errorf("of %s\n%s", atomic, lines)
		}
	}
	if strings.Contains(out, "wrong") || strings.Contains(out, "CRC bad") || t.Failed() {
		t.Error(out)
	}
}

func placeOf(k verbs.Key, at uint64) string {
	return fmt.Sprintf("STag %#x TO %#x", k.STag, k.Offset+at)
}

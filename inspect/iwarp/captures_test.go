package iwarp_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/capture/records"
	"github.com/dgrdma/dgrdma/inspect/iwarp"
	"github.com/dgrdma/dgrdma/rdmap"
)

const testdata = "../../rdmap/mpa/testdata/"

// eventsOf has a Decoder read records.
func eventsOf(t testing.TB, o iwarp.Options, records []capture.Record, each func(*iwarp.Event)) iwarp.Stats {
	t.Helper()
	d := iwarp.New(o, func(e *iwarp.Event) error { each(e); return nil })
	for i := range records {
		if err := d.Add(i+1, &records[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.End(); err != nil {
		t.Fatal(err)
	}
	return d.Stats()
}

// names are the operations in the words of the other decoder.
var names = map[rdmap.Opcode]string{
	rdmap.Write: "Write", rdmap.ReadRequest: "ReadRequest", rdmap.ReadResponse: "ReadResponse", rdmap.Send: "Send", rdmap.SendInvalidate: "SendInv",
	rdmap.SendSE: "SendSE", rdmap.SendSEInvalidate: "SendSEInv", rdmap.Terminate: "Terminate",
}

// listing says what events are in the words of the other decoder, without what it says of pads and ends.
type listing struct {
	t     testing.TB
	lines []string
	sums  map[string]hash.Hash
	first map[string]iwarp.Event
}

func newListing(t testing.TB) *listing {
	return &listing{t: t, sums: map[string]hash.Hash{}, first: map[string]iwarp.Event{}}
}

func (l *listing) add(e *iwarp.Event) {
	way := "I>R"
	if e.Conn.Known && e.Way != e.Conn.Initiator {
		way = "R>I"
	}
	head := fmt.Sprintf("%d %d:%s ", e.Last.Record, e.Conn.Number, way)
	switch e.Kind {
	case iwarp.SetUp:
		l.lines = append(l.lines, head+setUpLine(e))
	case iwarp.Frame:
		k := fmt.Sprint(e.Conn.Number, way, e.Header.Tagged)
		if e.Segments == 1 {
			l.sums[k], l.first[k] = sha256.New(), *e
		}
		l.sums[k].Write(e.Payload)
		if e.Header.Last {
			first := l.first[k] // of a message of several segments the other decoder has the packet that ends the first one
			l.lines = append(l.lines, fmt.Sprintf("%d %d:%s ", first.Last.Record, e.Conn.Number, way)+l.message(k, e))
		}
	}
}

func setUpLine(e *iwarp.Event) string {
	n := func(b bool) int { return map[bool]int{true: 1}[b] }
	s := &e.SetUp
	kind, words, size := "Req", "", len(s.Private)
	if s.Reply {
		kind = "Rep"
	}
	if s.Enhanced {
		words = fmt.Sprintf(" A=%d B=%d IRD=%d C=%d D=%d ORD=%d", n(s.PeerToPeer), n(s.Ready&4 != 0), s.IRD, n(s.Ready&1 != 0), n(s.Ready&2 != 0), s.ORD)
		size += 4
	}
	private := fmt.Sprintf("%x", s.Private)
	if private == "" {
		private = "-"
	}
	return fmt.Sprintf("MPA %s M=%d CRC=%d R=%d S=%d res=0x%x rev=%d pdlen=%d%s private=%s", kind, n(s.Markers), n(s.CRC), n(s.Reject), n(s.Enhanced), s.Reserved, s.Rev, size, words, private)
}

func (l *listing) message(k string, e *iwarp.Event) string {
	first := l.first[k]
	h := &first.Header
	where := fmt.Sprintf("stag=0x%08x to=0x%x", h.STag, h.TO)
	if !h.Tagged {
		where = fmt.Sprintf("qn=%d msn=%d mo=%d", h.QN, h.MSN, h.MO)
	}
	switch o := &e.Operands; {
	case e.Opcode == rdmap.SendInvalidate || e.Opcode == rdmap.SendSEInvalidate:
		where += fmt.Sprintf(" inv=0x%08x", h.Invalidate)
	case e.Opcode == rdmap.ReadRequest:
		where += fmt.Sprintf(" sink=0x%08x,0x%x size=%d src=0x%08x,0x%x", o.Read.SinkSTag, o.Read.SinkTO, o.Read.Size, o.Read.SourceSTag, o.Read.SourceTO)
	case e.Opcode == rdmap.Terminate:
		f := e.Terminate.Fault
		where += fmt.Sprintf(" swapped:layer=%d,etype=%d code=%d seglen=%d", f.Layer(), f.Type(), f.Code(), e.Terminate.Segment)
	}
	return fmt.Sprintf("%s %s segments=%d len=%d sha256=%x", names[e.Opcode], where, e.Segments, e.Message, l.sums[k].Sum(nil)[:8])
}

var otherLine = regexp.MustCompile(`(?m)^ *(\d+) (?:(\d+):)?(I>R|R>I) (\S+) +(.*)$`)

// listed reads what the other decoder has found.
func listed(t testing.TB, file string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range otherLine.FindAllStringSubmatch(string(text), -1) {
		n := 1
		if m[2] != "" {
			n, _ = strconv.Atoi(m[2])
		}
		if m[4] == "pad" || m[4] == "FIN" || m[4] == "RST" {
			continue
		}
		rest := m[5]
		if m[4] == "Terminate" { // of both readings, the one in siw's order
			code := regexp.MustCompile(`term=..(..)`).FindStringSubmatch(rest)[1]
			c, _ := strconv.ParseUint(code, 16, 8)
			rest = regexp.MustCompile(` term=\S+ rfc:\S+`).ReplaceAllString(rest, "")
			rest = regexp.MustCompile(`,M=\d,D=\d,R=\d`).ReplaceAllString(rest, fmt.Sprintf(" code=%d", c))
			rest = regexp.MustCompile(` hdr=\S+`).ReplaceAllString(rest, "")
		}
		lines = append(lines, fmt.Sprintf("%s %d:%s %s %s", m[1], n, m[3], m[4], rest))
	}
	return lines
}

// TestCaptures reads what two of Linux's siw have said, and finds the messages that another decoder has found, in the same packets. Every CRC is
// right.
func TestCaptures(t *testing.T) {
	files, err := filepath.Glob(testdata + "*.pcap")
	if err != nil || len(files) < 35 {
		t.Fatalf("%d captures, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".pcap"), func(t *testing.T) {
			l := newListing(t)
			stats := eventsOf(t, iwarp.Options{}, records.Of(t, file), func(e *iwarp.Event) {
				l.add(e)
				wantCRC := iwarp.Off
				if on, _ := e.Conn.CRC(); on {
					wantCRC = iwarp.Good
				}
				switch {
				case e.Kind == iwarp.Frame && (e.CRC != wantCRC || e.Fault != nil || e.Wrong != nil || e.WantMSN != 0 || e.Absent != 0):
					t.Errorf("record %d: CRC %v, want %v; %v, %v, %d, %d", e.Last.Record, e.CRC, wantCRC, e.Fault, e.Wrong, e.WantMSN, e.Absent)
				case e.Odd != "" && !strings.Contains(file, "stale"):
					t.Errorf("record %d: %s", e.Last.Record, e.Odd)
				case e.Kind == iwarp.Missing, e.Kind == iwarp.GivenUp, e.Kind == iwarp.Lost, e.Kind == iwarp.Incomplete, e.Kind == iwarp.Begins:
					t.Errorf("record %d: %v %d %s", e.Last.Record, e.Kind, e.N, e.Why)
				}
			})
			if stats.Connections == 0 || stats.Segments == 0 {
				t.Errorf("%+v", stats)
			}
			want := listed(t, strings.TrimSuffix(file, ".pcap")+".txt")
			slices.Sort(want) // which direction is first in a packet's time, is theirs
			got := slices.Clone(l.lines)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("read\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// TestStaleRead (S6): siw answers a Read of nothing with what the Read before it asked for.
func TestStaleRead(t *testing.T) {
	var odd []string
	eventsOf(t, iwarp.Options{}, records.Of(t, testdata+"siw-zero-read-stale.pcap"), func(e *iwarp.Event) {
		if e.Odd != "" {
			odd = append(odd, fmt.Sprint(e.Last.Record, " ", e.Odd, ", ", e.Answers.At.Record))
		}
	})
	if want := []string{"22 has 5 bytes, and the Read asked for 0, 21"}; !slices.Equal(odd, want) {
		t.Errorf("%q, want %q", odd, want)
	}
}

// line is an event without where and when it was captured.
func line(e *iwarp.Event) string {
	s := fmt.Sprintf("%v %+v %v %+v %v %v %d %x %v %d %v %d/%d %v %d %s %d %s", e.Kind, e.SetUp, e.Wrong, e.Header, e.Fault, e.Opcode, e.Length, sha256.Sum256(e.Payload),
		e.CRC, e.Absent, e.NoHeader, e.Segments, e.Message, e.Started, e.WantMSN, e.Odd, e.N, e.Why)
	if e.Terminate != nil {
		s += e.Terminate.Error()
	}
	return s
}

// linesOf are the lines of each direction of each connection.
func linesOf(t testing.TB, records []capture.Record) map[string][]string {
	all := map[string][]string{}
	eventsOf(t, iwarp.Options{}, records, func(e *iwarp.Event) {
		if e.Kind != iwarp.Gone {
			k := e.From() + " > " + e.To()
			all[k] = append(all[k], line(e))
		}
	})
	return all
}

// segmentLike makes a record of another segment in the place of one.
func segmentLike(t testing.TB, r *capture.Record, s *capture.Segment) capture.Record {
	t.Helper()
	const ip = 14
	head := bytes.Clone(r.Data[:len(r.Data)-len(mustSegment(t, r).Data)])
	if r.LinkType != 1 || head[ip] != 0x45 {
		t.Fatalf("link type %d, %x", r.LinkType, head)
	}
	at := ip + 20
	total := len(head) - ip + s.Length
	binary.BigEndian.PutUint16(head[ip+2:], uint16(total))
	binary.BigEndian.PutUint32(head[at+4:], s.Seq)
	binary.BigEndian.PutUint32(head[at+8:], s.Ack)
	head[at+13] = s.Flags
	out := *r
	out.Data = append(head, s.Data...)
	out.Length = len(head) + s.Length
	return out
}

func mustSegment(t testing.TB, r *capture.Record) capture.Segment {
	t.Helper()
	s, ok := r.Segment()
	if !ok {
		t.Fatal("no segment of TCP")
	}
	return s
}

package tcp_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/capture/tcp"
)

// told writes down what a Handler is told.
type told struct{ lines []string }

func (l *told) say(c *tcp.Connection, format string, args ...any) {
	l.lines = append(l.lines, fmt.Sprint(c.Number, " ")+fmt.Sprintf(format, args...))
}
func (l *told) Segment(*tcp.Connection) {}
func (l *told) Data(c *tcp.Connection, w tcp.Way, b []byte, at tcp.Ref) {
	c.Keep()
	l.say(c, "%d %s @%d", w, b, at.Record)
}
func (l *told) Missing(c *tcp.Connection, w tcp.Way, n int, at tcp.Ref) {
	l.say(c, "%d missing %d @%d", w, n, at.Record)
}
func (l *told) Finished(c *tcp.Connection, w tcp.Way, at tcp.Ref) {
	l.say(c, "%d ends @%d", w, at.Record)
}
func (l *told) Reset(c *tcp.Connection, w tcp.Way, at tcp.Ref) {
	l.say(c, "%d resets @%d", w, at.Record)
}
func (l *told) Gone(c *tcp.Connection, why tcp.Why) {
	l.say(c, "gone %s", [...]string{"closed", "reused", "evicted", "ended"}[why])
}

var ends = [2]netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:40001"), netip.MustParseAddrPort("10.0.0.2:7471")}

// segment reads "A 100 SYN", "B 5 data ack=101": sender, sequence number, flags, payload.
func segment(t testing.TB, text string) capture.Segment {
	words := strings.Fields(text)
	s := capture.Segment{Src: ends[0], Dst: ends[1], Window: 1}
	if words[0] == "B" {
		s.Src, s.Dst = s.Dst, s.Src
	}
	if _, err := fmt.Sscan(words[1], &s.Seq); err != nil {
		t.Fatal(err)
	}
	for _, w := range words[2:] {
		flag, known := map[string]uint8{"SYN": capture.SYN, "FIN": capture.FIN, "RST": capture.RST}[w]
		switch {
		case known:
			s.Flags |= flag
		case w == "window=0":
			s.Window = 0
		case strings.HasPrefix(w, "ack="):
			s.Flags |= capture.ACK
			fmt.Sscan(w[4:], &s.Ack)
		case strings.HasPrefix(w, "cut="): // of so many bytes
			fmt.Sscan(w[4:], &s.Length)
		default:
			s.Data = []byte(w)
		}
	}
	s.Length = max(s.Length, len(s.Data))
	return s
}

// TestConnections tells what a handler hears of segments. Sequence numbers wrap in some.
func TestConnections(t *testing.T) {
	const open = "A 99 SYN; B 499 SYN ack=100; "
	patience := strings.Repeat("A 100 ack=500; ", tcp.Patience)
	for _, c := range []struct{ name, segments, want string }{
		{"in order", open + "A 100 abc ack=500; B 500 xyz ack=103; A 103 FIN ack=503; B 503 FIN ack=104; A 104 ack=504",
			"1 0 abc @3; 1 1 xyz @4; 1 0 ends @5; 1 1 ends @6; 1 gone closed"},
		{"wraps", "A 4294967293 SYN; A 4294967294 abc; A 1 def", "1 0 abc @2; 1 0 def @3; 1 gone ended"},
		{"reordered", open + "A 103 def; A 100 abc", "1 0 abc @4; 1 0 def @3; 1 gone ended"},
		{"the beginning last", "A 103 def; A 100 abc; A 99 SYN", "1 0 abc @2; 1 0 def @1; 1 gone ended"},
		{"an answer tells where a direction begins", "B 499 SYN ack=100; A 103 def ack=500; A 99 SYN; A 100 abc ack=500", "1 0 abc @4; 1 0 def @2; 1 gone ended"},
		{"the beginning is missing, of a direction of which the SYN is, too", "B 499 SYN ack=100; A 103 def ack=500", "1 0 missing 3 @2; 1 0 def @2; 1 gone ended"},
		{"an answer to another SYN", "A 50 abc; B 499 SYN ack=100; A 53 def", "1 0 abc @1; 1 0 def @3; 1 gone ended"},
		{"the other side first", "B 500 xyz ack=103; A 100 abc; B 499 SYN ack=100; A 99 SYN", "1 0 abc @2; 1 1 xyz @1; 1 gone ended"},
		{"an answer before its request", open + "B 500 xyz ack=103; A 100 abc ack=500", "1 0 abc @4; 1 1 xyz @3; 1 gone ended"},
		{"overlaps: what came first counts", open + "A 102 CDE; A 100 abcdefg; A 107 h", "1 0 ab @4; 1 0 CDE @3; 1 0 fg @4; 1 0 h @5; 1 gone ended"},
		{"sent again, with more", open + "A 100 abc; A 100 abcdef; A 100 abc", "1 0 abc @3; 1 0 def @4; 1 gone ended"},
		{"a hole that nobody acknowledged", open + "A 103 def; " + patience + "A 100 abc", fmt.Sprintf("1 0 abc @%d; 1 0 def @3; 1 gone ended", 4+tcp.Patience)},
		{"a hole that was acknowledged", open + "A 103 def; B 500 ack=106; " + patience + "A 100 abc", "1 0 missing 3 @3; 1 0 def @3; 1 gone ended"},
		{"a hole at the end", open + "B 500 ack=106; " + patience, "1 0 missing 6 @3; 1 gone ended"},
		{"a hole at the end of the capture", open + "A 100 abc; B 500 ack=106", "1 0 abc @3; 1 0 missing 3 @4; 1 gone ended"},
		{"a hole at the end, and another SYN", open + "A 100 abc; B 500 ack=106; A 7000 SYN; A 7001 new", "1 0 abc @3; 1 0 missing 3 @4; 1 gone reused; 2 0 new @6; 2 gone ended"},
		{"an end that was acknowledged at the end of the capture", open + "A 100 abc; B 500 ack=104", "1 0 abc @3; 1 gone ended"},
		{"a hole in front of the end", open + "A 103 FIN", "1 0 missing 3 @3; 1 0 ends @3; 1 gone ended"},
		{"an answer to what is missing", open + "B 500 xyz ack=106; A 106 def ack=503", "1 0 missing 6 @3; 1 1 xyz @3; 1 0 def @4; 1 gone ended"},
		{"an answer to what follows two holes", open + "A 103 def; A 109 jkl; B 500 xyz ack=112; " + patience, "1 0 missing 3 @3; 1 0 def @3; 1 0 missing 3 @4; 1 0 jkl @4; 1 1 xyz @5; 1 gone ended"},
		{"an answer of the first side to what follows three holes", open + "B 503 uvw ack=100; B 509 xyz ack=100; B 515 rst ack=100; A 100 abc ack=518; " + strings.ReplaceAll(patience, "A 100 ack=500", "B 518 ack=103"),
			"1 1 missing 3 @3; 1 1 uvw @3; 1 1 missing 3 @4; 1 1 xyz @4; 1 1 missing 3 @5; 1 1 rst @5; 1 0 abc @6; 1 gone ended"},
		{"an answer to what follows two holes, at the end", open + "A 103 def; A 109 jkl; B 500 xyz ack=112", "1 0 missing 3 @3; 1 0 def @3; 1 0 missing 3 @4; 1 0 jkl @4; 1 1 xyz @5; 1 gone ended"},
		{"answers to each other that are missing", open + "A 103 def ack=503; B 503 xyz ack=106; " + patience, "1 0 missing 3 @3; 1 1 missing 3 @4; 1 0 def @3; 1 1 xyz @4; 1 gone ended"},
		{"an answer to an end that is missing", open + "A 100 abc; B 500 xyz ack=104", "1 0 abc @3; 1 1 xyz @4; 1 gone ended"},
		{"cut", open + "A 100 abc cut=10; A 110 x", "1 0 abc @3; 1 0 missing 7 @3; 1 0 x @4; 1 gone ended"},
		{"cut, and out of order", open + "A 103 x cut=4; A 107 y; A 100 abc", "1 0 abc @5; 1 0 x @3; 1 0 missing 3 @3; 1 0 y @4; 1 gone ended"},
		{"its beginning was before", "A 103 def; A 106 ghi", "1 0 def @1; 1 0 ghi @2; 1 gone ended"},
		{"a probe whether the peer is there", open + "A 100 abc; A 102 c; A 103 d", "1 0 abc @3; 1 0 d @5; 1 gone ended"},
		{"reset", open + "A 100 abc; B 500 RST", "1 0 abc @3; 1 1 resets @4; 1 gone ended"},
		{"reused", open + "A 100 abc; A 7000 SYN; A 7001 new", "1 0 abc @3; 1 gone reused; 2 0 new @5; 2 gone ended"},
		{"SYN, again", open + "A 100 abc; A 99 SYN; A 103 d", "1 0 abc @3; 1 0 d @5; 1 gone ended"},
		{"reused after its end", open + "A 100 FIN; B 500 FIN; A 7000 SYN; A 7001 new", "1 0 ends @3; 1 1 ends @4; 1 gone closed; 2 0 new @6; 2 gone ended"},
		{"numbers from nowhere", open + "A 1000000000 abc; A 100 x", "1 0 x @4; 1 gone ended"},
	} {
		l := &told{}
		all := tcp.New(l)
		for i, text := range strings.Split(strings.TrimSuffix(c.segments, "; "), "; ") {
			s := segment(t, text)
			all.Add(&s, tcp.Ref{Record: i + 1})
		}
		all.End()
		if got := strings.Join(l.lines, "; "); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

// TestDecidesSoon: a connection whose first segment is not in the capture is told of when a few segments follow on each other, in one or
// both directions; a disorder has it wait, and after a while it does so no longer.
func TestDecidesSoon(t *testing.T) {
	for _, c := range []struct {
		name, segments, want string
		told                 int // when the first is
	}{
		{"in order", "A 103 def ack=500; B 500 xyz ack=106; A 106 ghi ack=503; B 503 ack=109; A 109 j ack=503; A 110 k ack=503; B 503 u ack=111; B 504 v ack=111; A 111 l ack=505; A 112 m ack=505; B 505 w ack=112",
			"1 0 def @1; 1 1 xyz @2; 1 0 ghi @3; 1 0 j @5; 1 0 k @6; 1 1 u @7; 1 1 v @8; 1 0 l @9; 1 0 m @10; 1 1 w @11; 1 gone ended", 10},
		{"one side alone", "A 100 a; A 101 b; A 102 c; A 103 d; A 104 e; A 105 f; A 106 g; A 107 h; A 108 i; A 109 j",
			"1 0 a @1; 1 0 b @2; 1 0 c @3; 1 0 d @4; 1 0 e @5; 1 0 f @6; 1 0 g @7; 1 0 h @8; 1 0 i @9; 1 0 j @10; 1 gone ended", 10},
		{"disorder, before", "A 102 c; A 103 d; A 104 e; A 105 f; A 106 g; A 107 h; A 100 ab; A 108 i; A 109 j; A 110 k",
			"1 0 ab @7; 1 0 c @1; 1 0 d @2; 1 0 e @3; 1 0 f @4; 1 0 g @5; 1 0 h @6; 1 0 i @8; 1 0 j @9; 1 0 k @10; 1 gone ended", 11},
	} {
		l := &told{}
		all := tcp.New(l)
		at := 0
		for i, text := range strings.Split(c.segments, "; ") {
			s := segment(t, text)
			all.Add(&s, tcp.Ref{Record: i + 1})
			if at == 0 && len(l.lines) > 0 {
				at = i + 1
			}
		}
		all.End()
		if at == 0 {
			at = strings.Count(c.segments, ";") + 2
		}
		if got := strings.Join(l.lines, "; "); got != c.want || at != c.told {
			t.Errorf("%s: from segment %d on\n%s\nwant, from %d on\n%s", c.name, at, got, c.told, c.want)
		}
	}
	l := &told{}
	all := tcp.New(l)
	begin := time.Unix(1e9, 0)
	one := segment(t, "A 103 def ack=500")
	all.Add(&one, tcp.Ref{Record: 1, Time: begin})
	for i, after := range []time.Duration{tcp.PatientFor - 1, tcp.PatientFor} {
		other := capture.Segment{Src: netip.MustParseAddrPort("10.0.0.3:9"), Dst: ends[1], Flags: capture.SYN}
		all.Add(&other, tcp.Ref{Record: 2 + i, Time: begin.Add(after)})
		if want := []string{"1 0 def @1"}[:i]; !slices.Equal(l.lines, want) {
			t.Errorf("%v after: %q, want %q", after, l.lines, want)
		}
	}
}

// TestEndsInOrder: what waits of several connections when the capture ends is told in its order.
func TestEndsInOrder(t *testing.T) {
	l := &told{}
	all := tcp.New(l)
	for i, text := range []string{"A 100 a", "C 100 b", "B 500 c ack=101", "C 103 e", "A 101 d ack=501", "C 104 FIN", "A 102 f"} {
		s := segment(t, strings.Replace(text, "C", "A", 1))
		if text[0] == 'C' {
			s.Src = netip.MustParseAddrPort("10.0.0.3:9")
		}
		all.Add(&s, tcp.Ref{Record: i + 1})
	}
	all.End()
	want := "1 0 a @1; 2 0 b @2; 1 1 c @3; 2 0 missing 2 @4; 2 0 e @4; 1 0 d @5; 2 0 ends @6; 1 0 f @7; 1 gone ended; 2 gone ended"
	if got := strings.Join(l.lines, "; "); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// TestCounts: what was sent again and came late is counted, with the first record.
func TestCounts(t *testing.T) {
	all := tcp.New(&told{})
	var c *tcp.Connection
	for i, text := range []string{"A 99 SYN", "A 103 def", "A 100 abc", "A 100 abc", "A 103 def", "A 106 window=0", "A 105 f", "A 106 g"} {
		s := segment(t, text)
		c = all.Add(&s, tcp.Ref{Record: i + 1})
	}
	h := &c.Halves[0]
	if h.Segments != 6 || h.Bytes != 7 || h.Resent != 2 || h.FirstResent != 4 || h.Late != 1 || h.FirstLate != 3 || h.ZeroWindows != 1 || h.LongestZeroAt != 6 || !h.Begun() || !c.Begun {
		t.Errorf("%+v", *h)
	}
}

// TestZeroWindows checks for how long a side allows nothing: the longest time counts, until it allows something, or as far as the capture goes.
func TestZeroWindows(t *testing.T) {
	for name, c := range map[string]struct {
		segments []string // one each millisecond
		n, at    int
		longest  time.Duration
	}{
		"never":                        {[]string{"A 100 a", "B 500 ack=101"}, 0, 0, 0},
		"for a moment":                 {[]string{"A 100 a", "B 500 window=0", "B 500 ack=101"}, 1, 2, time.Millisecond},
		"the second time":              {[]string{"B 500 window=0", "B 500 ack=101", "B 500 window=0", "A 100 a", "B 500 window=0", "B 500 ack=101"}, 3, 3, 3 * time.Millisecond},
		"until the capture ends":       {[]string{"B 500 window=0", "A 100 a", "A 101 a"}, 1, 1, 2 * time.Millisecond},
		"in the last segment":          {[]string{"A 100 a", "B 500 window=0"}, 1, 2, 0},
		"until the connection is over": {[]string{"B 500 window=0", "B 500 RST", "A 100 a"}, 1, 1, time.Millisecond},
	} {
		all := tcp.New(&told{})
		var k *tcp.Connection
		for i, text := range c.segments {
			s := segment(t, text)
			k = all.Add(&s, tcp.Ref{Record: i + 1, Time: time.Unix(1e9, int64(i)*1e6)})
		}
		h := &k.Halves[0]
		if k.Ends[0] == ends[0] {
			h = &k.Halves[1]
		}
		if h.ZeroWindows != c.n || h.LongestZero != c.longest || h.LongestZeroAt != c.at {
			t.Errorf("%s: %d times, for %v from record %d on; want %d, %v, %d", name, h.ZeroWindows, h.LongestZero, h.LongestZeroAt, c.n, c.longest, c.at)
		}
	}
}

// ignorant has no interest in connections.
type ignorant struct{ told }

func (l *ignorant) Data(c *tcp.Connection, w tcp.Way, b []byte, at tcp.Ref) {
	l.told.Data(c, w, b, at)
	c.Ignore()
}

func TestIgnored(t *testing.T) {
	l := &ignorant{}
	all := tcp.New(l)
	for i, text := range []string{"A 99 SYN", "A 103 def", "A 100 abc", "B 500 xyz", "A 106 ghi"} {
		s := segment(t, text)
		all.Add(&s, tcp.Ref{Record: i + 1})
	}
	all.End()
	if want := []string{"1 0 abc @3"}; !slices.Equal(l.lines, want) {
		t.Errorf("%q, want %q", l.lines, want)
	}
}

// TestBounds: what waits behind a hole is bounded, for each direction and in all.
func TestBounds(t *testing.T) {
	l := &told{}
	all := tcp.New(l)
	add := func(text string) {
		s := segment(t, text)
		all.Add(&s, tcp.Ref{Record: 1})
	}
	add("A 99 SYN")
	for i := range tcp.MostPieces {
		add(fmt.Sprint("A ", 101+2*i, " x"))
	}
	if len(l.lines) != 0 {
		t.Fatalf("%q", l.lines[0])
	}
	add(fmt.Sprint("A ", 101+2*tcp.MostPieces, " x"))
	if len(l.lines) != 2 || l.lines[0] != "1 0 missing 1 @1" {
		t.Errorf("%q", l.lines)
	}
}

// keeper keeps the first connection alone.
type keeper struct{ told }

func (l *keeper) Data(c *tcp.Connection, w tcp.Way, b []byte, at tcp.Ref) {
	if c.Number == 1 {
		c.Keep()
		l.say(c, "%d %s @%d", w, b, at.Record)
	}
}

// TestStrangersGiveWay: where too much waits in all, it is the strangers' that is let go of, the oldest first; a connection that is kept
// waits for what is missing.
func TestStrangersGiveWay(t *testing.T) {
	l := &keeper{}
	all := tcp.New(l)
	for i, text := range []string{"A 99 SYN", "A 100 abc", "A 106 ghi"} {
		s := segment(t, text)
		all.Add(&s, tcp.Ref{Record: i + 1})
	}
	const size = 60_000
	strangers := tcp.MostInAll/size + 10
	data := make([]byte, size)
	for i := range strangers { // whose beginning is not in the capture
		src := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), 9)
		all.Add(&capture.Segment{Src: src, Dst: ends[1], Seq: 1, Window: 1, Data: data, Length: size}, tcp.Ref{Record: 4})
	}
	gone := slices.Clone(l.lines[1:])
	s := segment(t, "A 103 def")
	all.Add(&s, tcp.Ref{Record: 5})
	if got, want := strings.Join(l.lines, "; "), "1 0 abc @2; "+strings.Join(gone, "; ")+"; 1 0 def @5; 1 0 ghi @3"; got != want || len(gone) == 0 {
		t.Fatalf("%s\nwant\n%s", got, want)
	}
	for i, line := range gone {
		if want := fmt.Sprint(i+2, " gone evicted"); line != want {
			t.Errorf("%s, want %s", line, want)
		}
	}
	if least := 10 - 2; len(gone) < least || len(gone) > least+10 {
		t.Errorf("%d of %d strangers gave way", len(gone), strangers)
	}
}

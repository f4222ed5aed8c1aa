package inspect

import (
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/capture/tcp"
	"github.com/dgrdma/dgrdma/inspect/iwarp"
	"github.com/dgrdma/dgrdma/rdmap"
	"github.com/dgrdma/dgrdma/rdmap/mpa"
)

func TestSeriesMergesInPairs(t *testing.T) {
	s := series{from: time.Hour, width: firstWidth}
	const n = 100_000
	for i := range n {
		at := time.Hour + time.Duration(i)*3*time.Microsecond
		b := s.at(at)
		b.Frames++
		b.Data += 10
		s.inFlight(at, i%7)
	}
	bins := s.all()
	frames, data := 0, int64(0)
	for i := range bins {
		frames += bins[i].Frames
		data += bins[i].Data
		if bins[i].InFlight != 6 {
			t.Errorf("bin %d: %d in flight, want 6", i, bins[i].InFlight)
		}
	}
	if frames != n || data != 10*n || len(bins) <= maxBins/2 || len(bins) > maxBins {
		t.Errorf("%d frames and %d bytes in %d bins", frames, data, len(bins))
	}
	if covered := s.width * time.Duration(len(bins)); covered < 3*n*time.Microsecond || covered-s.width > 3*n*time.Microsecond {
		t.Errorf("bins of %v cover %v", s.width, covered)
	}
}

func TestSeriesBetweenEvents(t *testing.T) {
	s := series{from: time.Hour, width: firstWidth}
	s.inFlight(0, 5) // a time that went backwards
	s.inFlight(time.Hour+time.Microsecond, 3)
	s.inFlight(time.Hour+4*time.Microsecond, 0)
	s.at(time.Hour + 6*time.Microsecond)
	want := []int{5, 5, 3, 3, 3, 0, 0}
	for i, b := range s.all() {
		if b.InFlight != want[i] {
			t.Errorf("bin %d: %d, want %d", i, b.InFlight, want[i])
		}
	}
}

func TestThinnedIsEven(t *testing.T) {
	k := thinned[int]{limit: 100}
	for i := range 12_345 {
		k.add(i)
		if len(k.all) > 100 {
			t.Fatalf("%d kept", len(k.all))
		}
	}
	for i, v := range k.all {
		if v != i*k.stride {
			t.Fatalf("the %dth is %d, with every %dth kept", i, v, k.stride)
		}
	}
	if len(k.all) <= 50 || k.stride != 128 {
		t.Errorf("%d kept, every %dth", len(k.all), k.stride)
	}
}

func TestTopKeepsTheLargest(t *testing.T) {
	k := top[int]{n: 3, less: func(a, b *int) bool { return *a < *b }}
	for _, v := range []int{5, 1, 9, 9, 3, 7} {
		k.add(v)
	}
	sum := 0
	for _, v := range k.all {
		sum += v
	}
	if len(k.all) != 3 || sum != 9+9+7 {
		t.Errorf("%v", k.all)
	}
}

func TestHistogramBuckets(t *testing.T) {
	for i := range histogramBuckets {
		from, to := bucketFrom(i), bucketFrom(i+1)
		if bucketOf(from) != i || bucketOf(to-1) != i || from >= to {
			t.Fatalf("bucket %d: %v to %v, which are in %d and %d", i, from, to, bucketOf(from), bucketOf(to-1))
		}
	}
	var h histogram
	for i := 1; i <= 1000; i++ {
		h.add(time.Duration(i) * time.Millisecond)
	}
	h.add(-time.Second)
	h.add(time.Hour)
	r := h.report()
	if r.Count != 1002 || r.Min != 0 || r.Max != time.Hour || !near(r.P50, 500*time.Millisecond) || !near(r.P90, 900*time.Millisecond) {
		t.Errorf("%+v", r)
	}
	n := 0
	for _, b := range r.Buckets {
		n += b.Count
	}
	if n != r.Count {
		t.Errorf("%d in buckets, want %d", n, r.Count)
	}
}

func near(a, b time.Duration) bool { return a > b*8/10 && a < b*12/10 }

func TestWording(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{Span(0), "0 s"}, {Span(999), "999 ns"}, {Span(1500), "1.5 µs"}, {Span(-12340 * time.Microsecond), "-12.3 ms"},
		{Span(61 * time.Second), "61 s"}, {Span(time.Hour), "1h0m0s"},
		{Size(0), "0 B"}, {Size(1456), "1.46 KB"}, {Size(3.4e9), "3.4 GB"}, {Size(5e12), "5 TB"},
		{Grouped(-1234567), "-1,234,567"}, {Grouped(12), "12"}, {count(1, "copy"), "1 copy"}, {count(2, "copy"), "2 copies"},
		{percent(1, 3), "33.3 %"}, {percent(1, 30_000), "less than 0.01 %"}, {percent(0, 0), "0 %"}, {times(1), "once"}, {times(2), "twice"}, {times(1000), "1,000 times"},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}

func TestWindowGrowsAndStaysBounded(t *testing.T) {
	a := New()
	f := a.newFlow(flowKey{srcID: 1, dstID: 2}, &seen{})
	f.begin(100)
	f.anyAcked = true
	f.ids.at(100).state = slotMessage
	f.ids.at(100).id = 100
	f.inFlight = 1
	for range 10 * mostSlots / maxJump {
		f.advance(f.ids.newest+maxJump, &seen{record: 1})
	}
	if len(f.ids.slots) != mostSlots || a.slots != mostSlots-leastSlots {
		t.Errorf("%d slots, %d of the budget", len(f.ids.slots), a.slots)
	}
	if want := 9 * mostSlots; f.missing != want {
		t.Errorf("%d missing, want %d", f.missing, want)
	}
}

// TestPrivateDataIsQuoted: words are there to their end, and bytes say where they are cut.
func TestPrivateDataIsQuoted(t *testing.T) {
	long := "this is ping --serve of dgrdmacat, which takes its own clients only, and says so at some length"
	for _, c := range []struct{ private, want string }{
		{"No, thanks", `"No, thanks"`},
		{long, `"` + long + `"`},
		{"\x00\x01", "0001"},
		{strings.Repeat("\xab", mostHex), strings.Repeat("ab", mostHex)},
		{strings.Repeat("\xab", mostHex+1), strings.Repeat("ab", mostHex) + "..."},
	} {
		if got := quoted([]byte(c.private)); got != c.want {
			t.Errorf("%q is quoted as %s, not as %s", c.private, got, c.want)
		}
	}
}

// TestOddOperationsHaveTheirArticle: what is wrong with a frame is said in a sentence.
func TestOddOperationsHaveTheirArticle(t *testing.T) {
	for opcode, want := range map[rdmap.Opcode]string{rdmap.Write: "a Write is odd", rdmap.AtomicRequest: "an Atomic Request is odd"} {
		if got := wrongness(&iwarp.Event{Opcode: opcode, Odd: "is odd"}); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

// TestManyConnections checks that a report tells of so many connections of iWARP and counts the others, and keeps nothing of them.
func TestManyConnections(t *testing.T) {
	a := New()
	for i := range mostConnections + 3 {
		c := new(iwarp.Connection)
		c.TCP = new(tcp.Connection)
		a.Event(&iwarp.Event{Kind: iwarp.SetUp, Conn: c, SetUp: mpa.SetUp{}, Last: tcp.Ref{Record: i + 1}})
	}
	if len(a.streams) != mostConnections || len(a.connections) != mostConnections {
		t.Errorf("%d and %d connections are kept", len(a.streams), len(a.connections))
	}
	r := a.Report()
	if n := len(r.Connections); n != mostConnections {
		t.Errorf("%d connections", n)
	}
	for _, f := range r.Findings {
		if strings.HasPrefix(f.Text, "3 further connections of iWARP are not told of") {
			return
		}
	}
	t.Errorf("%+v", r.Findings)
}

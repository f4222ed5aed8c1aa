package emulator

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/transport/bottleneck"
)

const ms = time.Millisecond

// udp is a frame of a datagram between two hosts of 10.0.0.0, with IP packets of that size.
func udp(from, to byte, port uint16, size int) []byte {
	f := make([]byte, etherHeader+size)
	binary.BigEndian.PutUint16(f[12:], 0x0800)
	p := f[etherHeader:]
	p[0], p[9] = 0x45, 17
	copy(p[12:], []byte{10, 0, 0, from, 10, 0, 0, to})
	binary.BigEndian.PutUint16(p[20:], port)
	binary.BigEndian.PutUint16(p[22:], 7)
	return f
}

// arrivals has all arrive until a time, and returns when.
func arrivals(d *direction, until time.Duration) (at []time.Duration) {
	for {
		due, ok := d.due()
		if !ok || due > until {
			return at
		}
		for p := d.next(due); p != nil; p = d.next(due) {
			at = append(at, due)
			d.recycle(p)
		}
	}
}

func at8Mbit(queue int) bottleneck.Config { return bottleneck.Config{Rate: 8_000_000, Queue: queue} }

// TestRateAndDelay checks that packets leave at the rate, and arrive half a round trip later.
func TestRateAndDelay(t *testing.T) {
	d := newDirection(&Config{Bottleneck: at8Mbit(10_000), Trip: 40 * ms}, 0)
	for range 3 {
		d.enter(5*ms, udp(1, 2, 1, 1000))
	}
	if got := arrivals(d, time.Second); !slices.Equal(got, []time.Duration{26 * ms, 27 * ms, 28 * ms}) {
		t.Errorf("arrived at %v", got)
	}
}

// TestTrips checks that packets of some addresses take another round trip, in both directions.
func TestTrips(t *testing.T) {
	for _, f := range [][]byte{udp(3, 2, 1, 1000), udp(2, 3, 1, 1000)} {
		d := newDirection(&Config{Bottleneck: at8Mbit(10_000), Trip: 40 * ms, Trips: map[netip.Addr]time.Duration{netip.MustParseAddr("10.0.0.3"): 200 * ms}}, 0)
		d.enter(0, f)
		d.enter(0, udp(1, 2, 1, 1000))
		if got := arrivals(d, time.Second); !slices.Equal(got, []time.Duration{22 * ms, 101 * ms}) {
			t.Errorf("arrived at %v", got)
		}
	}
}

// TestLateTimes checks that a packet whose time is before another's comes right after that.
func TestLateTimes(t *testing.T) {
	d := newDirection(&Config{Bottleneck: at8Mbit(10_000)}, 0)
	d.enter(10*ms, udp(1, 2, 1, 1000))
	d.enter(5*ms, udp(1, 2, 1, 1000))
	if got := arrivals(d, time.Second); !slices.Equal(got, []time.Duration{11 * ms, 12 * ms}) {
		t.Errorf("arrived at %v", got)
	}
}

// TestLosses checks the share of single and of bursty losses, and that the seed decides.
func TestLosses(t *testing.T) {
	run := func(cfg Config) (lost uint64, at []time.Duration) {
		cfg.Bottleneck = at8Mbit(10_000)
		d := newDirection(&cfg, 0)
		for i := range 10_000 {
			d.enter(time.Duration(i)*ms, udp(1, 2, 1, 1000))
			at = append(at, arrivals(d, time.Duration(i)*ms)...)
		}
		return d.sum().Lost, at
	}
	single, one := run(Config{Loss: 0.1})
	_, same := run(Config{Loss: 0.1})
	_, other := run(Config{Loss: 0.1, Seed: 1})
	if single < 800 || single > 1200 {
		t.Errorf("%d of 10000 lost, at 10 %%", single)
	}
	if !slices.Equal(one, same) || slices.Equal(one, other) {
		t.Error("losses do not follow the seed")
	}
	if bursts, _ := run(Config{Bursts: bottleneck.Bursts(0.1, 5)}); bursts < 700 || bursts > 1300 {
		t.Errorf("%d of 10000 lost in bursts, at 10 %%", bursts)
	}
}

// TestJitterAndReorder checks that jitter keeps the order of packets, and that Reorder does not.
func TestJitterAndReorder(t *testing.T) {
	run := func(cfg Config) (overtaken int, latest time.Duration) {
		cfg.Bottleneck = bottleneck.Config{Rate: 1_000_000_000, Queue: 10_000}
		d := newDirection(&cfg, 0)
		newest := uint16(0)
		for i := range 1000 {
			sent := time.Duration(i) * ms
			d.enter(sent, udp(1, 2, uint16(1+i), 100))
		}
		for {
			due, ok := d.due()
			if !ok {
				return overtaken, latest
			}
			for p := d.next(due); p != nil; p = d.next(due) {
				n := keyOf(p.frame).From.Port()
				if n < newest {
					overtaken++
				}
				newest = max(newest, n)
				latest = max(latest, due-time.Duration(n-1)*ms)
			}
		}
	}
	if n, latest := run(Config{Jitter: 5 * ms}); n > 0 || latest < 4*ms || latest > 5*ms+ms/10 {
		t.Errorf("jitter: %d overtaken, at most %v late", n, latest)
	}
	if n, latest := run(Config{Reorder: 0.1, ReorderBy: 5 * ms}); n < 60 || n > 140 || latest > 5*ms+ms/10 {
		t.Errorf("reordering: %d of 1000 overtaken, at most %v late", n, latest)
	}
}

// TestFlows checks that flows are told apart, those with most bytes first, and that beyond a number they count together.
func TestFlows(t *testing.T) {
	d := newDirection(&Config{Bottleneck: bottleneck.Config{Rate: 8_000_000_000, Queue: 1 << 30}}, 0)
	for i := range mostFlows + 10 {
		d.enter(0, udp(1, 2, uint16(1+i), 1000))
	}
	d.enter(0, udp(1, 2, 5, 1000))
	arrivals(d, time.Second)
	s := d.sum()
	if len(s.Flows) != mostFlows+1 || s.Frames != mostFlows+11 {
		t.Fatalf("%d flows, %+v", len(s.Flows), s.Counts)
	}
	if f := s.Flows[0]; f.Frames != 10 || (f.FlowKey != FlowKey{}) {
		t.Errorf("first %+v, want that of the others", f)
	}
	if f := s.Flows[1]; f.Frames != 2 || f.From != netip.MustParseAddrPort("10.0.0.1:5") || f.To != netip.MustParseAddrPort("10.0.0.2:7") {
		t.Errorf("second %+v", f)
	}
}

package simnet_test

import (
	"bytes"
	"math/bits"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

const ms = time.Millisecond

func TestLatencyAndReplacement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, simnet.Link{Latency: 10 * ms})
		p.send(0, 1, 8)
		p.net.Link(addrA, addrB, simnet.Link{Latency: 4 * ms})
		p.send(1, 1, 8) // over the new link, overtakes
		p.wantArrivals(arrival{1, 4 * ms}, arrival{0, 10 * ms})
		p.wantStats(simnet.LinkStats{Sent: 2, Delivered: 2, Reordered: 1})
	})
}

func TestJitterKeepsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, simnet.Link{Latency: 10 * ms, Jitter: 10 * ms})
		distinct := make(map[time.Duration]bool)
		for i := range 200 {
			p.send(i, 1, 8)
			if i%2 == 0 { // also two at a time
				continue
			}
			for j, got := range p.receive(2) {
				if got.number != i-1+j {
					t.Fatalf("got %d, want %d", got.number, i-1+j)
				}
				if got.after < 10*ms || got.after >= 20*ms {
					t.Fatalf("%d took %v", got.number, got.after)
				}
				distinct[got.after] = true
			}
		}
		if len(distinct) < 100 {
			t.Errorf("only %d different times", len(distinct))
		}
		p.wantStats(simnet.LinkStats{Sent: 200, Delivered: 200})
	})
}

func TestRateAndTailDrop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// 1000 bytes take 1 ms.
		p := newPair(t, 1, simnet.Link{Rate: 8_000_000, Queue: 3, Latency: 5 * ms})
		p.send(0, 5, 1000)
		p.wantStats(simnet.LinkStats{Sent: 5, TailDropped: 2, InFlight: 3})
		p.wantArrivals(arrival{0, 6 * ms}, arrival{1, 7 * ms}, arrival{2, 8 * ms})

		p.send(5, 1, 1000)
		time.Sleep(ms / 2)
		p.send(6, 1, 500) // waits half a millisecond, takes another half
		p.wantArrivals(arrival{5, 5*ms + ms/2}, arrival{6, 6 * ms})

		p.send(7, 3, 1000) // full
		time.Sleep(ms)     // one has left
		p.send(10, 2, 1000)
		p.wantArrivals(arrival{7, 5 * ms}, arrival{8, 6 * ms}, arrival{9, 7 * ms}, arrival{10, 8 * ms})
		p.wantStats(simnet.LinkStats{Sent: 12, Delivered: 9, TailDropped: 3})
	})
}

func TestRateSustains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, simnet.Link{Rate: 1_000_000_000})
		p.send(0, 10_000, 1250) // 10 us each
		last := p.receive(10_000)[9_999]
		if last.after != 100*ms {
			t.Errorf("100 Mbit at 1 Gbit/s took %v", last.after)
		}
	})
}

func TestDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, simnet.Link{Latency: ms})
		p.send(0, 1, 8)
		p.net.Link(addrA, addrB, simnet.Link{Latency: ms, Down: true})
		p.send(1, 3, 8)
		p.net.Link(addrA, addrB, simnet.Link{Latency: ms})
		p.send(4, 1, 8)
		p.wantArrivals(arrival{0, ms}, arrival{4, ms})
		p.wantStats(simnet.LinkStats{Sent: 5, Delivered: 2, Down: 3})
	})
}

// The bounds of statistical tests are five standard deviations.
func within(t *testing.T, what string, got uint64, n, p float64) {
	t.Helper()
	mean, variance := n*p, n*p*(1-p)
	if d := float64(got) - mean; d*d > 25*variance {
		t.Errorf("%s: %d of %v, want about %v", what, got, n, mean)
	}
}

func TestFaultRates(t *testing.T) {
	const count = 20_000
	for name, tc := range map[string]struct {
		link    simnet.Link
		p       float64
		counter func(simnet.LinkStats) uint64
		arrive  func(hit uint64) uint64
	}{
		"Loss": {simnet.Link{Loss: 0.1}, 0.1,
			func(s simnet.LinkStats) uint64 { return s.Lost },
			func(hit uint64) uint64 { return count - hit }},
		"Duplicate": {simnet.Link{Duplicate: 0.2}, 0.2,
			func(s simnet.LinkStats) uint64 { return s.Duplicated },
			func(hit uint64) uint64 { return count + hit }},
		"Corrupt": {simnet.Link{Corrupt: 0.05}, 0.05,
			func(s simnet.LinkStats) uint64 { return s.Corrupted },
			func(uint64) uint64 { return count }},
		"DropCorrupt": {simnet.Link{Corrupt: 0.05, DropCorrupt: true}, 0.05,
			func(s simnet.LinkStats) uint64 { return s.CorruptDropped },
			func(hit uint64) uint64 { return count - hit }},
		"Damage": {simnet.Link{Damage: 0.05}, 0.05,
			func(s simnet.LinkStats) uint64 { return s.Damaged },
			func(uint64) uint64 { return count }},
		"HoldBack": {simnet.Link{HoldBack: 0.3}, 0.3,
			func(s simnet.LinkStats) uint64 { return s.Held },
			func(hit uint64) uint64 { return count + hit }},
		"AllLost": {simnet.Link{Loss: 1}, 1,
			func(s simnet.LinkStats) uint64 { return s.Lost },
			func(uint64) uint64 { return 0 }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t, 7, tc.link)
				p.send(0, count, 8)
				time.Sleep(time.Hour)
				s := p.stats()
				hit := tc.counter(s)
				within(t, name, hit, count, tc.p)
				if s.Delivered != tc.arrive(hit) || s.InFlight != 0 {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

func TestLossInBursts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const burst, runs = 44, 2000
		p := newPair(t, 3, simnet.Link{Loss: 0.1, Burst: burst})
		p.send(0, burst*runs, 8)
		lost := p.stats().Lost
		if lost%burst != 0 {
			t.Errorf("%d lost, not in whole bursts", lost)
		}
		within(t, "bursts", lost/burst, runs, 0.1)
		next := 0
		for _, got := range p.receive(int(p.stats().Delivered)) {
			if gap := got.number - next; gap%burst != 0 {
				t.Fatalf("%d lost before %d", gap, got.number)
			}
			next = got.number + 1
		}
	})
}

func TestReorder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const count = 2000
		p := newPair(t, 5, simnet.Link{Reorder: 0.1, ReorderBy: 5 * ms, Latency: ms})
		go func() {
			for i := range count {
				p.send(i, 1, 8)
				time.Sleep(ms)
			}
		}()
		overtaken, newest := 0, -1
		for _, got := range p.receive(count) {
			if got.number < newest {
				overtaken++
			}
			newest = max(newest, got.number)
		}
		within(t, "reordered", uint64(overtaken), count, 0.1)
		if got := p.stats().Reordered; got != uint64(overtaken) {
			t.Errorf("counted %d, seen %d", got, overtaken)
		}
	})
}

func TestHeldCopyOutlivesLostOriginal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, simnet.Link{Loss: 1, HoldBack: 1, HoldFor: time.Hour})
		p.send(9, 1, 8)
		p.wantArrivals(arrival{9, time.Hour})
		p.wantStats(simnet.LinkStats{Sent: 1, Held: 1, Lost: 1, Delivered: 1})
	})
}

func TestCorruptFlipsOneBitOfTheCopy(t *testing.T) {
	p := newPair(t, 1, simnet.Link{Corrupt: 1})
	frame := bytes.Repeat([]byte{0x5a}, 100)
	dst := make([]transport.Datagram, 1)
	places := make(map[int]bool)
	for range 50 {
		o := outgoing(p.a, addrB, frame)
		if _, err := p.a.Send([]transport.Outgoing{o}); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(slices.Concat(o.Buf[2:], o.Rest, o.Tail), frame) {
			t.Fatal("the sender's buffer was changed")
		}
		if _, err := p.b.Recv(dst, transport.Forever); err != nil {
			t.Fatal(err)
		}
		wrong := 0
		for i, b := range dst[0].Data {
			if n := bits.OnesCount8(b ^ frame[i]); n > 0 {
				wrong += n
				places[i] = true
			}
		}
		if wrong != 1 {
			t.Fatalf("%d bits wrong", wrong)
		}
	}
	if len(places) < 20 {
		t.Errorf("only %d different bytes hit", len(places))
	}
	p.send(0, 1, 0) // an empty frame has no bit to flip
}

func TestScript(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		verdicts := []simnet.Verdict{
			simnet.Deliver(),
			simnet.Drop(),
			simnet.Delay(5 * ms),
			simnet.Duplicate(),
			simnet.Hold(time.Second),
			simnet.Refuse(),
			{Copies: 2, Delay: ms},
			{Drop: true, Hold: 2 * time.Second},
		}
		script := func(i int, b []byte) simnet.Verdict {
			if int(b[0]) != i {
				t.Errorf("datagram %d is %d", i, b[0])
			}
			return verdicts[i]
		}
		p := newPair(t, 1, simnet.Link{Script: script})
		p.send(0, len(verdicts), 8)
		p.wantArrivals(
			arrival{0, 0}, arrival{3, 0}, arrival{3, 0}, arrival{4, 0},
			arrival{6, ms}, arrival{6, ms}, arrival{6, ms},
			arrival{2, 5 * ms},
			arrival{4, time.Second},
			arrival{7, 2 * time.Second})
		p.wantStats(simnet.LinkStats{
			Sent: 8, Duplicated: 3, Held: 2, Delivered: 10, Reordered: 1, Lost: 2, Refused: 1,
		})
		if got := p.a.Stats().SendDrops; got != 1 {
			t.Errorf("SendDrops %d", got)
		}
		p.net.Link(addrA, addrB, simnet.Link{Script: script})
		p.send(0, 1, 8) // counts from 0 again
		p.wantArrivals(arrival{0, 0})
	})
}

func TestScriptCorrupts(t *testing.T) {
	p := newPair(t, 1, simnet.Link{Script: func(i int, b []byte) simnet.Verdict {
		if i == 0 {
			b[0] = 77 // by hand
			return simnet.Deliver()
		}
		return simnet.Corrupt()
	}})
	p.send(0, 2, 8)
	if got := p.receive(2); got[0].number != 77 {
		t.Errorf("got %d", got[0].number)
	}
	p.wantStats(simnet.LinkStats{Sent: 2, Delivered: 2, Corrupted: 1})
}

// TestLinkCarriesNoMore: frames that are longer than a link carries are lost, and nobody is told.
func TestLinkCarriesNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		a, b := n.Attach(simnet.Addr(1), simnet.Config{MayNarrow: true}), n.Attach(simnet.Addr(2), simnet.Config{})
		if !a.MayNarrow(simnet.Addr(2)) || b.MayNarrow(simnet.Addr(1)) {
			t.Error("a way may be narrow without being said to, or not")
		}
		n.Link(simnet.Addr(1), simnet.Addr(2), simnet.Link{MTU: 100})
		to := simnet.Addr(2)
		var batch []transport.Outgoing
		for _, size := range []int{100, 101, 99} {
			batch = append(batch, transport.Outgoing{To: &to, Buf: make([]byte, simnet.DefaultHeadroom+size)})
		}
		if sent, err := a.Send(batch); sent != 3 || err != nil {
			t.Fatal(sent, err)
		}
		time.Sleep(time.Second)
		in := make([]transport.Datagram, 4)
		if got, err := b.Recv(in, 0); got != 2 || err != nil || len(in[0].Data) != 100 || len(in[1].Data) != 99 {
			t.Errorf("%d came, %v", got, err)
		}
	})
}

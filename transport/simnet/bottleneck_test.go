package simnet_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/bottleneck"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// at8Mbit has 1000 bytes take 1 ms.
func at8Mbit(queue int) bottleneck.Config { return bottleneck.Config{Rate: 8_000_000, Queue: queue} }

// TestFlowsShareABottleneck checks that links that go through one bottleneck share its rate, each with
// its own delay after it.
func TestFlowsShareABottleneck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, simnet.Link{})
		c := p.net.Attach(addrC, simnet.Config{})
		slow := p.net.NewBottleneck(at8Mbit(3000))
		p.net.Link(addrA, addrB, simnet.Link{Through: slow, Latency: 10 * ms})
		p.net.Link(addrC, addrB, simnet.Link{Through: slow, Latency: 2 * ms})
		p.send(0, 2, 1000) // 1 and 2 ms in the bottleneck
		if _, err := c.Send([]transport.Outgoing{
			outgoing(c, addrB, numbered(2, 1000)), outgoing(c, addrB, numbered(3, 500)), // at 3 and 4 ms; the second does not fit
			outgoing(c, addrB, numbered(4, 1000)), outgoing(c, addrB, numbered(5, 1000)),
		}); err != nil {
			t.Fatal(err)
		}
		var got []string
		began, dst := time.Now(), make([]transport.Datagram, 1)
		for len(got) < 4 {
			if _, err := p.b.Recv(dst, transport.Forever); err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(dst[0].From, dst[0].Data[0], time.Since(began)))
		}
		want := []string{
			fmt.Sprint(addrC, 2, 5*ms), fmt.Sprint(addrC, 3, 5*ms+ms/2), fmt.Sprint(addrA, 0, 11*ms), fmt.Sprint(addrA, 1, 12*ms),
		}
		if !slices.Equal(got, want) {
			t.Errorf("arrived\n%v\nwant\n%v", got, want)
		}
		p.wantStats(simnet.LinkStats{Sent: 2, Delivered: 2})
		if s := p.net.LinkStats(addrC, addrB); s.TailDropped != 2 || s.Delivered != 2 || s.InFlight != 0 {
			t.Errorf("%+v", s)
		}
		a, other, all := slow.Stats(addrA, addrB), slow.Stats(addrC, addrB), slow.TotalStats()
		if a.Frames != 2 || a.Bytes != 2000 || a.Dropped != 0 || a.Longest < ms-ms/100 || a.Longest > ms+ms/100 {
			t.Errorf("one flow: %+v", a)
		}
		if other.Frames != 4 || other.Bytes != 3500 || other.Dropped != 2 || other.DroppedBytes != 2000 {
			t.Errorf("other flow: %+v", other)
		}
		if all.Frames != 6 || all.Dropped != 2 || all.Longest < 3*ms-ms/100 {
			t.Errorf("all: %+v", all)
		}
		if (slow.Stats(addrB, addrA) != simnet.FlowStats{}) {
			t.Error("a direction has counters that never was there")
		}
	})
}

// TestBottleneckOfTwiceTheRate checks that half is dropped, and that the rest waits for bytes / rate.
func TestBottleneckOfTwiceTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, simnet.Link{})
		slow := p.net.NewBottleneck(at8Mbit(40_000))
		p.net.Link(addrA, addrB, simnet.Link{Through: slow, Latency: 10 * ms})
		for i := range 20_000 { // 10 s
			p.send(i, 1, 1000)
			time.Sleep(ms / 2)
		}
		if q := slow.Queued(); q < 38_000 || q > 40_000 {
			t.Errorf("%d bytes wait", q)
		}
		time.Sleep(time.Second)
		s := slow.Stats(addrA, addrB)
		if share := float64(s.Dropped) / float64(s.Frames); share < 0.49 || share > 0.5 {
			t.Errorf("%v dropped", share)
		}
		if s.Delay95 < 39*ms || s.Delay95 > 41*ms || s.Median < 39*ms {
			t.Errorf("delays %v, %v; want 40 ms", s.Median, s.Delay95)
		}
		if l := p.stats(); l.TailDropped != s.Dropped || l.Delivered != s.LeftFrames {
			t.Errorf("link %+v, flow %+v", l, s)
		}
	})
}

// TestBottleneckChanges checks that times of changes and outages are since the network was made.
func TestBottleneckChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, simnet.Link{})
		cfg := at8Mbit(10_000)
		cfg.Changes = []bottleneck.Change{{At: time.Second, Rate: 800_000}}
		cfg.Outages = []bottleneck.Outage{{From: 2 * time.Second, For: time.Second}}
		p.net.Link(addrA, addrB, simnet.Link{Through: p.net.NewBottleneck(cfg)})
		p.send(0, 1, 1000)
		p.wantArrivals(arrival{0, ms})
		time.Sleep(time.Second)
		p.send(1, 1, 1000)
		p.wantArrivals(arrival{1, 10 * ms})
		time.Sleep(time.Second)
		p.send(2, 1, 1000)
		time.Sleep(time.Second)
		p.send(3, 1, 1000)
		p.wantArrivals(arrival{3, 10 * ms})
		p.wantStats(simnet.LinkStats{Sent: 4, Delivered: 3, Down: 1})
	})
}

// TestMarks checks that what CoDel would drop is marked if it can carry a mark, and that the receiver sees that; of others it is dropped.
func TestMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, simnet.Link{})
		cfg := at8Mbit(1_000_000)
		cfg.CoDel = &bottleneck.CoDel{}
		run := func(mark transport.ECN, l simnet.Link) (_ simnet.FlowStats, seen [4]uint64) {
			slow := p.net.NewBottleneck(cfg)
			l.Through = slow
			p.net.Link(addrA, addrB, l)
			in := make([]transport.Datagram, 64)
			drain := func() {
				for {
					n, err := p.b.Recv(in, 0)
					if err != nil {
						t.Fatal(err)
					}
					for _, d := range in[:n] {
						seen[d.ECN]++
					}
					if n == 0 {
						return
					}
				}
			}
			for i := range 2000 {
				o := outgoing(p.a, addrB, numbered(i, 1000))
				o.ECN = mark
				if n, err := p.a.Send([]transport.Outgoing{o}); n != 1 || err != nil {
					t.Fatal(n, err)
				}
				time.Sleep(9 * ms / 10)
				drain()
			}
			time.Sleep(time.Second)
			drain()
			return slow.TotalStats(), seen
		}
		with, seen := run(transport.ECT0, simnet.Link{})
		l := p.stats()
		if with.Marked == 0 || seen != [4]uint64{transport.ECT0: 2000 - with.Marked, transport.CE: with.Marked} || l.Marked != with.Marked || l.Dropped() != 0 {
			t.Errorf("flow %+v, link %+v, seen %v", with, l, seen)
		}
		without, seen := run(transport.NotECT, simnet.Link{})
		if l := p.stats(); without.Marked != 0 || without.Dropped == 0 || l.Controlled != without.Dropped || seen != [4]uint64{transport.NotECT: without.LeftFrames} {
			t.Errorf("without marks: flow %+v, link %+v, seen %v", without, l, seen)
		}
		cleared, seen := run(transport.ECT0, simnet.Link{Remark: func(transport.ECN) (transport.ECN, bool) { return transport.NotECT, true }})
		if cleared.Marked != 0 || cleared.Dropped == 0 || seen != [4]uint64{transport.NotECT: cleared.LeftFrames} {
			t.Errorf("cleared: flow %+v, seen %v", cleared, seen)
		}
		before := p.stats().Lost
		if _, seen = run(transport.ECT0, simnet.Link{Remark: func(m transport.ECN) (transport.ECN, bool) { return m, m == transport.NotECT }}); p.stats().Lost-before != 2000 {
			t.Errorf("%d lost, seen %v", p.stats().Lost-before, seen)
		}
	})
}

// TestNoECN checks that an endpoint that has no marks sends none, and sees none.
func TestNoECN(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, deaf := range []bool{false, true} {
			n := simnet.New(1)
			defer n.Close()
			a, b := n.Attach(addrA, simnet.Config{NoECN: !deaf}), n.Attach(addrB, simnet.Config{NoECN: deaf})
			o := outgoing(a, addrB, numbered(0, 100))
			o.ECN = transport.ECT0
			in := make([]transport.Datagram, 1)
			if a.Send([]transport.Outgoing{o}); a.Caps().ECN != deaf || b.Caps().ECN == deaf {
				t.Errorf("%+v, %+v", a.Caps(), b.Caps())
			}
			if k, err := b.Recv(in, 0); k != 1 || err != nil || in[0].ECN != transport.NotECT {
				t.Errorf("%d, %v: %v", k, err, in[0].ECN)
			}
		}
	})
}

// TestLossAfterABottleneck checks that losses take the rate, and come in bursts where they are told to.
func TestLossAfterABottleneck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, simnet.Link{})
		slow := p.net.NewBottleneck(at8Mbit(100_000))
		p.net.Link(addrA, addrB, simnet.Link{Through: slow, GilbertElliott: bottleneck.Bursts(0.1, 5)})
		for i := range 20_000 {
			p.send(i, 1, 1000)
			time.Sleep(ms)
		}
		time.Sleep(time.Second)
		s := p.stats()
		if s.Lost < 1600 || s.Lost > 2400 || s.TailDropped != 0 || slow.TotalStats().LeftFrames != 20_000 {
			t.Errorf("%+v, %+v", s, slow.TotalStats())
		}
		bursts, next := 0, 0
		for _, got := range p.receive(int(s.Delivered)) {
			if got.number != next {
				bursts++
			}
			next = got.number + 1
		}
		if length := float64(s.Lost) / float64(bursts); length < 4 || length > 6 {
			t.Errorf("bursts of %v", length)
		}
	})
}

// TestLinkChangesOverABottleneck checks that what is in the bottleneck goes on over the new link, and is
// counted until the network is closed.
func TestLinkChangesOverABottleneck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, simnet.Link{})
		slow := p.net.NewBottleneck(at8Mbit(100_000))
		p.net.Link(addrA, addrB, simnet.Link{Through: slow, Latency: 50 * ms})
		p.send(0, 2, 1000)
		p.net.Link(addrA, addrB, simnet.Link{Latency: 5 * ms})
		p.send(2, 1, 1000)
		p.wantArrivals(arrival{2, 5 * ms}, arrival{0, 6 * ms}, arrival{1, 7 * ms})
		p.net.Link(addrA, addrB, simnet.Link{Through: slow})
		p.send(3, 3, 1000)
		time.Sleep(ms + ms/2)
		if s := p.stats(); s.InFlight != 2 {
			t.Errorf("%+v", s)
		}
		p.net.Close()
		if s := p.stats(); s.InFlight != 0 || s.Unattached != 2 {
			t.Errorf("after Close: %+v", s)
		}
	})
}

// TestBottleneckOfTheSameSeed checks that a run with everything that a bottleneck can do repeats itself.
func TestBottleneckOfTheSameSeed(t *testing.T) {
	run := func(seed uint64) (arrivals []arrival, stats string) {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, seed, simnet.Link{})
			c := p.net.Attach(addrC, simnet.Config{})
			slow := p.net.NewBottleneck(bottleneck.Config{
				Rate: 8_000_000, Queue: 50_000, CoDel: &bottleneck.CoDel{},
				Changes: []bottleneck.Change{{At: time.Second, Rate: 2_000_000}, {At: 2 * time.Second, Rate: 16_000_000}},
			})
			p.net.Link(addrA, addrB, simnet.Link{
				Through: slow, Latency: 10 * ms, Jitter: 3 * ms, Reorder: 0.05, Loss: 0.02, GilbertElliott: bottleneck.Bursts(0.02, 3),
			})
			p.net.Link(addrC, addrA, simnet.Link{Through: slow, Latency: 40 * ms})
			for i := range 3000 {
				p.send(i, 1, 300+i%1000)
				if i%3 == 0 {
					if _, err := c.Send([]transport.Outgoing{outgoing(c, addrA, numbered(i, 1000))}); err != nil {
						t.Error(err)
					}
				}
				time.Sleep(ms)
			}
			time.Sleep(time.Second)
			arrivals = p.receive(int(p.stats().Delivered))
			stats = fmt.Sprint(slow.Stats(addrA, addrB), slow.Stats(addrC, addrA), p.stats())
		})
		return arrivals, stats
	}
	first, firstStats := run(1)
	again, againStats := run(1)
	if !slices.Equal(first, again) || firstStats != againStats {
		t.Errorf("the same seed gave another run:\n%s\n%s", firstStats, againStats)
	}
	if _, other := run(2); other == firstStats {
		t.Error("another seed gave the same run")
	}
}

// TestEndpointsShareABottleneck checks that whole endpoints run over one in virtual time, and that the
// bottleneck sees each of them.
func TestEndpointsShareABottleneck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate, trip, count = 20_000_000, 40 * ms, 3
		n := simnet.New(1)
		defer n.Close()
		slow := n.NewBottleneck(bottleneck.Config{Rate: rate, Queue: rate / 8 / 25, Overhead: 28})
		server := simnet.Addr(100)
		memory, err := dgrdma.NewRegion(1 << 20)
		if err != nil {
			t.Fatal(err)
		}
		there, err := dgrdma.New(n.Attach(server, simnet.Config{}), &dgrdma.Config{ID: 100, Memory: memory, AcceptAny: true})
		if err != nil {
			t.Fatal(err)
		}
		defer there.Close()
		began := time.Now()
		var senders sync.WaitGroup
		for i := range count {
			addr := simnet.Addr(uint32(1 + i))
			n.Link(addr, server, simnet.Link{Through: slow, Latency: trip / 2})
			n.Link(server, addr, simnet.Link{Latency: trip / 2})
			here, err := dgrdma.New(n.Attach(addr, simnet.Config{}), &dgrdma.Config{ID: dgrdma.EndpointID(1 + i)})
			if err != nil {
				t.Fatal(err)
			}
			defer here.Close()
			peer, err := here.Connect(dgrdma.Peer{ID: 100, Addr: server, Size: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			senders.Go(func() {
				for range 10 {
					if err := peer.Write(context.Background(), &dgrdma.Transaction{
						Segments: []dgrdma.Segment{{Addr: 64, Bytes: make([]byte, 100_000)}}, Completion: dgrdma.Word(0, 1),
					}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		senders.Wait()
		least := time.Duration(count * 1_000_000 * 8 * float64(time.Second) / rate)
		if took := time.Since(began); took < least || took > 10*least {
			t.Errorf("took %v, and the bottleneck %v at least", took, least)
		}
		for i := range count {
			if s := slow.Stats(simnet.Addr(uint32(1+i)), server); s.LeftBytes < 1_000_000 {
				t.Errorf("flow %d: %+v", i, s)
			}
		}
	})
}

// TestImpossibleBottlenecks checks that links that cannot be panic.
func TestImpossibleBottlenecks(t *testing.T) {
	n, other := simnet.New(1), simnet.New(1)
	for name, l := range map[string]simnet.Link{
		"other network": {Through: other.NewBottleneck(at8Mbit(1000))},
		"two rates":     {Through: n.NewBottleneck(at8Mbit(1000)), Rate: 1},
		"chances":       {GilbertElliott: bottleneck.GilbertElliott{ToBad: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			n.Link(addrA, addrB, l)
		})
	}
}

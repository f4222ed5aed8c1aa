package simnet_test

import (
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

var everything = simnet.Link{
	Latency: 5 * ms, Jitter: 3 * ms, Rate: 4_000_000, Queue: 20,
	Loss: 0.1, Burst: 3, Duplicate: 0.1, Reorder: 0.1, Corrupt: 0.1, Damage: 0.1,
	HoldBack: 0.05, HoldFor: time.Second,
}

// trace sends in two directions at the same time and returns what arrived when.
func trace(t *testing.T, seed uint64, both bool) (atA, atB []string) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(seed)
		a, b := n.Attach(addrA, simnet.Config{}), n.Attach(addrB, simnet.Config{})
		n.Link(addrA, addrB, everything)
		n.Link(addrB, addrA, everything)
		begin := time.Now()
		var senders, receivers sync.WaitGroup
		sendAll := func(c *simnet.Conn, to transport.Addr) {
			for i := range 1000 {
				if _, err := c.Send([]transport.Outgoing{outgoing(c, to, numbered(i, 4+i%1000))}); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Duration(i%3) * ms)
			}
		}
		recvAll := func(c *simnet.Conn, log *[]string) {
			dst := make([]transport.Datagram, 8)
			for {
				n, err := c.Recv(dst, transport.Forever)
				if err != nil {
					return
				}
				for _, d := range dst[:n] {
					*log = append(*log, fmt.Sprintf("%v %d %08x", time.Since(begin), len(d.Data), crc32.ChecksumIEEE(d.Data)))
				}
			}
		}
		senders.Go(func() { sendAll(a, addrB) })
		if both {
			senders.Go(func() { sendAll(b, addrA) })
		}
		receivers.Go(func() { recvAll(a, &atA) })
		receivers.Go(func() { recvAll(b, &atB) })
		senders.Wait()
		time.Sleep(time.Minute)
		n.Close()
		receivers.Wait()
	})
	return atA, atB
}

func TestSameSeedSameRun(t *testing.T) {
	a1, b1 := trace(t, 42, true)
	if len(a1) < 500 || len(b1) < 500 {
		t.Fatalf("%d and %d arrivals", len(a1), len(b1))
	}
	if slices.Equal(a1, b1) {
		t.Error("both directions met the same fate")
	}
	for range 3 {
		a2, b2 := trace(t, 42, true)
		if !slices.Equal(a1, a2) || !slices.Equal(b1, b2) {
			t.Fatal("the same seed gave another run")
		}
	}
	if _, b3 := trace(t, 42, false); !slices.Equal(b1, b3) {
		t.Error("the other direction has an influence")
	}
	if _, b4 := trace(t, 43, true); slices.Equal(b1, b4) {
		t.Error("another seed gave the same run")
	}
}

func TestFaultsAreIndependent(t *testing.T) {
	lost := func(l simnet.Link) string {
		p := newPair(t, 9, l)
		p.send(0, 300, 8)
		there := make(map[int]bool)
		for _, got := range p.receive(int(p.stats().Delivered)) {
			there[got.number] = true
		}
		var s strings.Builder
		for i := range 300 {
			if !there[i] {
				fmt.Fprint(&s, i, " ")
			}
		}
		return s.String()
	}
	plain := lost(simnet.Link{Loss: 0.2})
	with := lost(simnet.Link{Loss: 0.2, Duplicate: 0.5})
	if plain == "" || plain != with {
		t.Errorf("lost\n%s\nwith duplicates\n%s", plain, with)
	}
}

// Links into one receiver that deliver at the same instant are ordered by link,
// not by which sender was scheduled first.
func TestOrderAtTheSameInstant(t *testing.T) {
	run := func() (order []string) {
		synctest.Test(t, func(t *testing.T) {
			n := simnet.New(1)
			defer n.Close()
			b := n.Attach(addrB, simnet.Config{})
			var senders sync.WaitGroup
			for i := range 20 {
				from := simnet.Addr(uint32(100 + i))
				c := n.Attach(from, simnet.Config{})
				n.Link(from, addrB, simnet.Link{Latency: ms})
				senders.Go(func() {
					for range 3 {
						if _, err := c.Send([]transport.Outgoing{outgoing(c, addrB, nil)}); err != nil {
							t.Error(err)
						}
					}
				})
			}
			senders.Wait()
			dst := make([]transport.Datagram, 64)
			got, err := b.Recv(dst, transport.Forever)
			if got != 60 || err != nil {
				t.Errorf("Recv: %d, %v", got, err)
			}
			for _, d := range dst[:got] {
				order = append(order, d.From.String())
			}
		})
		return order
	}
	first := run()
	for range 10 {
		if again := run(); !slices.Equal(first, again) {
			t.Fatalf("order\n%v\nthen\n%v", first, again)
		}
	}
}

// In real time, with everything at once, for the race detector.
func TestConcurrentUse(t *testing.T) {
	n := simnet.New(1)
	a, b := n.Attach(addrA, simnet.Config{}), n.Attach(addrB, simnet.Config{Poison: true})
	var users sync.WaitGroup
	for _, c := range []*simnet.Conn{a, b} {
		users.Go(func() {
			dst := make([]transport.Datagram, 4)
			for {
				got, err := c.Recv(dst, transport.Forever)
				if err != nil {
					return
				}
				for _, d := range dst[:got] {
					crc32.ChecksumIEEE(d.Data)
				}
			}
		})
	}
	var senders sync.WaitGroup
	for _, c := range []*simnet.Conn{a, b} {
		to := addrA
		if c == a {
			to = addrB
		}
		senders.Go(func() {
			for i := range 2000 {
				if _, err := c.Send([]transport.Outgoing{outgoing(c, to, numbered(i, 64))}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	senders.Go(func() {
		for i := range 50 {
			n.Link(addrA, addrB, simnet.Link{Latency: time.Duration(i%2) * 100 * time.Microsecond, Loss: 0.1})
			_, _ = n.TotalStats(), a.Stats()
			time.Sleep(10 * time.Microsecond)
		}
	})
	senders.Wait()
	n.Close()
	users.Wait()
}

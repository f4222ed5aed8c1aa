package dgrdma

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// openNarrow opens the endpoints of a pair whose ends carry that many bytes, and say that the path
// between may carry less.
func openNarrow(t *testing.T, n *simnet.Network, mtu int, cfg Config) (p *pair) {
	t.Helper()
	p = &pair{t: t, net: n}
	p.memB = p.region(4 << 20)
	open := func(id uint32, cfg Config) *Endpoint {
		cfg.ID, cfg.AcceptAny, cfg.OnEvent = frame.EndpointID(id), true, p.note
		e, err := New(n.Attach(simnet.Addr(id), simnet.Config{MTU: mtu, MayNarrow: true, Poison: true}), &cfg)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	p.a = open(1, cfg)
	cfg.Memory = p.memB
	p.b = open(2, cfg)
	p.toB = p.connect(p.a, Peer{ID: 2, Addr: addrB, Size: 4 << 20})
	return p
}

// TestFindsWhatThePathCarries checks that data goes through whatever the path carries, in frames
// that are as long as it carries, and that they are shorter is told; a path that carries all costs
// a round trip, before the first transaction that is longer than a frame which every path carries.
func TestFindsWhatThePathCarries(t *testing.T) {
	const rtt = 10 * time.Millisecond
	sure := 6*rtt + 2*time.Millisecond // handshake, two transactions, of which the second opens the window from ten frames; and acknowledgements wait
	for _, c := range []struct {
		mtu, carries int
		loss         float64
		within       time.Duration // of where nothing has to be found
	}{
		{1470, 0, 0, rtt},
		{1470, 1370, 0, 300 * time.Millisecond},
		{1470, 1242, 0, 300 * time.Millisecond},
		{1470, 1226, 0, 300 * time.Millisecond},
		{1470, 600, 0, 300 * time.Millisecond},
		{1470, 1466, 0, 300 * time.Millisecond},
		{1470, 1370, 0.2, 8 * time.Second},
		{8970, 0, 0.2, 8 * time.Second},
		{8970, 1470, 0, 400 * time.Millisecond},
		{8970, 1370, 0.2, 8 * time.Second},
		{60000, 1370, 0, 400 * time.Millisecond},
	} {
		for seed := range uint64(5) {
			t.Run(fmt.Sprintf("%d of %d, loss %v, seed %d", c.carries, c.mtu, c.loss, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := simnet.New(seed)
					defer n.Close()
					way := simnet.Link{MTU: c.carries, Latency: rtt / 2, Loss: c.loss}
					n.Link(addrA, addrB, way)
					n.Link(addrB, addrA, simnet.Link{Latency: rtt / 2, Loss: c.loss})
					p := openNarrow(t, n, c.mtu, Config{})
					defer p.a.Close()
					defer p.b.Close()
					began := time.Now()
					if err := p.toB.Write(t.Context(), write(0, pattern(1, 100), 100, 1)); err != nil {
						t.Fatal(err)
					}
					if took := time.Since(began); c.loss == 0 && took > 3*rtt {
						t.Errorf("a small transaction took %v", took)
					}
					data := pattern(2, 100_000)
					if err := p.toB.Write(t.Context(), write(4096, data, 0, 2)); err != nil {
						t.Fatal(err)
					}
					took := time.Since(began)
					if most := sure + c.within; took > most || c.loss == 0 && took > sure {
						t.Errorf("took %v", took)
					}
					awaitPathMTU(p.toB)
					took = time.Since(began)
					if most := sure + c.within; took > most {
						t.Errorf("took %v until the length was found", took)
					}
					if !bytes.Equal(p.memB.Bytes()[4096:][:len(data)], data) {
						t.Error("other bytes arrived")
					}
					want := wholeFrame(frame.HeaderSize, c.mtu)
					if c.carries > 0 {
						want = wholeFrame(frame.HeaderSize, c.carries)
					}
					got := p.toB.Stats().FrameSize
					if got > want || c.loss == 0 && got != want || got < want*3/4 {
						t.Errorf("frames of %d bytes, where %d are carried", got, want)
					}
					told := p.count(FramesShortened, RefusedNone)
					if wants := got < wholeFrame(frame.HeaderSize, c.mtu); wants != (told == 1) || told > 1 {
						t.Errorf("told %d times", told)
					}
					t.Logf("%v, %d size probes, frames of %d", took, p.toB.Stats().SizeProbes, got)
				})
			})
		}
	}
}

// awaitPathMTU waits until it is known how long frames to a peer arrive.
func awaitPathMTU(c *Conn) {
	for known := false; !known; time.Sleep(time.Millisecond) {
		c.mu.Lock()
		known = c.tx.path.IsKnown()
		c.mu.Unlock()
	}
	time.Sleep(time.Millisecond) // it is told
}

// onAWayThatIsWide runs a test, of the two endpoints of openNarrow, when the first has written data in frames as long as
// its interface carries, with a completion word of 1.
func onAWayThatIsWide(t *testing.T, test func(t *testing.T, n *simnet.Network, p *pair, data []byte)) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		p := openNarrow(t, n, 1470, Config{GiveUp: 3 * time.Second})
		defer p.a.Close()
		defer p.b.Close()
		data := pattern(3, 100_000)
		if err := p.toB.Write(t.Context(), write(0, data, 1<<20, 1)); err != nil {
			t.Fatal(err)
		}
		awaitPathMTU(p.toB)
		test(t, n, p, data)
	})
}

// TestNarrowerDuringTransactions checks that nothing is lost or doubled when the path begins to carry
// less: it is found why nothing is acknowledged, and a Reset finds the length.
func TestNarrowerDuringTransactions(t *testing.T) {
	onAWayThatIsWide(t, func(t *testing.T, n *simnet.Network, p *pair, data []byte) {
		if n := p.toB.Stats().FrameSize; n != wholeFrame(frame.HeaderSize, 1470) {
			t.Fatalf("frames of %d bytes", n)
		}
		n.Link(addrA, addrB, simnet.Link{MTU: 1370})
		err := p.toB.Write(t.Context(), write(0, data, 1<<20, 2))
		var narrow *NarrowError
		if !errors.Is(err, ErrNarrow) || !errors.Is(err, ErrPeerDown) || !errors.As(err, &narrow) || narrow.Carried != wholeFrame(frame.HeaderSize, 1370) || narrow.Frame != wholeFrame(frame.HeaderSize, 1470) {
			t.Fatalf("%v", err)
		}
		if got := p.memB.Load32(1 << 20); got != 1 {
			t.Errorf("the flag is %d", got)
		}
		if err := p.toB.Reset(0); err != nil {
			t.Fatal(err)
		}
		if err := p.toB.Write(t.Context(), write(0, data, 1<<20, 3)); err != nil {
			t.Fatal(err)
		}
		awaitPathMTU(p.toB)
		if n := p.toB.Stats().FrameSize; n != wholeFrame(frame.HeaderSize, 1370) {
			t.Errorf("frames of %d bytes", n)
		}
	})
}

// TestNarrowerAfterASilence checks that a path that became narrower is found again after a silence
// in which it was asked, however short the time between.
func TestNarrowerAfterASilence(t *testing.T) {
	for away := 5 * time.Millisecond; away < 2*time.Second; away += away / 5 {
		onAWayThatIsWide(t, func(t *testing.T, n *simnet.Network, p *pair, data []byte) {
			n.Link(addrA, addrB, simnet.Link{Down: true})
			time.AfterFunc(away, func() { n.Link(addrA, addrB, simnet.Link{}) })
			if err := p.toB.Write(t.Context(), write(0, data, 1<<20, 2)); err != nil {
				t.Fatal(err)
			}
			n.Link(addrA, addrB, simnet.Link{MTU: 1370})
			if err := p.toB.Write(t.Context(), write(0, data, 1<<20, 3)); !errors.Is(err, ErrNarrow) {
				t.Errorf("away for %v: %v", away, err)
			}
		})
	}
}

// TestNotNarrow checks that the error of a peer that refuses what is written, and of one that is
// gone, says that and not that the path is narrow.
func TestNotNarrow(t *testing.T) {
	for _, gone := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			n := simnet.New(1)
			defer n.Close()
			p := openNarrow(t, n, 1470, Config{GiveUp: 3 * time.Second})
			defer p.a.Close()
			defer p.b.Close()
			p.toB.size.Store(0) // not known
			if err := p.toB.Write(t.Context(), write(0, pattern(1, 5000), 1<<20, 1)); err != nil {
				t.Fatal(err)
			}
			at := uint32(1 << 28)
			if gone {
				n.Link(addrA, addrB, simnet.Link{Down: true})
				at = 0
			}
			err := p.toB.Write(t.Context(), write(at, pattern(1, 5000), 0, 1))
			if !errors.Is(err, ErrPeerDown) || errors.Is(err, ErrNarrow) {
				t.Errorf("gone %v: %v", gone, err)
			}
			if !gone && p.toB.Stats().SizeProbes < 2 {
				t.Error("was not asked why")
			}
		})
	}
}

// TestCutShort checks that transactions of all lengths, urgent ones too, arrive whole that are posted before it is known how long
// frames arrive, while that is found, and after it, also where less is carried than by every path of IPv6.
func TestCutShort(t *testing.T) {
	const trip, slot, slots = 20 * time.Millisecond, 300 << 10, 13
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			n := simnet.New(seed)
			defer n.Close()
			carries := []int{0, 1370, 600}[seed%3]
			n.Link(addrA, addrB, simnet.Link{MTU: carries, Latency: trip / 2, Loss: 0.05 * float64(seed%2)})
			n.Link(addrB, addrA, simnet.Link{Latency: trip / 2})
			p := openNarrow(t, n, 1470, Config{Checksum: seed%5 == 0})
			defer p.a.Close()
			defer p.b.Close()
			sent := make([][]byte, slots)
			errs := make(chan error, slots)
			for i := range sent {
				size := []int{100, 400, 1500, 5000, 60_000, 256 << 10, 256<<10 + 1}[r.IntN(7)]
				if carries == 600 && size == 400 {
					size = 300 // what a frame of every path of IPv6 has room for is not cut
				}
				sent[i] = pattern(i, size)
				x := write(uint32(i*slot), sent[i], uint32(slots*slot+4*i), uint32(i+1))
				x.Urgent = r.IntN(3) == 0
				x.Done = func(_ *Transaction, err error) { errs <- err }
				if err := p.toB.Post(x); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Duration(r.Int64N(int64(trip / 4))))
			}
			for range sent {
				if err := <-errs; err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
			for i, want := range sent {
				if !bytes.Equal(p.memB.Bytes()[i*slot:][:len(want)], want) || p.memB.Load32(uint32(slots*slot+4*i)) != uint32(i+1) {
					t.Errorf("seed %d: other bytes arrived of transaction %d", seed, i)
				}
			}
		})
	}
}

// TestTooManyMessagesCutShort checks that a transaction of so many segments that it has no more messages than there may be only in long frames waits until it
// is known how long frames arrive.
func TestTooManyMessagesCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		n.Link(addrA, addrB, simnet.Link{Latency: 10 * time.Millisecond})
		n.Link(addrB, addrA, simnet.Link{Latency: 10 * time.Millisecond})
		p := openNarrow(t, n, 1470, Config{})
		defer p.a.Close()
		defer p.b.Close()
		const size = 1400 // of the first segment, which long frames cut less often
		data := pattern(1, size)
		x := &Transaction{Segments: []Segment{{0, data}}, Completion: Word(200_000, 7)}
		for i := range frame.MaxMessages - 2 {
			x.Segments = append(x.Segments, Segment{uint32(size + i), data[i%size:][:1]})
		}
		if err := p.toB.Write(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(p.memB.Bytes()[:size], data) || p.memB.Load32(200_000) != 7 {
			t.Error("it did not arrive")
		}
	})
}

// TestLengthFoundBeforeItBegins checks a transaction that would have been cut short beside another one, had no room there, and fits a frame when it begins, as it is
// known by then how long frames arrive.
func TestLengthFoundBeforeItBegins(t *testing.T) {
	for _, window := range []int{1, 2, 3} {
		for _, size := range []int{600, 1100, 1230, 1300, 1380, 1420, 3000} {
			synctest.Test(t, func(t *testing.T) {
				n := simnet.New(1)
				defer n.Close()
				n.Link(addrA, addrB, simnet.Link{Latency: 10 * time.Millisecond})
				n.Link(addrB, addrA, simnet.Link{Latency: 10 * time.Millisecond})
				p := openNarrow(t, n, 1470, Config{Window: window})
				defer p.a.Close()
				defer p.b.Close()
				errs := make(chan error, 8)
				for i := range cap(errs) {
					x := write(uint32(8192*i), pattern(i, []int{200, size}[i%2]), uint32(80_000+4*i), uint32(i+1))
					x.Done = func(_ *Transaction, err error) { errs <- err }
					if err := p.toB.Post(x); err != nil {
						t.Fatal(err)
					}
				}
				for range cap(errs) {
					if err := <-errs; err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	}
}

// TestTooLargeOnANarrowPath checks that what takes too many messages only now that frames are
// shorter fails, and that what was posted after it does not.
func TestTooLargeOnANarrowPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		n.Link(addrA, addrB, simnet.Link{MTU: 1370})
		p := openNarrow(t, n, 1470, Config{})
		defer p.a.Close()
		defer p.b.Close()
		p.toB.size.Store(0)
		large := &Transaction{Segments: []Segment{{0, make([]byte, 90_000_000)}}}
		errs := make(chan error, 2)
		large.Done = func(_ *Transaction, err error) { errs <- err }
		behind := write(0, pattern(1, 5000), 1<<20, 1)
		behind.Done = large.Done
		for _, tr := range []*Transaction{large, behind} {
			if err := p.toB.Post(tr); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-errs; !errors.Is(err, ErrTooLarge) {
			t.Error(err)
		}
		if err := <-errs; err != nil {
			t.Error(err)
		}
		if err := p.toB.Post(&Transaction{Segments: large.Segments}); err != ErrTooLarge {
			t.Error(err)
		}
	})
}

// TestProbesOfALongPath checks that one question is enough, and nothing is sent again, where a round trip is longer than the time after which a
// HELLO is repeated, and that the first byte of a transaction of several frames is there after a round trip and a half.
func TestProbesOfALongPath(t *testing.T) {
	for _, trip := range []time.Duration{25 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			n := simnet.New(1)
			defer n.Close()
			n.Link(addrA, addrB, simnet.Link{Latency: trip / 2})
			n.Link(addrB, addrA, simnet.Link{Latency: trip / 2})
			p := &pair{t: t, net: n}
			open := func(at Addr, cfg Config) *Endpoint {
				e, err := New(n.Attach(at, simnet.Config{MTU: 1472, MayNarrow: true}), &cfg)
				if err != nil {
					t.Fatal(err)
				}
				return e
			}
			memory := p.region(1 << 14)
			a, b := open(addrA, Config{ID: 1}), open(addrB, Config{ID: 2, Memory: memory, AcceptAny: true})
			defer a.Close()
			defer b.Close()
			c := p.connect(a, Peer{ID: 2, Addr: addrB})
			began := time.Now()
			if err := c.Write(t.Context(), write(64, pattern(1, 5000), 0, 1)); err != nil {
				t.Fatal(err)
			}
			took, s := time.Since(began), c.Stats()
			if s.SizeProbes != 1 || s.RetransmitsFast+s.RetransmitsTimed > 0 || took > 2*trip+5*time.Millisecond {
				t.Errorf("round trips of %v: %d questions, %d frames again, and acknowledged after %v", trip, s.SizeProbes, s.RetransmitsFast+s.RetransmitsTimed, took)
			}
		})
	}
}

package dgrdma

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/bottleneck"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// sharedPath is senders that write to one receiver through a bottleneck of 20 Mbit/s and 40 ms.
type sharedPath struct {
	t      *testing.T
	net    *simnet.Network
	slow   *simnet.Bottleneck
	to     *Endpoint
	size   int
	cancel []func()
	flows  []*sharedFlow
}

type sharedFlow struct {
	addr transport.Addr
	e    *Endpoint
	c    *Conn
}

const (
	sharedRate = 20_000_000
	sharedTrip = 40 * time.Millisecond
)

var sharedTo = simnet.Addr(100)

func newSharedPath(t *testing.T, queue bottleneck.Config) *sharedPath {
	p := &sharedPath{t: t, net: simnet.New(1), size: 1 << 16}
	queue.Rate = sharedRate
	p.slow = p.net.NewBottleneck(queue)
	var err error
	if p.to, err = New(p.net.Attach(sharedTo, simnet.Config{}), &Config{ID: 100, Memory: mustRegion(t, 1<<20), AcceptAny: true}); err != nil {
		t.Fatal(err)
	}
	return p
}

// flow begins to write without end. there and back are its links beside the bottleneck.
func (p *sharedPath) flow(cfg simnet.Config, there, back simnet.Link) *sharedFlow {
	p.t.Helper()
	id := EndpointID(len(p.flows) + 1)
	f := &sharedFlow{addr: simnet.Addr(uint32(id))}
	there.Through, there.Latency, back.Latency = p.slow, sharedTrip/2, sharedTrip/2
	p.net.Link(f.addr, sharedTo, there)
	p.net.Link(sharedTo, f.addr, back)
	var err error
	if f.e, err = New(p.net.Attach(f.addr, cfg), &Config{ID: id, Memory: mustRegion(p.t, 4096), Entropy: func() uint32 { return 4711 * uint32(id) }}); err != nil {
		p.t.Fatal(err)
	}
	if f.c, err = f.e.Connect(Peer{ID: 100, Addr: sharedTo, Size: 1 << 20}); err != nil {
		p.t.Fatal(err)
	}
	data := pattern(1, p.size)
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = append(p.cancel, cancel)
	for i := range 8 {
		done := make(chan struct{})
		go func() {
			defer close(done)
			for f.c.Write(ctx, write(4096, data, uint32(4*i), 1)) == nil {
			}
		}()
		p.cancel = append(p.cancel, func() { <-done })
	}
	p.flows = append(p.flows, f)
	return f
}

func mustRegion(t *testing.T, size int) *Region {
	r, err := NewRegion(size)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// shares lets a time pass, and returns which share of the bottleneck each flow had then, by the frames that its transactions fill.
func (p *sharedPath) shares(d time.Duration) (shares []float64) {
	before := make([]uint64, len(p.flows))
	done := func(f *sharedFlow) uint64 { return f.c.Stats().TransactionsDone }
	for i, f := range p.flows {
		before[i] = done(f)
	}
	time.Sleep(d)
	const whole = simnet.DefaultMTU
	const data = whole - frame.SessionHeaderSize - frame.MessageHeaderSize
	for i, f := range p.flows {
		bits := float64(done(f)-before[i]) * float64(p.size) * 8 * whole / data
		shares = append(shares, bits/d.Seconds()/sharedRate)
	}
	return shares
}

func (p *sharedPath) close() {
	for _, f := range p.flows {
		f.e.Close()
	}
	p.to.Close()
	for _, end := range p.cancel {
		end()
	}
	p.net.Close()
}

// TestMarksInPlaceOfLosses checks that a flow that heeds marks has the path for itself without a loss, and with a shorter queue than one that drops when it is full.
func TestMarksInPlaceOfLosses(t *testing.T) {
	for name, queue := range map[string]bottleneck.Config{
		"CoDel": {Queue: 1_000_000, CoDel: &bottleneck.CoDel{}}, "a step": {Queue: 1_000_000, MarkAbove: 30_000},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newSharedPath(t, queue)
				defer p.close()
				f := p.flow(simnet.Config{}, simnet.Link{}, simnet.Link{})
				time.Sleep(2 * time.Second)
				share := p.shares(fewer(20*time.Second, 6*time.Second))[0]
				at, s, there := p.slow.Stats(f.addr, sharedTo), f.c.Stats(), p.to.Stats()
				if share < .9 || at.Dropped > 0 || at.Marked == 0 || at.Delay95 > 30*time.Millisecond {
					t.Errorf("%.3f of the path, %+v", share, at)
				}
				if s.ECN != "on" || s.MarksFailed != 0 || there.MarksReceived < at.Marked-5 || there.MarksReceived > at.Marked || s.MarksEchoed+10 < there.MarksReceived || s.MarksEchoed > there.MarksReceived {
					t.Errorf("%s: %d marked, %d received, %d echoed, %d failed", s.ECN, at.Marked, there.MarksReceived, s.MarksEchoed, s.MarksFailed)
				}
			})
		})
	}
}

// TestMarksBesideOthers checks that a flow that heeds marks shares a queue that marks with one that does not, whose frames are dropped there.
func TestMarksBesideOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newSharedPath(t, bottleneck.Config{Queue: 1_000_000, CoDel: &bottleneck.CoDel{}})
		defer p.close()
		p.flow(simnet.Config{}, simnet.Link{}, simnet.Link{})
		p.flow(simnet.Config{NoECN: true}, simnet.Link{}, simnet.Link{})
		time.Sleep(10 * time.Second)
		shares := p.shares(fewer(40*time.Second, 20*time.Second))
		ours, other := p.slow.Stats(p.flows[0].addr, sharedTo), p.slow.Stats(p.flows[1].addr, sharedTo)
		if min(shares[0], shares[1]) < .25 || shares[0]+shares[1] < .85 {
			t.Errorf("%.3f of the path", shares)
		}
		if ours.Dropped > 0 || ours.Marked == 0 || other.Dropped == 0 || other.Marked > 0 {
			t.Errorf("%+v\n%+v", ours, other)
		}
		if s := p.flows[1].c.Stats(); s.ECN != "" || s.MarksFailed != 0 || s.MarksEchoed != 0 {
			t.Errorf("%s, %d failed, %d echoed", s.ECN, s.MarksFailed, s.MarksEchoed)
		}
	})
}

// TestMarkedEverything checks that where all is marked only the flow whose frames they are has less.
func TestMarkedEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newSharedPath(t, bottleneck.Config{Queue: 100_000})
		defer p.close()
		p.flow(simnet.Config{}, simnet.Link{Remark: func(m transport.ECN) (transport.ECN, bool) {
			if m == transport.ECT0 {
				m = transport.CE
			}
			return m, true
		}}, simnet.Link{})
		p.flow(simnet.Config{}, simnet.Link{}, simnet.Link{})
		time.Sleep(10 * time.Second)
		shares := p.shares(fewer(40*time.Second, 10*time.Second))
		if shares[1] < .7 || shares[0] <= 0 || shares[0] > .3 {
			t.Errorf("%.3f of the path", shares)
		}
		if s := p.flows[0].c.Stats(); s.MarksFailed != 0 || s.MarksEchoed == 0 {
			t.Errorf("%s, %d failed, %d echoed", s.ECN, s.MarksFailed, s.MarksEchoed)
		}
	})
}

// TestMarksThatFail checks that a path that mangles marks, or drops what can carry one, and a peer that counts what cannot be, are found out, and that the
// flow goes on without.
func TestMarksThatFail(t *testing.T) {
	remark := func(to transport.ECN, ok bool) simnet.Link {
		return simnet.Link{Remark: func(m transport.ECN) (transport.ECN, bool) {
			if m == transport.ECT0 {
				return to, ok
			}
			return m, true
		}}
	}
	// lies changes the marks that the receiver tells, from the acknowledgement with that number on.
	lies := func(from int, change func(m *frame.Marks)) simnet.Link {
		told := 0
		return simnet.Link{Script: func(_ int, b []byte) simnet.Verdict {
			f, err := frame.ParseSession(b)
			a, ok := f.SessionAck()
			if err != nil || !ok || a.Marks == (frame.Marks{}) {
				return simnet.Verdict{}
			}
			if told++; told >= from {
				change(&a.Marks)
				frame.PutMarks(b, len(b)-frame.MarksSize, a.Marks)
			}
			return simnet.Verdict{}
		}}
	}
	for name, links := range map[string][2]simnet.Link{
		"cleared":                    {remark(transport.NotECT, true)},
		"made ECT(1)":                {remark(transport.ECT1, true)},
		"dropped":                    {remark(transport.NotECT, false)},
		"more than left":             {{}, lies(20, func(m *frame.Marks) { m.Capable += 10_000 })},
		"more congested than left":   {{}, lies(20, func(m *frame.Marks) { m.Congested += 1 << 31 })},
		"less than was acknowledged": {{}, lies(20, func(m *frame.Marks) { m.Capable = max(m.Capable, 1) - 1 })},
		"shrinking": {{}, lies(1, func(m *frame.Marks) {
			m.Capable, m.Congested = 1, m.Capable-1
			if m.Congested > 50 {
				m.Capable, m.Congested = 51, 0
			}
		})},
		"none of a sudden": {{}, lies(50, func(m *frame.Marks) { *m = frame.Marks{Congested: 1} })},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newSharedPath(t, bottleneck.Config{Queue: 100_000})
				defer p.close()
				f := p.flow(simnet.Config{}, links[0], links[1])
				time.Sleep(3 * time.Second)
				share := p.shares(fewer(20*time.Second, 6*time.Second))[0]
				s := f.c.Stats()
				if share < .85 || s.ECN != "failed" || s.MarksFailed != 1 {
					t.Errorf("%.3f of the path, %s, %d failed", share, s.ECN, s.MarksFailed)
				}
			})
		})
	}
}

// TestNoMarksWhereNobodyHeedsThem checks that frames to peers of other kinds, and on a near path, leave as they always did.
func TestNoMarksWhereNobodyHeedsThem(t *testing.T) {
	for _, c := range []struct {
		name    string
		latency time.Duration
		cfg     Config
		marks   bool
	}{
		{"a near path", 100 * time.Microsecond, Config{}, false},
		{"a far path", 10 * time.Millisecond, Config{}, true},
		{"a far path, sealed", 10 * time.Millisecond, Config{Keys: ringOf(1)}, true},
		{"a far path, with checksums", 10 * time.Millisecond, Config{Checksum: true}, true},
		{"adaptive", 10 * time.Millisecond, Config{Congestion: CongestionAdaptive}, false},
		{"fixed", 10 * time.Millisecond, Config{Congestion: CongestionFixed}, false},
		{"another kind", 10 * time.Millisecond, Config{Profile: new(OpenCPI(false))}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var seen [4]int
				p := newPair(t, pairConfig{a: c.cfg, b: Config{Profile: c.cfg.Profile, Keys: c.cfg.Keys, Checksum: c.cfg.Checksum}, link: simnet.Link{Latency: c.latency, Remark: func(m transport.ECN) (transport.ECN, bool) {
					seen[m]++
					return m, true
				}}})
				defer p.close()
				for i := range 20 {
					if err := p.toB.Write(t.Context(), write(0x1000, pattern(i, 10_000), 0, uint32(i+1))); err != nil {
						t.Fatal(err)
					}
				}
				if seen[transport.ECT0] > 0 != c.marks || seen[transport.ECT1] > 0 || seen[transport.CE] > 0 || seen[transport.NotECT] == 0 {
					t.Errorf("%v", seen)
				}
				want := ""
				if c.marks {
					want = "on"
				}
				if got := p.toB.Stats().ECN; got != want {
					t.Errorf("%q, want %q", got, want)
				}
			})
		})
	}
}

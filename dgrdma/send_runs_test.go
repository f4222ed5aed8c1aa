package dgrdma

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/outgoing"
	"github.com/dgrdma/dgrdma/endpoint/session"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// sprayer is an endpoint whose frames are looked at as they leave.
type sprayer struct {
	*feed
	c      *Conn
	copied func(*Transaction) // of all that it posts
	source []byte
	flows  [2]*Flow
	done   []string
	posted int
	lent   int // frames of which the data left from where it is
}

// stopGo lets frames go one by one now and then.
type stopGo struct {
	ack.Controller
	every int
	sent  int
	next  ack.Instant
}

func (p *stopGo) OnSent(now ack.Instant, order uint32, bytes int) {
	if p.sent++; p.every > 0 && p.sent%p.every == 0 {
		p.next = now.Add(time.Millisecond)
	}
	p.Controller.OnSent(now, order, bytes)
}

func (p *stopGo) NextSend(now ack.Instant, bytes int) ack.Instant {
	return max(p.next, p.Controller.NextSend(now, bytes))
}

func newSprayer(t testing.TB, p Profile, every int, copied func(*Transaction)) *sprayer {
	s := &sprayer{copied: copied, source: pattern(3, 1<<20)}
	s.feed = newFeed(t, Config{MTU: 300, Entropy: func() uint32 { return 4711 }, NewController: func(mss int) ack.Controller {
		return &stopGo{Controller: &ack.FixedWindow{Bytes: 60 * mss}, every: every}
	}})
	s.e.epochs.all = followed
	var err error
	if s.c, err = s.e.Connect(Peer{ID: 1, Addr: addrA, Profile: &p}); err != nil {
		t.Fatal(err)
	}
	for i := range s.flows {
		s.flows[i] = &Flow{conn: s.c, name: s.c.plain.name}
	}
	if p.Session {
		s.introduce(1, life)
	}
	return s
}

// idOf returns the id of a frame of the connection.
func (s *sprayer) idOf(b []byte) uint32 {
	if frame.IsSession(b) {
		f, _ := frame.ParseSession(b)
		return f.ID
	}
	f, _ := frame.Parse(b)
	return uint32(f.Seq)
}

// acks is a frame of the peer that acknowledges n frames from first on, whose ids are counted from the epoch if there is a session.
func (s *sprayer) acks(first frame.Seq, n int) []byte {
	of, ok := s.sessions[1]
	if !ok {
		b := make([]byte, frame.HeaderSize)
		h := frame.Header{Dst: 2, Src: 1, AckStart: first, AckCount: uint8(n)}
		h.Put(b)
		return b
	}
	b := make([]byte, frame.MostSessionAck)
	id := of[1] + uint32(first)
	h := frame.SessionHeader{Dst: 2, Src: 1, ID: id, Tag: session.Tag(session.Epoch(of[1]), session.Epoch(of[0])), Ack: of[1]}
	if first == 1 {
		h.Ack = id + uint32(n) - 1
		return b[:frame.PutSessionAckFrame(b, &h, false, 0, frame.LongestDelay, nil)]
	}
	return b[:frame.PutSessionAckFrame(b, &h, false, 0, frame.LongestDelay, []frame.Range{{First: id, Count: n}})]
}

// leaves returns what the connection sends at that moment.
func (s *sprayer) leaves(now ack.Instant) (all [][]byte) {
	for more := true; more; {
		more = s.c.build(&s.e.batch, now)
		for _, o := range s.e.batch.Frames() {
			if len(o.Rest) > 0 {
				s.lent++
			}
			all = append(all, slices.Concat(o.Buf[s.c.headroom:], o.Rest))
		}
		engine{s.e}.Flush()
	}
	return all
}

// posts posts a transaction of segments of these lengths, and returns whether it could.
func (s *sprayer) posts(lane int, sizes []int) error {
	s.posted++
	x := &Transaction{Completion: Word(0, uint32(s.posted)), Copied: s.copied, Urgent: lane == 2, Fence: lane == 3}
	for i, n := range sizes {
		at := (s.posted*4096 + i*7919) % (len(s.source) - n) &^ 7
		x.Segments = append(x.Segments, Segment{Addr: uint32(i) << 16, Bytes: s.source[at : at+n]})
	}
	number := s.posted
	x.Done = func(_ *Transaction, err error) { s.done = append(s.done, fmt.Sprint(number, err)) }
	_, _, err := s.c.enqueue(x, x.Done, nil, posting{to: anyEpoch, flow: s.flows[lane%2]})
	return err
}

// TestRunsLeaveAsFrames checks that what leaves as runs is what leaves frame by frame, as the
// frames of a transaction with Copied do: byte for byte, in the same order, whatever the window,
// the pace, other flows and what is to be acknowledged say, and when it is sent again.
func TestRunsLeaveAsFrames(t *testing.T) {
	// Time stands still while they are compared: on a busy machine one would send another HELLO.
	synctest.Test(t, runsLeaveAsFrames)
}

func runsLeaveAsFrames(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	again, parts, lent := 0, 0, 0
	worlds := fewer(120, 30)
	for world := range worlds {
		profile := []Profile{Native(), OpenCPI(true), OpenCPI2(), FPGA()}[rnd.IntN(4)]
		if profile.OpenTransactions = 1 + rnd.IntN(20); rnd.IntN(2) == 0 {
			profile.Window = 5 + rnd.IntN(100)
		}
		every := rnd.IntN(60)
		runs := newSprayer(t, profile, every, nil)
		each := newSprayer(t, profile, every, func(*Transaction) {})
		both := []*sprayer{runs, each}
		if rnd.IntN(2) == 0 {
			l := outgoing.LendingOf(false, false)
			l.Least = 1 // the data stays where it is
			runs.e.batch.Init(runs.c.headroom, smallLength, l)
		}
		now := runs.e.now() + ack.Instant(time.Second)
		for _, s := range both { // as their clocks did not begin at the same moment
			s.c.tx.wire.forget(now)
		}
		heard := ack.Wide(2)
		var flying []frame.Seq
		seen := map[frame.Seq]bool{}
		for step := range 120 {
			now = now.Add(time.Duration(rnd.IntN(300)) * time.Microsecond)
			var in []byte
			switch op := rnd.IntN(12); {
			case op < 4:
				sizes := make([]int, 1+rnd.IntN(3))
				tx := &runs.c.tx // whose last full frame may be the end of the segment, or nearly
				full := rnd.IntN(40)*tx.leastChunk + tx.path.Size() + 8*(rnd.IntN(3)-1)
				for i := range sizes {
					sizes[i] = []int{0, 8, 300, 2000, 20_000, 60_000, full, full}[rnd.IntN(8)] &^ 7
				}
				lane := rnd.IntN(4)
				if x, y := runs.posts(lane, sizes), each.posts(lane, sizes); (x == nil) != (y == nil) {
					t.Fatalf("world %d: posted with %v and %v", world, x, y)
				}
			case op < 7 && len(flying) > 0: // acknowledged, in order or not
				k := 0
				if op == 6 {
					k = rnd.IntN(len(flying))
				}
				n := min(1+rnd.IntN(60), len(flying)-k)
				for n > 1 && flying[k+n-1].Diff(flying[k]) != n-1 {
					n--
				}
				in = runs.acks(flying[k], n)
				flying = slices.Delete(flying, k, k+n)
			case op == 7: // data that is to be acknowledged
				in = runs.encode(1, uint32(heard), frame.Message{Txn: life + uint32(heard), Count: 1, Index: 1, Len: 8, CompletionValue: 1})
			case op == 8:
				now = now.Add(time.Duration(rnd.IntN(40)) * time.Millisecond)
				for _, s := range both {
					engine{s.e}.Expire(s.c, now)
				}
			}
			if in != nil {
				heard++
				for _, s := range both {
					s.e.receive(now, []transport.Datagram{{From: addrA, Data: in}})
					s.e.endBatch(now)
				}
			}
			x, y := runs.leaves(now), each.leaves(now)
			if !slices.EqualFunc(x, y, slices.Equal) {
				t.Fatalf("world %d, step %d, %s: as runs %d frames left, else %d:\n%x\n%x", world, step, profile.Name, len(x), len(y), x, y)
			}
			if !slices.Equal(runs.done, each.done) {
				t.Fatalf("world %d, step %d: done %v and %v", world, step, runs.done, each.done)
			}
			for _, b := range x {
				if len(messagesIn(t, b)) == 0 {
					continue
				}
				id := runs.idOf(b)
				seq := frame.Seq(id - runs.sessions[1][1])
				if seen[seq] {
					again++
				}
				seen[seq] = true
				if at, _ := slices.BinarySearchFunc(flying, seq, func(a, b frame.Seq) int { return a.Diff(b) }); at == len(flying) || flying[at] != seq {
					flying = slices.Insert(flying, at, seq)
				}
				if o := runs.c.tx.inFlight.At(id); o.Length > 0 && !o.IsKept() {
					parts++
				}
			}
			cx, cy := runs.c.tx.counters, each.c.tx.counters
			if cx != cy {
				t.Fatalf("world %d, step %d: counters\n%+v\n%+v", world, step, cx, cy)
			}
		}
		lent += runs.lent
	}
	if parts < 10_000*worlds/120 || again < 100*worlds/120 || lent < 3000*worlds/120 {
		t.Errorf("%d frames were made of parts, %d frames left again, %d from where their data is", parts, again, lent)
	}
}

// TestRunsWaitForProof checks that one frame leaves until a peer that acknowledges all before an id
// has shown which ids it takes, also of a transaction that would fill a run (quirk F2).
func TestRunsWaitForProof(t *testing.T) {
	f := newFeed(t, Config{})
	profile := FPGA()
	c, err := f.e.Connect(Peer{ID: 1, Addr: addrA, Profile: &profile, Size: 1 << 16})
	if err != nil {
		t.Fatal(err)
	}
	f.sent, f.keeps = nil, true
	if err := c.Post(&Transaction{Segments: []Segment{{64, make([]byte, 16_000)}}, Completion: Word(8, 1)}); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		f.give(nil)
	}
	if len(f.sent) != 1 {
		t.Errorf("%d frames left, want 1", len(f.sent))
	}
}

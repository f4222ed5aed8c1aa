package link

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// far puts a path between the hosts 1 and 2.
func (n *net) far(l simnet.Link) {
	n.sim.Link(simnet.Addr(1), simnet.Addr(2), l)
	n.sim.Link(simnet.Addr(2), simnet.Addr(1), l)
}

// TestMessagesGoOnWhileBuffersGrow checks that messages arrive once, whole and in order while rings grow in
// both directions, whatever the network does and however the programs pause, that an end of file arrives
// whichever ring it is in, and that all memory is free afterwards.
func TestMessagesGoOnWhileBuffersGrow(t *testing.T) {
	grown := 0
	for seed := range uint64(16) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 0))
			n := newNet(t, seed)
			bad := simnet.Link{Latency: 3 * time.Millisecond, Rate: 50e6}
			if seed%4 > 0 {
				bad.Loss, bad.Duplicate, bad.Reorder, bad.ReorderBy = rnd.Float64()*0.05, 0.05, rnd.Float64()*0.2, 5*time.Millisecond
			}
			n.far(bad)
			o := &Options{Directions: Both, Buffers: 1 + rnd.IntN(8), Size: 1 + rnd.IntN(300), Grow: true}
			a, b, out, in := pair(t, n, o, o)
			ctx := t.Context()
			messages := 1 + rnd.IntN(600)
			pause := time.Duration(rnd.IntN(3)) * time.Millisecond
			ended := make(chan error)
			for i, l := range []*Link{out, in} {
				seed := 2*seed + uint64(i)
				go func() {
					err := produce(ctx, l.Out, seed, messages, pause)
					if err == nil {
						err = l.Out.Close()
					}
					ended <- err
				}()
			}
			for i, l := range []*Link{in, out} {
				seed := 2*seed + uint64(i)
				go func() {
					k, err := consume(ctx, l.In, seed, pause)
					if err == io.EOF && k == messages {
						err = nil
					}
					ended <- err
				}()
			}
			for range 4 {
				if err := <-ended; err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
			}
			for _, l := range []*Link{out, in} {
				if now, _ := l.In.Buffers(); now > o.Buffers {
					grown++
				}
				l.Finish()
			}
			time.Sleep(time.Minute)
			nothingLeft(t, a, b)
		})
	}
	if grown < 8 {
		t.Errorf("%d of 32 rings grew", grown)
	}
}

// TestEndsWhileBuffersGrow checks that all memory is free after a link has ended in any moment of the
// growth of its rings, by either side, or by the end of its peer.
func TestEndsWhileBuffersGrow(t *testing.T) {
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 0))
			n := newNet(t, seed)
			n.far(simnet.Link{Latency: 3 * time.Millisecond, Loss: 0.02, Rate: 20e6})
			o := &Options{Buffers: 4, Size: 100, Grow: true}
			a, b, out, in := pair(t, n, &Options{}, o)
			go func() {
				for out.Out.Send(t.Context(), 0, make([]byte, 100)) == nil {
				}
			}()
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for m, err := range in.In.Messages(t.Context()) {
					if err != nil {
						return
					}
					if len(m.Bytes) != 100 {
						t.Errorf("seed %d: %d bytes", seed, len(m.Bytes))
					}
				}
			}()
			time.Sleep(time.Duration(rnd.IntN(60_000)) * time.Microsecond)
			ends := []func(){
				func() { in.Finish() }, func() { out.Finish() }, func() { in.Abort(t.Context(), "why") }, func() { out.Abort(t.Context(), "why") },
				func() { a.Close() }, func() { in.Peer().Reset(0) },
			}
			ends[seed%uint64(len(ends))]()
			time.Sleep(time.Minute)
			<-ended
			out.Finish()
			in.Finish()
			time.Sleep(time.Minute)
			nothingLeft(t, b)
		})
	}
}

// TestGrowthIsBounded checks that rings grow to a quarter of what is free in their host, so that others find room,
// and not beyond what the path needs; and not at all where the round trip is short, or where a side said how many buffers
// there are.
func TestGrowthIsBounded(t *testing.T) {
	const size = 1000
	for _, c := range []struct {
		name        string
		memory      int
		latency     time.Duration
		rate        int64
		o           Options
		least, most int // buffers
	}{
		{"little memory", 256 << 10, 50 * time.Millisecond, 20e6, Options{Buffers: 8, Size: size, Grow: true}, 32, 60},
		{"none", 32 << 10, 50 * time.Millisecond, 20e6, Options{Buffers: 8, Size: size, Grow: true}, 8, 8},
		{"slow", 0, 50 * time.Millisecond, 1e6, Options{Buffers: 8, Size: size, Grow: true}, 32, 128},
		{"near", 0, 1500 * time.Microsecond, 20e6, Options{Buffers: 8, Size: size, Grow: true}, 8, 8},
		{"chosen", 0, 50 * time.Millisecond, 20e6, Options{Buffers: 8, Size: size}, 8, 8},
		{"not chosen", 0, 50 * time.Millisecond, 20e6, Options{Size: size}, 256, 16 << 20 / size},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := newNet(t, 1)
			n.far(simnet.Link{Latency: c.latency, Rate: c.rate, Queue: 400})
			a, b := n.host(1, nil), n.host(2, &Config{Memory: c.memory})
			out, in := join(t, a, b, "port", nil, &c.o)
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			go func() {
				for _, err := range in.In.Messages(t.Context()) {
					if err != nil {
						return
					}
				}
			}()
			for out.Out.Send(ctx, 0, make([]byte, size)) == nil {
			}
			if now, _ := in.In.Buffers(); now < c.least || now > c.most {
				t.Errorf("%s: %d buffers, want %d to %d", c.name, now, c.least, c.most)
			}
			if there, _ := out.Out.Buffers(); c.least == c.most && there != c.most {
				t.Errorf("%s: %d buffers by what the producer knows", c.name, there)
			}
			if s := b.Stats(); c.name == "little memory" && s.Free < s.Memory/2 {
				t.Errorf("%s: %d bytes of %d are free", c.name, s.Free, s.Memory)
			}
		})
	}
}

// TestGrowthOfAFakePeer checks that a producer fills a larger ring from the next message on, and says so, that
// it takes none that is not larger, or cannot be written to, and that nothing but an offer is answered.
func TestGrowthOfAFakePeer(t *testing.T) {
	more := buffers(8, 8)
	more.Data, more.Flags = 1<<21, 1<<17
	small, long, nowhere := more, more, more
	small.Buffers, long.Size, nowhere.Data = 7, 16, 1<<32-8
	for name, h := range map[string]half{"larger": more, "not twice as large": small, "of other buffers": long, "past the top": nowhere} {
		t.Run(name, func(t *testing.T) {
			withFakePeer(t, &Options{Directions: Send}, func(t *testing.T, host *Host, made <-chan *Link, s *fakePeer) {
				s.dial(1, "port", toDialer, half{}, buffers(4, 8))
				l := <-made
				l.Out.Send(soon(t), 0, []byte("before"))
				s.letter(letter{kind: letterGrow, from: 1, to: l.number, attempt: 1, out: h})
				got := s.mail()
				if name != "larger" {
					if !errors.Is(l.Err(), ErrProtocol) {
						t.Errorf("%v", l.Err())
					}
					return
				}
				if len(got) != 1 || got[0].kind != letterGrown || got[0].to != 1 || got[0].first != 1 || got[0].attempt != 1 {
					t.Fatalf("%+v", got)
				}
				l.Out.Send(soon(t), 0, []byte("after"))
				s.wait(time.Second)
				s.mu.Lock()
				defer s.mu.Unlock()
				if flag := Flag(s.words[more.Flags+4]); flag.Length() != 5 || s.words[1<<16] == 0 || l.Err() != nil {
					t.Errorf("the flag of message 1 is %v of %v, %v", flag, s.words, l.Err())
				}
			})
		})
	}
	for name, l := range map[string]letter{"filled without an offer": {kind: letterGrown, first: 0}} {
		t.Run(name, func(t *testing.T) {
			withFakePeer(t, nil, func(t *testing.T, host *Host, made <-chan *Link, s *fakePeer) {
				s.dial(1, "port", toListener, half{Credit: 1 << 15}, half{})
				in := <-made
				l.from, l.to, l.attempt = 1, in.number, 1
				s.letter(l)
				if !errors.Is(in.Err(), ErrProtocol) {
					t.Errorf("%v", in.Err())
				}
			})
		})
	}
}

// TestOfferedRing checks that what a hostile peer says of the ring that it was offered ends the link, unless the
// messages before have room in the ring that they are in.
func TestOfferedRing(t *testing.T) {
	for _, c := range []struct {
		from uint32
		ok   bool
	}{{0, false}, {2, false}, {3, true}, {6, true}, {7, false}, {1 << 31, false}, {1<<32 - 1, false}} {
		withFakePeer(t, &Options{Buffers: 4, Size: 8}, func(t *testing.T, host *Host, made <-chan *Link, s *fakePeer) {
			at := s.dial(1, "port", toListener, half{Credit: 1 << 15}, half{}).out
			in := <-made
			for i := range uint32(4) {
				s.fill(&at, i, PackFlag(8, 0, false))
			}
			s.wait(time.Millisecond)
			for i := range 3 {
				m, err := in.In.Recv(soon(t))
				if err != nil {
					t.Fatal(err)
				}
				if i < 2 {
					in.In.Release(m)
				}
			}
			if in.In.growth.busy.Store(true); !in.In.offer(4) {
				t.Fatal("no ring is offered")
			}
			got := s.mail()
			if len(got) != 1 || got[0].kind != letterGrow || got[0].out.Buffers != 16 || got[0].to != 1 {
				t.Fatalf("%+v", got)
			}
			s.letter(letter{kind: letterGrown, from: 1, to: in.number, attempt: 1, first: c.from})
			if (in.Err() == nil) != c.ok {
				t.Errorf("filled from message %d on: %v", c.from, in.Err())
			}
		})
	}
}

package dgrdma

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/seal"
	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// bothWays writes much and little, both ways, and fails unless just that is in the memories.
func (p *pair) bothWays(rnd *rand.Rand, rounds int) {
	p.t.Helper()
	const slot = 1 << 17
	type end struct {
		c   *Conn
		mem *Region
	}
	results := make(chan error)
	for side, x := range []end{{p.toB, p.memB}, {p.toA, p.memA}} {
		seed := rnd.Uint64()
		go func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(side)))
			want := make([]byte, x.mem.Size())
			pending := make(chan error, 8)
			for round := range rounds {
				for i := range 8 { // at once, so that small ones share frames
					n := []int{0, 1, 4, 24, 100, 3000, 40_000, 100_000}[rnd.IntN(8)]
					at := uint32(64 + i*slot + rnd.IntN(100))
					data := pattern(rnd.IntN(1000), n)
					copy(want[at:], data)
					copy(want[4*i:], []byte{byte(round + 1), 0, 0, 0})
					tx := write(at, data, uint32(4*i), uint32(round+1))
					tx.Done = func(_ *Transaction, err error) { pending <- err }
					if err := x.c.Post(tx); err != nil {
						results <- err
						return
					}
				}
				for range 8 {
					if err := <-pending; err != nil {
						results <- err
						return
					}
				}
				if got := x.mem.Bytes(); !bytes.Equal(got, want) {
					at := 0
					for got[at] == want[at] {
						at++
					}
					results <- fmt.Errorf("side %d, round %d: byte %d is %#x, want %#x", side, round, at, got[at], want[at])
					return
				}
			}
			results <- nil
		}()
	}
	if err := errors.Join(<-results, <-results); err != nil {
		p.t.Fatal(err)
	}
}

// TestDamagedAfterTheWire checks that all that is posted arrives, and no byte that was not, whatever a switch makes of frames after the
// checksum of the wire, where frames have a checksum of ours, or are sealed.
func TestDamagedAfterTheWire(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	for _, x := range []struct {
		name   string
		cfg    Config
		reason Reason
	}{
		{"checksum", Config{Checksum: true, GiveUp: time.Minute}, RefusedChecksum},
		{"sealed", Config{Keys: ringOf(1), GiveUp: time.Minute}, RefusedSeal},
	} {
		for _, damage := range []float64{0.01, 0.1, 0.3} {
			for i := range uint64(fewer(10, 3)) {
				fixture.Bubble(t, fmt.Sprintf("%s, %v, seed %d", x.name, damage, seed+i), func(t *testing.T) {
					rnd := rand.New(rand.NewPCG(seed+i, 0))
					cfg := x.cfg
					cfg.Coalesce = []time.Duration{0, 100 * time.Microsecond}[rnd.IntN(2)]
					p := newPair(t, pairConfig{a: cfg, b: cfg, size: 64 + 9<<17, link: simnet.Link{
						Damage: damage, Loss: 0.1 * rnd.Float64(), Duplicate: 0.1 * rnd.Float64(), Reorder: 0.2 * rnd.Float64(), Latency: 100 * time.Microsecond,
					}})
					defer p.close()
					p.bothWays(rnd, 6)
					if n := p.a.Stats().RefusedBy(x.reason) + p.b.Stats().RefusedBy(x.reason); n == 0 {
						t.Errorf("none was refused for %v", x.reason)
					}
					if x.reason == RefusedChecksum && (!p.toA.Stats().Checksum || !p.toB.Stats().Checksum) {
						t.Error("the two did not agree on checksums")
					}
				})
			}
		}
	}
}

// TestDamagedUnchecked checks that an endpoint without checksum and seal that gets damaged frames writes nowhere but into its memory, and
// goes on.
func TestDamagedUnchecked(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	for i := range uint64(10) {
		fixture.Bubble(t, fmt.Sprintf("seed %d", seed+i), func(t *testing.T) {
			const guard, size = 4096, 1 << 18
			around := bytes.Repeat([]byte{0xA5}, guard+size+guard)
			at := guard
			mem, err := RegionOver(around[at : at+size : at+size])
			if err != nil {
				t.Fatal(err)
			}
			p := newPair(t, pairConfig{a: Config{GiveUp: time.Second}, b: Config{GiveUp: time.Second, Memory: mem}, size: size})
			defer p.close()
			p.net.Link(addrA, addrB, simnet.Link{Damage: 0.3, Loss: 0.05, Duplicate: 0.05})
			p.net.Link(addrB, addrA, simnet.Link{Damage: 0.3})
			for n := range 30 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				if err := p.toB.Write(ctx, write(64, pattern(n, 20_000), 0, 1)); err != nil && p.toB.Err() != nil {
					p.toB.Reset(0)
				}
				cancel()
			}
			p.net.Link(addrA, addrB, simnet.Link{})
			p.net.Link(addrB, addrA, simnet.Link{})
			for tries := 0; ; tries++ {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				err := p.toB.Write(ctx, write(64, pattern(99, 20_000), 0, 1))
				cancel()
				if err == nil {
					break
				}
				if tries == 20 {
					t.Fatal(err)
				}
				p.toB.Reset(0)
				time.Sleep(time.Second)
			}
			for i, b := range around {
				if b != 0xA5 && (i < guard || i >= guard+size) {
					t.Fatalf("byte %d outside of the memory was written", i-guard)
				}
			}
		})
	}
}

// TestChecksumIsAgreedOn checks that frames have checksums if both sides want them. If one does,
// its HELLOs have one; if none does, or the peer is of another kind, no frame has.
func TestChecksumIsAgreedOn(t *testing.T) {
	card := OpenCPI(false)
	for _, x := range []struct {
		name    string
		a, b    Config
		both    bool
		a2b     bool // the HELLOs of a have one
		foreign bool
	}{
		{"both", Config{Checksum: true}, Config{Checksum: true}, true, true, false},
		{"one", Config{Checksum: true}, Config{}, false, true, false},
		{"neither", Config{}, Config{}, false, false, false},
		{"foreign", Config{Checksum: true, Profile: &card}, Config{Checksum: true, Profile: &card}, false, false, true},
		{"sealed", Config{Checksum: true, Keys: ringOf(1)}, Config{Checksum: true, Keys: ringOf(1)}, false, false, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t, pairConfig{a: x.a, b: x.b, size: 64 + 9<<17})
				there, back := new(wiretap), new(wiretap)
				p.net.Link(addrA, addrB, simnet.Link{Script: there.hear})
				p.net.Link(addrB, addrA, simnet.Link{Script: back.hear})
				if !x.foreign {
					// So that all of the handshake is heard. What is under way when the other side begins again fails.
					for _, c := range []*Conn{p.toA, p.toB} {
						c.Reset(0)
						time.Sleep(10 * time.Millisecond)
					}
				}
				p.bothWays(rand.New(rand.NewPCG(1, 1)), 4)
				time.Sleep(time.Second)
				if p.toB.Stats().Checksum != x.both || p.toA.Stats().Checksum != x.both {
					t.Errorf("agreed %v and %v, want %v", p.toB.Stats().Checksum, p.toA.Stats().Checksum, x.both)
				}
				sa, sb := p.a.Stats(), p.b.Stats()
				if x.a.Keys == nil && (sa.BytesSent != sb.BytesReceived || sb.BytesSent != sa.BytesReceived) {
					t.Errorf("sent %d and %d bytes, received %d and %d", sa.BytesSent, sb.BytesSent, sb.BytesReceived, sa.BytesReceived)
				}
				p.close()
				lengths := make(map[int]int)
				for i, w := range []*wiretap{there, back} {
					for _, b := range w.heard() {
						if x.a.Keys != nil {
							if seal.KindOf(b) == seal.Plain {
								t.Fatalf("not sealed: %x", b)
							}
							continue
						}
						var h frame.Handshake
						hello := false
						if !frame.IsSession(b) {
							f, err := frame.Parse(b)
							if err != nil {
								t.Fatal(err)
							}
							h, hello = handshakeIn(&f)
						}
						want := x.both || hello && x.a2b && i == 0 && h.Kind == frame.HandshakeHello // what answers a frame without one has none
						if frame.HasChecksum(b) != want || hello && h.Checks != want {
							t.Errorf("side %d: checksum %v, want %v: %x", i, frame.HasChecksum(b), want, b[:min(len(b), 60)])
						}
						if want {
							if _, ok := frame.CutChecksum(b); !ok || len(b) < 46 {
								t.Errorf("%d bytes, with a wrong checksum: %x", len(b), b[:min(len(b), 60)])
							}
						}
						if len(b) > 1490 {
							t.Errorf("a frame of %d bytes", len(b))
						}
						lengths[len(b)]++
					}
				}
				most := 0
				for _, n := range lengths {
					most = max(most, n)
				}
				if !x.foreign && most < 50 {
					t.Errorf("full frames are not equally long: %v", lengths)
				}
			})
		})
	}
}

// TestHandshakeDamaged checks that one fault in a frame of the handshake has no endpoint take the other one for one without checksums,
// whichever bit it is.
func TestHandshakeDamaged(t *testing.T) {
	for bit := 0; bit < 8*138; bit += fewer(1, 7) { // 7: each bit of a byte has its turn
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, pairConfig{a: Config{Checksum: true}, b: Config{Checksum: true}, size: 4096})
			defer p.close()
			spoil := func(i int, b []byte) simnet.Verdict {
				if i < 3 && bit/8 < len(b) {
					b[bit/8] ^= 1 << (bit % 8)
				}
				return simnet.Deliver()
			}
			p.net.Link(addrA, addrB, simnet.Link{Script: spoil})
			p.net.Link(addrB, addrA, simnet.Link{Script: spoil})
			p.toA.Reset(0)
			p.toB.Reset(0)
			if err := p.toB.Write(t.Context(), write(64, pattern(1, 100), 0, 1)); err != nil {
				t.Fatalf("bit %d: %v", bit, err)
			}
			if !p.toB.Stats().Checksum || !p.toA.Stats().Checksum {
				t.Errorf("bit %d: not agreed", bit)
			}
			n := uint64(0)
			for why := range p.a.Stats().Refused {
				n += p.a.Stats().Refused[why] + p.b.Stats().Refused[why]
			}
			if n == 0 {
				t.Errorf("bit %d: nothing was refused", bit)
			}
		})
	}
}

// TestHandshakeLosesItsChecksum checks that a fault in a frame of the handshake that hits all that says of a checksum has no endpoint take the other
// one for one without, whichever frame it is, whoever connects.
func TestHandshakeLosesItsChecksum(t *testing.T) {
	with, without := make([]byte, frame.HandshakeSize), make([]byte, frame.HandshakeSize)
	h := frame.Handshake{Kind: frame.HandshakeHello, Sender: 1}
	h.Put(without, 2, 1)
	h.Checks = true
	h.Put(with, 2, 1)
	types := slices.Index(with[frame.HeaderSize+8:], 1) + frame.HeaderSize + 8
	if with[types] == without[types] {
		t.Fatalf("the type is not at %d", types)
	}
	for _, known := range []bool{false, true} {
		for hit := range 8 { // of the frames that each side sends
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t, pairConfig{a: Config{Checksum: true}, b: Config{Checksum: true, AcceptAny: true}, size: 4096})
				defer p.close()
				spoilt := 0
				spoil := func(i int, b []byte) simnet.Verdict {
					if f, err := frame.Parse(b); err == nil && !frame.IsSession(b) && f.Messages() == 1 && b[types] == 1 {
						if spoilt++; i == hit {
							b[9], b[types] = b[9]&^frame.FlagChecksum, 0
						}
					}
					return simnet.Deliver()
				}
				p.net.Link(addrA, addrB, simnet.Link{Script: spoil})
				p.net.Link(addrB, addrA, simnet.Link{Script: spoil})
				if known {
					p.toA.Reset(0)
				} else {
					p.toA.Close()
				}
				p.toB.Reset(0)
				if err := p.toB.Write(t.Context(), write(64, pattern(1, 100), 0, 1)); err != nil {
					t.Fatalf("known %v, frame %d: %v", known, hit, err)
				}
				if spoilt == 0 || !p.toB.Stats().Checksum {
					t.Errorf("known %v, frame %d: %d frames of the handshake, no checksums agreed", known, hit, spoilt)
				}
			})
		}
	}
}

// TestWelcomeThatBecomesHello checks that a short WELCOME, as the answer to a HELLO that somebody made up without a checksum, takes no checksum away
// when a part of it becomes zero and it says what a HELLO says.
func TestWelcomeThatBecomesHello(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{a: Config{Checksum: true}, b: Config{Checksum: true}, size: 4096, link: simnet.Link{Latency: time.Millisecond}})
		defer p.close()
		became := 0
		p.net.Link(addrB, addrA, simnet.Link{Latency: time.Millisecond, Script: func(_ int, b []byte) simnet.Verdict {
			if len(b) == frame.HandshakeSize {
				clear(b[frame.HeaderSize+12:])
				became++
			}
			return simnet.Deliver()
		}})
		forged := make([]byte, frame.HandshakeSize)
		h := frame.Handshake{Kind: frame.HandshakeHello, Sender: 1001}
		h.Put(forged, 2, 1)
		p.toA.Reset(0)
		p.toB.Reset(0)
		p.net.Inject(addrA, addrB, forged)
		if err := p.toB.Write(t.Context(), write(64, pattern(1, 100), 0, 1)); err != nil {
			t.Fatal(err)
		}
		if became == 0 || !p.toB.Stats().Checksum || !p.toA.Stats().Checksum {
			t.Errorf("%d of WELCOME became HELLO, and no checksums are agreed on", became)
		}
	})
}

// rawsIn returns the bytes of the frames that came until d from now.
func (s *fakePeer) rawsIn(d time.Duration) [][]byte {
	time.Sleep(d)
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	got := s.raws
	s.got, s.raws = nil, nil
	return got
}

// TestChecksumAndPeerWithout checks that a peer that wants no checksums takes the HELLO of an endpoint that wants them, and that
// nothing else has one.
func TestChecksumAndPeerWithout(t *testing.T) {
	withFakePeer(t, Config{Checksum: true}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
		s.send(1, data(life, 1, 1, 64, pattern(1, 8)))
		got := s.rawsIn(10 * time.Millisecond)
		if e.Memory().(*Region).Bytes()[64] != pattern(1, 8)[0] {
			t.Error("what it wrote is not there")
		}
		if c.Stats().Checksum {
			t.Error("agreed on checksums with it")
		}
		c.Post(write(64, pattern(2, 100), 0, 1))
		got = append(got, s.rawsIn(10*time.Millisecond)...)
		hellos := 0
		c.Reset(0)
		for _, b := range append(got, s.rawsIn(10*time.Millisecond)...) {
			if !frame.IsSession(b) {
				f, err := frame.Parse(b)
				if err != nil {
					t.Fatal(err)
				}
				if h, ok := handshakeIn(&f); ok && h.Kind == frame.HandshakeHello {
					if _, ok := frame.CutChecksum(b); !ok || !frame.HasChecksum(b) {
						t.Errorf("no checksum in the HELLO %x", b)
					}
					hellos++
					continue
				}
			}
			if frame.HasChecksum(b) {
				t.Errorf("a checksum in %x", b)
			}
		}
		if len(got) < 2 || hellos == 0 {
			t.Errorf("%d frames came, %d of them HELLOs", len(got), hellos)
		}
	})
}

// greetChecked is greet of a peer that wants checksums.
func (s *fakePeer) greetChecked(epoch uint32) {
	s.t.Helper()
	s.local, s.theirs = 0, 0
	say := func(h frame.Handshake) {
		b := make([]byte, frame.ListedSize, frame.ListedSize+frame.ChecksumSize)
		h.Checks = true
		h.Put(b, s.dst, s.id)
		list := servesMemory()
		list.Put(b[frame.HandshakeSize:])
		s.raw(frame.AddChecksum(b))
	}
	say(frame.Handshake{Kind: frame.HandshakeHello, Sender: epoch})
	for _, b := range s.rawsIn(time.Millisecond) {
		f, err := frame.Parse(b)
		if err != nil {
			s.t.Fatal(err)
		}
		if h, ok := handshakeIn(&f); ok && h.Kind == frame.HandshakeWelcome && h.Receiver == epoch && h.Checks && frame.HasChecksum(b) {
			s.local, s.theirs, s.upTo = epoch, h.Sender, h.Sender
			say(frame.Handshake{Kind: frame.HandshakeConfirm, Sender: epoch, Receiver: h.Sender, Check: h.Check})
			return
		}
	}
	s.t.Fatal("no WELCOME with a checksum came back")
}

// TestChecksumAgreedAndMissing checks that where both want checksums frames without one, and with a wrong one, are
// refused and counted, and the others are taken.
func TestChecksumAgreedAndMissing(t *testing.T) {
	withFakePeer(t, Config{Checksum: true}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
		c.Reset(0)
		s.rawsIn(time.Millisecond)
		s.greetChecked(life + 1)
		s.rawsIn(time.Millisecond)
		if !c.Stats().Checksum {
			t.Fatal("not agreed")
		}
		mem := e.Memory().(*Region).Bytes()
		refused := uint64(0)
		plain := func() []byte { return s.encode(1, data(life, 1, 1, 64, pattern(1, 8))) }
		hello := make([]byte, frame.HandshakeSize)
		h := frame.Handshake{Kind: frame.HandshakeHello, Sender: life + 2, Checks: true}
		h.Put(hello, 2, 1)
		for i, x := range []struct {
			b     []byte
			taken bool
		}{
			{plain(), false},
			{append(plain(), 1, 2, 3, 4), false},
			{func() []byte { b := frame.AddChecksum(plain()); b[50] ^= 1; return b }(), false},
			{func() []byte { b := frame.AddChecksum(plain()); b[16] ^= 1; return b }(), false}, // the cumulative acknowledgement
			{func() []byte { b := frame.AddChecksum(plain()); return b[:len(b)-1] }(), false},
			{hello, false},
			{s.ackFrame(s.theirs, func(*frame.SessionHeader) []frame.Range { return nil }), false},
			{frame.AddChecksum(plain()), true},
		} {
			s.raw(x.b)
			s.rawsIn(time.Millisecond)
			if taken := mem[64] != 0; taken != x.taken {
				t.Errorf("frame %d: taken %v", i, taken)
			}
			if !x.taken {
				refused++
			}
			if st := c.Stats(); st.RefusedBy(RefusedChecksum) != refused {
				t.Errorf("frame %d: refused %v, want %d", i, st.RefusedReasons(), refused)
			}
		}
	})
}

// TestChecksumOnNarrowPaths checks that size probes are as long as the frames with their checksums.
func TestChecksumOnNarrowPaths(t *testing.T) {
	for carries := 1450; carries <= 1470; carries++ {
		synctest.Test(t, func(t *testing.T) {
			n := simnet.New(1)
			defer n.Close()
			n.Link(addrA, addrB, simnet.Link{MTU: carries, Latency: time.Millisecond})
			p := openNarrow(t, n, 1470, Config{Checksum: true})
			defer p.a.Close()
			defer p.b.Close()
			want := pattern(2, 100_000)
			if err := p.toB.Write(t.Context(), write(4096, want, 0, 2)); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(p.memB.Bytes()[4096:][:len(want)], want) {
				t.Error("other bytes arrived")
			}
			awaitPathMTU(p.toB)
			if st := p.toB.Stats(); !st.Checksum || st.FrameSize != wholeFrame(frame.SessionHeaderSize, carries-frame.ChecksumSize) {
				t.Errorf("agreed %v, frames of %d bytes where %d are carried", st.Checksum, st.FrameSize, carries)
			}
		})
	}
}

// TestChecksumOfWhatStaysWhereItIs checks that frames of which the transport is given the data where the transaction has it have a checksum
// after that data, also those that are sent again.
func TestChecksumOfWhatStaysWhereItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		n.Link(addrA, addrB, simnet.Link{Damage: 0.05, Loss: 0.05, Latency: 100 * time.Microsecond})
		p := openNarrow(t, n, 8970, Config{Checksum: true})
		defer p.a.Close()
		defer p.b.Close()
		for i := range 10 {
			want := pattern(i, 1<<20)
			if err := p.toB.Write(t.Context(), write(4096, want, 0, 2)); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(p.memB.Bytes()[4096:][:len(want)], want) {
				t.Fatal("other bytes arrived")
			}
		}
		if st := p.b.Stats(); st.RefusedBy(RefusedChecksum) == 0 {
			t.Error("nothing was damaged")
		}
	})
}

// TestForgedHelloTakesNoChecksumAway checks that HELLOs that an unknown source makes up, short ones without a checksum, do not have two
// endpoints take each other for one that wants none.
func TestForgedHelloTakesNoChecksumAway(t *testing.T) {
	for _, accept := range []bool{false, true} {
		for _, waits := range []time.Duration{0, 500 * time.Microsecond, 3 * time.Millisecond, 30 * time.Millisecond} {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t, pairConfig{a: Config{Checksum: true, AcceptAny: accept}, b: Config{Checksum: true, AcceptAny: accept}, size: 4096, link: simnet.Link{Latency: time.Millisecond}})
				defer p.close()
				forge := func() {
					for i, x := range []struct {
						from, to transport.Addr
						src, dst frame.EndpointID
					}{{addrA, addrB, 1, 2}, {addrB, addrA, 2, 1}} {
						b := make([]byte, frame.HandshakeSize)
						h := frame.Handshake{Kind: frame.HandshakeHello, Sender: uint32(1001 + i)}
						h.Put(b, x.dst, x.src)
						p.net.Inject(x.from, x.to, b)
					}
				}
				for i := range uint32(20) {
					if accept {
						p.toA.Close()
						time.Sleep(10 * time.Millisecond)
					}
					forge()
					p.toB.Reset(0)
					time.Sleep(waits)
					forge()
					if err := p.toB.Write(t.Context(), write(64, pattern(1, 100), 0, i)); err != nil {
						t.Fatal(err)
					}
					if !p.toB.Stats().Checksum {
						t.Fatalf("accepting %v, forged again after %v, round %d: no checksums any more", accept, waits, i)
					}
				}
			})
		}
	}
}

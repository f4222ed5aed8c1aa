package ether_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/ether"
)

// numbered returns a frame with a number, on which what it holds depends.
func numbered(n, size int) []byte {
	b := frame(1, size, byte(13*n))
	binary.LittleEndian.PutUint32(b[2:], uint32(n))
	return b
}

// TestRingTakesShortFrames: a ring has room for two of the widest windows, whatever the
// interface carries, if frames are no longer than they were said to be.
func TestRingTakesShortFrames(t *testing.T) {
	for _, c := range []struct{ carries, mtu int }{{9000, 0}, {9000, 1500}, {65535, 1500}} {
		cable(t, c.carries)
		a, b := listen(t, ether.Config{Interface: "d0"}), listen(t, ether.Config{Interface: "d1", MTU: c.mtu})
		const n = 2000
		for i := range n {
			send(t, a, b.LocalAddr(), numbered(i, 60))
		}
		for i, d := range collect(t, b, n) {
			if !bytes.Equal(d.Data, numbered(i, 60)) {
				t.Fatalf("%+v: frame %d: received %.40x", c, i, d.Data)
			}
		}
		check(t, b.Close())
	}
}

// TestLongerThanTold: a peer may send frames that are longer than ours, as long as the
// interface carries them; they come in order.
func TestLongerThanTold(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, ring bool) {
		cable(t, 4000)
		b := listen(t, ether.Config{Interface: "d1", MTU: 1500, NoRing: !ring, NoXDP: !ring})
		for _, name := range []string{"d0", "d1"} {
			check(t, netlink.LinkSetMTU(link(t, name), 9000))
		}
		a := listen(t, ether.Config{Interface: "d0"})
		sizes := []int{60, 1500, 1501, 1513, 1600, 4000, 4001, 60, 4000, 9000, 9000, 3999, 60}
		const rounds = 50
		var want [][]byte
		cut := uint64(0)
		for i := range rounds * len(sizes) {
			f := numbered(i, sizes[i%len(sizes)])
			if send(t, a, b.LocalAddr(), f); len(f) > 4000 {
				cut++
				continue
			}
			want = append(want, f)
		}
		for i, d := range collect(t, b, len(want)) {
			if d.From != a.LocalAddr() || !bytes.Equal(d.Data, want[i]) {
				t.Fatalf("frame %d: %d bytes from %v, want %d", i, len(d.Data), d.From, len(want[i]))
			}
		}
		onlyMarker(t, a, b, 1)
		if s := b.Stats(); s != (transport.Stats{Truncated: cut}) {
			t.Errorf("%+v, want %d truncated", s, cut)
		}
	})
}

// TestAllIsAccountedFor: in rings of every shape, with frames of any length and a receiver
// that comes and goes, each frame comes whole and in order, or is counted as dropped.
func TestAllIsAccountedFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ carries, mtu int }{{128, 0}, {1501, 0}, {9000, 0}, {9001, 1000}, {32700, 0}, {65535, 0}, {65535, 1500}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			cable(t, c.carries)
			a, b := listen(t, ether.Config{Interface: "d0"}), listen(t, ether.Config{Interface: "d1", MTU: c.mtu, Buffer: 4096})
			rng := rand.New(rand.NewPCG(uint64(c.carries), uint64(c.mtu)))
			in := make([]transport.Datagram, 64)
			sent, got, next := 0, 0, 0
			receive := func(most int, wait time.Duration) {
				for most > 0 {
					n, err := b.Recv(in[:1+rng.IntN(len(in))], wait)
					check(t, err)
					if n == 0 {
						return
					}
					for _, d := range in[:n] {
						i := int(binary.LittleEndian.Uint32(d.Data[2:]))
						if i < next || i >= sent || !bytes.Equal(d.Data, numbered(i, len(d.Data))) {
							t.Fatalf("frame %d of %d bytes behind %d", i, len(d.Data), next-1)
						}
						next = i + 1
					}
					most -= n
					got += n
				}
			}
			for range 30 {
				var frames [][]byte
				for range rng.IntN(150) {
					size := 6 + rng.IntN(c.carries-5)
					if rng.IntN(3) == 0 {
						size = c.carries
					}
					frames = append(frames, numbered(sent, size))
					sent++
				}
				send(t, a, b.LocalAddr(), frames...)
				receive(rng.IntN(200), 0)
			}
			receive(sent, 20*time.Millisecond)
			lost := int(a.Stats().SendDrops + b.Stats().KernelDrops)
			if s := b.Stats(); got+lost != sent || s.Truncated+s.Foreign != 0 {
				t.Errorf("of %d frames %d came and %d were dropped; %+v", sent, got, lost, s)
			}
			send(t, a, b.LocalAddr(), numbered(sent, c.carries))
			if n, err := b.Recv(in, time.Second); n != 1 || err != nil {
				t.Errorf("behind that: %d, %v", n, err)
			}
		})
	}
}

package udp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/transport"
)

func listen(t testing.TB, ip string, cfg Config) *Conn {
	t.Helper()
	cfg.Addr = netip.AddrPortFrom(netip.MustParseAddr(ip), 0)
	c, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// outgoing makes a frame of n bytes that says its number everywhere.
func outgoing(to transport.Addr, number, n int) transport.Outgoing {
	b := make([]byte, prefix+n)
	for i := range b {
		b[i] = byte(number + i)
	}
	binary.BigEndian.PutUint32(b[prefix:], uint32(number))
	o := transport.Outgoing{To: new(to), Buf: b}
	if half := n / 2; number%3 == 1 && half > 4 { // the end lies elsewhere
		o.Buf, o.Rest = b[:prefix+half:prefix+half], bytes.Clone(b[prefix+half:])
		if number%2 == 1 { // in two places
			o.Rest, o.Tail = o.Rest[:1], o.Rest[1:]
		}
	}
	return o
}

// collect receives until there are n datagrams, at most so many at once.
func collect(t testing.TB, c *Conn, n, atOnce int) (frames [][]byte, from []transport.Addr) {
	t.Helper()
	stop := time.AfterFunc(10*time.Second, func() { c.Close() })
	defer stop.Stop()
	dst := make([]transport.Datagram, atOnce)
	for len(frames) < n {
		got, err := c.Recv(dst, transport.Forever)
		if err != nil {
			t.Fatalf("after %d of %d datagrams: %v", len(frames), n, err)
		}
		if got < 1 || got > atOnce {
			t.Fatalf("%d datagrams at once, room for %d", got, atOnce)
		}
		for _, d := range dst[:got] {
			frames = append(frames, bytes.Clone(d.Data))
			from = append(from, d.From)
		}
	}
	return frames, from
}

// TestBatches: runs of equal frames, a shorter one at the end of a run, single
// ones, and two receivers in turn: all arrive whole, in order, from their sender.
func TestBatches(t *testing.T) {
	for name, v := range variants() {
		t.Run(name, func(t *testing.T) {
			a, b, other := listen(t, v.at, v.cfg), listen(t, v.at, v.cfg), listen(t, v.at, v.cfg)
			full := min(a.Caps().MTU, 16000)
			var batch []transport.Outgoing
			want := make(map[transport.Addr][][]byte)
			add := func(to *Conn, size, count int) {
				for range count {
					o := outgoing(v.seen(t, to, a), len(batch), size)
					batch = append(batch, o)
					want[*o.To] = append(want[*o.To], slices.Concat(o.Buf[prefix:], o.Rest, o.Tail))
				}
			}
			add(b, full, 70) // more than one message takes
			add(b, 100, 1)   // the end of a run
			add(b, full, 3)
			add(b, 200, 1)
			add(b, 201, 1) // longer than the one before
			add(other, full, 2)
			add(b, 64, 150) // more than one message may cut
			add(other, 10, 1)
			if n, err := a.Send(batch); n != len(batch) || err != nil {
				t.Fatalf("sent %d of %d: %v", n, len(batch), err)
			}
			for _, to := range []*Conn{b, other} {
				w, seen := want[v.seen(t, to, a)], v.seen(t, a, to)
				got, from := collect(t, to, len(w), 7)
				for i := range w {
					if !bytes.Equal(got[i], w[i]) || from[i] != seen {
						t.Fatalf("datagram %d of %d bytes from %v, want %d bytes from %v", i, len(got[i]), from[i], len(w[i]), seen)
					}
				}
			}
			if n, err := b.Recv(make([]transport.Datagram, 1), 0); n != 0 || err != nil {
				t.Errorf("%d more: %v", n, err)
			}
			if s := a.Stats(); s != (transport.Stats{}) {
				t.Errorf("sender counted %+v", s)
			}
		})
	}
}

// TestMemoryIsGone: what lies in memory that is gone, as in a mapped file that was cut, is
// lost, and nothing else.
func TestMemoryIsGone(t *testing.T) {
	gone, err := unix.Mmap(-1, 0, 1<<16, unix.PROT_NONE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(gone)
	a, b := listen(t, "127.0.0.1", Config{}), listen(t, "127.0.0.1", Config{})
	to := b.LocalAddr()
	bad := outgoing(to, 0, 100)
	bad.Rest = gone[:20_000]
	batch := []transport.Outgoing{outgoing(to, 2, 100), outgoing(listen(t, "127.0.0.1", Config{}).LocalAddr(), 3, 10), bad, outgoing(to, 4, 200)}
	if n, err := a.Send(batch); n != len(batch) || err != nil {
		t.Fatalf("sent %d of %d: %v", n, len(batch), err)
	}
	got, _ := collect(t, b, 2, 8)
	if len(got[0]) != 100 || len(got[1]) != 200 || a.Stats().SendDrops != 1 {
		t.Errorf("%d and %d bytes came, %d frames were dropped", len(got[0]), len(got[1]), a.Stats().SendDrops)
	}
}

// TestPrefix: two bytes of zeros before every frame, whatever was there
// (specification, section 5.2).
func TestPrefix(t *testing.T) {
	a := listen(t, "127.0.0.1", Config{})
	plain, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	to := transport.UDPAddr(plain.LocalAddr().(*net.UDPAddr).AddrPort())
	a.Send([]transport.Outgoing{outgoing(to, 0x01020304, 12)})
	buf := make([]byte, 100)
	n, err := plain.Read(buf)
	if err != nil || n != 14 || !bytes.Equal(buf[:6], []byte{0, 0, 1, 2, 3, 4}) {
		t.Fatalf("%d bytes % x: %v", n, buf[:n], err)
	}
}

// TestForeign: what is no frame of ours is counted and passed over.
func TestForeign(t *testing.T) {
	for _, cfg := range []Config{{MTU: 1500}, {MTU: 1500, NoGRO: true}} {
		b := listen(t, "127.0.0.1", cfg)
		plain, err := net.Dial("udp4", netip.AddrPort(b.LocalAddr().AddrPort()).String())
		if err != nil {
			t.Fatal(err)
		}
		defer plain.Close()
		long := 3000
		for _, n := range []int{0, 1, long, 2, 20} {
			if _, err := plain.Write(make([]byte, n)); err != nil {
				t.Fatal(err)
			}
		}
		want := []int{0, 18}
		if b.gro { // there is room for all that IP carries; the engine will judge
			want = []int{long - prefix, 0, 18}
		}
		got, _ := collect(t, b, len(want), 10)
		for i, n := range want {
			if len(got[i]) != n {
				t.Errorf("datagram %d has %d bytes, want %d", i, len(got[i]), n)
			}
		}
		s := b.Stats()
		if s.Foreign != 2 || s.Truncated != uint64(3-len(want)) {
			t.Errorf("counted %+v", s)
		}
	}
}

// TestSendDrops: what the system refuses is loss, and the rest of the batch goes
// out.
func TestSendDrops(t *testing.T) {
	a, b := listen(t, "127.0.0.1", Config{}), listen(t, "127.0.0.1", Config{})
	six := transport.UDPAddr(netip.MustParseAddrPort("[::1]:9"))
	nowhere := transport.UDPAddr(netip.MustParseAddrPort("192.0.2.1:9")) // from 127.0.0.1
	batch := []transport.Outgoing{
		outgoing(six, 0, 50), outgoing(b.LocalAddr(), 1, 50), outgoing(transport.EtherAddr([6]byte{1}), 2, 50),
		outgoing(nowhere, 3, 50), outgoing(nowhere, 4, 50), outgoing(b.LocalAddr(), 5, 50),
	}
	if n, err := a.Send(batch); n != len(batch) || err != nil {
		t.Fatalf("sent %d: %v", n, err)
	}
	got, _ := collect(t, b, 2, 10)
	if binary.BigEndian.Uint32(got[0]) != 1 || binary.BigEndian.Uint32(got[1]) != 5 {
		t.Errorf("frames %x", got)
	}
	if s := a.Stats(); s.SendDrops != 4 {
		t.Errorf("%d drops, want 4", s.SendDrops)
	}
}

// TestRefusedPort: nobody listens there. The socket goes on working.
func TestRefusedPort(t *testing.T) {
	for _, p := range places() {
		a, b := listen(t, p.at, Config{}), listen(t, p.at, Config{})
		gone := listen(t, p.at, Config{})
		to := p.of(gone)
		gone.Close()
		for i := range 20 {
			batch := []transport.Outgoing{outgoing(to, i, 50), outgoing(p.of(b), i, 50), outgoing(to, i, 50)}
			if n, err := a.Send(batch); n != len(batch) || err != nil {
				t.Fatalf("sent %d: %v", n, err)
			}
			if _, err := a.Recv(make([]transport.Datagram, 4), 0); err != nil {
				t.Fatal(err)
			}
		}
		if got, _ := collect(t, b, 20, 10); len(got) != 20 {
			t.Errorf("%d frames", len(got))
		}
	}
}

func TestClose(t *testing.T) {
	for range 50 {
		a, b := listen(t, "127.0.0.1", Config{}), listen(t, "127.0.0.1", Config{})
		var wg sync.WaitGroup
		wg.Go(func() {
			dst := make([]transport.Datagram, 64)
			for {
				if _, err := b.Recv(dst, transport.Forever); err != nil {
					if !errors.Is(err, net.ErrClosed) {
						t.Error(err)
					}
					return
				}
			}
		})
		wg.Go(func() {
			for {
				if _, err := b.Send([]transport.Outgoing{outgoing(a.LocalAddr(), 1, 100)}); err != nil {
					if !errors.Is(err, net.ErrClosed) {
						t.Error(err)
					}
					return
				}
			}
		})
		wg.Go(func() { a.Send([]transport.Outgoing{outgoing(b.LocalAddr(), 1, 100)}) })
		wg.Go(func() { b.Close() })
		wg.Go(func() { b.Close() })
		wg.Wait()
		if err := b.Close(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("closed again: %v", err)
		}
		if s := b.Stats(); s.KernelDrops != 0 {
			t.Errorf("closed: %+v", s)
		}
	}
}

// TestPortTaken: the error says what to do, and a program can test for it.
func TestPortTaken(t *testing.T) {
	a := listen(t, "127.0.0.1", Config{})
	_, err := Listen(Config{Addr: a.LocalAddr().AddrPort()})
	if !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("error %v", err)
	}
}

// TestPollWaits: no longer than it was told, and no longer than until something
// comes.
func TestPollWaits(t *testing.T) {
	a, b := listen(t, "127.0.0.1", Config{}), listen(t, "127.0.0.1", Config{})
	dst := make([]transport.Datagram, 4)
	const wait = 20 * time.Millisecond
	began := time.Now()
	if n, err := b.Recv(dst, wait); n != 0 || err != nil || time.Since(began) < wait {
		t.Errorf("%d, %v after %v, want nothing after %v", n, err, time.Since(began), wait)
	}
	time.AfterFunc(wait, func() { a.Send([]transport.Outgoing{outgoing(b.LocalAddr(), 1, 50)}) })
	began = time.Now()
	if n, err := b.Recv(dst, time.Minute); n != 1 || err != nil || time.Since(began) > time.Minute/2 {
		t.Errorf("%d, %v after %v, want a datagram after %v", n, err, time.Since(began), wait)
	}
	time.AfterFunc(wait, func() { b.Close() })
	if n, err := b.Recv(dst, time.Minute); n != 0 || !errors.Is(err, net.ErrClosed) {
		t.Errorf("%d, %v, want net.ErrClosed", n, err)
	}
}

// TestNoRoom: who has no room gets nothing, at once, and what waits is not lost.
func TestNoRoom(t *testing.T) {
	for _, cfg := range []Config{{}, {NoGRO: true}} {
		a, b := listen(t, "127.0.0.1", cfg), listen(t, "127.0.0.1", cfg)
		const n = 3
		for i := range n {
			if _, err := a.Send([]transport.Outgoing{outgoing(b.LocalAddr(), i, 100)}); err != nil {
				t.Fatal(err)
			}
			for _, wait := range []time.Duration{0, time.Minute, transport.Forever} {
				if n, err := b.Recv(nil, wait); n != 0 || err != nil {
					t.Fatal(n, err)
				}
			}
		}
		collect(t, b, n, 1)
	}
}

// TestKernelDrops: a receiver that does not look loses datagrams, and can say
// how many.
func TestKernelDrops(t *testing.T) {
	a, b := listen(t, "127.0.0.1", Config{MTU: 1500}), listen(t, "127.0.0.1", Config{MTU: 1500, Buffer: 4096})
	if got := b.Buffers(); got.Wanted != 4096 || got.Receive > 1<<16 || got.Receive < 4096 {
		t.Errorf("buffers %+v", got)
	}
	const sent = 2000
	var batch []transport.Outgoing
	for i := range sent {
		batch = append(batch, outgoing(b.LocalAddr(), i, 1000))
	}
	if _, err := a.Send(batch); err != nil {
		t.Fatal(err)
	}
	got, dst := 0, make([]transport.Datagram, 64)
	for {
		n, err := b.Recv(dst, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got += n; n == 0 {
			break
		}
	}
	// A coalesced datagram counts once.
	if s := b.Stats(); s.KernelDrops == 0 || got == sent || got+int(s.KernelDrops) > sent {
		t.Errorf("%d received and %d dropped of %d", got, s.KernelDrops, sent)
	}
}

// TestZeroAllocs: neither direction allocates.
func TestZeroAllocs(t *testing.T) {
	for name, v := range variants() {
		t.Run(name, func(t *testing.T) {
			a, b := listen(t, v.at, v.cfg), listen(t, v.at, v.cfg)
			var batch []transport.Outgoing
			for i := range 20 {
				batch = append(batch, outgoing(v.seen(t, b, a), i, 1000))
			}
			dst := make([]transport.Datagram, b.Caps().Batch)
			if n := fixture.Allocations(20, func() {
				if _, err := a.Send(batch); err != nil {
					t.Fatal(err)
				}
				for got := 0; got < len(batch); {
					n, err := b.Recv(dst, transport.Forever)
					if err != nil {
						t.Fatal(err)
					}
					got += n
				}
			}); n != 0 {
				t.Errorf("%v allocations", n)
			}
		})
	}
}

// TestMTU: what frames may have, by headers and by the way.
func TestMTU(t *testing.T) {
	for _, p := range places() {
		for _, mtu := range []int{0, 1500} {
			c := listen(t, p.at, Config{MTU: mtu})
			room := map[int]int{0: 65505, 1500: 1470}[mtu]
			if at := netip.MustParseAddr(p.at); at.Is6() && !at.IsUnspecified() {
				room -= 20
			}
			if got := c.Caps().MTU; got != room {
				t.Errorf("%v, MTU %d: room for %d, want %d", p, mtu, got, room)
			}
			if room = map[int]int{0: 65505, 1500: 1470}[mtu]; p.ip.Is6() {
				room -= 20
			}
			if got := c.MTU(p.of(c)); got != room {
				t.Errorf("%v, MTU %d: room for %d on the way to itself, want %d", p, mtu, got, room)
			}
		}
	}
}

// TestFocus: a socket with one peer hears nobody else, where it can be given others again, and
// then keeps its port.
func TestFocus(t *testing.T) {
	for _, p := range places() {
		for _, port := range []uint16{0, 47112} {
			a, err := Listen(Config{Addr: netip.AddrPortFrom(netip.MustParseAddr(p.at), port)})
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			b, other := listen(t, p.at, Config{}), listen(t, p.at, Config{})
			exchange := func(with *Conn, heard bool) {
				t.Helper()
				for _, way := range [][2]*Conn{{a, with}, {with, a}} {
					if n, err := way[0].Send([]transport.Outgoing{outgoing(p.seen(t, way[1], way[0]), 7, 100)}); n != 1 || err != nil {
						t.Fatal(n, err)
					}
					if heard || way[1] != a {
						collect(t, way[1], 1, 1)
					} else if n, err := a.Recv(make([]transport.Datagram, 1), 0); n != 0 || err != nil {
						t.Errorf("%v, port %d: heard from another: %d, %v", p, port, n, err)
					}
				}
			}
			exchange(b, true)
			exchange(other, true)
			a.Focus(p.seen(t, b, a))
			exchange(b, true)
			exchange(other, false)
			a.Focus(p.seen(t, other, a))
			exchange(other, true)
			exchange(b, false)
			a.Focus(transport.Addr{})
			exchange(other, true)
			exchange(b, true)
			if s := a.Stats(); s != (transport.Stats{}) {
				t.Errorf("counted %+v", s)
			}
			a.Close()
		}
	}
}

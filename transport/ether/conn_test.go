package ether_test

import (
	"bytes"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/ether"
)

func TestMain(m *testing.M) {
	fixture.WaitBeside(8)
	os.Exit(fixture.Run(m))
}

// inBothModes runs a test with frames received by system calls, and in a ring.
func inBothModes(t *testing.T, f func(t *testing.T, ring bool)) {
	t.Run("calls", func(t *testing.T) { f(t, false) })
	t.Run("ring", func(t *testing.T) { f(t, true) })
}

func TestRoundTrip(t *testing.T) {
	for _, mtu := range []int{1500, 9000} {
		inBothModes(t, func(t *testing.T, ring bool) {
			cable(t, mtu)
			a, b := listen(t, ether.Config{Interface: "d0", ID: 1, NoRing: !ring, NoXDP: !ring}), listen(t, ether.Config{Interface: "d1", ID: 0x1234, NoRing: !ring})
			if caps := a.Caps(); caps.MTU != mtu || !caps.Blocks {
				t.Fatalf("%+v", caps)
			}
			var frames [][]byte
			for size := 2; size <= mtu; size += 1 + size/3 {
				frames = append(frames, frame(0x1234, size, byte(size)))
			}
			frames = append(frames, frame(0x1234, mtu, 1))
			for range 50 { // more than are moved at once, or fit a block
				send(t, a, b.LocalAddr(), frames...)
				for i, d := range collect(t, b, len(frames)) {
					if d.From != a.LocalAddr() || !bytes.Equal(d.Data, frames[i]) {
						t.Fatalf("frame %d: %d bytes from %v, want %d from %v", i, len(d.Data), d.From, len(frames[i]), a.LocalAddr())
					}
				}
			}
			send(t, b, a.LocalAddr(), frame(1, 10, 9))
			collect(t, a, 1)
			if s := b.Stats(); s != (transport.Stats{}) {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestRecvBlocks: frames are found by one who sleeps, and in order.
func TestRecvBlocks(t *testing.T) {
	inBothModes(t, func(t *testing.T, ring bool) {
		cable(t, 1500)
		a, b := listen(t, ether.Config{NoRing: !ring, NoXDP: !ring, Interface: "d0", ID: 1}), listen(t, ether.Config{NoRing: !ring, Interface: "d1", ID: 2})
		done := make(chan error)
		go func() {
			in := make([]transport.Datagram, 8)
			for next := byte(0); next < 100; {
				n, err := b.Recv(in, transport.Forever)
				if err != nil || n == 0 {
					done <- errors.Join(errors.New("Recv"), err)
					return
				}
				for _, d := range in[:n] {
					if d.Data[2] != next {
						done <- errors.New("out of order")
						return
					}
					next++
				}
			}
			done <- nil
		}()
		for i := range byte(100) {
			f := frame(2, 100, 0)
			f[2] = i
			send(t, a, b.LocalAddr(), f)
			if i%10 == 0 {
				time.Sleep(2 * time.Millisecond)
			}
		}
		check(t, <-done)
	})
}

func TestCloseWakesRecv(t *testing.T) {
	inBothModes(t, func(t *testing.T, ring bool) {
		cable(t, 1500)
		c := listen(t, ether.Config{NoRing: !ring, NoXDP: !ring, Interface: "d0"})
		done := make(chan error)
		go func() {
			_, err := c.Recv(make([]transport.Datagram, 1), transport.Forever)
			done <- err
		}()
		time.Sleep(20 * time.Millisecond)
		check(t, c.Close())
		if err := <-done; !errors.Is(err, net.ErrClosed) {
			t.Fatal(err)
		}
		if _, err := c.Send([]transport.Outgoing{{To: new(c.LocalAddr()), Buf: frame(1, 60, 0)}}); !errors.Is(err, net.ErrClosed) {
			t.Error("send:", err)
		}
		if _, err := c.Recv(make([]transport.Datagram, 1), 0); !errors.Is(err, net.ErrClosed) {
			t.Error("poll:", err)
		}
		if err := c.Close(); !errors.Is(err, net.ErrClosed) {
			t.Error("close:", err)
		}
		c.Stats()
	})
}

// TestConcurrentClose is for the race detector.
func TestConcurrentClose(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, ring bool) {
		cable(t, 1500)
		for range 20 {
			a, b := listen(t, ether.Config{NoRing: !ring, NoXDP: !ring, Interface: "d0"}), listen(t, ether.Config{NoRing: !ring, Interface: "d1"})
			var wg sync.WaitGroup
			wg.Go(func() {
				in := make([]transport.Datagram, 8)
				sum := 0
				for {
					n, err := b.Recv(in, transport.Forever)
					if err != nil {
						return
					}
					for _, d := range in[:n] { // views stay good beside Close
						for _, x := range d.Data {
							sum += int(x)
						}
					}
				}
			})
			wg.Go(func() {
				for {
					if _, err := a.Send([]transport.Outgoing{{To: new(b.LocalAddr()), Buf: frame(1, 500, 0)}}); err != nil {
						return
					}
				}
			})
			time.Sleep(time.Millisecond)
			for range 3 {
				wg.Go(func() { a.Close() })
				wg.Go(func() { b.Close(); b.Stats() })
			}
			wg.Wait()
		}
	})
}

func TestNoAllocation(t *testing.T) {
	inBothModes(t, func(t *testing.T, ring bool) {
		cable(t, 1500)
		a, b := listen(t, ether.Config{NoRing: !ring, NoXDP: !ring, Interface: "d0"}), listen(t, ether.Config{NoRing: !ring, Interface: "d1"})
		batch := make([]transport.Outgoing, 10)
		for i := range batch {
			batch[i] = transport.Outgoing{To: new(b.LocalAddr()), Buf: frame(1, 1500, 0)}
		}
		in := make([]transport.Datagram, 64)
		n := fixture.Allocations(500, func() {
			if _, err := a.Send(batch); err != nil {
				t.Fatal(err)
			}
			for got := 0; got < len(batch); {
				n, err := b.Recv(in, transport.Forever)
				if err != nil {
					t.Fatal(err)
				}
				got += n
			}
		})
		if n != 0 {
			t.Errorf("%v allocations for %d frames", n, len(batch))
		}
	})
}

// TestOverflow: what the kernel drops is counted, and not forgotten.
func TestOverflow(t *testing.T) {
	inBothModes(t, func(t *testing.T, ring bool) {
		cable(t, 1500)
		a, b := listen(t, ether.Config{NoRing: !ring, NoXDP: !ring, Interface: "d0"}), listen(t, ether.Config{NoRing: !ring, Interface: "d1", Buffer: 8192})
		const n = 5000 // more than the least ring of 4 MiB holds
		for range n {
			send(t, a, b.LocalAddr(), frame(1, 1500, 0))
		}
		first := b.Stats().KernelDrops
		if first == 0 || first >= n || b.Stats().KernelDrops != first {
			t.Errorf("dropped %d, then %d", first, b.Stats().KernelDrops)
		}
		check(t, b.Close())
		if got := b.Stats().KernelDrops; got != first {
			t.Errorf("after Close: %d, not %d", got, first)
		}
	})
}

// TestMemoryIsGone: what lies in memory that is gone, as in a mapped file that was cut, is
// lost, and nothing else.
func TestMemoryIsGone(t *testing.T) {
	cable(t, 1500)
	a, b := listen(t, ether.Config{Interface: "d0"}), listen(t, ether.Config{Interface: "d1"})
	gone, err := unix.Mmap(-1, 0, 4096, unix.PROT_NONE, unix.MAP_ANON|unix.MAP_PRIVATE)
	check(t, err)
	defer unix.Munmap(gone)
	to := new(b.LocalAddr())
	batch := []transport.Outgoing{{To: to, Buf: frame(1, 60, 0), Rest: gone[:500]}, {To: to, Buf: frame(1, 70, 0)}}
	if n, err := a.Send(batch); n != len(batch) || err != nil {
		t.Fatalf("sent %d of %d: %v", n, len(batch), err)
	}
	if got := collect(t, b, 1); len(got[0].Data) != 70 || a.Stats().SendDrops != 1 {
		t.Errorf("%d bytes came, %d frames were dropped", len(got[0].Data), a.Stats().SendDrops)
	}
}

func TestDownAndUp(t *testing.T) {
	inBothModes(t, func(t *testing.T, ring bool) {
		cable(t, 1500)
		a, b := listen(t, ether.Config{NoRing: !ring, NoXDP: !ring, Interface: "d0"}), listen(t, ether.Config{NoRing: !ring, Interface: "d1"})
		received := make(chan int)
		go func() {
			defer close(received)
			in := make([]transport.Datagram, 8)
			for {
				n, err := b.Recv(in, transport.Forever)
				if err != nil {
					return
				}
				received <- n
			}
		}()
		down(t, "d1")
		down(t, "d0")
		send(t, a, b.LocalAddr(), frame(1, 60, 0), frame(1, 60, 0))
		if s := a.Stats(); s.SendDrops != 2 {
			t.Errorf("while down: %+v", s)
		}
		up(t, "d0", "d1")
		for i, through := 0, false; !through; i++ {
			if i == 500 {
				t.Fatal("nothing comes through again")
			}
			send(t, a, b.LocalAddr(), frame(1, 60, 0))
			select {
			case <-received:
				through = true
			case <-time.After(10 * time.Millisecond): // queues start some time after the interface is up
			}
		}
		b.Close()
		for range received {
		}
	})
}

// TestInterfaceGone: a deleted interface is silence, at rest.
func TestInterfaceGone(t *testing.T) {
	inBothModes(t, func(t *testing.T, ring bool) {
		cable(t, 1500)
		a := listen(t, ether.Config{NoRing: !ring, NoXDP: !ring, Interface: "d0"})
		done := make(chan error)
		go func() {
			_, err := a.Recv(make([]transport.Datagram, 8), transport.Forever)
			done <- err
		}()
		check(t, netlink.LinkDel(link(t, "d0")))
		send(t, a, a.LocalAddr(), frame(1, 60, 0), frame(1, 60, 0), frame(1, 60, 0))
		if s := a.Stats(); s.SendDrops != 3 {
			t.Errorf("%+v", s)
		}
		before := processorTime(t)
		time.Sleep(300 * time.Millisecond)
		if used := processorTime(t) - before; used > 150*time.Millisecond {
			t.Errorf("used %v of processor time while nothing can happen", used)
		}
		a.Close()
		if err := <-done; !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
}

func processorTime(t *testing.T) time.Duration {
	var u syscall.Rusage
	check(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

package netns

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// talk sends datagrams from side 0, waits for each as long, and returns how many
// arrived at side 1.
func talk(t *testing.T, p Pair, address func(int) net.IP, datagrams int, wait time.Duration) (arrived int) {
	t.Helper()
	var server, client *net.UDPConn
	var err error
	p[1].In(func() { server, err = net.ListenUDP("udp", &net.UDPAddr{IP: address(1)}) })
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	p[0].In(func() { client, err = net.DialUDP("udp", nil, server.LocalAddr().(*net.UDPAddr)) })
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	buf := make([]byte, 100)
	for range datagrams {
		if _, err := client.Write([]byte("ping")); err != nil && !errors.Is(err, unix.EPERM) {
			t.Fatal(err)
		}
		server.SetReadDeadline(time.Now().Add(wait))
		if _, _, err := server.ReadFrom(buf); err == nil {
			arrived++
		}
	}
	return arrived
}

func ipv4(side int) net.IP { return IPv4(side).AsSlice() }
func ipv6(side int) net.IP { return IPv6(side).AsSlice() }

// TestPair: both families, at once and without loss; and neither namespace is
// this one.
func TestPair(t *testing.T) {
	Require(t)
	for _, address := range []func(int) net.IP{ipv4, ipv6} {
		for tries := 1; ; tries++ {
			p, began := NewPair(t, 1500), time.Now()
			if talk(t, p, address, 20, 5*time.Second) != 20 {
				t.Errorf("datagrams to %v are lost", address(1))
			}
			took := time.Since(began)
			if took < time.Second { // after which who found nobody asks again
				break
			}
			if tries == 5 { // a busy machine takes as long once or twice
				t.Errorf("%v: took %v: neighbours did not find each other at once", address(1), took)
				break
			}
		}
	}
	if _, err := net.InterfaceByName(Device); err == nil {
		t.Errorf("%s is in the namespace of the tests", Device)
	}
}

// TestFilters: what they drop, and that they end.
func TestFilters(t *testing.T) {
	Require(t)
	p := NewPair(t, 1500)
	for _, address := range []func(int) net.IP{ipv4, ipv6} {
		loss := p[1].Lose(t, 50)
		n := talk(t, p, address, 100, 5*time.Millisecond)
		if n < 20 || n > 80 || loss.Dropped() < 20 {
			t.Errorf("%d of 100 arrived, %d were lost, at 50 %%", n, loss.Dropped())
		}
		loss.Remove()
		wall := p[0].Forbid(t)
		if n := talk(t, p, address, 3, time.Millisecond); n != 0 || wall.Dropped() != 3 {
			t.Errorf("%d arrived, %d were refused", n, wall.Dropped())
		}
		wall.Remove()
		if talk(t, p, address, 1, 5*time.Second) != 1 {
			t.Error("nothing arrives after the filters")
		}
	}
}

// TestSwitch: checksums are real, so that the kernel notices corruption, and the
// faults are those of the seed.
func TestSwitch(t *testing.T) {
	Require(t)
	s := NewSwitch(t, 1500, 1, [2]Faults{})
	for _, address := range []func(int) net.IP{ipv4, ipv6} {
		if talk(t, s.Pair, address, 20, 5*time.Second) != 20 {
			t.Error("a switch without faults loses datagrams")
		}
		s.SetFaults(0, Faults{Corrupt: 1})
		if n := talk(t, s.Pair, address, 20, 5*time.Millisecond); n != 0 {
			t.Errorf("%d of 20 datagrams arrived corrupted", n)
		}
		s.SetFaults(0, Faults{Duplicate: 1})
		before := s.Passed(0).Duplicated
		if n := talk(t, s.Pair, address, 20, 5*time.Second); n != 20 {
			t.Errorf("%d arrived", n)
		}
		// A copy may have been taken for the datagram that was still under way.
		for deadline := time.Now().Add(5 * time.Second); s.Passed(0).Duplicated-before < 20; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%+v", s.Passed(0))
			}
		}
		s.SetFaults(0, Faults{})
	}
}

func TestDirectionFollowsItsSeed(t *testing.T) {
	faults := Faults{Drop: 0.2, Duplicate: 0.2, Corrupt: 0.2, Reorder: 0.2, Delay: time.Millisecond}
	run := func(seed uint64) (all []byte, p Passed) {
		d := newDirection(faults, seed, 0)
		now := time.Unix(0, 0)
		for i := range 1000 {
			f := make([]byte, 60)
			f[12], f[13], f[14], f[14+9], f[42] = 8, 0, 0x45, unix.IPPROTO_UDP, byte(i)
			for _, j := range d.pass(now, f, nil) {
				all = append(append(all, byte(j.due.Sub(now)/time.Microsecond)), j.frame...)
			}
		}
		return all, d.passed
	}
	a, p := run(1)
	b, q := run(1)
	c, _ := run(2)
	if string(a) != string(b) || p != q {
		t.Error("the same seed gives other faults")
	}
	if string(a) == string(c) {
		t.Error("another seed gives the same faults")
	}
	for _, n := range []uint64{p.Dropped, p.Duplicated, p.Corrupted, p.Reordered} {
		if n < 100 || n > 300 {
			t.Errorf("%+v of 1000 frames, with chances of 0.2", p)
		}
	}
}

// TestNothingStays: when a test ends, its network does not outlive it.
func TestNothingStays(t *testing.T) {
	Require(t)
	before := links(t)
	var inode uint64
	t.Run("network", func(t *testing.T) {
		p := NewPair(t, 1500)
		p[0].In(func() {
			var st unix.Stat_t
			if err := unix.Stat("/proc/thread-self/ns/net", &st); err != nil {
				t.Fatal(err)
			}
			inode = st.Ino
		})
	})
	if got := links(t); got != before {
		t.Errorf("%d links before, %d after", before, got)
	}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		var st unix.Stat_t
		if unix.Stat("/proc/self/fd/"+fd.Name(), &st) == nil && st.Ino == inode {
			t.Errorf("descriptor %s keeps the namespace", fd.Name())
		}
	}
}

func links(t *testing.T) int {
	t.Helper()
	list, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

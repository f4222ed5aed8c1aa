package emulator_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/internal/emulator"
)

// newRouter is a router between two ends, which are sockets of this process.
func newRouter(t *testing.T, text string) (r *emulator.Router, ends [2]*os.File) {
	t.Helper()
	cfg, err := emulator.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var ports [2]*os.File
	for i := range ports {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		ports[i], ends[i] = os.NewFile(uintptr(fds[0]), "port"), os.NewFile(uintptr(fds[1]), "end")
		t.Cleanup(func() { ends[i].Close() })
	}
	if r, err = emulator.Start(cfg, ports); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r, ends
}

// packet is one of IPv4 without ports.
func packet(number byte, size int) []byte {
	f := make([]byte, 14+size)
	binary.BigEndian.PutUint16(f[12:], unix.ETH_P_IP)
	f[14], f[14+19] = 0x45, number
	return f
}

func receive(t *testing.T, end *os.File) []byte {
	t.Helper()
	end.SetReadDeadline(time.Now().Add(10 * time.Second))
	buf := make([]byte, 1<<16)
	n, err := end.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	return buf[:n]
}

// TestRouter checks that packets arrive unchanged at the other side, each way, not before their time, and that
// what is no load arrives before them.
func TestRouter(t *testing.T) {
	r, ends := newRouter(t, "rate=8M,rtt=100ms")
	for from := range ends {
		began := time.Now()
		sent := [][]byte{packet(1, 1000), packet(2, 1000)}
		arp := make([]byte, 60)
		binary.BigEndian.PutUint16(arp[12:], unix.ETH_P_ARP)
		for _, f := range append(slices.Clone(sent), arp) {
			if _, err := ends[from].Write(f); err != nil {
				t.Fatal(err)
			}
		}
		if got := receive(t, ends[1-from]); !bytes.Equal(got, arp) {
			t.Errorf("%d bytes arrived first, want what neighbours say", len(got))
		}
		for i, f := range sent {
			got := receive(t, ends[1-from])
			least := 50*time.Millisecond + time.Duration(1+i)*time.Millisecond
			if took := time.Since(began); !bytes.Equal(got, f) || took < least {
				t.Errorf("packet %d: %d bytes after %v, want %v at least", i, len(got), took, least)
			}
		}
		if w := r.Way(from); w.Frames != 2 || w.Bytes != 2000 || w.LeftFrames != 2 || len(w.Flows) != 2 {
			t.Errorf("%+v", w)
		}
	}
	if r.Since() < 100*time.Millisecond {
		t.Errorf("running for %v", r.Since())
	}
}

// TestRouterCloses checks that a router closes its ports, with packets under way, and again.
func TestRouterCloses(t *testing.T) {
	r, ends := newRouter(t, "rate=8M,rtt=1s")
	ends[0].Write(packet(1, 1000))
	r.Close()
	r.Close()
	if n, err := ends[1].Read(make([]byte, 100)); n > 0 || err == nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}

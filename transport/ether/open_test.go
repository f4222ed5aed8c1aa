package ether_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/transport/ether"
	"github.com/dgrdma/dgrdma/transport/tap"
)

// TestOpen: two endpoints opened by strings, with transactions of 1 MiB.
func TestOpen(t *testing.T) {
	t.Parallel()
	for _, mtu := range []int{1500, 9000} {
		for _, options := range []string{"", "?ethertype=0x88B5", "?ring=on&sockbuf=8388608", "?busypoll=on&sockbuf=default", "?xdp=on", "?xdp=off&ring=off"} {
			t.Run(options, func(t *testing.T) {
				cable(t, mtu)
				memory, err := dgrdma.NewRegion(2 << 20)
				check(t, err)
				b, err := dgrdma.Open("ether:d1"+options, &dgrdma.Config{Memory: memory, AcceptAny: true})
				check(t, err)
				defer b.Close()
				mac := link(t, "d1").Attrs().HardwareAddr.String()
				if !strings.HasPrefix(b.URL(), "ocpi-ether-rdma:d1/"+mac+";2097152.") {
					t.Errorf("URL %s", b.URL())
				}
				a, err := dgrdma.Open("ether:"+link(t, "d0").Attrs().HardwareAddr.String()+options, nil)
				check(t, err)
				defer a.Close()
				if !strings.HasPrefix(a.URL(), "ocpi-ether-rdma:d0/") {
					t.Errorf("URL %s", a.URL())
				}
				to, err := a.Dial(b.URL())
				check(t, err)
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				data := make([]byte, 1<<20)
				for i := range uint32(20) {
					for j := range data {
						data[j] = byte(j*7) + byte(i)
					}
					check(t, to.Write(ctx, &dgrdma.Transaction{
						Segments: []dgrdma.Segment{{Addr: 4096, Bytes: data}}, Completion: dgrdma.Word(0, i+1),
					}))
					if memory.Load32(0) != i+1 || !bytes.Equal(memory.Bytes()[4096:4096+len(data)], data) {
						t.Fatal("acknowledged, but not in memory")
					}
					// The race detector does not see that what comes next passes through the kernel; it sees the lock.
					b.Conns()[0].Stats()
				}
			})
		}
	}
}

// TestOpenInSandbox: where the system refuses a ring only who asks for one is refused.
func TestOpenInSandbox(t *testing.T) {
	cable(t, 1500)
	sandboxed(t, unix.SYS_SETSOCKOPT, 2, unix.PACKET_RX_RING, unix.EPERM)
	for options, refuses := range map[string]bool{"": false, "?ring=off": false, "?ring=on": true} {
		e, err := dgrdma.Open("ether:d1"+options, nil)
		if refuses != errors.Is(err, unix.EPERM) || !refuses && err != nil {
			t.Errorf("%q: %v", options, err)
		}
		if err == nil {
			e.Close()
		}
	}
}

// TestOpenSaysHowItSends checks that an endpoint logs a line about the way by which its frames leave, unless that was
// chosen; that who insists is refused, without one; and that there is another line when the way changes.
func TestOpenSaysHowItSends(t *testing.T) {
	cable(t, 1500)
	const busy = "device or resource busy"
	var all []*dgrdma.Endpoint
	var logs []*safeLog
	for _, c := range []struct {
		options string
		line    string
		refused bool
	}{
		{"", "captures on this machine do not show them, unless xdp=off\" interface=d0", false},
		{"", busy, false}, {"?xdp=auto", busy, false}, {"?xdp=off", "", false}, {"?xdp=on", "", true},
	} {
		log := &safeLog{}
		e, err := dgrdma.Open("ether:d0"+c.options, &dgrdma.Config{Logger: slog.New(slog.NewTextHandler(log, nil))})
		if c.refused != errors.Is(err, unix.EBUSY) || !c.refused && err != nil {
			t.Fatalf("%q: %v", c.options, err)
		}
		if err == nil {
			defer e.Close()
			all, logs = append(all, e), append(logs, log)
		}
		lines := 0
		if c.line != "" {
			lines = 1
		}
		if said := log.String(); !strings.Contains(said, c.line) || strings.Count(said, "\n") != lines {
			t.Errorf("%q: %q", c.options, said)
		}
	}
	check(t, all[0].Close())
	memory, err := dgrdma.NewRegion(4096)
	check(t, err)
	at, err := dgrdma.Open("ether:d1", &dgrdma.Config{Memory: memory, AcceptAny: true})
	check(t, err)
	defer at.Close()
	to, err := all[1].Dial(at.URL())
	check(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := uint32(1); !strings.Contains(logs[1].String(), "sent by AF_XDP"); i++ {
		check(t, to.Write(ctx, &dgrdma.Transaction{Completion: dgrdma.Word(0, i)}))
	}
}

// safeLog is a log that is read while it is written.
type safeLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *safeLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *safeLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestTapSeesXDP checks that a recording of an endpoint has what leaves by AF_XDP, which a capture on its interface
// has not.
func TestTapSeesXDP(t *testing.T) {
	cable(t, 1500)
	memory, err := dgrdma.NewRegion(4096)
	check(t, err)
	b, err := dgrdma.Open("ether:d1", &dgrdma.Config{Memory: memory, AcceptAny: true})
	check(t, err)
	defer b.Close()
	var recorded bytes.Buffer
	a, err := dgrdma.OpenOver("ether:d0?xdp=on", nil, func(c dgrdma.Transport) dgrdma.Transport {
		recording, err := tap.New(c, &recorded, tap.Options{})
		check(t, err)
		return recording
	})
	check(t, err)
	to, err := a.Dial(b.URL())
	check(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	payload := []byte("seventeen letters")
	check(t, to.Write(ctx, &dgrdma.Transaction{Segments: []dgrdma.Segment{{Addr: 64, Bytes: payload}}, Completion: dgrdma.Word(0, 1)}))
	check(t, a.Close())
	if !bytes.Contains(recorded.Bytes(), payload) {
		t.Errorf("the recording of %d bytes has not what was sent", recorded.Len())
	}
}

// TestClosedEndpointHasNoSocket: when Close has returned, the packet socket is gone, though
// frames were lent to who drove the endpoint, and the program knows it still.
func TestClosedEndpointHasNoSocket(t *testing.T) {
	for _, options := range []string{"", "?ring=off"} {
		cable(t, 1500)
		memory, err := dgrdma.NewRegion(4096)
		check(t, err)
		b, err := dgrdma.Open("ether:d1"+options, &dgrdma.Config{Memory: memory, AcceptAny: true, Manual: true})
		check(t, err)
		a, err := dgrdma.Open("ether:d0", nil)
		check(t, err)
		to, err := a.Dial(b.URL())
		check(t, err)
		check(t, to.Post(&dgrdma.Transaction{Completion: dgrdma.Word(0, 1)}))
		for memory.Load32(0) != 1 {
			_, err := b.Progress(time.Second)
			check(t, err)
		}
		check(t, b.Close())
		if n := packetSockets(t); n != 1 {
			t.Errorf("%q: %d packet sockets after Close, want that of the other endpoint", options, n)
		}
		runtime.KeepAlive(b)
		check(t, a.Close())
	}
}

func TestOpenRefuses(t *testing.T) {
	cable(t, 1500)
	for _, c := range []struct{ url, says string }{
		{"ether:none0", "no interface none0; there are "},
		{"ether:d0?mtu=1501", "MTU 1501, but interface d0 has 1500"},
		{"ether:d0?ethertype=60", "ethertype=60: need 0x0600"},
		{"ether:d0/02:03:04:05:06:07", "interface d0 has the address"},
		{"ocpi-ether-rdma", "need the name or the address of an interface"},
	} {
		e, err := dgrdma.Open(c.url, nil)
		if err == nil {
			e.Close()
			t.Errorf("%s: no error", c.url)
		} else if !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %q does not say %q", c.url, err, c.says)
		}
	}
}

// TestOneIDTwice: an id is not opened twice on an interface, also not by the other way to name that,
// until the one that has it is closed; on another interface, and under another EtherType, it is.
func TestOneIDTwice(t *testing.T) {
	t.Parallel()
	cable(t, 1500)
	first, err := dgrdma.Open("ether:d0", &dgrdma.Config{ID: 7})
	check(t, err)
	defer first.Close()
	for _, at := range []string{"ether:d0", "ether:" + link(t, "d0").Attrs().HardwareAddr.String()} {
		if e, err := dgrdma.Open(at, &dgrdma.Config{ID: 7}); !errors.Is(err, ether.ErrIDInUse) || !strings.Contains(err.Error(), "id 7 on d0") {
			e.Close()
			t.Errorf("at %s: %v", at, err)
		}
	}
	for _, at := range []string{"ether:d1", "ether:d0?ethertype=0x88B5"} {
		e, err := dgrdma.Open(at, &dgrdma.Config{ID: 7})
		check(t, err)
		defer e.Close()
	}
	check(t, first.Close())
	second, err := dgrdma.Open("ether:d0", &dgrdma.Config{ID: 7})
	check(t, err)
	defer second.Close()
	first.Close() // gives nothing back that is another one's
	if e, err := dgrdma.Open("ether:d0", &dgrdma.Config{ID: 7}); !errors.Is(err, ether.ErrIDInUse) {
		e.Close()
		t.Error(err)
	}
}

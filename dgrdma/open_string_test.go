package dgrdma

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/transport/udp"
)

// TestOpenUDP checks that two endpoints that short strings open talk over loopback, without
// privileges.
func TestOpenUDP(t *testing.T) {
	for _, local := range []string{"udp:127.0.0.1", "udp:127.0.0.1?gso=off&gro=off", "udp:[::1]", "udp:127.0.0.1?mtu=1500", "udp:127.0.0.1?busypoll=on&sockbuf=default"} {
		t.Run(local, func(t *testing.T) {
			memory, err := NewRegion(20 << 20)
			if err != nil {
				t.Fatal(err)
			}
			b, err := Open(local, &Config{Memory: memory, AcceptAny: true})
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			a, err := Open(local, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			toB, err := a.Dial(b.URL())
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			data := make([]byte, 900_000)
			for i := range data {
				data[i] = byte(i * 7)
			}
			for i := range uint32(20) {
				// Each to its own address: that one was read before the next is written, only the
				// program's course says, which goes through the kernel.
				at := 4096 + i*1<<20
				err := toB.Write(ctx, &Transaction{
					Segments: []Segment{{Addr: at, Bytes: data}}, Completion: Word(0, i+1),
				})
				if err != nil {
					t.Fatal(err)
				}
				if memory.Load32(0) != i+1 || !bytes.Equal(memory.Bytes()[at:int(at)+len(data)], data) {
					t.Fatal("acknowledged, but not in memory")
				}
			}
		})
	}
}

// TestManualPoll checks that two endpoints without goroutines work that their owners drive.
func TestManualPoll(t *testing.T) {
	open := func() (*Endpoint, *Region) {
		memory, err := NewRegion(4096)
		if err != nil {
			t.Fatal(err)
		}
		e, err := Open("udp:127.0.0.1", &Config{Memory: memory, Manual: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.Close() })
		return e, memory
	}
	a, memA := open()
	b, memB := open()
	toB, err := a.Dial(b.URL())
	if err != nil {
		t.Fatal(err)
	}
	toA, err := b.Dial(a.URL())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute) // beside busy loops each turn may wait for its slice
	defer cancel()
	poll := func(e *Endpoint, until func() bool) {
		for !until() {
			if ctx.Err() != nil {
				t.Fatal(ctx.Err())
			}
			n, err := e.Progress(0)
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				runtime.Gosched() // there may be but one processor
			}
		}
	}
	turns := fewer[uint32](1000, 200)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		for i := uint32(1); i <= turns; i++ {
			poll(b, func() bool { return memB.Load32(0) == i })
			if err := toA.Post(&Transaction{Completion: Word(0, i)}); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	done := uint32(0)
	for i := uint32(1); i <= turns; i++ {
		tx := &Transaction{
			Segments: []Segment{{Addr: 64, Bytes: []byte("ping")}}, Completion: Word(0, i),
			Done: func(_ *Transaction, err error) {
				if err == nil {
					done++
				}
			},
		}
		if err := toB.Post(tx); err != nil {
			t.Fatal(err)
		}
		poll(a, func() bool { return memA.Load32(0) == i })
	}
	<-answered
	go func() {
		for ctx.Err() == nil { // the last acknowledgement
			b.Progress(0)
			runtime.Gosched()
		}
	}()
	poll(a, func() bool { return done == turns })
	cancel()
}

// TestOpenRefuses checks that Open names the option that it refuses and says what it needs.
func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct{ url, says string }{
		{"udp:192.0.2.1", "no interface of this machine has the address"},
		{"udp?speed=high", `option "speed"; there are accept, busypoll,`},
		{"udp?window=0", "window=0: need 1 to 16383"},
		{"udp?gso=maybe", "gso=maybe: need on or off"},
		{"udp?mtu=100", "mtu=100: need 128 to 65535"},
		{"udp?profile=best", "native, fpga"},
		{"udp?giveup=soon", "need a time"},
		{"udp?giveup=1ns", "giveup=1ns: need a time of 1ms or more, such as 10s"},
		{"udp?ring=on", "ring=on, which means something over Ethernet and nothing over UDP: leave it out"},
		{"udp?ethertype=0xf042", "ethertype=0xf042, which means something over Ethernet"},
		{"ether:nowhere0?gso=off", "gso=off, which means something over UDP and nothing over Ethernet: leave it out"},
		{"ether:nowhere0?gro=on", "gro=on, which means something over UDP"},
		{"udp:7100:1", "byte 4"},
	} {
		e, err := Open(c.url, nil)
		if err == nil {
			e.Close()
			t.Errorf("%s: no error", c.url)
		} else if !bytes.Contains([]byte(err.Error()), []byte(c.says)) {
			t.Errorf("%s: %q does not say %q", c.url, err, c.says)
		}
	}
}

// TestURLWithoutMemory checks that the string of an endpoint that has nothing to write to says no
// size and no id, and that a program that posts to it is told why.
func TestURLWithoutMemory(t *testing.T) {
	e, err := Open("udp:127.0.0.1", &Config{Memory: new(Region)})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	want := fmt.Sprintf("ocpi-udp-rdma:127.0.0.1;%d", e.LocalAddr().AddrPort().Port())
	if got := e.URL(); got != want {
		t.Errorf("URL %q, want %q", got, want)
	}
	if _, err := ParsePeer(want); err == nil || !strings.Contains(err.Error(), "if the peer has memory or services to write to") {
		t.Error(err)
	}
	e.AcceptAny(true)
	by, err := Open("udp:127.0.0.1", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer by.Close()
	c, err := by.Dial(want)
	if err != nil || c.Peer().ID != e.ID() || c.Peer().Size != 0 {
		t.Fatalf("%+v, %v", c.Peer(), err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := c.Write(ctx, &Transaction{Completion: Word(0, 1)}); !errors.Is(err, ErrNoService) {
		t.Error(err)
	}
}

// TestWithoutMemory checks that Open and New make of a configuration that says neither id nor
// memory what the comments of its fields say.
func TestWithoutMemory(t *testing.T) {
	writes := func(e *Endpoint) error {
		t.Helper()
		by, err := Open("udp:127.0.0.1", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer by.Close()
		e.AcceptAny(true)
		c, err := by.Connect(Peer{ID: e.ID(), Addr: e.LocalAddr()})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		return c.Write(ctx, &Transaction{Completion: Word(defaultSize-4, 1)})
	}
	opened, err := Open("udp:127.0.0.1", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	if err := writes(opened); err != nil || opened.ID() == 0 || opened.Size() != 64<<10 || opened.Memory().(*Region).Load32(defaultSize-4) != 1 {
		t.Errorf("opened: id %d, %d bytes: %v", opened.ID(), opened.Size(), err)
	}
	none, err := Open("udp:127.0.0.1", &Config{Memory: new(Region)})
	if err != nil {
		t.Fatal(err)
	}
	defer none.Close()
	wire := func() Transport {
		w, err := udp.Listen(udp.Config{Addr: netip.MustParseAddrPort("127.0.0.1:0")})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	made, err := New(wire(), &Config{ID: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer made.Close()
	for _, e := range []*Endpoint{none, made} {
		if err := writes(e); !errors.Is(err, ErrNoService) || e.Size() != 0 {
			t.Errorf("%d bytes: %v", e.Size(), err)
		}
	}
	w := wire()
	defer w.Close()
	if _, err := New(w, &Config{}); err == nil || !strings.Contains(err.Error(), "only dgrdma.Open finds one by itself") {
		t.Error(err)
	}
}

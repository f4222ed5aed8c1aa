package dgrdma_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestParsePeer checks that an endpoint string of a peer gives its id, size, address and profile,
// and that the error names what a string lacks or has in vain.
func TestParsePeer(t *testing.T) {
	p, err := dgrdma.ParsePeer("ocpi-udp-rdma:192.168.1.5:40123;6f9619ff-8b86-d011-b42d-00c04fc964ff.3145728.3.10")
	if err != nil {
		t.Fatal(err)
	}
	want := dgrdma.Peer{ID: 3, Size: 3145728, Addr: transport.UDPAddr(netip.MustParseAddrPort("192.168.1.5:40123"))}
	if p != want {
		t.Errorf("%+v, want %+v", p, want)
	}
	p, err = dgrdma.ParsePeer("ocpi-ether-rdma:eth0/00:0c:29:e2:30:24;131072.2.10?profile=fpga")
	if err != nil {
		t.Fatal(err)
	}
	if p.Addr != transport.EtherAddr([6]byte{0, 0x0c, 0x29, 0xe2, 0x30, 0x24}) || p.Profile == nil || p.Profile.Name != "fpga" {
		t.Errorf("%+v", p)
	}
	for s, want := range map[string]string{
		"ocpi-udp-rdma:1.2.3.4;7000":                           "no size, id and count",
		"ocpi-udp-rdma:1.2.3.4;0;4096.1.10":                    "no address",
		"ocpi-ether-rdma:;4096.1.10":                           "no address",
		"ocpi-udp-rdma:1.2.3.4;7000;4096.1.10?profile=quantum": "no peer profile",
		"ocpi-udp-rdma:1.2.3.4;7000;4096.1.10?window=7":        "says window=7, but has no option except profile: others belong into the string with which the own endpoint is opened",
		"tcp:1.2.3.4": "byte 0",
	} {
		if _, err := dgrdma.ParsePeer(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want ...%s...", s, err, want)
		}
	}
}

// TestCompletionQueue checks that a completion queue takes as many transactions as its depth says,
// and returns each of them once, over a network that loses frames.
func TestCompletionQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := simnet.New(1)
		defer network.Close()
		network.Link(addrA, addrB, simnet.Link{Latency: time.Millisecond, Loss: 0.1})
		toB, memory, closeBoth := twoEndpoints(network, 1<<16)
		defer closeBoth()
		const depth = 8
		q := dgrdma.NewCompletionQueue(depth)
		posted := 0
		for ; ; posted++ {
			err := q.Post(toB, &dgrdma.Transaction{Completion: dgrdma.Word(uint32(4*posted), 1)})
			if errors.Is(err, dgrdma.ErrQueueFull) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if posted != depth {
			t.Errorf("%d posted into a queue of %d", posted, depth)
		}
		done := make([]dgrdma.Completion, 3)
		if n := q.Poll(done); n != 0 {
			t.Errorf("%d done before the first round trip", n)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Microsecond)
		if _, err := q.Wait(ctx, done); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("wait: %v", err)
		}
		cancel()
		for finished := 0; finished < depth; {
			n, err := q.Wait(context.Background(), done)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range done[:n] {
				if c.Err != nil || memory.Load32(c.Transaction.Completion.Addr()) != 1 {
					t.Errorf("%+v", c)
				}
			}
			finished += n
		}
		// A failed post takes no place, and closing answers the rest.
		if err := q.Post(toB, &dgrdma.Transaction{Completion: dgrdma.Word(1<<16, 0)}); !errors.Is(err, dgrdma.ErrBounds) {
			t.Error(err)
		}
		for range depth {
			if err := q.Post(toB, &dgrdma.Transaction{}); err != nil {
				t.Fatal(err)
			}
		}
		closeBoth()
		for finished := 0; finished < depth; {
			n, err := q.Wait(context.Background(), done)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range done[:n] {
				if !errors.Is(c.Err, dgrdma.ErrClosed) {
					t.Errorf("after Close: %v", c.Err)
				}
			}
			finished += n
		}
	})
}

package siw

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
	"github.com/dgrdma/dgrdma/verbs"
)

// sizes of messages: nothing, a byte, less and more than a segment, many segments.
var sizes = []int{0, 1, 64, 4096, 65537, 8 << 20}

const regionSize = 9 << 20

// dial connects to a siwpeer that listens, and returns the key of its region.
func dial(t *testing.T, ctx context.Context, port int, o verbs.Options) (*verbs.QueuePair, verbs.Key, []byte) {
	t.Helper()
	h, err := verbs.Open("tcp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	own := pattern(2, regionSize)
	r, err := h.Register(own, verbs.RemoteRead|verbs.RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	o.Private = r.Key().Bytes()
	q, err := h.Dial(ctx, fmt.Sprintf("tcp:%s:%d", guestAddr, port), &o)
	if err != nil {
		t.Fatal(err)
	}
	key, err := verbs.ParseKey(q.Private())
	if err != nil {
		t.Fatal(err)
	}
	return q, key, own
}

// Each operation that siw knows, in every size, with and without CRC, in both revisions.
func TestInitiator(t *testing.T) {
	for i, c := range []verbs.Options{{}, {NoCRC: true}, {Strict: true}, {Revision: 1, IRD: 4, ORD: 4}, {Revision: 1, NoCRC: true, IRD: 4, ORD: 4}} {
		t.Run(fmt.Sprintf("crc=%v,rev=%d,strict=%v", !c.NoCRC, c.Revision, c.Strict), func(t *testing.T) {
			ctx := deadline(t)
			port := 7300 + i
			peer := start(t, fmt.Sprintf("siwpeer -f 1 -m %d -R %d -r %d -t 50 listen %s %d recv,n=%d sum waitclose", regionSize, 8<<20, len(sizes), guestAddr, port, len(sizes)))
			listening(t, port)
			q, key, own := dial(t, ctx, port, c)
			if q.CRC() == c.NoCRC {
				t.Errorf("CRC is %v", q.CRC())
			}
			want := pattern(1, regionSize)
			for i, n := range sizes {
				if err := q.Write(ctx, key, uint32(1000+i), own[500:500+n]); err != nil {
					t.Fatalf("Write of %d: %v", n, err)
				}
				copy(want[1000+i:], own[500:500+n])
				got := make([]byte, n)
				if err := q.Read(ctx, got, key, 777); err != nil {
					t.Fatalf("Read of %d: %v", n, err)
				}
				if !bytes.Equal(got, want[777:777+n]) {
					t.Fatalf("a Read of %d bytes is not what is there", n)
				}
			}
			for _, n := range sizes {
				if err := q.Send(ctx, own[:n]); err != nil {
					t.Fatalf("Send of %d: %v", n, err)
				}
			}
			if err := q.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
			out, status := peer.wait()
			for _, line := range []string{fmt.Sprintf("sha256=%x", sha256.Sum256(want)), "RECV status=success len=0", "RECV status=success len=8388608"} {
				if !strings.Contains(out, line) {
					t.Errorf("siwpeer does not say %q", line)
				}
			}
			if status != 0 || t.Failed() {
				t.Errorf("siwpeer ended with %d:\n%s", status, out)
			}
		})
	}
}

// S1: what siw says of our faults, in its own bit order, is understood.
func TestTerminateOfSiw(t *testing.T) {
	for i, c := range []struct {
		name string
		args string
		do   func(ctx context.Context, q *verbs.QueuePair, k verbs.Key) error
		want ddp.Fault
	}{
		{"Write to another STag", "", func(ctx context.Context, q *verbs.QueuePair, k verbs.Key) error {
			k.STag ^= 0x100
			return q.Write(ctx, k, 0, make([]byte, 10))
		}, ddp.TaggedSTag},
		{"Write with another key", "", func(ctx context.Context, q *verbs.QueuePair, k verbs.Key) error {
			k.STag++
			return q.Write(ctx, k, 0, make([]byte, 10))
		}, ddp.TaggedSTag},
		{"Write without the right", "-a r", func(ctx context.Context, q *verbs.QueuePair, k verbs.Key) error {
			return q.Write(ctx, k, 0, make([]byte, 10))
		}, ddp.TaggedSTag},
		{"Write beyond", "", func(ctx context.Context, q *verbs.QueuePair, k verbs.Key) error {
			k.Length *= 2
			return q.Write(ctx, k, k.Length/2-5, make([]byte, 10))
		}, ddp.TaggedBounds},
		{"a long Write beyond", "", func(ctx context.Context, q *verbs.QueuePair, k verbs.Key) error {
			k.Length *= 2
			return q.Write(ctx, k, k.Length/2-50000, make([]byte, 100000))
		}, ddp.TaggedBounds},
		{"Read of another STag", "", func(ctx context.Context, q *verbs.QueuePair, k verbs.Key) error {
			k.STag ^= 0x100
			return q.Read(ctx, make([]byte, 10), k, 0)
		}, ddp.ProtectionSTag},
		{"Read beyond", "", func(ctx context.Context, q *verbs.QueuePair, k verbs.Key) error {
			k.Length *= 2
			return q.Read(ctx, make([]byte, 10), k, k.Length/2-5)
		}, ddp.ProtectionBounds},
		{"Send without a receive", "-r 0", func(ctx context.Context, q *verbs.QueuePair, k verbs.Key) error {
			return q.Send(ctx, make([]byte, 10))
		}, ddp.UntaggedNoBuffer},
		{"Send that is too long", "-R 100", func(ctx context.Context, q *verbs.QueuePair, k verbs.Key) error {
			return q.Send(ctx, make([]byte, 101))
		}, ddp.UntaggedNoBuffer},
		{"FetchAdd", "", func(ctx context.Context, q *verbs.QueuePair, k verbs.Key) error {
			_, err := q.FetchAdd(ctx, k, 0, 1)
			return err
		}, ddp.OperationOpcode},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := deadline(t)
			port := 7400 + i
			peer := start(t, fmt.Sprintf("siwpeer -f 1 -m 131072 -t 30 %s listen %s %d waitclose", c.args, guestAddr, port))
			listening(t, port)
			q, key, _ := dial(t, ctx, port, verbs.Options{Extensions: verbs.Atomics})
			err := c.do(ctx, q, key)
			<-q.Done()
			var term *verbs.TerminateError
			if !errors.As(q.Err(), &term) || !term.Remote || term.Fault != c.want {
				t.Errorf("the end is %v, want %v", q.Err(), c.want)
			}
			if err != nil && !errors.Is(err, c.want) {
				t.Errorf("the call says %v", err)
			}
			peer.wait()
		})
	}
}

// 1,000 connections, one after another, each with a Write and a Read (S3: the kit mends what would keep a first
// frame unread).
func TestThousandConnections(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	peer := start(t, fmt.Sprintf("timeout 140 siwpeer -k -f 1 -m 4096 -t 20 listen %s 7500 waitclose >/dev/null", guestAddr))
	listening(t, 7500)
	ctx := deadline(t)
	h, err := verbs.Open("tcp")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	n := 0
	for ; n < 1000; n++ {
		q, err := h.Dial(ctx, fmt.Sprintf("tcp:%s:7500", guestAddr), &verbs.Options{Private: make([]byte, 16), NoCRC: n%2 == 0})
		if err != nil {
			t.Fatalf("connection %d: %v", n, err)
		}
		key, err := verbs.ParseKey(q.Private())
		if err != nil {
			t.Fatal(err)
		}
		data, back := pattern(n, 100), make([]byte, 100)
		if err := q.Write(ctx, key, 7, data); err != nil {
			t.Fatalf("connection %d: %v", n, err)
		}
		if err := q.Read(ctx, back, key, 7); err != nil || !bytes.Equal(back, data) {
			t.Fatalf("connection %d: %v", n, err)
		}
		if err := q.Close(); err != nil {
			t.Fatalf("connection %d: Close: %v", n, err)
		}
	}
	t.Logf("%d connections", n)
	guest(t, "pkill siwpeer || true")
	peer.wait()
}

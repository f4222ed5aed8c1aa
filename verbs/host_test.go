package verbs_test

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/rdmap/mpa"
	"github.com/dgrdma/dgrdma/verbs"
)

// TestConnectionThatWasUsed (RDMAP-078, 011): a connection on which programs have talked already becomes one of RDMA.
func TestConnectionThatWasUsed(t *testing.T) {
	for _, network := range []string{"tcp", "pipe"} {
		here, there := net.Pipe()
		if network == "tcp" {
			here, there = both(t, "tcp", "127.0.0.1:0")
		}
		go there.Write([]byte("RDMA?"))
		if _, err := io.ReadFull(here, make([]byte, 5)); err != nil {
			t.Fatal(err)
		}
		q, f := brought(t, here, there, nil)
		if err := q.Post(&verbs.Work{Op: verbs.OpSend, Data: []byte("yes")}); err != nil {
			t.Fatal(err)
		}
		p := &fakePeer{attacker: f, parts: make(map[bool][]byte)}
		for len(p.came) == 0 {
			if err := f.conn.Receive(p); err != nil {
				t.Fatal(err)
			}
		}
		if string(p.came[0].payload) != "yes" {
			t.Errorf("%s: %q came", network, p.came[0].payload)
		}
	}
}

// TestCRCIfEitherAsks (MPA-004): frames have checksums unless both sides do without.
func TestCRCIfEitherAsks(t *testing.T) {
	for _, plain := range []bool{false, true} {
		for _, theirs := range []bool{false, true} {
			e := connect(t, &verbs.Options{NoCRC: plain}, &verbs.Options{NoCRC: theirs})
			if want := !plain || !theirs; e.a.CRC() != want || e.b.CRC() != want {
				t.Errorf("without at one side %v, at the other %v: CRC %v and %v", plain, theirs, e.a.CRC(), e.b.CRC())
			}
		}
	}
}

// TestLimitsAreThoseOfBoth (RDMAP-079, 080, MPA-013, 014): each side may have as many requests outstanding as it wants and the other keeps.
func TestLimitsAreThoseOfBoth(t *testing.T) {
	for _, c := range []struct{ ird, ord, peerIRD, peerORD int }{{1, 1, 1, 1}, {4, 9, 7, 3}, {9, 4, 3, 7}, {-1, 5, 5, 5}, {5, -1, 5, 5}, {5, 5, -1, 5}, {5, 5, 5, -1}} {
		here, there := net.Pipe()
		accepted := make(chan mpa.Agreed, 1)
		go func() {
			r, err := mpa.Await(context.Background(), there, 0)
			if err == nil {
				var conn *mpa.Conn
				if conn, err = r.Accept(context.Background(), &mpa.Options{IRD: max(c.peerIRD, 0), ORD: max(c.peerORD, 0)}); err == nil {
					accepted <- conn.Agreed()
					return
				}
			}
			there.Close()
		}()
		q, err := openHost(t).Connect(t.Context(), here, &verbs.Options{IRD: c.ird, ORD: c.ord})
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		a := <-accepted
		ird, ord := q.Limits()
		if ord != min(max(c.ord, 0), max(c.peerIRD, 0)) || a.ORD != min(max(c.peerORD, 0), max(c.ird, 0)) || ird < a.ORD || a.IRD < ord {
			t.Errorf("%+v: IRD %d and ORD %d, at the peer %d and %d", c, ird, ord, a.IRD, a.ORD)
		}
		q.Abort()
	}
}

// TestLongerThanAnyMessage (RDMAP-001): calls with more than 2^32-1 bytes are refused at this side, and not cut.
func TestLongerThanAnyMessage(t *testing.T) {
	if math.MaxInt == math.MaxInt32 {
		t.Skip("a slice has fewer bytes")
	}
	most := uint64(math.MaxUint32)
	b, err := syscall.Mmap(-1, 0, int(most+9), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
	if err != nil {
		t.Skip(err)
	}
	defer syscall.Munmap(b)
	e := connect(t, nil, nil)
	for _, n := range []int{int(most + 1), int(most + 9)} {
		key := verbs.Key{STag: theirs, Length: 100}
		if err := e.a.Write(t.Context(), key, 0, b[:n]); !errors.Is(err, verbs.ErrBounds) {
			t.Errorf("a Write of %d bytes: %v", n, err)
		}
		if err := e.a.Read(t.Context(), b[:n], key, 0); !errors.Is(err, verbs.ErrBounds) {
			t.Errorf("a Read of %d bytes: %v", n, err)
		}
		if err := e.a.Send(t.Context(), b[:n]); !errors.Is(err, verbs.ErrTooLong) {
			t.Errorf("a Send of %d bytes: %v", n, err)
		}
		key.Length = math.MaxUint32
		if err := e.a.Write(t.Context(), key, 0, b[:n]); err == nil {
			t.Errorf("a Write of %d bytes to a key of 2^32-1", n)
		}
	}
	if err := e.a.Err(); err != nil {
		t.Error(err)
	}
}

// TestSetUpTakesALimitedTime (MPA-017): this side waits for the answer of a peer that is silent, or that stops in the middle of it, as long as Timeout says, or its context, and by default
// ten seconds.
func TestSetUpTakesALimitedTime(t *testing.T) {
	for _, c := range []struct{ timeout, context, want time.Duration }{
		{0, time.Hour, 10 * time.Second}, {3 * time.Second, time.Hour, 3 * time.Second}, {30 * time.Second, time.Hour, 30 * time.Second}, {0, 2 * time.Second, 2 * time.Second},
	} {
		for _, answer := range []string{"", "MPA ID Rep Frame\x40\x02\x00"} {
			synctest.Test(t, func(t *testing.T) {
				here, there := net.Pipe()
				defer there.Close()
				go func() {
					there.Write([]byte(answer))
				}()
				go io.Copy(io.Discard, there)
				ctx, cancel := context.WithTimeout(t.Context(), c.context)
				defer cancel()
				start := time.Now()
				_, err := openHost(t).Connect(ctx, here, &verbs.Options{Timeout: c.timeout})
				if took := time.Since(start); !errors.Is(err, verbs.ErrLost) && !errors.Is(err, context.DeadlineExceeded) || took != c.want {
					t.Errorf("a timeout of %v, a context of %v: %v after %v", c.timeout, c.context, err, took)
				}
			})
		}
	}
}

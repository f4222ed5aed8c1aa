package siw

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
	"github.com/dgrdma/dgrdma/verbs"
)

// served is what came of one connection that siw opened.
type served struct {
	q        *verbs.QueuePair
	region   *verbs.Region
	memory   []byte
	receives [][]byte
	out      string
	status   int
}

// serve has a siwpeer connect to us and do what it is told.
func serve(t *testing.T, o verbs.Options, receives int, args, ops string) *served {
	t.Helper()
	ctx := deadline(t)
	h, err := verbs.Open("tcp:" + hostAddr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	l, err := h.Listen("0")
	if err != nil {
		t.Fatal(err)
	}
	s := &served{memory: pattern(1, regionSize)}
	if s.region, err = h.Register(s.memory, verbs.RemoteRead|verbs.RemoteWrite); err != nil {
		t.Fatal(err)
	}
	for range receives {
		b := make([]byte, 8<<20)
		s.receives = append(s.receives, b)
		o.Posted = append(o.Posted, verbs.Receive{ID: uint64(len(o.Posted)), Data: b})
	}
	o.Private = s.region.Key().Bytes()
	_, port, _ := strings.Cut(l.Addr().String(), ":")
	peer := start(t, fmt.Sprintf("siwpeer -f 2 -m %d -t 50 %s connect %s %s %s", regionSize, args, hostAddr, port, ops))
	r, err := l.Accept(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if s.q, err = r.Accept(ctx, &o); err != nil {
		t.Fatal(err)
	}
	s.out, s.status = peer.wait()
	select {
	case <-s.q.Done():
	case <-ctx.Done():
		t.Fatalf("the connection does not end; siwpeer ended with %d:\n%s", s.status, s.out)
	}
	return s
}

// Each operation that siw knows, in every size, from siw.
func TestResponder(t *testing.T) {
	for _, c := range []struct {
		name string
		o    verbs.Options
		set  map[string]string
	}{
		{"as it is", verbs.Options{NoCRC: true}, nil},
		{"CRC, as we want it", verbs.Options{}, nil},
		{"CRC, as siw wants it", verbs.Options{NoCRC: true}, map[string]string{"mpa_crc_required": "1"}},
		{"revision 1", verbs.Options{IRD: 4, ORD: 4}, map[string]string{"mpa_version": "1"}},
		{"peer to peer, by Write", verbs.Options{}, map[string]string{"peer_to_peer": "1", "rtr_type": "128"}},
		{"peer to peer, by Read", verbs.Options{}, map[string]string{"peer_to_peer": "1", "rtr_type": "64"}},
		{"peer to peer, by either", verbs.Options{}, map[string]string{"peer_to_peer": "1", "rtr_type": "192"}},
		{"frames of many segments", verbs.Options{NoCRC: true}, map[string]string{"try_gso": "1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, value := range c.set {
				parameter(t, name, value)
			}
			var ops strings.Builder
			want := pattern(1, regionSize)
			own := pattern(2, regionSize)
			for i, n := range sizes {
				fmt.Fprintf(&ops, " write,len=%d,loff=500,roff=%d read,len=%d,loff=500,roff=777 send,len=%d,off=100", n, 1000+i, n, n)
				copy(want[1000+i:], own[500:500+n])
				copy(own[500:500+n], want[777:])
			}
			s := serve(t, c.o, len(sizes), "", ops.String()+" close")
			if s.status != 0 {
				t.Errorf("siwpeer ended with %d:\n%s", s.status, s.out)
			}
			if !errors.Is(s.q.Err(), verbs.ErrPeerClosed) {
				t.Errorf("the end is %v", s.q.Err())
			}
			s.q.Room()
			if !bytes.Equal(s.memory, want) {
				t.Error("memory is not what siw wrote")
			}
			done := make([]verbs.Completion, len(sizes)+1)
			n := s.q.Received().Poll(done)
			if n != len(sizes) {
				t.Fatalf("%d messages, want %d:\n%s", n, len(sizes), s.out)
			}
			for i, size := range sizes {
				if done[i].Err != nil || int(done[i].Length) != size {
					t.Errorf("message %d: %+v, want %d bytes", i, done[i], size)
				}
			}
		})
	}
}

// Send with Invalidate, and with it an event.
func TestInvalidateBySiw(t *testing.T) {
	s := serve(t, verbs.Options{}, 1, "", "send,len=9,inv=1,se=1 write,len=1 close")
	done := make([]verbs.Completion, 2)
	if n := s.q.Received().Poll(done); n != 0 && done[0].Invalidated {
		t.Errorf("%+v: memory that other queue pairs may use was withdrawn (RDMAP-103)", done[0])
	}
	var term *verbs.TerminateError
	if !errors.As(s.q.Err(), &term) || term.Fault != ddp.ProtectionInvalidate {
		t.Errorf("the end is %v", s.q.Err())
	}
}

// S1, S12: our Terminates end siw's connection, whatever siw makes of them.
func TestTerminateToSiw(t *testing.T) {
	for _, c := range []struct {
		name, args, ops string
		want            ddp.Fault
	}{
		{"Write to another STag", "", "write,len=10,xor=256,nowait=1 waitclose", ddp.TaggedSTag},
		{"Write beyond", "", fmt.Sprintf("write,len=10,roff=%d,nowait=1 waitclose", regionSize-5), ddp.TaggedBounds},
		{"Read of another STag", "", "read,len=10,xor=256,nowait=1 waitclose", ddp.ProtectionSTag},
		{"Read beyond", "", fmt.Sprintf("read,len=10,roff=%d,nowait=1 waitclose", regionSize-5), ddp.ProtectionBounds},
		{"Send without a receive", "", "send,len=10,nowait=1 waitclose", ddp.UntaggedNoBuffer},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, verbs.Options{}, 0, c.args, c.ops)
			var term *verbs.TerminateError
			if !errors.As(s.q.Err(), &term) || term.Remote || term.Fault != c.want {
				t.Errorf("the end is %v, want %v\n%s", s.q.Err(), c.want, s.out)
			}
			if !strings.Contains(s.out, "DISCONNECTED") {
				t.Errorf("siw does not notice:\n%s", s.out)
			}
			if !bytes.Equal(s.memory, pattern(1, regionSize)) {
				t.Error("memory changed")
			}
		})
	}
}

func TestRejectToSiw(t *testing.T) {
	ctx := deadline(t)
	h, err := verbs.Open("tcp:" + hostAddr)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	l, err := h.Listen("0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := strings.Cut(l.Addr().String(), ":")
	peer := start(t, fmt.Sprintf("siwpeer -t 20 connect %s %s", hostAddr, port))
	r, err := l.Accept(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Reject(context.Background(), []byte("No, thanks")); err != nil {
		t.Fatal(err)
	}
	if out, status := peer.wait(); status != 1 || !strings.Contains(out, fmt.Sprintf("REJECTED status=-104 ird=0 ord=0 private=%x", "No, thanks")) && !strings.Contains(out, fmt.Sprintf("%x", "No, thanks")) {
		t.Errorf("siwpeer ended with %d:\n%s", status, out)
	}
}

package verbs_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
	"github.com/dgrdma/dgrdma/verbs"
)

// TestOnlyBeforeTheQueuePair checks that memory for one queue pair can be named in the private data by which that is opened, from either side,
// that its peer can use and withdraw it, and that no other can (S7).
func TestOnlyBeforeTheQueuePair(t *testing.T) {
	for name, dials := range map[string]bool{"the side that dials": true, "the side that accepts": false} {
		t.Run(name, func(t *testing.T) {
			e := connect(t, nil, nil)
			host := e.hb
			if dials {
				host = e.ha
			}
			stream := host.Domain().NewStream()
			region, err := host.Domain().Register(make([]byte, 100), verbs.RemoteWrite, &verbs.RegionOptions{Only: stream})
			if err != nil {
				t.Fatal(err)
			}
			own, plain := &verbs.Options{Stream: stream, Private: region.Key().Bytes(), Posted: []verbs.Receive{{}}}, &verbs.Options{}
			first := ends{ha: e.ha, hb: e.hb}
			oa, ob := plain, own
			if dials {
				oa, ob = own, plain
			}
			first.join(t.Context(), t, oa, ob)
			owner, peer, other := first.b, first.a, e.a
			if dials {
				owner, peer, other = first.a, first.b, e.b
			}
			for _, q := range []*verbs.QueuePair{e.a, first.a} { // the side that dials speaks first
				if err := q.Read(t.Context(), nil, verbs.Key{}, 0); err != nil {
					t.Fatal(err)
				}
			}
			key, err := verbs.ParseKey(peer.Private())
			if err != nil || owner.Stream() != stream {
				t.Fatal(err)
			}
			_ = other.Write(t.Context(), key, 0, []byte("x")) // done when it has left
			<-other.Done()
			if err := other.Err(); !errors.Is(err, verbs.FaultTaggedAssociation) {
				t.Errorf("another queue pair's peer: %v", err)
			}
			if err := peer.Write(t.Context(), key, 0, []byte("mine")); err != nil {
				t.Fatal(err)
			}
			if err := peer.Post(&verbs.Work{Op: verbs.OpSend, Invalidating: true, Invalidate: key.STag}); err != nil {
				t.Fatal(err)
			}
			done := make([]verbs.Completion, 1)
			if _, err := owner.Received().Wait(t.Context(), done); err != nil || done[0].Err != nil || !done[0].Invalidated {
				t.Fatal(err, done[0])
			}
			region.Invalidate()
			if got := string(region.Bytes()[:4]); got != "mine" {
				t.Errorf("%q was written", got)
			}
			if _, err := e.ha.Dial(t.Context(), "tcp:127.0.0.1:9", &verbs.Options{Stream: stream}); !errors.Is(err, verbs.ErrOption) {
				t.Errorf("a second queue pair: %v", err)
			}
			if _, err := e.ha.Dial(t.Context(), "tcp:127.0.0.1:9", &verbs.Options{Stream: host.Domain().NewStream(), Domain: host.NewDomain()}); !errors.Is(err, verbs.ErrOption) {
				t.Errorf("another domain: %v", err)
			}
		})
	}
}

// inEpochs runs a test for each way in which memory that a peer uses is withdrawn, in virtual time.
func inEpochs(t *testing.T, test func(t *testing.T, withdraw func(*verbs.Region))) {
	for name, withdraw := range map[string]func(*verbs.Region){
		"Invalidate": (*verbs.Region).Invalidate,
		"Reregister": func(r *verbs.Region) {
			if err := r.Reregister(bytes.Repeat([]byte{0xee}, r.Len()), r.Rights(), r.Base()); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { test(t, withdraw) }) })
	}
}

// TestWithdrawnWithinASegment checks that memory which is withdrawn when a part of a segment is in its place gets nothing of the rest, nor do the
// bytes that the region has next, and that the peer is told (RDMAP-102, RPC2-095, RPC2-113).
func TestWithdrawnWithinASegment(t *testing.T) {
	inEpochs(t, func(t *testing.T, withdraw func(*verbs.Region)) {
		d := openHost(t).Domain()
		const size = 4000
		was := make([]byte, size)
		r, err := d.Register(was, verbs.RemoteWrite, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := newFakePeer(t, &verbs.Options{Domain: d, NoCRC: true})
		h := ddp.Header{Tagged: true, Last: true, Control: 0x40, STag: r.STag()}
		frame := make([]byte, 2+h.Size())
		frame[0], frame[1] = byte((h.Size()+size)>>8), byte((h.Size()+size)&0xff)
		h.Put(frame[2:])
		frame = append(frame, bytes.Repeat([]byte{0xaa}, size)...)
		frame = append(frame, make([]byte, -len(frame)&3+4)...)
		if _, err := f.nc.Write(frame[:2000]); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		withdraw(r)
		if !bytes.Contains(was, bytes.Repeat([]byte{0xaa}, 1000)) {
			t.Error("the first part is not in its place")
		}
		then, next := bytes.Clone(was), bytes.Clone(r.Bytes())
		if _, err := f.nc.Write(frame[2000:]); err != nil {
			t.Fatal(err)
		}
		if came := f.settled(); len(came) != 1 || fault(came) != ddp.TaggedSTag {
			t.Errorf("%x came, %v", controls(came), fault(came))
		}
		f.ended(t, ddp.TaggedSTag)
		if !bytes.Equal(was, then) || !bytes.Equal(r.Bytes(), next) {
			t.Error("bytes changed after they were withdrawn")
		}
	})
}

// TestOnlyForTheNextQueuePair (RPC2-094): memory that is registered before the connection is there, and named in its first message, is for that connection
// alone, also where the first attempt to connect fails, and after it is registered again.
func TestOnlyForTheNextQueuePair(t *testing.T) {
	first := connect(t, nil, nil)
	domain := first.ha.Domain()
	stream := domain.NewStream()
	region, err := domain.Register([]byte("arguments"), verbs.RemoteRead, &verbs.RegionOptions{Only: stream, Base: 1 << 33})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.ha.Dial(t.Context(), "tcp:127.0.0.1:1", &verbs.Options{Stream: stream}); err == nil || errors.Is(err, verbs.ErrOption) {
		t.Fatalf("nothing listens there: %v", err)
	}
	e := ends{ha: first.ha, hb: first.hb}
	call, another := make([]byte, verbs.KeySize), make([]byte, verbs.KeySize)
	e.join(t.Context(), t, &verbs.Options{Stream: stream}, &verbs.Options{Posted: []verbs.Receive{{Data: call}, {Data: another}}})
	fetch := func(into []byte, message []byte, want string) {
		t.Helper()
		if err := e.a.Send(t.Context(), region.Key().Bytes()); err != nil {
			t.Fatal(err)
		}
		done := make([]verbs.Completion, 1)
		if _, err := e.b.Received().Wait(t.Context(), done); err != nil || done[0].Err != nil {
			t.Fatal(err, done[0])
		}
		key, err := verbs.ParseKey(message)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.b.Read(t.Context(), into, key, 0); err != nil || string(into) != want {
			t.Errorf("%q is read: %v", into, err)
		}
	}
	fetch(make([]byte, 9), call, "arguments")
	if err := region.Reregister([]byte("others"), verbs.RemoteRead, 1<<34); err != nil {
		t.Fatal(err)
	}
	fetch(make([]byte, 6), another, "others")
	if err := first.a.Read(t.Context(), nil, verbs.Key{}, 0); err != nil { // the side that dials speaks first
		t.Fatal(err)
	}
	if err := first.b.Read(t.Context(), make([]byte, 6), region.Key(), 0); !errors.Is(err, verbs.FaultProtectionAssociation) {
		t.Errorf("another connection: %v", err)
	}
	if err := e.b.Read(t.Context(), make([]byte, 6), region.Key(), 0); err != nil {
		t.Errorf("its own, after another was refused: %v", err)
	}
}

// TestInvalidatedIsTold (RPC2-063, RPC2-064, RPC1-040): what a Send has withdrawn is in the completion of its receive, so that a program sees whether it is what it has
// offered, and withdraws the rest itself. An STag that is not its queue pair's alone ends the connection, and both sides have the STag.
func TestInvalidatedIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		stag func(own, other, shared *verbs.Region) uint32
		tell bool
	}{
		"the one offered":     {func(own, _, _ *verbs.Region) uint32 { return own.STag() }, true},
		"another request's":   {func(_, other, _ *verbs.Region) uint32 { return other.STag() }, true},
		"the domain's":        {func(_, _, shared *verbs.Region) uint32 { return shared.STag() }, false},
		"none":                {func(own, _, _ *verbs.Region) uint32 { return own.STag() ^ 1<<20 }, false},
		"withdrawn before":    {func(own, _, _ *verbs.Region) uint32 { own.Invalidate(); return own.STag() }, false},
		"of its registration": {func(own, _, _ *verbs.Region) uint32 { s := own.STag(); own.Reregister(nil, 0, 0); return s }, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := connect(t, &verbs.Options{Posted: []verbs.Receive{{ID: 1, Data: make([]byte, 8)}}}, nil)
			if err := e.a.Read(t.Context(), nil, verbs.Key{}, 0); err != nil { // the side that dials speaks first
				t.Fatal(err)
			}
			region := func(only *verbs.Stream) *verbs.Region {
				r, err := e.ha.Domain().Register(make([]byte, 8), verbs.RemoteWrite, &verbs.RegionOptions{Only: only})
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			own, other, shared := region(e.a.Stream()), region(e.a.Stream()), region(nil)
			stag := c.stag(own, other, shared)
			before := []bool{own.Valid(), other.Valid(), shared.Valid()}
			if err := e.b.Post(&verbs.Work{Op: verbs.OpSend, Data: []byte("reply"), Invalidating: true, Invalidate: stag}); err != nil {
				t.Fatal(err)
			}
			done := make([]verbs.Completion, 1)
			if _, err := e.a.Received().Wait(t.Context(), done); err != nil {
				t.Fatal(err)
			}
			got := done[0]
			for i, r := range []*verbs.Region{own, other, shared} {
				if want := before[i] && !(c.tell && r.STag() == stag); r.Valid() != want {
					t.Errorf("%v: valid %v, want %v", r, r.Valid(), want)
				}
			}
			if c.tell {
				if got.Err != nil || !got.Invalidated || got.STag != stag || got.Length != 5 {
					t.Errorf("%+v", got)
				}
				return
			}
			if !errors.Is(got.Err, verbs.ErrFlushed) || got.Invalidated {
				t.Errorf("%+v", got)
			}
			for _, q := range []*verbs.QueuePair{e.a, e.b} {
				<-q.Done()
				var fault *verbs.TerminateError
				if !errors.As(q.Err(), &fault) || fault.Fault != verbs.FaultProtectionInvalidate || fault.Remote != (q == e.b) || !fault.HasHeader || fault.Header.Invalidate != stag {
					t.Errorf("%v: %v", q, q.Err())
				}
			}
		})
	}
}

// TestWithdrawnFromThePeer (RPC2-095, RPC2-113): memory of a request that a program gives up. Withdrawn, what the peer does with it ends the connection, both sides say which
// memory, and what else is posted is flushed. Kept until the peer has said that it is done, and withdrawn then, it harms nothing.
func TestWithdrawnFromThePeer(t *testing.T) {
	for _, c := range []struct {
		name string
		w    verbs.Work
		want verbs.Fault
	}{
		{"Write", verbs.Work{Op: verbs.OpWrite, Data: []byte("late")}, verbs.FaultTaggedSTag},
		{"Read", verbs.Work{Op: verbs.OpRead, Data: make([]byte, 4)}, verbs.FaultProtectionSTag},
	} {
		for _, kept := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s,kept=%v", c.name, kept), func(t *testing.T) {
				inbox := make([]byte, 8)
				e := connect(t, &verbs.Options{Posted: []verbs.Receive{{ID: 1, Data: inbox}, {ID: 2}}}, nil)
				if err := e.a.Read(t.Context(), nil, verbs.Key{}, 0); err != nil { // the side that dials speaks first
					t.Fatal(err)
				}
				r, err := e.ha.Domain().Register(make([]byte, 4), verbs.RemoteRead|verbs.RemoteWrite, &verbs.RegionOptions{Only: e.a.Stream()})
				if err != nil {
					t.Fatal(err)
				}
				key := r.Key()
				if !kept {
					r.Invalidate()
				}
				c.w.STag, c.w.TO = key.STag, key.Offset
				if n, err := e.b.PostList([]verbs.Work{c.w, {Op: verbs.OpSend, Data: []byte("reply"), Fence: true}}); n != 2 {
					t.Fatal(err)
				}
				done := make([]verbs.Completion, 2)
				if _, err := e.a.Received().Wait(t.Context(), done); err != nil {
					t.Fatal(err)
				}
				if kept {
					if done[0].Err != nil || string(inbox[:5]) != "reply" {
						t.Fatalf("%+v", done[0])
					}
					r.Invalidate()
					if c.w.Op == verbs.OpWrite && string(r.Bytes()) != "late" {
						t.Errorf("%q was written", r.Bytes())
					}
					if err := e.b.Send(t.Context(), nil); err != nil {
						t.Error(err)
					}
					if _, err := e.a.Received().Wait(t.Context(), done); err != nil || done[0].Err != nil {
						t.Errorf("the connection goes on with %v, %+v", err, done[0])
					}
					return
				}
				if !errors.Is(done[0].Err, verbs.ErrFlushed) {
					t.Errorf("%+v", done[0])
				}
				for _, q := range []*verbs.QueuePair{e.a, e.b} {
					<-q.Done()
					var fault *verbs.TerminateError
					if !errors.As(q.Err(), &fault) || fault.Fault != c.want || fault.Remote != (q == e.b) || !fault.HasHeader || c.w.Op == verbs.OpWrite && fault.Header.STag != key.STag {
						t.Errorf("%v: %v", q, q.Err())
					}
				}
				if string(r.Bytes()) != "\x00\x00\x00\x00" {
					t.Errorf("%q was written", r.Bytes())
				}
			})
		}
	}
}

package verbs_test

import (
	"bytes"
	"errors"
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

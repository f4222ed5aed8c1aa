package verbs_test

import (
	"errors"
	"testing"

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

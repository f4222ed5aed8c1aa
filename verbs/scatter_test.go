package verbs_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/verbs"
)

// TestScatter (RPC2-031, RPC2-035): memory of the peer in three segments of any lengths is read into two buffers, of which the second begins within a
// segment; and messages are received into a buffer for their header and others for what follows, posted to a queue pair or to a shared queue. With and without CRC: then
// long payload is received straight into its places.
func TestScatter(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, plain := range []bool{false, true} {
		for _, lengths := range [][3]int{{1, 2, 3}, {4096, 1, 70000}, {65536, 65537, 1 << 20}} {
			t.Run(fmt.Sprintf("plain=%v,%v", plain, lengths), func(t *testing.T) {
				shared := verbs.NewSharedReceives(4)
				e := connect(t, &verbs.Options{NoCRC: plain}, &verbs.Options{NoCRC: plain, Shared: shared})
				var want []byte
				var keys []verbs.Key
				for i, n := range lengths {
					r, err := e.hb.Register(pattern(i, n), verbs.RemoteRead)
					if err != nil {
						t.Fatal(err)
					}
					keys = append(keys, r.Key())
					want = append(want, r.Bytes()...)
				}
				for _, at := range []int{0, 1, len(want) / 2, len(want) - 1, len(want)} { // where the second buffer begins
					one, two := make([]byte, at), make([]byte, len(want)-at)
					var list []verbs.Work
					for i, off := 0, 0; i < len(keys); i++ {
						n := int(keys[i].Length)
						head := one[min(off, at):min(off+n, at)]
						tail := two[max(off-at, 0):max(off+n-at, 0)]
						list = append(list, verbs.Work{Op: verbs.OpRead, ID: uint64(i), STag: keys[i].STag, TO: keys[i].Offset, Data: head, More: [][]byte{tail}})
						off += n
					}
					if _, err := e.a.PostList(list); err != nil {
						t.Fatal(err)
					}
					done := make([]verbs.Completion, len(list))
					for n := 0; n < len(list); {
						k, err := e.a.Completions().Wait(ctx, done[n:])
						if err != nil {
							t.Fatal(err)
						}
						n += k
					}
					for i, c := range done {
						if c.Err != nil || c.ID != uint64(i) || int(c.Length) != lengths[i] {
							t.Errorf("%+v", c)
						}
					}
					if !bytes.Equal(append(one, two...), want) {
						t.Errorf("the buffers, of %d and %d bytes, do not have what was read", at, len(want)-at)
					}
				}
				message := pattern(9, len(want)+20)
				for _, n := range []int{0, 19, 20, 21, len(want), len(message)} {
					got := make([]byte, len(message))
					r := verbs.Receive{ID: 5, Data: got[:20], More: [][]byte{got[20:20], got[20 : 20+len(want)/2], got[20+len(want)/2:]}}
					if err := shared.Post(r); err != nil {
						t.Fatal(err)
					}
					if err := e.a.Send(ctx, message[:n]); err != nil {
						t.Fatal(err)
					}
					done := make([]verbs.Completion, 1)
					if _, err := e.b.Received().Wait(ctx, done); err != nil || done[0].Err != nil || done[0].ID != 5 || int(done[0].Length) != n {
						t.Fatalf("%v, %+v", err, done[0])
					}
					if !bytes.Equal(got[:n], message[:n]) || !bytes.Equal(got[n:], make([]byte, len(got)-n)) {
						t.Errorf("a message of %d bytes is not what was sent", n)
					}
				}
			})
		}
	}
}

package dgrdma

import (
	"testing"

	"github.com/dgrdma/dgrdma/endpoint/admission"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/internal/strangers"
	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestUnprovenPeersMemory: peers of a kind that has nothing to prove itself with, each of which takes what it
// can, take no more together than strangers may, as long as nobody asked for more of them; then there are
// as many as were asked for. Who is connected has a place beside them, and more than one host has.
func TestUnprovenPeersMemory(t *testing.T) {
	if fixture.Race {
		t.Skip("the race detector's memory is in the way")
	}
	const more = 50
	for _, x := range []struct{ set, want int }{{0, admission.MostUnproven}, {admission.MostUnproven + 10, admission.MostUnproven + 10}} {
		for i, profile := range []Profile{OpenCPI(true), FPGA(), OpenCPI2(), Legacy(true)} {
			if i > 0 && x.set > 0 {
				break
			}
			f := newFeed(t, Config{AcceptAny: true, Profile: &profile, MaxPeers: x.set})
			before := heapAfterGC()
			for i := range x.want + more {
				id := frame.EndpointID(1000 + i)
				f.from = simnet.Addr(uint32(1000 + i))
				h := &hostilePeer{f: f, id: id}
				h.give(bare(1, 1, 1))
				h.txn = 1
				h.give(times(400, func(int) frame.Message { h.txn++; return bare(h.txn, 65535, 1) })...)
			}
			grew := heapAfterGC() - before
			s := f.e.Stats()
			t.Logf("%s: %d peers take %d bytes each", profile.Name, s.Peers, int(grew)/s.Peers)
			if s.Peers != x.want || s.RefusedBy(RefusedNoRoom) == 0 {
				t.Errorf("%s: %d peers, want %d; refused %v", profile.Name, s.Peers, x.want, s.RefusedReasons())
			}
			if x.set == 0 && grew > strangers.Memory {
				t.Errorf("%s: they take %d bytes, strangers may take %d", profile.Name, grew, strangers.Memory)
			}
			if _, err := f.e.Connect(Peer{ID: 5, Addr: addrA}); (err == nil) != (x.set == 0) {
				t.Errorf("%s: connect one: %v", profile.Name, err)
			}
			f.e.Close()
		}
	}
	profile := OpenCPI(true)
	f := newFeed(t, Config{AcceptAny: true, Profile: &profile})
	for i := range admission.MostUnproven {
		(&hostilePeer{f: f, id: frame.EndpointID(1000 + i)}).give(bare(1, 1, 1))
	}
	if n := f.e.Stats().Peers; n != admission.MostUnproven/4 {
		t.Errorf("one host has %d peers, want %d", n, admission.MostUnproven/4)
	}
}

package flood

import (
	"slices"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/internal/strangers"
	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// unproven are the kinds that strangers send who have proven nothing.
func unproven() []kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool { return k.proven })
}

// TestStrangersMemory: whatever strangers send, at once and from many addresses, an endpoint keeps no
// more because of all of them than strangers may take together, and none of them is a peer: over UDP, and
// over the simulated network as over Ethernet, with a key and without (attacks A4, A6 and S6, SECURITY.md).
func TestStrangersMemory(t *testing.T) {
	if fixture.Race {
		t.Skip("the race detector's memory is in the way")
	}
	for _, o := range []options{{}, {Sealed: true}} {
		name := "in the clear"
		if o.Sealed {
			name = "sealed"
		}
		t.Run("udp, "+name, func(t *testing.T) {
			srv := startServer(t, o)
			peer, err := dgrdma.ParsePeer(srv.state().URL)
			if err != nil {
				t.Fatal(err)
			}
			s := newStranger(t, peer.Addr.AddrPort(), *seed)
			before := srv.weigh()
			stop := make(chan struct{})
			time.AfterFunc(time.Duration(*seconds*float64(time.Second)), func() { close(stop) })
			all, i := unproven(), 0
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				s.run(*rate, kind{make: func(s *stranger) []byte { i++; return all[i%len(all)].make(s) }}, stop)
			}()
			most := srv.weigh()
			for weighing := true; weighing; {
				select {
				case <-ended:
					weighing = false
				default:
				}
				if st := srv.weigh(); st.Memory > most.Memory {
					most = st
				}
			}
			kept(t, s.sent.Load(), srv.state().Stats, most.Memory-before.Memory)
		})
		t.Run("simnet, "+name, func(t *testing.T) {
			n := simnet.New(*seed)
			defer n.Close()
			e, err := dgrdma.New(n.Attach(simnet.Addr(1), simnet.Config{}), engineConfig(o))
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			s := madeUp(*seed)
			flood := func(each int) {
				for i := range each {
					for _, k := range unproven() {
						n.Inject(simnet.Addr(uint32(2+i%strangerAddresses)), simnet.Addr(1), k.make(s)[prefix:])
						s.sent.Add(1)
					}
				}
			}
			flood(strangerAddresses) // after which the network has seen all of them
			before, most := inUse(), int64(0)
			for range 40 {
				flood(800 / len(unproven())) // what is under way in the network counts, too
				most = max(most, inUse())
			}
			for until := time.Now().Add(10 * time.Second); e.Stats().FramesReceived < uint64(s.sent.Load())*9/10 && time.Now().Before(until); {
				time.Sleep(time.Millisecond)
			}
			kept(t, s.sent.Load(), e.Stats(), max(most, inUse())-before)
		})
	}
}

// kept asserts what an endpoint keeps after so many frames of strangers.
func kept(t *testing.T, sent int64, st dgrdma.Stats, grew int64) {
	t.Helper()
	t.Logf("%d frames, %d came, %d answered, %d left out, refused %v; %d bytes more in use", sent, st.FramesReceived, st.Challenges, st.Unanswered, st.RefusedReasons(), grew)
	// An endpoint keeps no connections of strangers, as a listener of TCP does: it stays far below.
	if grew > strangers.Memory/16 {
		t.Errorf("strangers take %d bytes, more than a sixteenth of %d", grew, strangers.Memory)
	}
	if st.Peers != 0 || st.Challenges == 0 || st.FramesReceived == 0 || st.MessagesPlaced+st.Completions != 0 {
		t.Errorf("not what was meant: %+v", st.Counters)
	}
}

// engineConfig is the configuration of such a server where it is no process of its own.
func engineConfig(o options) *dgrdma.Config {
	c := o.config()
	memory, _ := dgrdma.NewRegion(1 << 16) // never fails
	return &dgrdma.Config{ID: c.ID, AcceptAny: true, Keys: c.Keys, Memory: memory}
}

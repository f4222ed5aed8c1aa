package flood

import (
	"flag"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/tests/fixture"
)

var (
	share   = flag.Float64("share", 0, "of its throughput, that a healthy flow must keep: for a quiet machine")
	seconds = flag.Float64("seconds", 0.2, "how long each flow is measured, beside strangers and, for a share, without")
	rate    = flag.Int("rate", 20000, "frames a second that a stranger sends")
	rounds  = flag.Int("rounds", 1, "how often both are measured, in turn; the median ratio counts")
	seed    = flag.Uint64("seed", 1, "of what strangers send")
)

const (
	// mostCost is half of a core for 20,000 frames a second; measured are 3 to 9 us, of
	// which the kernel's part to receive a datagram is 3. One that waits for answers makes each frame a batch of its own:
	// 26 to 34 us, of which three quarters are the kernel's.
	mostCost    = 25 * time.Microsecond
	mostGrowth  = 64 << 20 // of the server's memory
	flowSize    = 64 << 10
	flowDepth   = 64
	healthyID   = 3
	witnessID   = 4 // a peer that says nothing meanwhile, and must not be lost
	settleAfter = 100 * time.Millisecond
)

// flow is a peer that keeps flowDepth transactions under way.
type flow struct {
	client *dgrdma.Endpoint
	conn   *dgrdma.Conn
	data   []byte
	moved  atomic.Int64
	wrong  atomic.Pointer[error]
	stop   atomic.Bool
	all    sync.WaitGroup
}

// newFlow connects an endpoint of its own to the server.
func newFlow(t testing.TB, peer dgrdma.Peer) *flow {
	t.Helper()
	client, err := dgrdma.Open("udp:127.0.0.1", &dgrdma.Config{ID: healthyID})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	healthy, err := client.Connect(peer)
	if err != nil {
		t.Fatal(err)
	}
	return &flow{client: client, conn: healthy, data: make([]byte, flowSize)}
}

func (f *flow) begin() {
	for i := range flowDepth {
		f.all.Add(1)
		t := &dgrdma.Transaction{
			Segments:   []dgrdma.Segment{{Addr: uint32(64 + i*flowSize), Bytes: f.data}},
			Completion: dgrdma.Word(uint32(4*(i%8)), 1),
		}
		t.Done = func(t *dgrdma.Transaction, err error) {
			if err == nil {
				f.moved.Add(flowSize)
				if !f.stop.Load() {
					err = f.conn.Post(t)
				} else {
					f.all.Done()
					return
				}
			}
			if err != nil {
				f.wrong.CompareAndSwap(nil, &err)
				f.all.Done()
			}
		}
		if err := f.conn.Post(t); err != nil {
			f.wrong.CompareAndSwap(nil, &err)
			f.all.Done()
		}
	}
}

// speed returns bytes a second over a while.
func (f *flow) speed(d time.Duration) float64 {
	before, began := f.moved.Load(), time.Now()
	time.Sleep(d)
	return float64(f.moved.Load()-before) / time.Since(began).Seconds()
}

func (f *flow) err() error {
	if p := f.wrong.Load(); p != nil {
		return *p
	}
	return nil
}

// meet starts a server, and a stranger that introduced itself if it is of that kind.
func meet(t *testing.T, k kind) (*server, dgrdma.Peer, *stranger) {
	t.Helper()
	srv := startServer(t, options{})
	peer, err := dgrdma.ParsePeer(srv.state().URL)
	if err != nil {
		t.Fatal(err)
	}
	s := newStranger(t, peer.Addr.AddrPort(), *seed)
	if k.proven {
		s.introduce(t, strangerID)
	}
	return srv, peer, s
}

// TestStrangersCostLittle: whatever a stranger sends, to refuse or to answer it costs
// little more than to receive it (attacks A4 and A5, SECURITY.md).
func TestStrangersCostLittle(t *testing.T) {
	t.Logf("-seed %d", *seed)
	most := mostCost
	if fixture.Race {
		most *= 20
	}
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			most := most
			if k.steps {
				most *= 4 // each is a batch of its own
			}
			srv, _, s := meet(t, k)
			stop := make(chan struct{})
			frames, made := max(1, int(float64(*rate)**seconds/2)), 0 // however long it takes; 2000 are enough for a mean
			counted := kind{proven: k.proven, make: func(s *stranger) []byte {
				if made++; made == frames {
					close(stop)
				}
				return k.make(s)
			}}
			before := srv.state().CPU
			s.run(*rate, counted, stop)
			each := (srv.state().CPU - before) / time.Duration(s.sent.Load())
			t.Logf("%v of processor time for each of %d frames", each, s.sent.Load())
			if each > most {
				t.Errorf("a frame costs %v, want at most %v", each, most)
			}
			if st := srv.state().Stats; k.why == dgrdma.RefusedNone && st.RefusedReasons() != nil || k.why != dgrdma.RefusedNone && st.RefusedBy(k.why) < st.FramesReceived/3 {
				t.Errorf("of %d frames these are refused: %v; most should be, for %q", st.FramesReceived, st.RefusedReasons(), k.why)
			}
		})
	}
}

// TestFloods: beside any stranger's 20,000 frames a second the server's memory stays
// within 64 MiB of what it was, no proven peer is lost, and a healthy flow of 64 KiB
// transactions between two processes goes on, and a peer's session outlives what is forged in its name. On a quiet machine, with -share 0.5, it
// keeps half of its throughput (attacks A4, A5, A6, A10, A12 and A21, SECURITY.md).
func TestFloods(t *testing.T) {
	t.Logf("-seed %d", *seed)
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			srv, peer, s := meet(t, k)
			f := newFlow(t, peer)
			peer.As = witnessID
			witness, err := f.client.Connect(peer)
			if err != nil {
				t.Fatal(err)
			}
			word := &dgrdma.Transaction{Completion: dgrdma.Word(60, 1)}
			if err := witness.Write(t.Context(), word); err != nil {
				t.Fatal(err)
			}
			f.begin()
			f.speed(settleAfter)
			atFirst := srv.rss()
			most := atFirst
			var beside, shares []float64
			for range *rounds {
				measure := time.Duration(*seconds * float64(time.Second))
				alone := 0.0
				if *share > 0 {
					f.speed(settleAfter)
					alone = f.speed(measure)
				}
				stop := make(chan struct{})
				var flooding sync.WaitGroup
				flooding.Go(func() { s.run(*rate, k, stop) })
				loud := f.speed(measure)
				most = max(most, srv.rss())
				close(stop)
				flooding.Wait()
				beside = append(beside, loud)
				if *share > 0 {
					t.Logf("%.0f MB/s alone", alone/1e6)
					shares = append(shares, loud/alone)
				}
			}
			f.stop.Store(true)
			f.all.Wait()
			if err := f.err(); err != nil {
				t.Errorf("the healthy peer: %v", err)
			}
			if err := witness.Write(t.Context(), word); err != nil {
				t.Errorf("the silent peer: %v", err)
			}
			if k.proven {
				s.outlives(t, srv, k)
			}
			st := srv.state().Stats
			t.Logf("%.0f MB/s beside, shares %.2f; memory %+.1f MiB of %.1f; %d peers, %d challenges, refused %v",
				median(beside)/1e6, shares, float64(most-atFirst)/(1<<20), float64(atFirst)/(1<<20),
				st.Peers, st.Challenges, st.RefusedReasons())
			if *share > 0 && median(shares) < *share {
				t.Errorf("the healthy flow keeps %.2f of its throughput, want %.2f: %v", median(shares), *share, shares)
			}
			if most-atFirst > mostGrowth {
				t.Errorf("the server grew by %d bytes, want at most %d", most-atFirst, mostGrowth)
			}
		})
	}
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

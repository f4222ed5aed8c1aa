package inspect_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/captured"
	"github.com/dgrdma/dgrdma/inspect"
	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
	"github.com/dgrdma/dgrdma/transport/tap"
)

// fate counts what a link did to the frames of a session that are acknowledged: data, and bells.
type fate struct{ sent, dropped, doubled, delayed int }

func (f *fate) delivered() int { return f.sent - f.dropped + f.doubled }

// script decides about the datagrams of a link and keeps count.
func (f *fate) script(dice *rand.Rand, drop, double, delay float64) func(int, []byte) simnet.Verdict {
	return func(_ int, b []byte) (v simnet.Verdict) {
		h, data := frame.SessionHeaderOf(b)
		data = data && (h.Control == frame.NoControl || h.Control == frame.ControlBell)
		x, y, z := dice.Float64(), dice.Float64(), dice.Float64()
		if v.Drop = x < drop; !v.Drop {
			if y < double {
				v.Copies = 1
			}
			if z < delay {
				v.Delay = 300 * time.Microsecond
			}
		}
		if data {
			f.sent++
			if v.Drop {
				f.dropped++
			}
			f.doubled += v.Copies
			if v.Delay > 0 {
				f.delayed++
			}
		}
		return v
	}
}

// recorded is the traffic between two endpoints of ours, captured at both.
type recorded struct {
	files        [2]bytes.Buffer
	stats        [2]dgrdma.Stats
	there, back  fate
	transactions int
}

func (r *recorded) at(t *testing.T, i int) *inspect.Report {
	t.Helper()
	c, err := captured.NewFileReader(bytes.NewReader(r.files[i].Bytes()), captured.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return analyze(t, c)
}

// record lets A write to B, and B to A, over a network that loses, doubles and
// reorders with those probabilities.
func record(t *testing.T, seed uint64, drop, double, delay float64) *recorded {
	r := &recorded{transactions: 300}
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(seed)
		defer n.Close()
		addr := [2]transport.Addr{simnet.Addr(1), simnet.Addr(2)}
		dice := func(way uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 100+way)) }
		n.Link(addr[0], addr[1], simnet.Link{Latency: 100 * time.Microsecond, Rate: 1e9, Script: r.there.script(dice(0), drop, double, delay)})
		n.Link(addr[1], addr[0], simnet.Link{Latency: 110 * time.Microsecond, Rate: 1e9, Script: r.back.script(dice(1), drop, double, delay)})
		var ends [2]*dgrdma.Endpoint
		var conns [2]*dgrdma.Conn
		for i := range ends {
			wire, err := tap.New(n.Attach(addr[i], simnet.Config{}), &r.files[i], tap.Options{})
			if err != nil {
				t.Fatal(err)
			}
			memory, err := dgrdma.NewRegion(1 << 20)
			if err != nil {
				t.Fatal(err)
			}
			lives := rand.New(rand.NewPCG(seed, uint64(2+i)))
			if ends[i], err = dgrdma.New(wire, &dgrdma.Config{ID: frame.EndpointID(1 + i), Memory: memory, Entropy: lives.Uint32}); err != nil {
				t.Fatal(err)
			}
			defer ends[i].Close()
		}
		for i := range conns {
			c, err := ends[i].Connect(dgrdma.Peer{ID: frame.EndpointID(2 - i), Addr: addr[1-i], Size: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			conns[i] = c
		}
		done := make(chan error)
		for i, c := range conns {
			go func() {
				data := make([]byte, 9000)
				var err error
				for k := 0; k < r.transactions && err == nil; k++ {
					err = c.Write(context.Background(), &dgrdma.Transaction{
						Segments:   []dgrdma.Segment{{Addr: 4096, Bytes: data[:1+(k*997+i)%9000]}},
						Completion: dgrdma.Word(8, uint32(k)),
					})
				}
				done <- err
			}()
		}
		for range conns {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		time.Sleep(time.Second) // acknowledgements that are on the way
		for i := range ends {
			ends[i].Close() // with a goodbye to who is left
			r.stats[i] = ends[i].Stats()
			time.Sleep(time.Second)
		}
	})
	return r
}

func analyze(t testing.TB, r *captured.Reader) *inspect.Report {
	t.Helper()
	a := inspect.New()
	for {
		p, err := r.Next()
		if p == nil {
			if err.Error() != "EOF" {
				t.Fatal(err)
			}
			break
		}
		a.Add(p)
	}
	a.Counted(r.Stats())
	return a.Report()
}

func flowFrom(t *testing.T, r *inspect.Report, id frame.EndpointID) *inspect.Flow {
	t.Helper()
	if len(r.Flows) != 2 {
		t.Fatalf("%d flows, want 2", len(r.Flows))
	}
	for i := range r.Flows {
		if r.Flows[i].From.ID == id {
			return &r.Flows[i]
		}
	}
	t.Fatalf("no flow from %d", id)
	return nil
}

// What the analyzer counts in captures of our own endpoints is what the network
// and the endpoints counted themselves.
func TestCountsAreThoseOfTheNetwork(t *testing.T) {
	for _, tt := range []struct{ drop, double, delay float64 }{
		{0, 0, 0}, {0.05, 0, 0}, {0, 0.05, 0}, {0, 0, 0.05}, {0.05, 0.05, 0.03}, {0.2, 0.1, 0.1},
	} {
		for seed := range fixture.Fewer[uint64](6, 2) {
			r := record(t, seed, tt.drop, tt.double, tt.delay)
			for i, there := range []*fate{&r.there, &r.back} {
				sender, receiver := r.stats[i], r.stats[1-i]
				id := frame.EndpointID(1 + i)
				out, in := flowFrom(t, r.at(t, i), id), flowFrom(t, r.at(t, 1-i), id)
				resent := int(sender.RetransmitsFast + sender.RetransmitsTimed)
				firsts := there.sent - resent
				for _, c := range []struct {
					what      string
					got, want int
				}{
					{"sent, at the sender", int(out.Frames), int(sender.FramesSent)},
					{"with messages, at the sender", out.WithMessages, there.sent},
					{"sent again, at the sender", out.Resent, resent},
					{"doubled, at the sender", out.Duplicates, 0},
					{"late, at the sender", out.Late, 0},
					{"acknowledged, at the sender", out.Acked, firsts},
					{"acknowledged, by its own count", out.Acked, int(sender.AcksReceived)},
					{"alone, at the sender", out.AcksAlone, int(sender.AcksAlone)},
					{"missing, at the sender", out.Missing, 0},
					{"completed, at the sender", out.Transactions.Completed, r.transactions},
					{"received", in.WithMessages, there.delivered()},
					{"copies, at the receiver", in.Resent + in.Duplicates, there.delivered() - firsts},
					{"first copies, at the receiver", in.WithMessages - in.Resent - in.Duplicates, firsts},
					{"acknowledged, at the receiver", in.Acked, firsts},
					{"missing and acknowledged, at the receiver", in.MissingAcked, 0},
					{"completed, at the receiver", in.Transactions.Completed, r.transactions},
					{"never completed", in.Transactions.Never + out.Transactions.Never, 0},
					{"restarts", len(in.Restarts) + len(out.Restarts), 0},
					{"strays and conflicts", in.Strays + out.Strays + in.Conflicts + out.Conflicts, 0},
				} {
					if c.got != c.want {
						t.Errorf("%+v, seed %d, from %d: %s: %d, want %d", tt, seed, id, c.what, c.got, c.want)
					}
				}
				// A copy number tells what is sent again from what the network doubles.
				if in.Duplicates != there.doubled {
					t.Errorf("%+v, seed %d, from %d: %d doubled, want %d", tt, seed, id, in.Duplicates, there.doubled)
				}
				// Frames that came before the introduction was over are refused,
				// and not counted as duplicates later.
				if got := in.Resent + in.Duplicates; receiver.Refused == (dgrdma.Counters{}.Refused) && got != int(receiver.Duplicates) {
					t.Errorf("%+v, seed %d, from %d: %d copies, the receiver counted %d", tt, seed, id, got, receiver.Duplicates)
				}
				if tt.drop == 0 && tt.delay == 0 && in.Late != 0 || tt.delay > 0 && in.Late == 0 {
					t.Errorf("%+v, seed %d, from %d: %d late, %d were delayed", tt, seed, id, in.Late, there.delayed)
				}
			}
			if t.Failed() {
				return
			}
		}
	}
}

package wires

import (
	"bytes"
	"context"
	"testing"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/tests/netns"
	"github.com/dgrdma/dgrdma/tests/peers"
	"github.com/dgrdma/dgrdma/transport"
)

// double is a peer of another kind on a real wire.
type double interface {
	Violations() []string
	Completions() []peers.Completion
	Bytes(addr, n int) []byte
	Close()
}

const (
	doubleMemory = 1 << 20
	doubleFlag   = 0x40
	doubleData   = 0x400
	doubleMTU    = 1400
)

// kinds are the doubles, and how each writes to us.
var kinds = []struct {
	name         string
	transactions int // few for those that let each wait
	start        func(tc transport.Conn, to transport.Addr, w wire) (d double, write func(flag, addr uint32, data []byte))
}{
	{"fpga", 30, func(tc transport.Conn, to transport.Addr, _ wire) (double, func(flag, addr uint32, data []byte)) {
		d := peers.NewFPGA(tc, to, peers.FPGAConfig{MTU: doubleMTU})
		return d, func(flag, addr uint32, data []byte) { d.Write(addr, data, doubleFlag, flag) }
	}},
	{"opencpi", 30, func(tc transport.Conn, to transport.Addr, w wire) (double, func(flag, addr uint32, data []byte)) {
		d := peers.NewDG1(tc, to, peers.DG1Config{UDP: w.datagrams})
		return d, func(flag, addr uint32, data []byte) {
			d.Post(doubleFlag, flag, peers.Part{Addr: addr, Data: data})
		}
	}},
	{"opencpi-legacy", 3, func(tc transport.Conn, to transport.Addr, w wire) (double, func(flag, addr uint32, data []byte)) {
		d := peers.NewLegacy(tc, to, peers.DG1Config{UDP: w.datagrams})
		return d, func(flag, addr uint32, data []byte) {
			d.Post(doubleFlag, flag, peers.Part{Addr: addr, Data: data})
		}
	}},
	{"opencpi2", 30, func(tc transport.Conn, to transport.Addr, _ wire) (double, func(flag, addr uint32, data []byte)) {
		d := peers.NewDG2(tc, to, peers.DG2Config{MTU: doubleMTU})
		return d, func(flag, addr uint32, data []byte) {
			d.Post(doubleFlag, flag, addr, data)
			d.Flush()
		}
	}},
}

// TestDoubles: peers of the other kinds, one direction after the other. The
// kernel loses nothing, which matters to those that never send again.
func TestDoubles(t *testing.T) {
	eachWireAtOnce(t, func(t *testing.T, w wire) {
		for _, kind := range kinds {
			t.Run(kind.name, func(t *testing.T) {
				t.Parallel() // most of it is waiting for acknowledgements
				pair := netns.NewPair(t, 1500)
				memory, err := dgrdma.NewRegion(doubleMemory)
				if err != nil {
					t.Fatal(err)
				}
				profile, err := dgrdma.ProfileByName(kind.name, w.datagrams)
				if err != nil {
					t.Fatal(err)
				}
				var ours *dgrdma.Endpoint
				pair[0].In(func() { ours, err = dgrdma.Open(w.local(0), &dgrdma.Config{ID: 1, Memory: memory}) })
				if err != nil {
					t.Fatal(err)
				}
				defer ours.Close()
				tc := w.listen(t, pair[1], 1)
				d, write := kind.start(tc, reached(0, ours.LocalAddr()), w)
				defer d.Close()
				var toD *dgrdma.Conn
				pair[0].In(func() {
					toD, err = ours.Connect(dgrdma.Peer{ID: 2, Addr: reached(1, tc.LocalAddr()), Size: doubleMemory, Profile: &profile})
				})
				if err != nil {
					t.Fatal(err)
				}
				const size = 3000
				n := kind.transactions
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				at := func(i int) uint32 { return doubleData + uint32(i)*4096 }
				results := make(chan error, n)
				for i := range n {
					err := toD.Post(&dgrdma.Transaction{
						Segments:   []dgrdma.Segment{{Addr: at(i), Bytes: pattern(uint32(i), size)}},
						Completion: dgrdma.Word(doubleFlag, uint32(i+1)),
						Done:       func(_ *dgrdma.Transaction, err error) { results <- err },
					})
					if err != nil {
						t.Fatal(err)
					}
				}
				for range n {
					if err := <-results; err != nil {
						t.Fatalf("%v; %+v", err, toD.Stats())
					}
				}
				eventually(t, patience, "all transactions complete at the double", func() bool { return len(d.Completions()) >= n })
				seen := make(map[uint32]bool)
				for _, c := range d.Completions() {
					if c.Addr != doubleFlag || c.Value == 0 || int(c.Value) > n || seen[c.Value] {
						t.Fatalf("completions %+v", d.Completions())
					}
					seen[c.Value] = true
				}
				for i := range n {
					if !bytes.Equal(d.Bytes(int(at(i)), size), pattern(uint32(i), size)) {
						t.Fatalf("memory of transaction %d differs", i)
					}
				}
				for i := range n {
					write(uint32(i+1), at(i), pattern(uint32(i), size))
					if err := memory.WaitFor(ctx, doubleFlag, uint32(i+1)); err != nil {
						t.Fatalf("transaction %d from the double: %v; %+v", i, err, toD.Stats())
					}
					if !bytes.Equal(memory.Bytes()[at(i):at(i)+size], pattern(uint32(i), size)) {
						t.Fatalf("our memory of transaction %d differs", i)
					}
				}
				for _, v := range d.Violations() {
					t.Errorf("violation: %s", v)
				}
				eventually(t, patience, "all transactions are counted", func() bool {
					s := toD.Stats()
					return s.Completions == uint64(n) && s.TransactionsDone == uint64(n)
				})
			})
		}
	})
}

package bench

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// slowClient is a client whose load takes long to prepare, as one of much memory does on a busy machine.
type slowClient struct {
	*Client
	takes time.Duration
}

func (c *slowClient) poster(p Plan) Poster {
	time.Sleep(c.takes)
	return c.Client.poster(p)
}

// TestSlowToPrepare checks that a client that takes longer to prepare its load than it may be silent is not given up by the server.
func TestSlowToPrepare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		at := [2]dgrdma.Addr{simnet.Addr(1), simnet.Addr(2)}
		n.Link(at[0], at[1], simnet.Link{Latency: time.Millisecond})
		n.Link(at[1], at[0], simnet.Link{Latency: time.Millisecond})
		memories := [2]*Memory{}
		ends := [2]*dgrdma.Endpoint{}
		for i := range ends {
			var err error
			if memories[i], err = NewMemory(1 << 20); err != nil {
				t.Fatal(err)
			}
			cfg := dgrdma.Config{ID: dgrdma.EndpointID(i + 1), Memory: memories[i], AcceptAny: i == 1}
			if ends[i], err = dgrdma.New(n.Attach(at[i], simnet.Config{}), &cfg); err != nil {
				t.Fatal(err)
			}
			defer ends[i].Close()
		}
		conn, err := ends[0].Connect(dgrdma.Peer{ID: 2, Addr: at[1]})
		if err != nil {
			t.Fatal(err)
		}
		p := Plan{Size: 64, Peers: 1, Verify: VerifyFull, FirstID: 1}
		c := &Client{Turns: Turns{Plan: p.WithDepth(4, memories[1].Size())}, Endpoint: ends[0], Memory: memories[0], Conns: []*dgrdma.Conn{conn}}
		s := &Server{Endpoint: ends[1], Memory: memories[1]}
		served := make(chan error, 1)
		go func() { served <- s.Serve(t.Context(), true) }()
		o := NewOutcome()
		err = c.run(t.Context(), &slowClient{c, 2 * ends[1].GiveUp()}, 100*time.Millisecond, o)
		if err != nil || o.Mine.Transactions == 0 {
			t.Errorf("%v, %d transactions", err, o.Mine.Transactions)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

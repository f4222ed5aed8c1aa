package bench

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/verbs"
)

// verbsEnds opens a server and a client that has joined it.
func verbsEnds(t *testing.T, set func(*VerbsServer)) (s *VerbsServer, c *VerbsClient, served <-chan error) {
	t.Helper()
	s = verbsServer(t)
	if set != nil {
		set(s)
	}
	result := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { result <- s.Serve(ctx, true) }()
	t.Cleanup(cancel)
	c = verbsClient(t, s)
	if err := c.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s, c, result
}

func verbsServer(t *testing.T) *VerbsServer {
	t.Helper()
	there, err := verbs.Open("tcp:127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	l, err := there.Listen("0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { there.Close() })
	return &VerbsServer{Host: there, Listener: l, Memory: make([]byte, 8<<20)}
}

// serving has a server serve until the test has ended, which is when the context ends.
func serving(t *testing.T, s *VerbsServer) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, false) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("server: %v", err)
		}
	})
	return ctx
}

func verbsClient(t *testing.T, s *VerbsServer) *VerbsClient {
	t.Helper()
	here, err := verbs.Open("tcp:127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { here.Close() })
	return &VerbsClient{Host: here, Address: "tcp:" + s.Listener.Addr().String(), introduction: time.Minute}
}

// verbSizes are sizes that an operation can have.
func verbSizes(v Verb) []uint32 {
	if v.Atomic() {
		return []uint32{AtomicSize}
	}
	return []uint32{1, 8, 5000, 100_000}
}

// TestVerbs: every operation in every size, way and verification, with one queue pair and several: both sides
// count the same, and what was to be looked at was as it should be.
func TestVerbs(t *testing.T) {
	for v := range Verb(len(verbNames)) {
		for _, way := range []string{"there", "back", "both"} {
			for _, verify := range []Verify{VerifyOff, VerifySample, VerifyFull} {
				for _, size := range verbSizes(v) {
					p := Plan{Size: size, Depth: 4, Peers: 1 + size%3, Verify: verify}
					p.Active = uint32(p.slots())
					if way != "there" {
						p.BothWays = 1
					}
					if v.Check(p, way == "back") != nil {
						continue
					}
					t.Run(fmt.Sprintf("%v/%s/verify%d/%d", v, way, verify, size), func(t *testing.T) {
						t.Parallel()
						var ran Run
						var o *Outcome
						// A machine that is busy may do nothing in so short a time.
						for long := 10 * time.Millisecond; long < 10*time.Second; long *= 4 {
							_, c, served := verbsEnds(t, func(s *VerbsServer) { s.Ran = func(r Run) { ran = r } })
							c.Verb, c.Plan, c.Receive = v, p, way == "back"
							c.NoCRC, c.Strict = size%2 == 0, size == 5000
							o = NewOutcome()
							err := c.Run(t.Context(), long, o)
							c.Close()
							if err := errors.Join(err, <-served); err != nil {
								t.Fatal(err)
							}
							if (o.Mine.Transactions > 0 || way == "back") && (o.Theirs.Transactions > 0 || way == "there") {
								break
							}
						}
						if (o.Mine.Transactions > 0) != (way != "back") || (o.Theirs.Transactions > 0) != (way != "there") ||
							o.Theirs.Arrived != o.Mine.Transactions || o.Mine.Arrived != o.Theirs.Transactions || ran.Saw.Arrived != o.Mine.Transactions ||
							o.Mine.Bytes != o.Mine.Transactions*uint64(size) || o.Mine.Wrong+o.Theirs.Wrong != 0 || ran.Plan != p || len(o.Turns) != 1 {
							t.Errorf("%+v, %+v, %+v", o.Mine, o.Theirs, ran)
						}
					})
				}
			}
		}
	}
}

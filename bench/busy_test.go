package bench

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/tests/fixture"
)

// second is another client of a server, with the id 8.
func second(t *testing.T, s *Server, p Plan) *Client {
	t.Helper()
	memory, err := NewMemory(LeastMemory)
	if err != nil {
		t.Fatal(err)
	}
	c := &Client{Turns: Turns{Plan: p}, Memory: memory}
	c.Plan.FirstID = 8
	if c.Endpoint, err = dgrdma.Open("udp:127.0.0.1", &dgrdma.Config{ID: 8, Memory: memory}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Endpoint.Close() })
	conn, err := c.Endpoint.Dial(s.Endpoint.URL())
	if err != nil {
		t.Fatal(err)
	}
	c.Conns = []*dgrdma.Conn{conn}
	return c
}

// beginRaw has a server begin a run, in which the client does nothing.
func beginRaw(t *testing.T, c *Client) {
	t.Helper()
	if err := tell(t.Context(), c.Conns[0], kindBegin, &c.Plan); err != nil {
		t.Fatal(err)
	}
	if m := <-c.Memory.control; m.kind != kindReady {
		t.Fatalf("answer %d", m.kind)
	}
}

// TestServerIsBusy: one client at a time, and the other is told, with whom and for how long.
func TestServerIsBusy(t *testing.T) {
	t.Parallel()
	fixture.NoGoroutineOfItsOwnLeft(t)
	s, c := sides(t, Plan{Size: 64, Peers: 1})
	served := serveOnce(t, s)
	beginRaw(t, c)
	err := second(t, s, c.Plan).Run(t.Context(), time.Second, NewOutcome())
	var with *BusyError
	if !errors.Is(err, ErrBusy) || !errors.As(err, &with) || !strings.HasPrefix(with.Client, "peer 7 at 127.0.0.1:") || with.For <= 0 || with.Silent < 0 || with.Patience != s.Endpoint.GiveUp()/2 {
		t.Errorf("%v: %+v", err, with)
	}
	if err := tell(t.Context(), c.Conns[0], kindEnd, nil); err != nil {
		t.Fatal(err)
	}
	c.thank(t.Context())
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// TestBusyWithOneThatWrites checks that a client that writes is not called silent (N8), whenever another one asks.
func TestBusyWithOneThatWrites(t *testing.T) {
	t.Parallel()
	fixture.NoGoroutineOfItsOwnLeft(t)
	s, c := sides(t, Plan{Size: 64, Peers: 1})
	served := serveOnce(t, s)
	beginRaw(t, c)
	other := second(t, s, c.Plan)
	for began := time.Now(); time.Since(began) < s.Endpoint.GiveUp()/8; time.Sleep(100 * time.Millisecond) {
		wrote := time.Now()
		if err := c.Conns[0].Write(t.Context(), &dgrdma.Transaction{Completion: dgrdma.Word(joinWord, 0)}); err != nil {
			t.Fatal(err)
		}
		err := other.Run(t.Context(), time.Second, NewOutcome())
		var with *BusyError
		if !errors.As(err, &with) {
			t.Fatal(err)
		}
		if with.Silent > time.Since(wrote) {
			t.Fatalf("%v: silent for %v, %v after it wrote", err, with.Silent, time.Since(wrote))
		}
	}
	if err := tell(t.Context(), c.Conns[0], kindEnd, nil); err != nil {
		t.Fatal(err)
	}
	c.thank(t.Context())
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// TestSilentClientGivesWay: who fell silent amid a run does not keep others waiting, and is told
// that the server is through with it.
func TestSilentClientGivesWay(t *testing.T) {
	t.Parallel()
	fixture.NoGoroutineOfItsOwnLeft(t)
	s, c := sides(t, Plan{Size: 64, Peers: 1, BothWays: 1, Rate: 1})
	s.Endpoint.Close()
	var err error
	if s.Endpoint, err = dgrdma.Open("udp:127.0.0.1", &dgrdma.Config{Memory: s.Memory, AcceptAny: true, GiveUp: 2 * time.Second}); err != nil {
		t.Fatal(err)
	}
	if c.Conns[0], err = c.Endpoint.Dial(s.Endpoint.URL()); err != nil {
		t.Fatal(err)
	}
	failed, ran := make(chan error, 1), make(chan Run, 1)
	s.Failed = func(client dgrdma.PeerName, err error) {
		if client.ID == 7 && !client.Addr.IsZero() {
			failed <- err
		}
	}
	s.Ran = func(r Run) { ran <- r }
	stop, served := serveUntil(t, s)
	beginRaw(t, c)
	other := second(t, s, Plan{Size: 64, Peers: 1, Depth: 1, Active: 1})
	for began := time.Now(); ; {
		err := other.Run(t.Context(), 10*time.Millisecond, NewOutcome())
		if err == nil {
			break
		}
		if !errors.Is(err, ErrBusy) || time.Since(began) > 20*time.Second {
			t.Fatal(err)
		}
	}
	if err := <-failed; !errors.Is(err, ErrSilent) {
		t.Error(err)
	}
	if r := <-ran; r.Client.(dgrdma.PeerName).ID != 8 {
		t.Errorf("%v had a run", r.Client)
	}
	<-c.Conns[0].Done()
	if err := c.Conns[0].Err(); !errors.Is(err, dgrdma.ErrPeerClosed) {
		t.Error(err)
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// TestTurnAway: who has been silent for half of the time after which it is gone gives way, and
// the record of who came is read again; before that it does not.
func TestTurnAway(t *testing.T) {
	s, c := sides(t, Plan{Size: 64, Peers: 1})
	s.serving, s.since = c.Conns[0], time.Now()
	begin := control{from: 8, kind: kindBegin}
	for _, x := range []struct {
		silent time.Duration
		gone   bool
	}{{0, false}, {s.Endpoint.GiveUp() / 4, false}, {s.Endpoint.GiveUp()/2 + time.Millisecond, true}} {
		s.heard = time.Now().Add(-x.silent)
		if gone := s.turnAway(begin); gone != x.gone || len(s.Memory.control) > 0 != gone {
			t.Errorf("silent for %v: gone %v, %d records", x.silent, gone, len(s.Memory.control))
		}
		if s.turnAway(control{from: 8, kind: kindEnd}) {
			t.Error("gave way to what is no begin")
		}
	}
	for len(s.Memory.control) < cap(s.Memory.control) {
		s.Memory.control <- begin
	}
	if s.turnAway(begin) {
		t.Error("found room where there is none")
	}
}

// TestBusyWords: what a server says is shown, of an older one as of one that lies.
func TestBusyWords(t *testing.T) {
	with := busy{For: uint64(12 * time.Second), Silent: uint64(3 * time.Second), Patience: uint64(5 * time.Second)}
	copy(with.Client[:], "peer 5 at 10.0.0.1:4000\x1b[2J\n")
	const says = "the server is busy with another client, peer 5 at 10.0.0.1:4000?[2J?, for 12s by now; that is silent for 3s, and gives way to who comes when it is for 5s"
	if got := busyWith(encode(&with)).Error(); got != says {
		t.Error(got)
	}
	just := busy{For: uint64(300 * time.Millisecond), Client: with.Client}
	if got := busyWith(encode(&just)).Error(); got != strings.SplitAfter(says, "[2J?")[0] {
		t.Error(got)
	}
	if err := busyWith(make([]byte, completionsAt)); err != ErrBusy {
		t.Error(err)
	}
	for i := range with.Client {
		with.Client[i] = 'x'
	}
	if got := busyWith(encode(&with)).Error(); !strings.Contains(got, strings.Repeat("x", len(with.Client))+", ") {
		t.Error(got)
	}
}

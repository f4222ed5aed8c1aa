package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/tests/fixture"
)

func openHost(t *testing.T) *link.Host {
	t.Helper()
	h, err := link.Open("udp:127.0.0.1", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// TestLinks: what a load counts is what arrives, as messages and as a stream.
func TestLinks(t *testing.T) {
	fixture.NoGoroutineLeft(t)
	for _, stream := range []bool{false, true} {
		there, here := openHost(t), openHost(t)
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan LinkRun, 1)
		s, err := ServeLinks(ctx, there, func(r LinkRun) { ran <- r })
		if err != nil {
			t.Fatal(err)
		}
		times := NewHistogram()
		_, load, err := DialLink(t.Context(), here, there.URL(), LinkPlan{Stream: stream, Buffers: 8, Size: 3000}, times)
		if err != nil {
			t.Fatal(err)
		}
		load.Start(50 * time.Millisecond)
		if err := errors.Join(load.Over(t.Context()), load.Drain(t.Context()), <-s.Ended()); err != nil {
			t.Error(err)
		}
		messages, bytes, _ := load.Progress()
		if got := there.Stats().Received; messages == 0 || bytes != 3000*messages || got.Bytes != bytes || got.Messages != messages+1 { // and end of file
			t.Errorf("stream %v: %d messages with %d bytes were counted, %+v arrived", stream, messages, bytes, got)
		}
		if r := <-ran; r.Messages != messages || r.Bytes != bytes || r.Buffers != 8 || r.Size != 3000 || r.Took <= 0 || r.Client.ID != here.Endpoint().ID() {
			t.Errorf("stream %v: the server saw %+v", stream, r)
		}
		// One of 8 buffers is timed, whenever it comes back.
		if n := times.N(); n+1 != (messages+7)/8 {
			t.Errorf("stream %v: %d of %d messages were timed", stream, n, messages)
		}
		cancel()
	}
}

// TestLinkIsInterrupted: also while it waits for a consumer that does not take
// anything.
func TestLinkIsInterrupted(t *testing.T) {
	t.Parallel()
	fixture.NoGoroutineOfItsOwnLeft(t)
	there, here := openHost(t), openHost(t)
	port, err := there.Listen(MessagePort, nil)
	if err != nil {
		t.Fatal(err)
	}
	go port.Accept(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	l, load, err := DialLink(ctx, here, there.URL(), LinkPlan{Buffers: 8, Size: 3000}, nil)
	if err != nil {
		t.Fatal(err)
	}
	load.Start(time.Hour)
	go func() {
		for n := uint64(0); n < 8; n, _, _ = load.Progress() {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(20 * time.Millisecond) // in which it could send more
		cancel()
	}()
	if err := load.Over(ctx); !errors.Is(err, ErrInterrupted) {
		t.Error(err)
	}
	if n, _, _ := load.Progress(); n != 8 {
		t.Errorf("%d messages into 8 buffers", n)
	}
	bounded, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	load.Drain(bounded)
	l.Abort(bounded, "")
}

// TestWrongMessagesAreCounted: the server looks at the number of each message.
func TestWrongMessagesAreCounted(t *testing.T) {
	s := &LinkServer{}
	s.check(nil, link.Message{Number: 3, Bytes: []byte{3, 0, 0, 0, 0, 0, 0, 0}})
	if s.check(nil, link.Message{Number: 3, Bytes: make([]byte, 8)}); s.wrong.Load() != 1 {
		t.Errorf("%d messages of one were found wrong", s.wrong.Load())
	}
}

// sides opens a server and a client with one peer of it.
func sides(t *testing.T, p Plan) (*Server, *Client) {
	t.Helper()
	memory, err := NewMemory(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	there, err := dgrdma.Open("udp:127.0.0.1", &dgrdma.Config{Memory: memory, AcceptAny: true})
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Endpoint: there, Memory: memory}
	t.Cleanup(s.Close)
	c := &Client{Turns: Turns{Plan: p.WithDepth(4, memory.Size())}}
	if c.Memory, err = NewMemory(int(c.Plan.ClientMemory())); err != nil {
		t.Fatal(err)
	}
	c.Plan.FirstID = 7
	if c.Endpoint, err = dgrdma.Open("udp:127.0.0.1", &dgrdma.Config{ID: 7, Memory: c.Memory}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Endpoint.Close() })
	conn, err := c.Endpoint.Dial(there.URL())
	if err != nil {
		t.Fatal(err)
	}
	c.Conns = []*dgrdma.Conn{conn}
	return s, c
}

// TestClientAndServer: both sides count the same, one way and both.
func TestClientAndServer(t *testing.T) {
	fixture.NoGoroutineLeft(t)
	for _, bothWays := range []uint32{0, 1} {
		s, c := sides(t, Plan{Size: 5000, Peers: 1, Verify: VerifyFull, BothWays: bothWays})
		var ran Run
		s.Ran = func(r Run) { ran = r }
		began := 0
		c.Began = func(func() (Moved, time.Duration)) func() { began++; return func() { began += 10 } }
		served := make(chan error)
		go func() { served <- s.Serve(t.Context(), true) }()
		o := NewOutcome()
		if err := errors.Join(c.Run(t.Context(), 50*time.Millisecond, o), <-served); err != nil {
			t.Fatal(err)
		}
		if o.Mine.Transactions == 0 || o.Theirs.Arrived != o.Mine.Transactions || o.Mine.Arrived != o.Theirs.Transactions || (o.Theirs.Transactions > 0) != (bothWays == 1) ||
			ran.Saw.Arrived != o.Mine.Transactions || ran.Client.(dgrdma.PeerName).ID != 7 || ran.Plan != c.Plan || began != 11 || o.Times.Quantile(0.5) == 0 {
			t.Errorf("%+v, %+v, %d", o.Mine, ran, began)
		}
	}
}

// TestManyPeersJoin: more than make themselves known at a time.
func TestManyPeersJoin(t *testing.T) {
	fixture.NoGoroutineLeft(t)
	s, c := sides(t, Plan{Size: 64, Peers: 1})
	to, err := dgrdma.ParsePeer(s.Endpoint.URL())
	if err != nil {
		t.Fatal(err)
	}
	for i := range joining + 100 {
		to.As = dgrdma.EndpointID(1000 + i)
		conn, err := c.Endpoint.Connect(to)
		if err != nil {
			t.Fatal(err)
		}
		c.Conns = append(c.Conns, conn)
	}
	if err := c.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(s.Endpoint.Conns()); n != len(c.Conns) {
		t.Errorf("%d peers of %d are known", n, len(c.Conns))
	}
}

// slowBye is memory that takes its time when a client says that it is through.
type slowBye struct{ *Memory }

func (m slowBye) Complete(src dgrdma.EndpointID, msg *dgrdma.Message) {
	m.Memory.Complete(src, msg)
	if msg.CompletionAddr == controlWord && msg.CompletionValue == kindBye {
		time.Sleep(3 * Linger)
	}
}

// TestLastWordIsAcknowledged: however long the server takes for the batch that has it, as on
// a busy machine.
func TestLastWordIsAcknowledged(t *testing.T) {
	fixture.NoGoroutineLeft(t)
	s, c := sides(t, Plan{Size: 64, Peers: 1})
	there, err := dgrdma.Open("udp:127.0.0.1", &dgrdma.Config{Memory: slowBye{s.Memory}, AcceptAny: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Endpoint.Close()
	s.Endpoint = there
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	served := make(chan error)
	go func() { served <- s.Serve(ctx, false) }()
	here, err := dgrdma.Open("udp:127.0.0.1", &dgrdma.Config{ID: 7, Memory: c.Memory, GiveUp: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	conn, err := here.Dial(there.URL())
	if err != nil {
		t.Fatal(err)
	}
	if err := tell(t.Context(), conn, kindBegin, &c.Plan); err != nil {
		t.Fatal(err)
	}
	<-c.Memory.control
	if err := tell(t.Context(), conn, kindEnd, nil); err != nil {
		t.Fatal(err)
	}
	<-c.Memory.control
	if err := tell(t.Context(), conn, kindBye, nil); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// TestNoThanks: a client that has its report and says nothing any more, or only goodbye, keeps the
// server from nobody else.
func TestNoThanks(t *testing.T) {
	t.Parallel()
	fixture.NoGoroutineOfItsOwnLeft(t)
	for _, leaves := range []bool{false, true} {
		s, c := sides(t, Plan{Size: 64, Peers: 1})
		there, err := dgrdma.Open("udp:127.0.0.1", &dgrdma.Config{Memory: s.Memory, AcceptAny: true, GiveUp: 3 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		s.Endpoint.Close()
		s.Endpoint = there
		served := serveOnce(t, s)
		conn, err := c.Endpoint.Dial(there.URL())
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range []uint32{kindBegin, kindEnd} {
			if err := tell(t.Context(), conn, kind, &c.Plan); err != nil {
				t.Fatal(err)
			}
			<-c.Memory.control
		}
		if leaves {
			conn.Close()
		}
		select {
		case err := <-served:
			if err != nil {
				t.Errorf("leaves %v: %v", leaves, err)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("leaves %v: the server waits for ever", leaves)
		}
	}
}

// TestRecordsAreGolden: plans and counts travel between machines with different
// versions of this.
func TestRecordsAreGolden(t *testing.T) {
	p := Plan{1, 2, 3, 4, 5, VerifyFull, 1, 7, 0x0807060504030201, Raw, 9, nameController("reno")}
	if got, want := fmt.Sprintf("%x", encode(&p)), "0100000002000000030000000400000005000000020000000100000007000000"+"0102030405060708"+"03000000"+"09000000"+"72656e6f"+strings.Repeat("00", 12); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := fmt.Sprintf("%x", encode(&Ready{knowsAll, 0x0201, 1, 8})); got != "07000000"+"01020000"+"01000000"+"08000000" {
		t.Error(got)
	}
	if got := fmt.Sprintf("%x", encode(&busy{1, 2, 3, [80]byte{4, 79: 5}})); got != "0100000000000000"+"0200000000000000"+"0300000000000000"+"04"+strings.Repeat("00", 78)+"05" {
		t.Error(got)
	}
	c := Counts{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24}
	b := encode(&c)
	for i := range 24 {
		if len(b) != 24*8 || b[8*i] != byte(i+1) {
			t.Fatalf("% x", b)
		}
	}
	kinds := []uint32{kindBegin, kindReady, kindEnd, kindReport, kindBye, kindBusy}
	if fmt.Sprint(kinds) != "[1 2 3 4 5 6]" || controlWord != 0 || joinWord != 4 || controlData != 64 || completionsAt != 4096 {
		t.Error("the layout changed")
	}
}

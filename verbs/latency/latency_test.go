package latency

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/rdmap/mpa"
	"github.com/dgrdma/dgrdma/verbs"
)

const patience = 20 * time.Second

// served is a server that runs.
type served struct {
	t       testing.TB
	server  *Server
	host    *verbs.Host // of clients
	address string
	ended   chan error    // of sessions
	session chan *Session // that were accepted
	refused chan error
	stop    context.CancelFunc // ends sessions
}

func serve(t testing.TB, s *Server) *served {
	t.Helper()
	h, err := verbs.Open("tcp:127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	clients, err := verbs.Open("tcp:127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	l, err := h.Listen("0")
	if err != nil {
		t.Fatal(err)
	}
	x := &served{t: t, server: s, host: clients, address: fmt.Sprint("tcp:", l.Addr()), ended: make(chan error, 1000), session: make(chan *Session, 1000), refused: make(chan error, 1000)}
	ctx, stop := context.WithCancel(context.Background())
	x.stop = stop
	var all sync.WaitGroup
	all.Go(func() {
		for {
			r, err := l.Accept(ctx)
			if err != nil {
				return
			}
			c, err := s.Accept(ctx, h, r)
			if err != nil {
				x.refused <- err
				continue
			}
			x.session <- c
			all.Go(func() { x.ended <- c.Run(ctx) })
		}
	})
	t.Cleanup(func() {
		clients.Close()
		stop()
		h.Close()
		all.Wait()
		if s.room != nil && s.room.Len() != 0 {
			t.Errorf("%d clients are left", s.room.Len())
		}
	})
	return x
}

func within(t testing.TB) context.Context {
	ctx, stop := context.WithTimeout(t.Context(), patience)
	t.Cleanup(stop)
	return ctx
}

// run does an operation so many times.
func (s *served) run(op Op, size uint32, n int, o *verbs.Options) (*Client, error) {
	ctx := within(s.t)
	c, err := Dial(ctx, s.host, s.address, op, size, o)
	if err != nil {
		return nil, err
	}
	for i := range n {
		if err := c.Start(); err != nil {
			return c, fmt.Errorf("%d: %w", i, err)
		}
		if err := c.Wait(ctx); err != nil {
			return c, fmt.Errorf("%d: %w", i, err)
		}
	}
	return c, c.Close(ctx)
}

// TestOperations: each is done as often as it was asked for, with CRC and without, as ourselves and as strangers.
func TestOperations(t *testing.T) {
	for _, o := range []verbs.Options{{}, {NoCRC: true}, {Strict: true}} {
		s := serve(t, &Server{Verbs: o})
		for _, name := range Names() {
			op, err := ParseOp(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, size := range []uint32{1, 8, 64, 70000} {
				if op.Atomic() && size != WordSize {
					if _, err := Dial(within(t), s.host, s.address, op, size, &o); err == nil {
						t.Errorf("%v of %d bytes is taken", op, size)
					}
					continue
				}
				const n = 20
				c, err := s.run(op, size, n, &o)
				if err != nil {
					t.Fatalf("%v of %d bytes: %v", op, size, err)
				}
				if c.Persistent() {
					t.Errorf("%v: persistent without a file", op)
				}
				session := <-s.session
				if err := <-s.ended; err != nil {
					t.Errorf("%v of %d bytes: the server: %v", op, size, err)
				}
				want := uint64(0)
				if op.OneWay() {
					want = n
				}
				if session.Op != op || session.Size != size || session.Answered() != want {
					t.Errorf("the server saw %v of %d bytes, %d answered; want %v of %d, %d", session.Op, session.Size, session.Answered(), op, size, want)
				}
				if op.Atomic() {
					if v := binary.NativeEndian.Uint64(session.region.Bytes()); v != n {
						t.Errorf("%v: the word is %d after %d", op, v, n)
					}
				}
			}
		}
	}
}

// TestPersistent: with a file a Flush reaches it, for several clients at once.
func TestPersistent(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "memory"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := serve(t, &Server{File: f, Most: 4096})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			c, err := s.run(Flush, 4096, 5, nil)
			if err != nil {
				t.Error(err)
			} else if !c.Persistent() {
				t.Error("not persistent")
			}
		})
	}
	all.Wait()
	if info, err := f.Stat(); err != nil || info.Size() != 4096 {
		t.Errorf("%v, %v", info, err)
	}
}

// TestRefusals: a server says why not, in words that the client's error has.
func TestRefusals(t *testing.T) {
	s := serve(t, &Server{Most: 100})
	valid := request{op: Read, size: 64}
	change := func(f func(b []byte) []byte) []byte { return f(valid.bytes()) }
	for _, c := range []struct {
		name    string
		private []byte
		says    string
		is      error
	}{
		{"no private data", nil, "takes its own clients only", ErrStranger},
		{"others' private data", []byte("DGLU and so on and on and on"), "takes its own clients only", ErrStranger},
		{"another version", change(func(b []byte) []byte { b[4] = 9; return b }), "speaks version 9, and the server 1", ErrRefused},
		{"another operation", change(func(b []byte) []byte { b[5] = 77; return b }), "operation 77 is not known here", ErrRefused},
		{"no operation", change(func(b []byte) []byte { b[5] = 0; return b }), "operation 0 is not known here", ErrRefused},
		{"cut", change(func(b []byte) []byte { return b[:len(b)-1] }), "request is broken", ErrRefused},
		{"flags of the future", change(func(b []byte) []byte { b[7] = 1; return b }), "request is broken", ErrRefused},
		{"too large", (&request{op: Read, size: 101}).bytes(), "takes 100 at most", ErrRefused},
		{"nothing", (&request{op: Read}).bytes(), "cannot be", ErrRefused},
		{"half a word", (&request{op: FetchAdd, size: 4}).bytes(), "cannot be", ErrRefused},
		{"Writes to less memory", (&request{op: Write, size: 64, key: verbs.Key{Length: 63}}).bytes(), "cannot be", ErrRefused},
	} {
		q, err := s.host.Dial(within(t), s.address, &verbs.Options{Private: c.private})
		var rejected *mpa.RejectedError
		if !errors.As(err, &rejected) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v %v, want %q", c.name, q, err, c.says)
		}
		if err := <-s.refused; !errors.Is(err, c.is) {
			t.Errorf("%s: the server says %v", c.name, err)
		}
	}
}

// TestSizeIsToldByARecord checks that a client is told by a record that its operations are too large, and by no words of a server (L1).
func TestSizeIsToldByARecord(t *testing.T) {
	s := serve(t, &Server{Most: 100})
	_, err := Dial(within(t), s.host, s.address, Read, 101, nil)
	if want := " rejected the connection: read of 101 bytes: the server takes 100 at most; give ping --serve as large a --size"; !errors.Is(err, ErrSize) || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	other, err := s.host.Listen("0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	go func() {
		for {
			r, err := other.Accept(t.Context())
			if err != nil {
				return
			}
			r.TurnAway([]byte("the store is full; give ping --serve as large a --size"))
		}
	}()
	if _, err := Dial(within(t), s.host, "tcp:"+other.Addr().String(), Read, 101, nil); err == nil || errors.Is(err, ErrSize) {
		t.Errorf("a server of something else, in the same words: %v", err)
	}
}

// TestManyClients: there is an end to how many a server has, and to their memory; who is gone makes room.
func TestManyClients(t *testing.T) {
	s := serve(t, &Server{Most: 128 << 20})
	ctx := within(t)
	var there []*Client
	for range 2 {
		c, err := Dial(ctx, s.host, s.address, Read, 128<<20, nil)
		if err != nil {
			t.Fatal(err)
		}
		there = append(there, c)
	}
	if _, err := Dial(ctx, s.host, s.address, Read, 1, nil); err == nil || !strings.Contains(err.Error(), "2 clients are there already") {
		t.Errorf("memory for a third one: %v", err)
	}
	for _, c := range there {
		if err := c.Close(ctx); err != nil {
			t.Error(err)
		}
		if err := <-s.ended; err != nil {
			t.Error(err)
		}
	}
	there = nil
	for range MostClients {
		c, err := Dial(ctx, s.host, s.address, FetchAdd, WordSize, nil)
		if err != nil {
			t.Fatal(err)
		}
		there = append(there, c)
	}
	if _, err := Dial(ctx, s.host, s.address, Read, 1, nil); err == nil || !strings.Contains(err.Error(), "256 clients are there already") {
		t.Errorf("a place for another one: %v", err)
	}
	for _, c := range there {
		c.Abort()
	}
	for range there {
		if err := <-s.ended; err == nil {
			t.Error("a client that is killed is taken for one that closes")
		}
	}
	if _, err := s.run(Send, 8, 3, nil); err != nil {
		t.Error(err)
	}
}

// TestSilentClientsGiveWay checks that clients which take all places, and do nothing, do not keep others out: another host's client has a place at
// once, and one of the same host when they have been silent for long enough; whose place it was hears of it (F2).
func TestSilentClientsGiveWay(t *testing.T) {
	s := serve(t, &Server{patience: 300 * time.Millisecond})
	ctx := within(t)
	other, err := verbs.Open("tcp:127.0.0.2")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for range MostClients {
		c, err := Dial(ctx, s.host, s.address, Read, 64, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Abort()
	}
	began := time.Now()
	run := func(h *verbs.Host) error {
		c, err := Dial(ctx, h, s.address, Read, 64, nil)
		if err != nil {
			return err
		}
		return errors.Join(c.Start(), c.Wait(ctx), c.Close(ctx))
	}
	gaveWay := func() {
		t.Helper()
		for {
			if err := <-s.ended; err != nil {
				if !errors.Is(err, ErrGaveWay) {
					t.Error(err)
				}
				return
			}
		}
	}
	if err := run(other); err != nil {
		t.Errorf("another host: %v", err)
	}
	gaveWay()
	time.Sleep(time.Until(began.Add(400 * time.Millisecond)))
	for range 2 { // the first takes what is free, and the second one's
		c, err := Dial(ctx, s.host, s.address, Read, 64, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Abort()
	}
	gaveWay()
}

// TestOtherServers: who accepts without a word is no server of latency; one that grants less than was asked for is broken.
func TestOtherServers(t *testing.T) {
	asked := request{op: Read, size: 64}
	less := reply{op: Read, key: verbs.Key{Length: 63}}
	other := reply{op: Flush, key: verbs.Key{Length: 64}}
	for name, private := range map[string][]byte{"rping": nil, "words": []byte("welcome, whoever you are, and do what you like"), "less": less.bytes(), "another operation": other.bytes()} {
		if err := new(reply).parse(private, &asked); !errors.Is(err, ErrStranger) {
			t.Errorf("%s: %v", name, err)
		}
	}
	right := reply{op: Read, key: verbs.Key{STag: 7, Offset: 9, Length: 64}}
	var got reply
	if err := got.parse(right.bytes(), &asked); err != nil || got != right {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestMessagesDuringReads checks that the server ends a client that sends a message which its operation lacks.
func TestMessagesDuringReads(t *testing.T) {
	s := serve(t, &Server{})
	q, err := s.host.Dial(within(t), s.address, &verbs.Options{Private: (&request{op: Read, size: 64}).bytes()})
	if err != nil {
		t.Fatal(err)
	}
	q.Send(within(t), nil)
	if err := <-s.ended; err == nil || !strings.Contains(err.Error(), "a message of 0 bytes during read, which has none") {
		t.Error(err)
	}
	<-q.Done()
}

// TestWrongValue: somebody else's work in the server's memory is noticed.
func TestWrongValue(t *testing.T) {
	s := serve(t, &Server{})
	for _, op := range []Op{FetchAdd, CompareSwap} {
		ctx := within(t)
		c, err := Dial(ctx, s.host, s.address, op, WordSize, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.q.FetchAdd(ctx, verbs.Key{STag: c.list[0].STag, Offset: c.list[0].TO, Length: WordSize}, 0, 5); err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		if err := c.Wait(ctx); !errors.Is(err, ErrValue) {
			t.Errorf("%v: %v", op, err)
		}
		c.Abort()
	}
}

// TestInterrupted: a wait ends with its context, and says why.
func TestInterrupted(t *testing.T) {
	s := serve(t, &Server{})
	c, err := Dial(within(t), s.host, s.address, Send, 8, nil)
	if err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	ctx, stop := context.WithCancelCause(t.Context())
	time.AfterFunc(20*time.Millisecond, func() { stop(enough) })
	if err := c.Wait(ctx); !errors.Is(err, enough) {
		t.Error(err)
	}
	c.Abort()
}

// TestAnsweredBeforeTheEnd: an answer counts where the server has closed the connection before the client looked, and the next
// operation is not begun.
func TestAnsweredBeforeTheEnd(t *testing.T) {
	for _, op := range []Op{Send, Write} {
		x := serve(t, &Server{})
		c, err := Dial(within(t), x.host, x.address, op, 8, nil)
		if err != nil {
			t.Fatal(err)
		}
		s := <-x.session
		if err := c.Start(); err != nil {
			t.Fatal(op, err)
		}
		for s.Answered() == 0 {
			time.Sleep(time.Millisecond)
		}
		x.stop()
		<-c.q.Done()
		if err := c.Wait(within(t)); err != nil {
			t.Errorf("%v: %v", op, err)
		}
		err = c.Start()
		if err == nil {
			err = c.Wait(within(t))
		}
		if !errors.Is(err, verbs.ErrPeerClosed) {
			t.Errorf("%v behind the end: %v", op, err)
		}
		c.Abort()
	}
}

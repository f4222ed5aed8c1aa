package verbs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/verbs"
)

// says fails the test unless the error is all of those, and has all of the words.
func says(t *testing.T, err error, are []error, words ...string) {
	t.Helper()
	for _, is := range are {
		if !errors.Is(err, is) {
			t.Errorf("%q is not %q", err, is)
		}
	}
	for _, w := range words {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("%v does not say %q", err, w)
		}
	}
}

func openHost(t *testing.T) *verbs.Host {
	t.Helper()
	h, err := verbs.Open("tcp:127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// stranger listens, and does something with whoever connects.
func stranger(t *testing.T, do func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go do(c)
		}
	}()
	return "tcp:" + l.Addr().String()
}

func TestDialErrors(t *testing.T) {
	h := openHost(t)
	const nobody = "tcp:127.0.0.1:1" // the system gives the port to nobody by itself
	_, err := h.Dial(t.Context(), nobody, nil)
	says(t, err, []error{syscall.ECONNREFUSED}, nobody, "nothing listens there", "start the peer first")

	web := stranger(t, func(c net.Conn) {
		io.ReadFull(c, make([]byte, 10))
		io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
		io.Copy(io.Discard, c)
		c.Close()
	})
	_, err = h.Dial(t.Context(), web, nil)
	says(t, err, []error{verbs.ErrNotMPA}, `"HTTP/1.1`, "the peer does not speak iWARP on this port")
	var setUp *verbs.SetUpError
	if !errors.As(err, &setUp) {
		t.Errorf("%v is no SetUpError", err)
	}

	silent := stranger(t, func(c net.Conn) { io.Copy(io.Discard, c); c.Close() })
	_, err = h.Dial(t.Context(), silent, &verbs.Options{Timeout: 50 * time.Millisecond})
	says(t, err, []error{verbs.ErrLost, os.ErrDeadlineExceeded}, "nothing whole came within 50ms")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = h.Dial(ctx, silent, nil)
	says(t, err, []error{context.DeadlineExceeded})

	shy := stranger(t, func(c net.Conn) { io.ReadFull(c, make([]byte, 24)); c.Close() })
	_, err = h.Dial(t.Context(), shy, nil)
	says(t, err, []error{verbs.ErrLost}, "the peer closed it")

	_, err = h.Dial(t.Context(), "tcp:nobody.invalid:7", nil)
	says(t, err, nil, "no address of host nobody.invalid: ", "is the name right? An IP address does in its place")
	if !errors.As(err, new(*net.DNSError)) {
		t.Errorf("%v is no DNSError", err)
	}
	everywhere, err := verbs.Open("tcp")
	if err != nil {
		t.Fatal(err)
	}
	defer everywhere.Close()
	_, err = everywhere.Dial(t.Context(), "tcp:255.255.255.255:7", nil) // where no TCP goes
	says(t, err, []error{syscall.ENETUNREACH}, "no way there: ")
	elsewhere, err := verbs.Open("tcp:192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	defer elsewhere.Close()
	_, err = elsewhere.Dial(t.Context(), silent, nil)
	says(t, err, []error{syscall.EADDRNOTAVAIL}, "no interface of this machine has the address; ip addr lists those there are")
	_, err = elsewhere.Listen("0")
	says(t, err, []error{syscall.EADDRNOTAVAIL}, "no interface of this machine has the address; ip addr lists those there are")
	nameless, err := verbs.Open("tcp:nobody.invalid")
	if err != nil {
		t.Fatal(err)
	}
	defer nameless.Close()
	_, err = nameless.Dial(t.Context(), silent, nil)
	says(t, err, nil, "from nobody.invalid: no address of host nobody.invalid: ", "is the name right?")
	_, err = nameless.Listen("0")
	says(t, err, nil, "no address of host nobody.invalid: ", "is the name right?")
	_, taken, _ := net.SplitHostPort(strings.TrimPrefix(silent, "tcp:"))
	_, err = h.Listen(taken)
	says(t, err, []error{syscall.EADDRINUSE}, "another socket has the port; choose one, or 0 for any")
	_, err = everywhere.Listen(taken)
	says(t, err, []error{syscall.EADDRINUSE}, "another socket has the port, at all addresses or at one; choose a port")

	_, err = h.Dial(t.Context(), "udp:127.0.0.1:1", nil)
	says(t, err, nil, "that is an endpoint string of DG/RDMA", "an address begins with tcp:")
	_, err = verbs.Open("10.0.0.1")
	says(t, err, nil, "an address begins with tcp:")
	_, err = verbs.Open("tcp:127.0.0.1:7471")
	says(t, err, nil, "the port is for Listen")
	for _, wrong := range []string{"tcp:127.0.0.1", "tcp:127.0.0.1:70000", "tcp:127.0.0.1:no-such-port", "tcp:::1:7471"} {
		_, err = h.Dial(t.Context(), wrong, nil)
		says(t, err, nil, wrong, "Dial takes tcp:HOST:PORT, as in tcp:10.0.0.2:7471")
	}
	for _, wrong := range []string{":7471", "70000", "no-such-port"} {
		_, err = h.Listen(wrong)
		says(t, err, nil, wrong, "Listen a port alone, as in 7471")
	}
	h.Close()
	_, err = h.Listen("0")
	says(t, err, []error{verbs.ErrClosed}, "the host is closed")
}

func TestOptionErrors(t *testing.T) {
	h, l := listen(t)
	long := make([]byte, verbs.MaxPrivate+1)
	for _, c := range []struct {
		o    verbs.Options
		want string
	}{
		{verbs.Options{Private: long}, "Private has 249 bytes, and 248 are allowed"},
		{verbs.Options{Shared: verbs.NewSharedReceives(1), Posted: []verbs.Receive{{}}}, "Posted and Shared exclude each other"},
		{verbs.Options{Extensions: 1 << 7}, "unknown extensions"},
		{verbs.Options{IRD: 1 << 20}, "IRD 1048576"},
		{verbs.Options{Revision: 3}, "revision 3"},
	} {
		_, err := h.Dial(t.Context(), l.String(), &c.o)
		says(t, err, []error{verbs.ErrOption}, c.want)
	}
	// A request that was answered wrongly can still be answered.
	got := make(chan error, 1)
	go func() {
		for range 2 { // those of the last two lines of the table have come and gone
			r, err := l.Accept(t.Context())
			if err != nil || string(r.Private) != "it is me" {
				continue
			}
			if _, err = r.Accept(t.Context(), &verbs.Options{Private: long}); !errors.Is(err, verbs.ErrOption) {
				t.Errorf("accept with long private data: %v", err)
			}
			if err := r.Reject(t.Context(), long); !errors.Is(err, verbs.ErrOption) {
				t.Errorf("reject with long private data: %v", err)
			}
			_, err = r.Accept(t.Context(), nil)
			got <- err
			return
		}
		got <- errors.New("the request did not come")
	}()
	_, err := h.Dial(t.Context(), l.String(), &verbs.Options{Private: []byte("it is me")})
	if err := errors.Join(err, <-got); err != nil {
		t.Error(err)
	}
}

func TestPostErrors(t *testing.T) {
	e := connect(t, &verbs.Options{Sends: 3, Receives: 2, ORD: -1}, nil)
	says(t, e.a.Post(&verbs.Work{Op: verbs.OpRead}), []error{verbs.ErrNoReads}, "post Read", "ORD is 0")
	says(t, e.a.Post(&verbs.Work{Op: verbs.OpReceive}), []error{verbs.ErrInvalid}, "Receive is not for the send queue")
	for i := range 3 {
		err := e.a.PostReceive(verbs.Receive{})
		if i == 2 {
			says(t, err, []error{verbs.ErrFull}, "2 requests are not done", "Options.Receives")
		} else if err != nil {
			t.Error(err)
		}
	}
	e.join(t.Context(), t, &verbs.Options{Sends: 3, Extensions: verbs.Commit}, nil)
	says(t, e.a.Post(&verbs.Work{Op: verbs.OpFetchAdd}), []error{verbs.ErrNotAgreed}, "post FetchAdd", "needs Atomics")
	says(t, e.a.Flush(t.Context(), verbs.Key{Length: 9}, 0, 9, 0), []error{verbs.ErrInvalid}, "a Flush is for persistence")
	if _, err := e.a.FetchAdd(t.Context(), verbs.Key{Length: 7}, 0, 1); true {
		says(t, err, []error{verbs.ErrBounds}, "8 bytes at 0, of 7 bytes at 0x0 of STag 0x0")
	}
	region, err := e.hb.Register(make([]byte, 8), verbs.RemoteRead)
	if err != nil {
		t.Fatal(err)
	}
	// Nobody can say when Reads are answered: the queue is full when as many are posted at once.
	list := make([]verbs.Work, 4)
	for i := range list {
		list[i] = verbs.Work{Op: verbs.OpRead, STag: region.STag(), Data: make([]byte, 8)}
	}
	n, err := e.a.PostList(list)
	if n != 3 {
		t.Errorf("%d of 4 were queued", n)
	}
	says(t, err, []error{verbs.ErrFull}, "3 requests are not done", "Options.Sends", "poll Completions")
	if n := e.ha.Stats().Full; n != 2 {
		t.Errorf("%d times a queue was full, want 2", n)
	}

	shared := verbs.NewSharedReceives(1)
	if err := shared.Post(verbs.Receive{}); err != nil {
		t.Fatal(err)
	}
	says(t, shared.Post(verbs.Receive{}), []error{verbs.ErrFull}, "all 1 places of NewSharedReceives")
	e.join(t.Context(), t, nil, &verbs.Options{Shared: shared})
	says(t, e.b.PostReceive(verbs.Receive{}), []error{verbs.ErrInvalid}, "Options.Shared")
	_, err = e.b.PostReceives(make([]verbs.Receive, 2))
	says(t, err, []error{verbs.ErrInvalid}, "Options.Shared")
	if err := e.a.Close(); err != nil {
		t.Fatal(err)
	}
	says(t, e.a.Post(&verbs.Work{Op: verbs.OpWrite}), []error{verbs.ErrClosed}, "post Write", "is closed")
}

// TestCallsAfterTheEnd: a call that comes too late, or waits for room, fails as one that the end of the connection finds under way.
func TestCallsAfterTheEnd(t *testing.T) {
	e := connect(t, nil, &verbs.Options{Sends: 1})
	// The side that was dialed may not send yet, so that its queue is full.
	if err := e.b.Post(&verbs.Work{Op: verbs.OpSend}); err != nil {
		t.Fatal(err)
	}
	waits := make(chan error)
	go func() { waits <- e.b.Send(t.Context(), nil) }()
	time.Sleep(20 * time.Millisecond)
	e.a.Abort()
	at := e.b.RemoteAddr().String()
	says(t, <-waits, []error{verbs.ErrFlushed}, "Send with "+at, "connection reset")
	<-e.b.Done()
	says(t, e.b.Read(t.Context(), make([]byte, 1), verbs.Key{Length: 1}, 0), []error{verbs.ErrFlushed}, "Read with "+at, "connection reset")
	_, err := e.b.Receive(t.Context(), make([]byte, 1))
	says(t, err, []error{verbs.ErrFlushed}, "Receive with "+at, "connection reset")
	if err := e.a.Send(t.Context(), nil); !errors.Is(err, verbs.ErrClosed) || errors.Is(err, verbs.ErrFlushed) {
		t.Errorf("after the own end: %v", err)
	}
}

// RDMAP-085: what ended a connection is said in words at both sides, and in all that it took along.
func TestEndsAreSaid(t *testing.T) {
	e := connect(t, nil, &verbs.Options{Extensions: verbs.Commit})
	region, err := e.hb.Register(make([]byte, 100), verbs.RemoteRead)
	if err != nil {
		t.Fatal(err)
	}
	err = e.a.Write(t.Context(), region.Key(), 0, []byte("x")) // without the right
	if err == nil {
		err = e.a.Read(t.Context(), make([]byte, 1), region.Key(), 0)
	}
	says(t, err, []error{verbs.ErrFlushed, verbs.FaultTaggedSTag}, "the peer ended the stream", "invalid STag (1/1/00)", "in a Write to STag", e.a.RemoteAddr().String())
	<-e.b.Done()
	says(t, e.b.Err(), []error{verbs.FaultTaggedSTag}, "this side ended the stream", "(1/1/00)")

	// One side alone has an extension.
	e = connect(t, &verbs.Options{Extensions: verbs.Atomics}, nil)
	_, err = e.a.FetchAdd(t.Context(), verbs.Key{Length: 8}, 0, 1)
	says(t, err, []error{verbs.ErrFlushed, verbs.FaultOperationOpcode}, "unexpected opcode")
}

// TestFaultsWithoutANumber: what a peer means by a fault that stands for others as well is said at the side that asked.
func TestFaultsWithoutANumber(t *testing.T) {
	e := connect(t, &verbs.Options{Extensions: verbs.Atomics}, &verbs.Options{Extensions: verbs.Atomics})
	region, err := e.hb.Register(make([]byte, 100), verbs.RemoteAtomic)
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.a.FetchAdd(t.Context(), region.Key(), 4, 1)
	says(t, err, []error{verbs.ErrFlushed, verbs.FaultOperationStream}, "(0/2/07)", "; an atomic operation needs an address at the peer that is a multiple of eight")
	<-e.b.Done()
	says(t, e.b.Err(), []error{verbs.ErrMisaligned}, "not a multiple of 8")

	e = connect(t, nil, nil)
	if region, err = e.hb.Register(make([]byte, 100), verbs.RemoteRead); err != nil {
		t.Fatal(err)
	}
	err = e.a.Write(t.Context(), region.Key(), 0, []byte("x"))
	if err == nil { // a Write is complete when its buffer is free
		err = e.a.Read(t.Context(), make([]byte, 1), region.Key(), 0)
	}
	says(t, err, []error{verbs.ErrFlushed, verbs.FaultTaggedSTag}, "(1/1/00)", "; memory without the right RemoteWrite is at fault so, too")
}

// TestContextEndsAQueuePair: Err says that it was a context of this side that ended, and what else was posted knows it, too.
func TestContextEndsAQueuePair(t *testing.T) {
	enough := errors.New("it has taken long enough")
	const soon = 500 * time.Millisecond // of a context that had ended before the call nothing would be said
	for name, c := range map[string]struct {
		context func(t *testing.T) (context.Context, context.CancelFunc)
		are     []error
	}{
		"deadline": {func(t *testing.T) (context.Context, context.CancelFunc) {
			return context.WithTimeout(t.Context(), soon)
		}, []error{context.DeadlineExceeded}},
		"canceled": {func(t *testing.T) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(soon, cancel)
			return ctx, cancel
		}, []error{context.Canceled}},
		"cause": {func(t *testing.T) (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(t.Context(), soon, enough)
		}, []error{context.DeadlineExceeded, enough}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			e := connect(t, nil, nil)
			if err := e.a.PostReceive(verbs.Receive{ID: 7, Data: make([]byte, 8)}); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := c.context(t)
			defer cancel()
			_, err := e.a.Receive(ctx, make([]byte, 8))
			says(t, err, c.are[:1])
			<-e.a.Done()
			says(t, e.a.Err(), c.are, "queue pair ", ": this side gave it up, as the context of a call ended amid that: ")
			if errors.Is(e.a.Err(), verbs.ErrClosed) || errors.Is(e.a.Err(), verbs.ErrPeerClosed) {
				t.Errorf("nobody closed it: %v", e.a.Err())
			}
			done := make([]verbs.Completion, 2)
			if n := e.a.Received().Poll(done); n != 1 || done[0].ID != 7 {
				t.Errorf("%d completions: %v", n, done[:n])
			}
			says(t, done[0].Err, append(c.are, verbs.ErrFlushed))
			says(t, e.a.Post(&verbs.Work{Op: verbs.OpSend}), c.are)
			e.a.Close()
			says(t, e.a.Err(), c.are)
		})
	}
	e := connect(t, nil, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e.a.Shutdown(ctx)
	says(t, e.a.Err(), []error{verbs.ErrClosed})
}

// TestRegisterErrors (RDMAP-101, COMMIT-038): what cannot be granted is refused when it is registered or bound.
func TestRegisterErrors(t *testing.T) {
	h := openHost(t)
	_, err := h.Register(make([]byte, 8), verbs.FlushPersistent)
	says(t, err, []error{verbs.ErrNotPersistent}, "register 8 bytes", "RegisterFile")
	_, err = h.Domain().Register(nil, verbs.Verify|verbs.RemoteRead, nil)
	says(t, err, []error{verbs.ErrRights}, "Algorithm")
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, err = h.Domain().RegisterFile(f, 0, 100, verbs.RemoteRead, nil)
	says(t, err, []error{verbs.ErrBounds}, f.Name(), "has 0 bytes, not 100")
	r, err := h.Register(make([]byte, 8), verbs.RemoteRead)
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Bind(0, 9, verbs.RemoteRead, nil)
	says(t, err, []error{verbs.ErrBounds}, "a window of 9 bytes at 0 in a region of 8")
	_, err = r.Bind(0, 8, verbs.RemoteWrite, nil)
	says(t, err, []error{verbs.ErrRights}, "does not have RemoteWrite")
	_, err = r.Word(1)
	says(t, err, []error{verbs.ErrBounds}, "eight bytes at 1 of 8")
	r16, err := h.Register(make([]byte, 16), verbs.RemoteAtomic)
	if err != nil {
		t.Fatal(err)
	}
	_, err = r16.Word(4)
	says(t, err, []error{verbs.ErrMisaligned})
	r.Invalidate()
	_, err = r.Bind(0, 8, verbs.RemoteRead, nil)
	says(t, err, []error{verbs.ErrInvalidated})
}

// A context that has ended before a call asks for nothing, and costs no connection.
func TestContextThatHasEnded(t *testing.T) {
	e := connect(t, nil, nil)
	region, err := e.hb.Register(make([]byte, 8), verbs.RemoteRead)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b := make([]byte, 8)
	if err := e.a.Read(ctx, b, region.Key(), 0); !errors.Is(err, context.Canceled) {
		t.Errorf("a Read: %v", err)
	}
	if _, err := e.a.Receive(ctx, b); !errors.Is(err, context.Canceled) {
		t.Errorf("a receive: %v", err)
	}
	if s := e.a.Stats(); s.Queued != 0 || s.Receives != 0 {
		t.Errorf("%+v", s)
	}
	if err := e.a.Read(t.Context(), b, region.Key(), 0); err != nil {
		t.Error(err)
	}
}

func TestWords(t *testing.T) {
	e := connect(t, nil, nil)
	region, err := e.hb.Domain().Register(make([]byte, 64), verbs.RemoteRead|verbs.RemoteAtomic, &verbs.RegionOptions{Base: 0x1000})
	if err != nil {
		t.Fatal(err)
	}
	window, err := region.Bind(8, 16, verbs.RemoteRead, nil)
	if err != nil {
		t.Fatal(err)
	}
	window.Invalidate()
	for _, c := range []struct {
		is   any
		want string
	}{
		{region, fmt.Sprintf("region of 64 bytes, RemoteRead|RemoteAtomic, STag %#x", region.STag())},
		{window, fmt.Sprintf("window of 16 bytes, RemoteRead, STag %#x, invalidated", window.STag())},
		{window.Key(), fmt.Sprintf("16 bytes at 0x0 of STag %#x", window.STag())},
		{region.Key(), fmt.Sprintf("64 bytes at 0x1000 of STag %#x", region.STag())},
		{verbs.Atomics | verbs.Commit, "Atomics|Commit"},
		{verbs.Extensions(0), "no extensions"},
		{&verbs.Completion{ID: 3, Op: verbs.OpWrite}, "Write 3: done"},
		{verbs.Completion{ID: 3, Op: verbs.OpWrite}, "Write 3: done"}, // as those that were polled are printed
		{&verbs.Completion{ID: 3, Op: verbs.OpReceive, Immediate: true, Payload: [8]byte{1}}, "Receive 3: immediate data 0100000000000000"},
		{&verbs.Completion{ID: 3, Op: verbs.OpFlush, Err: verbs.ErrFlushed}, "Flush 3 failed: " + verbs.ErrFlushed.Error()},
		{e.a, fmt.Sprintf("queue pair %v to %v", e.a.LocalAddr(), e.b.LocalAddr())},
	} {
		if got := fmt.Sprint(c.is); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if all := e.hb.QueuePairs(); len(all) != 1 || all[0] != e.b {
		t.Errorf("the host has %v", all)
	}
}

// TestNilRequestLeavesNoLock checks that a nil request panics and the queue pair can be used after that (N12).
func TestNilRequestLeavesNoLock(t *testing.T) {
	e := connect(t, nil, nil)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		e.a.Post(nil)
	}()
	posted := make(chan error, 1)
	go func() { posted <- e.a.Post(&verbs.Work{Op: verbs.OpReceive}) }()
	select {
	case err := <-posted:
		says(t, err, []error{verbs.ErrInvalid}, "Receive is not for the send queue")
	case <-time.After(30 * time.Second):
		t.Fatal("a later request waits for the lock")
	}
}

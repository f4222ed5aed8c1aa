package rping

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/rdmap/mpa"
	"github.com/dgrdma/dgrdma/verbs"
)

// TestFill: the data is rping's, whose first character runs from A to z and begins again.
func TestFill(t *testing.T) {
	for n, want := range map[int]string{
		0: "rdma-ping-0: ABCDEFGHIJKL\x00", 57: "rdma-ping-57: zABCDEFGHIJ\x00", 58: "rdma-ping-58: ABCDEFGHIJK\x00", 1<<31 - 1: "rdma-ping-2147483647: HIJ\x00",
	} {
		b := make([]byte, MinSize)
		if Fill(b, n); string(b) != want {
			t.Errorf("ping %d is %q, want %q", n, b, want)
		}
	}
	for size := range 5 {
		b := make([]byte, size)
		if Fill(b, 0); size > 0 && string(b) != "rdma"[:size-1]+"\x00" {
			t.Errorf("of %d bytes: %q", size, b)
		}
	}
}

// TestBothRoles: our client with our server, in sizes from the least to the largest.
func TestBothRoles(t *testing.T) {
	for _, o := range []verbs.Options{{}, {NoCRC: true}, {Revision: 1}, {PeerToPeer: true}, {PeerToPeer: true, Ready: mpa.ReadySend}, {Strict: true}} {
		_, l := serving(t)
		got := make(chan []string, 1)
		go func() { got <- pongs(t, l, &Options{Verbs: verbs.Options{NoCRC: o.NoCRC}, Wait: patience}) }()
		back := pings(t, l.Addr().String(), 2, &Options{Verbs: o, Wait: patience})
		wantData(t, back)
		wantData(t, <-got)
	}
	_, l := serving(t)
	for _, size := range []int{MinSize, 1000, MaxSize} {
		ctx, stop := context.WithTimeout(t.Context(), patience)
		defer stop()
		h, _ := serving(t)
		got := make(chan []string, 1)
		go func() { got <- pongs(t, l, nil) }()
		c, err := Dial(ctx, h, "tcp:"+l.Addr().String(), size, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 60 {
			b, err := c.Ping(ctx)
			if err != nil || len(b) != size {
				t.Fatalf("%d bytes, %v", len(b), err)
			}
		}
		if c.Done() != 60 {
			t.Errorf("%d pings are done", c.Done())
		}
		if err := c.Close(ctx); err != nil {
			t.Error(err)
		}
		if all := <-got; len(all) != 60 || len(all[59]) != size-1 {
			t.Errorf("%d pings of %d bytes arrived", len(all), size)
		}
	}
	for _, size := range []int{0, MinSize - 1, MaxSize + 1} {
		if _, err := Dial(t.Context(), nil, "", size, nil); !errors.Is(err, ErrSize) {
			t.Errorf("a ping of %d bytes: %v", size, err)
		}
	}
}

// bad is a client that is not as it should be.
type bad struct {
	q            *verbs.QueuePair
	source, sink verbs.Key
	data, back   []byte
	inbox        [2][16]byte
}

// newBad connects such a client with a server.
func newBad(t *testing.T, server *Options) (*bad, *Session) {
	t.Helper()
	_, l := serving(t)
	accepted := make(chan *Session, 1)
	go func() {
		defer close(accepted)
		if r, err := l.Accept(t.Context()); err == nil {
			s, err := Accept(t.Context(), r, server)
			if err != nil {
				t.Error(err)
			}
			accepted <- s
		}
	}()
	h, _ := serving(t)
	b := &bad{data: make([]byte, 64), back: make([]byte, 64)}
	Fill(b.data, 0)
	o := &verbs.Options{Posted: []verbs.Receive{{Data: b.inbox[0][:]}, {Data: b.inbox[1][:]}}}
	for _, r := range []struct {
		key    *verbs.Key
		bytes  []byte
		rights verbs.Rights
	}{{&b.source, b.data, verbs.RemoteRead}, {&b.sink, b.back, verbs.RemoteWrite}} {
		region, err := h.Register(r.bytes, r.rights)
		if err != nil {
			t.Fatal(err)
		}
		*r.key = region.Key()
	}
	var err error
	if b.q, err = h.Dial(t.Context(), "tcp:"+l.Addr().String(), o); err != nil {
		t.Fatal(err)
	}
	return b, <-accepted
}

func (b *bad) heard(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	if n, err := b.q.Received().Wait(ctx, make([]verbs.Completion, 1)); n != 1 || err != nil {
		t.Fatal(n, err)
	}
}

// TestBadClients: what each does wrong ends its own connection, and is named.
func TestBadClients(t *testing.T) {
	for _, c := range []struct {
		name string
		does func(t *testing.T, b *bad)
		is   error
		says string
	}{
		{"goes at once", func(t *testing.T, b *bad) { b.q.Close() }, io.EOF, ""},
		{"is killed", func(t *testing.T, b *bad) { b.q.Abort() }, nil, "ping 0: waiting for it"},
		{"says nothing", func(t *testing.T, b *bad) {}, ErrSilent, "ping 0: waiting for it: no answer of 127.0.0.1:"},
		{"says too little", func(t *testing.T, b *bad) { b.q.Send(t.Context(), make([]byte, 15)) }, ErrMessage, "it has 15 bytes, not 16"},
		{"says too much", func(t *testing.T, b *bad) { b.q.Send(t.Context(), make([]byte, 17)) }, nil, "ping 0: waiting for it"},
		{"has no ping", func(t *testing.T, b *bad) { b.source.Length = 0; b.q.Send(t.Context(), b.source.Bytes()) }, ErrSize, "0 bytes, and 1 to 100"},
		{"has a long ping", func(t *testing.T, b *bad) { b.source.Length = 101; b.q.Send(t.Context(), b.source.Bytes()) }, ErrSize, "101 bytes"},
		{"has an endless ping", func(t *testing.T, b *bad) { b.source.Length = 1<<32 - 1; b.q.Send(t.Context(), b.source.Bytes()) }, ErrSize, "4294967295 bytes"},
		{"has no such memory", func(t *testing.T, b *bad) { b.source.STag++; b.q.Send(t.Context(), b.source.Bytes()) }, nil, "ping 0: reading it"},
		{"goes in the middle", func(t *testing.T, b *bad) { b.q.Send(t.Context(), b.source.Bytes()); b.heard(t); b.q.Close() }, verbs.ErrPeerClosed, "waiting to be told where it goes back to"},
		{"stops in the middle", func(t *testing.T, b *bad) { b.q.Send(t.Context(), b.source.Bytes()); b.heard(t) }, ErrSilent, " within 300ms"},
		{"has a small sink", func(t *testing.T, b *bad) {
			b.q.Send(t.Context(), b.source.Bytes())
			b.heard(t)
			b.sink.Length = 63
			b.q.Send(t.Context(), b.sink.Bytes())
		}, ErrSize, "sink has 63 bytes, and the ping 64"},
		{"has wrong data", func(t *testing.T, b *bad) {
			b.data[20] = '!'
			b.q.Send(t.Context(), b.source.Bytes())
			b.heard(t)
			b.q.Send(t.Context(), b.sink.Bytes())
		}, nil, "ping 0 has wrong data: byte 20 is 0x21, not 0x48"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, s := newBad(t, &Options{Most: 100, Wait: 300 * time.Millisecond})
			defer s.Abort()
			var did sync.WaitGroup
			did.Go(func() { c.does(t, b) })
			ctx, stop := context.WithTimeout(t.Context(), patience)
			defer stop()
			_, err := s.Pong(ctx)
			if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
			s.Abort()
			did.Wait()
		})
	}
}

// TestBinaryData: who does not compare takes anything, and what has no zero byte goes back whole.
func TestBinaryData(t *testing.T) {
	b, s := newBad(t, &Options{Unverified: true, Wait: patience})
	defer s.Abort()
	go func() {
		b.q.Send(t.Context(), b.source.Bytes())
		b.q.Received().Wait(t.Context(), make([]verbs.Completion, 1))
		b.q.Send(t.Context(), b.sink.Bytes())
	}()
	got, err := s.Pong(t.Context())
	if err != nil || string(got) != string(b.data) {
		t.Fatalf("%q, %v", got, err)
	}
	b.heard(t)
	b.q.Room() // what came by the network is seen
	if string(b.back) != string(b.data) {
		t.Errorf("%q came back", b.back)
	}
}

// TestStrangers: a client with private data is told that it is wrong here.
func TestStrangers(t *testing.T) {
	h, l := serving(t)
	go func() {
		if r, err := l.Accept(t.Context()); err == nil {
			if _, err := Accept(t.Context(), r, nil); !errors.Is(err, ErrStranger) || !strings.Contains(err.Error(), "it comes with 14 bytes of private data") {
				t.Error(err)
			}
		}
	}()
	_, err := h.Dial(t.Context(), "tcp:"+l.Addr().String(), &verbs.Options{Private: []byte("something else")})
	var rejected *mpa.RejectedError
	if !errors.As(err, &rejected) || !strings.Contains(err.Error(), refusal) {
		t.Error(err)
	}
}

// TestBadServers: the client names what a server does wrong.
func TestBadServers(t *testing.T) {
	for _, c := range []struct {
		name string
		does func(t *testing.T, q *verbs.QueuePair, told func() verbs.Key)
		is   error
		says string
	}{
		{"goes", func(t *testing.T, q *verbs.QueuePair, told func() verbs.Key) { told(); q.Close() }, verbs.ErrPeerClosed, "ping 0: until the server has read it"},
		{"is killed", func(t *testing.T, q *verbs.QueuePair, told func() verbs.Key) { told(); q.Abort() }, nil, "ping 0: until the server has read it"},
		{"says nothing", func(t *testing.T, q *verbs.QueuePair, told func() verbs.Key) { told() }, ErrSilent, " within 300ms"},
		{"says too little", func(t *testing.T, q *verbs.QueuePair, told func() verbs.Key) { told(); q.Send(t.Context(), nil) }, ErrMessage, "it has 0 bytes"},
		{"writes nothing", func(t *testing.T, q *verbs.QueuePair, told func() verbs.Key) {
			told()
			q.Send(t.Context(), make([]byte, 16))
			told()
			q.Send(t.Context(), make([]byte, 16))
		}, nil, "ping 0 has wrong data: byte 0 is 0x00, not 0x72"},
		{"writes into what is to be read", func(t *testing.T, q *verbs.QueuePair, told func() verbs.Key) {
			q.Write(t.Context(), told(), 0, make([]byte, 1))
		}, nil, "ping 0: until the server has read it"},
		{"writes other data", func(t *testing.T, q *verbs.QueuePair, told func() verbs.Key) {
			k := told()
			b := make([]byte, k.Length)
			q.Read(t.Context(), b, k, 0)
			q.Send(t.Context(), make([]byte, 16))
			b[30]++
			q.Write(t.Context(), told(), 0, b)
			q.Send(t.Context(), make([]byte, 16))
		}, nil, "ping 0 has wrong data: byte 30 is"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, l := serving(t)
			var served sync.WaitGroup
			served.Go(func() {
				r, err := l.Accept(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				inbox := make([]byte, 16)
				q, err := r.Accept(t.Context(), &verbs.Options{Posted: []verbs.Receive{{Data: inbox}, {Data: inbox}}})
				if err != nil {
					t.Error(err)
					return
				}
				c.does(t, q, func() verbs.Key {
					q.Received().Wait(t.Context(), make([]verbs.Completion, 1))
					k, _ := verbs.ParseKey(inbox)
					return k
				})
			})
			h, _ := serving(t)
			client, err := Dial(t.Context(), h, "tcp:"+l.Addr().String(), 64, &Options{Wait: 300 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Abort()
			_, err = client.Ping(t.Context())
			if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
			client.Abort()
			served.Wait()
		})
	}
}

// TestInterrupted: the reason of a context is why a ping was not done.
func TestInterrupted(t *testing.T) {
	_, l := serving(t)
	go func() {
		if r, err := l.Accept(t.Context()); err == nil {
			r.Accept(t.Context(), &verbs.Options{Posted: []verbs.Receive{{Data: make([]byte, 16)}}})
		}
	}()
	h, _ := serving(t)
	c, err := Dial(t.Context(), h, fmt.Sprint("tcp:", l.Addr()), 64, &Options{Wait: patience})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Abort()
	enough := errors.New("enough")
	ctx, stop := context.WithCancelCause(t.Context())
	time.AfterFunc(20*time.Millisecond, func() { stop(enough) })
	if _, err := c.Ping(ctx); !errors.Is(err, enough) {
		t.Error(err)
	}
}

// TestHeardBeforeTheEnd: what the other side said last is heard where it has closed the connection before this side looked: a
// server that ends behind its last word breaks no ping.
func TestHeardBeforeTheEnd(t *testing.T) {
	said := verbs.Key{STag: 7, Offset: 8, Length: 9}
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	_, l := serving(t)
	go func() {
		if r, err := l.Accept(ctx); err != nil {
			t.Error(err)
		} else if q, err := r.Accept(ctx, &verbs.Options{Posted: []verbs.Receive{{}}}); err != nil {
			t.Error(err)
		} else if _, err := q.Received().Wait(ctx, make([]verbs.Completion, 1)); err != nil { // MPA: the client speaks first
			t.Error(err)
		} else if err := q.Send(ctx, said.Bytes()); err != nil {
			t.Error(err)
		} else {
			q.Shutdown(ctx)
		}
	}()
	h, _ := serving(t)
	client, err := Dial(ctx, h, "tcp:"+l.Addr().String(), MinSize, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Abort()
	if err := client.q.Send(ctx, nil); err != nil {
		t.Fatal(err)
	}
	<-client.q.Done()
	if k, err := client.hear(ctx); k != said || err != nil {
		t.Errorf("heard %v, %v; it said %v", k, err, said)
	}
	if _, err := client.hear(ctx); !errors.Is(err, verbs.ErrPeerClosed) {
		t.Errorf("behind that: %v", err)
	}
}

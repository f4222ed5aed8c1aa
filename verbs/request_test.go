package verbs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/verbs"
)

// TestReadsOfARequest (LX-01, LX-02, MPA-013, MPA-014): a server sees before it accepts which IRD and ORD a peer has, and the revision of MPA, and that a
// request of revision 1 does not say. What is agreed afterwards is no more than that, and both sides know the revision.
func TestReadsOfARequest(t *testing.T) {
	for _, c := range []struct {
		name           string
		o              verbs.Options
		ird, ord       int
		ok             bool
		limIRD, limORD int // of the server, with 32 of each
	}{
		{"Linux's client of NFS", verbs.Options{IRD: 128, ORD: -1}, 128, 0, true, 0, 32},
		{"one that answers no Reads", verbs.Options{IRD: -1, ORD: 4}, 0, 4, true, 4, 0},
		{"the defaults", verbs.Options{}, 32, 32, true, 32, 32},
		{"few", verbs.Options{IRD: 1, ORD: 2}, 1, 2, true, 2, 1},
		{"revision 1", verbs.Options{IRD: 128, ORD: 5, Revision: 1}, 0, 0, false, 32, 32},
	} {
		synctest.Test(t, func(t *testing.T) {
			here, there := net.Pipe()
			dialed := make(chan *verbs.QueuePair, 1)
			go func() {
				q, err := openHost(t).Connect(t.Context(), here, &c.o)
				if err != nil {
					t.Error(err)
				}
				dialed <- q
			}()
			r, err := openHost(t).Await(t.Context(), there)
			if err != nil {
				t.Fatal(err)
			}
			revision := max(c.o.Revision, 1)
			if c.ok {
				revision = 2
			}
			if ird, ord, ok := r.Reads(); ird != c.ird || ord != c.ord || ok != c.ok || r.Revision() != revision {
				t.Errorf("%s: the request has IRD %d, ORD %d, %v, revision %d", c.name, ird, ord, ok, r.Revision())
			}
			q, err := r.Accept(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if ird, ord := q.Limits(); ird != c.limIRD || ord != c.limORD {
				t.Errorf("%s: IRD %d, ORD %d are agreed", c.name, ird, ord)
			}
			p := <-dialed
			if q.Revision() != revision || p.Revision() != revision {
				t.Errorf("%s: revision %d at the server, %d at the client", c.name, q.Revision(), p.Revision())
			}
			q.Abort()
			p.Abort()
		})
	}
}

// TestAwait: queue pairs over connections that the program has made and accepted: of TCP, of TLS, and within the process.
func TestAwait(t *testing.T) {
	for name, ends := range map[string]func() (here, there net.Conn){
		"TCP":  func() (net.Conn, net.Conn) { return both(t, "tcp", "127.0.0.1:0") },
		"TLS":  func() (net.Conn, net.Conn) { return overTLS(t) },
		"pipe": net.Pipe,
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			here, there := ends()
			client, server := openHost(t), openHost(t)
			region, err := server.Register(pattern(1, 100_000), verbs.RemoteRead|verbs.RemoteWrite)
			if err != nil {
				t.Fatal(err)
			}
			accepted := make(chan *verbs.QueuePair, 1)
			go func() {
				defer close(accepted)
				r, err := server.Await(ctx, there)
				if err != nil {
					t.Error(err)
					return
				}
				if string(r.Private) != "it is me" || r.RemoteAddr() == nil || r.LocalAddr() == nil {
					t.Errorf("%v has %q", r, r.Private)
				}
				q, err := r.Accept(ctx, &verbs.Options{Private: region.Key().Bytes(), Posted: []verbs.Receive{{Data: make([]byte, 8)}}})
				if err != nil {
					t.Error(err)
					return
				}
				accepted <- q
			}()
			q, err := client.Connect(ctx, here, &verbs.Options{Private: []byte("it is me")})
			if err != nil {
				t.Fatal(err)
			}
			key, err := verbs.ParseKey(q.Private())
			if err != nil {
				t.Fatal(err)
			}
			got := make([]byte, 100_000)
			if err := errors.Join(q.Write(ctx, key, 5, []byte("written")), q.Read(ctx, got, key, 0), q.Send(ctx, []byte("sent"))); err != nil {
				t.Fatal(err)
			}
			if string(got[5:12]) != "written" || got[12] != pattern(1, 13)[12] {
				t.Errorf("%q was read", got[:13])
			}
			p := <-accepted
			done := make([]verbs.Completion, 1)
			if _, err := p.Received().Wait(ctx, done); err != nil || done[0].Err != nil || done[0].Length != 4 {
				t.Errorf("%v, %+v", err, done[0])
			}
			if n := server.Stats(); n.Accepted != 1 || n.QueuePairs != 1 {
				t.Errorf("%+v", n)
			}
			q.Abort()
			p.Abort()
		})
	}
}

// TestAwaitIsAnswered: a request over a connection of the program can be rejected, turned away and closed, and the end of its host ends those that
// are waited for.
func TestAwaitIsAnswered(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(*verbs.Host, *verbs.Request) error
		told   string // "": nothing
	}{
		"Reject":                  {func(_ *verbs.Host, r *verbs.Request) error { return r.Reject(context.Background(), []byte("no")) }, "no"},
		"TurnAway":                {func(_ *verbs.Host, r *verbs.Request) error { return r.TurnAway([]byte("no")) }, "no"},
		"TurnAway, and the end":   {func(h *verbs.Host, r *verbs.Request) error { return errors.Join(r.TurnAway([]byte("no")), h.Close()) }, "no"},
		"TurnAway, after the end": {func(h *verbs.Host, r *verbs.Request) error { return errors.Join(h.Close(), r.TurnAway([]byte("no"))) }, "no"},
		"Close":                   {func(_ *verbs.Host, r *verbs.Request) error { return r.Close() }, ""},
		"Accept, of a closed host": {func(h *verbs.Host, r *verbs.Request) error {
			h.Close()
			_, err := r.Accept(context.Background(), nil)
			return ended(err)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			here, there := both(t, "tcp", "127.0.0.1:0")
			h := openHost(t)
			if _, err := here.Write(request("it is me")); err != nil {
				t.Fatal(err)
			}
			r, err := h.Await(t.Context(), there)
			if err != nil {
				t.Fatal(err)
			}
			answered := make(chan error, 1)
			go func() { answered <- c.answer(h, r) }()
			here.SetReadDeadline(time.Now().Add(30 * time.Second))
			b, err := io.ReadAll(here)
			if c.told != "" && (err != nil || !strings.HasSuffix(string(b), c.told)) || name == "Close" && len(b) > 0 {
				t.Errorf("the peer is told %q: %v", b, err)
			}
			here.Close()
			if err := <-answered; err != nil {
				t.Error(err)
			}
		})
	}
}

// ended says whether an error is that of what is closed.
func ended(err error) error {
	if errors.Is(err, verbs.ErrClosed) {
		return nil
	}
	return fmt.Errorf("%v, want %v", err, verbs.ErrClosed)
}

// TestAwaitFails: the connection is closed if no request comes: because its peer says something else, or nothing, or because the context or the host ends.
func TestAwaitFails(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(cancel func(), h *verbs.Host, peer net.Conn)
		want error
	}{
		"another protocol": {func(_ func(), _ *verbs.Host, peer net.Conn) { peer.Write([]byte("GET / HTTP/1.1")) }, verbs.ErrNotMPA},
		"nothing":          {func(func(), *verbs.Host, net.Conn) {}, verbs.ErrLost},
		"the peer's end":   {func(_ func(), _ *verbs.Host, peer net.Conn) { peer.Close() }, verbs.ErrLost},
		"the context":      {func(cancel func(), _ *verbs.Host, _ net.Conn) { cancel() }, context.Canceled},
		"the host":         {func(_ func(), h *verbs.Host, _ net.Conn) { h.Close() }, verbs.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				here, there := net.Pipe()
				h := openHost(t)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() {
					time.Sleep(time.Second)
					c.do(cancel, h, here)
				}()
				began := time.Now()
				if r, err := h.Await(ctx, there); !errors.Is(err, c.want) || r != nil {
					t.Errorf("%v, want %v", err, c.want)
				}
				if took := time.Since(began); took != time.Second && (name != "nothing" || took != 10*time.Second) {
					t.Errorf("after %v", took)
				}
				if _, err := here.Write([]byte("x")); err == nil {
					t.Error("the connection is open")
				}
				if n := h.Stats().SetUpFails; n != 1 {
					t.Errorf("%d failures are counted", n)
				}
			})
		})
	}
}

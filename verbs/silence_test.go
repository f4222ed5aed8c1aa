package verbs_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/rdmap/mpa"
	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/verbs"
)

// Attack R9: a fault that shows while this side answers ends the connection, although the peer says nothing more: when it has
// taken all that it was told, and when it takes nothing.
func TestAttackSilence(t *testing.T) {
	t.Parallel()
	for _, takes := range []bool{true, false} {
		v := newVictim(t, &verbs.Options{Extensions: verbs.Commit})
		d := v.host.Domain()
		big, err := d.Register(make([]byte, 64<<20), verbs.RemoteRead, nil)
		if err != nil {
			t.Fatal(err)
		}
		hashed, err := d.Register(make([]byte, 100), verbs.Verify|verbs.RemoteRead, &verbs.RegionOptions{Algorithm: verbs.SHA256})
		if err != nil {
			t.Fatal(err)
		}
		a := v.attack(&mpa.Options{ORD: 8})
		a.send(readRequest(1, big.Key()))
		if _, err := a.nc.Read(make([]byte, 1)); err != nil { // the answer is under way
			t.Fatal(err)
		}
		taken := make(chan error, 1)
		if takes {
			big.Invalidate()
			go func() {
				_, err := io.Copy(io.Discard, a.nc)
				taken <- err
			}()
		} else {
			b := binary.BigEndian.AppendUint32(nil, hashed.STag())
			b = binary.BigEndian.AppendUint32(b, 100)
			b = binary.BigEndian.AppendUint64(b, hashed.Base())
			a.send(untagged(0x4e, 1, 2, append(b, make([]byte, 32)...)))
			taken <- nil
		}
		var te *verbs.TerminateError
		if err := v.ended(); !errors.As(err, &te) || te.Remote {
			t.Errorf("takes %v: ended with %v", takes, err)
		}
		if err := <-taken; err != nil {
			t.Errorf("the peer lost what it was told: %v", err)
		}
		a.nc.Close()
		v.over()
	}
}

// stopped is a peer that accepts, and then neither reads nor writes.
func stopped(t *testing.T) (address string) {
	t.Helper()
	return stranger(t, func(nc net.Conn) {
		t.Cleanup(func() { nc.Close() })
		nc.(*net.TCPConn).SetReadBuffer(1) // what it takes without being read is little
		if r, err := mpa.Await(t.Context(), nc, 0); err == nil {
			r.Accept(t.Context(), &mpa.Options{IRD: 8, ORD: 8})
		}
	})
}

// TestGiveUp: a peer that is stopped is given up, whether it is to answer or to take, and who waits is told.
func TestGiveUp(t *testing.T) {
	t.Parallel()
	fixture.NoGoroutineOfItsOwnLeft(t)
	h, _ := listen(t)
	at := stopped(t)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	key := verbs.Key{STag: 1 << 8, Length: 1 << 30}
	for name, does := range map[string]func(q *verbs.QueuePair) error{
		"answers nothing": func(q *verbs.QueuePair) error { return q.Read(ctx, make([]byte, 8), key, 0) },
		"takes nothing": func(q *verbs.QueuePair) (err error) {
			for data := make([]byte, 16<<20); err == nil; {
				err = q.Write(ctx, key, 0, data)
			}
			return err
		},
	} {
		q, err := h.Dial(ctx, at, &verbs.Options{GiveUp: 300 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		err = does(q)
		if !errors.Is(err, verbs.ErrSilent) || !errors.Is(err, verbs.ErrFlushed) || !strings.Contains(err.Error(), q.RemoteAddr().String()) {
			t.Errorf("%s: %v", name, err)
		}
		<-q.Done()
		if err := q.Err(); !errors.Is(err, verbs.ErrSilent) || errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestGiveUpWithoutTCP: likewise over a connection of which nobody knows how many bytes passed.
func TestGiveUpWithoutTCP(t *testing.T) {
	t.Parallel()
	fixture.NoGoroutineOfItsOwnLeft(t)
	h, _ := listen(t)
	here, there := net.Pipe()
	defer there.Close()
	go func() {
		if r, err := mpa.Await(t.Context(), there, 0); err == nil {
			r.Accept(t.Context(), &mpa.Options{IRD: 8, ORD: 8})
		}
	}()
	q, err := h.Connect(t.Context(), here, &verbs.Options{GiveUp: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Read(t.Context(), make([]byte, 8), verbs.Key{STag: 1 << 8, Length: 8}, 0); !errors.Is(err, verbs.ErrSilent) {
		t.Error(err)
	}
}

// TestGiveUpIdle: a peer of which nothing is asked may be silent.
func TestGiveUpIdle(t *testing.T) {
	t.Parallel()
	o := &verbs.Options{GiveUp: 50 * time.Millisecond}
	e := connect(t, o, o)
	time.Sleep(500 * time.Millisecond)
	if e.a.Err() != nil || e.b.Err() != nil {
		t.Errorf("%v, %v", e.a.Err(), e.b.Err())
	}
}

// TestGiveUpHeld: a peer owes nothing for requests that may not be sent before it has said something.
func TestGiveUpHeld(t *testing.T) {
	t.Parallel()
	fixture.NoGoroutineOfItsOwnLeft(t)
	e := connect(t, nil, &verbs.Options{GiveUp: 400 * time.Millisecond, Posted: []verbs.Receive{{}}})
	if err := e.b.Post(&verbs.Work{Op: verbs.OpSend, Data: []byte("welcome")}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(1200 * time.Millisecond)
	if err := e.b.Err(); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 10)
	if err := e.a.PostReceive(verbs.Receive{Data: got}); err != nil {
		t.Fatal(err)
	}
	if err := e.a.Send(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	var done [1]verbs.Completion
	if _, err := e.a.Received().Wait(t.Context(), done[:]); err != nil || done[0].Err != nil || string(got[:done[0].Length]) != "welcome" {
		t.Errorf("%+v, %v", done, err)
	}
}

// TestGiveUpWhoeverIsBusy: a peer that takes nothing is silent, although this side has room for more that it sends.
func TestGiveUpWhoeverIsBusy(t *testing.T) {
	t.Parallel()
	fixture.NoGoroutineOfItsOwnLeft(t)
	h, _ := listen(t)
	q, err := h.Dial(t.Context(), stopped(t), &verbs.Options{GiveUp: 400 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Abort()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); q.Err() == nil && time.Since(began) < 30*time.Second; <-tick.C {
		q.Post(&verbs.Work{Op: verbs.OpSend, Silent: true, Data: make([]byte, 100)})
	}
	if err := q.Err(); !errors.Is(err, verbs.ErrSilent) {
		t.Error(err)
	}
}

// slowly is a connection of another kind than package net's, over which bytes pass a few at a time.
type slowly struct{ net.Conn }

const (
	few   = 64 << 10
	pause = 25 * time.Millisecond
)

func (c slowly) Read(b []byte) (int, error) {
	n, err := io.ReadFull(c.Conn, b[:1])
	if len(b) > few/2 {
		time.Sleep(pause)
	}
	if err == nil && len(b) > 1 {
		n, err = c.Conn.Read(b[1:min(len(b), few)])
		n++
	}
	return n, err
}

func (c slowly) Write(b []byte) (n int, err error) {
	for err == nil && n < len(b) {
		time.Sleep(pause)
		m := 0
		m, err = c.Conn.Write(b[n:min(len(b), n+few)])
		n += m
	}
	return n, err
}

// TestGiveUpSlow: a peer is not silent of which bytes come, or which takes them, however long one request takes, and over whatever
// connection.
func TestGiveUpSlow(t *testing.T) {
	t.Parallel()
	h, l := listen(t)
	for name, does := range map[string]func(q *verbs.QueuePair, key verbs.Key) error{
		"answers": func(q *verbs.QueuePair, key verbs.Key) error {
			return q.Read(t.Context(), make([]byte, key.Length), key, 0)
		},
		"takes": func(q *verbs.QueuePair, key verbs.Key) error {
			return q.Write(t.Context(), key, 0, make([]byte, key.Length))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			memory, err := h.Register(make([]byte, 8<<20), verbs.RemoteRead|verbs.RemoteWrite)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				if r, err := l.Accept(t.Context()); err == nil {
					r.Accept(t.Context(), nil)
				}
			}()
			q, err := h.Connect(t.Context(), slowly{dial(t, l)}, &verbs.Options{GiveUp: 2 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			defer q.Abort()
			began := time.Now()
			if err := does(q, memory.Key()); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took < 5*time.Second/2 {
				t.Errorf("it took %v: the test shows nothing", took)
			}
		})
	}
}

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
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { nc.Close() })
			if r, err := mpa.Await(t.Context(), nc, 0); err == nil {
				r.Accept(t.Context(), &mpa.Options{IRD: 8, ORD: 8})
			}
		}
	}()
	return "tcp:" + l.Addr().String()
}

// TestGiveUp: a peer that is stopped is given up, whether it is to answer or to take, and who waits is told.
func TestGiveUp(t *testing.T) {
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
	o := &verbs.Options{GiveUp: 50 * time.Millisecond}
	e := connect(t, o, o)
	time.Sleep(500 * time.Millisecond)
	if e.a.Err() != nil || e.b.Err() != nil {
		t.Errorf("%v, %v", e.a.Err(), e.b.Err())
	}
}

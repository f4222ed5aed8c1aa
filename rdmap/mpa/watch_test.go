package mpa

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// TestWatch: who looks before it sleeps is interrupted like everybody else, at any moment of it, gets what comes then, and
// hears of the end.
func TestWatch(t *testing.T) {
	a, b := tcpPair(t, 0)
	ca, cb := open(t, a, b, nil, nil)
	sink := newSink(t)
	for n := range 300 {
		came := make(chan error, 1)
		go func() { came <- cb.Watch(sink) }()
		time.Sleep(time.Duration(n%60) * 5 * time.Microsecond)
		if n%3 == 0 {
			cb.Interrupt()
			if err := <-came; err != ErrInterrupted {
				t.Fatalf("%d: %v", n, err)
			}
			continue
		}
		if err := drain(ca, &listSource{t: t, list: []ddp.Message{outgoing(send(uint32(n), []byte("x")), 0)}}); err != nil {
			t.Fatal(err)
		}
		if err := <-came; err != nil {
			t.Fatalf("%d: %v", n, err)
		}
	}
	if len(sink.got) != 200 {
		t.Errorf("%d messages, want 200", len(sink.got))
	}
	ca.CloseWrite()
	if err := cb.Watch(sink); err != io.EOF {
		t.Errorf("the end: %v", err)
	}
}

// meddled is a connection to which something happens before each read deadline.
type meddled struct {
	*net.TCPConn
	before func(time.Time)
}

func (m *meddled) SetReadDeadline(t time.Time) error {
	m.before(t)
	return m.TCPConn.SetReadDeadline(t)
}

// TestInterruptedTwice: an Interrupt that comes while the one before it is dealt with is of that one, and who watches next
// looks before it sleeps.
func TestInterruptedTwice(t *testing.T) {
	a, b := tcpPair(t, 0)
	ca, cb := open(t, a, b, nil, nil)
	sink := newSink(t)
	cb.nc = &meddled{b, func(at time.Time) {
		if at.IsZero() {
			cb.Interrupt()
		}
	}}
	cb.Interrupt()
	if err := cb.Watch(sink); err != ErrInterrupted {
		t.Fatal(err)
	}
	// On a busy machine a message may be there before it begins to watch.
	for n, looked := uint32(1), false; !looked; n++ {
		was := cb.patience
		came := make(chan error, 1)
		go func() { came <- cb.Watch(sink) }()
		time.Sleep(20 * time.Millisecond)
		if err := drain(ca, &listSource{t: t, list: []ddp.Message{outgoing(send(n, []byte("x")), 0)}}); err != nil {
			t.Fatal(err)
		}
		if err := <-came; err != nil {
			t.Fatal(err)
		}
		if looked = cb.patience != was; !looked && n == 50 {
			t.Fatalf("it never looked before it slept, in %d times", n)
		}
	}
}

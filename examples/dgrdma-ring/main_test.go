package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/tests/fixture"
)

func TestMain(m *testing.M) {
	fixture.EndHangs()
	m.Run()
}

// start receives into out, and returns where, and what it ends with.
func start(t *testing.T, ctx context.Context, out io.Writer) (url string, ended chan error) {
	where, in := io.Pipe()
	ended = make(chan error, 1)
	go func() { ended <- receive(ctx, "udp:127.0.0.1?giveup=5s", in, out) }()
	url, err := bufio.NewReader(where).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(url), ended
}

// slow is a writer that takes its time.
type slow struct{ io.Writer }

func (s slow) Write(b []byte) (int, error) {
	time.Sleep(time.Millisecond)
	return s.Writer.Write(b)
}

func TestRing(t *testing.T) {
	for _, size := range []int{0, 1, slotSize, slots * slotSize, 100*slotSize + 7} {
		fixture.NoGoroutineLeft(t)
		want := fixture.RandomBytes(1, size)
		var got bytes.Buffer
		url, ended := start(t, t.Context(), slow{&got})
		if err := send(t.Context(), url, bytes.NewReader(want)); err != nil {
			t.Errorf("%d bytes: send: %v", size, err)
		}
		if err := <-ended; err != nil || !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%d bytes, want %d: %v", got.Len(), size, err)
		}
	}
}

// TestSenderDies: the receiver notices though it writes nothing but credits.
func TestSenderDies(t *testing.T) {
	came := make(chan struct{}, 3)
	url, ended := start(t, t.Context(), writer(func(b []byte) (int, error) {
		came <- struct{}{}
		return len(b), nil
	}))
	broken := errors.New("the disk is gone")
	from := io.MultiReader(bytes.NewReader(make([]byte, 3*slotSize)), failing{broken, came})
	if err := send(t.Context(), url, from); !errors.Is(err, broken) {
		t.Errorf("send: %v", err)
	}
	if err := <-ended; !errors.Is(err, dgrdma.ErrPeerDown) {
		t.Errorf("receive: %v", err)
	}
}

// failing is a reader that fails once something has come elsewhere.
type failing struct {
	err  error
	came chan struct{}
}

func (f failing) Read([]byte) (int, error) {
	<-f.came
	return 0, f.err
}

// TestInterrupted: both end with their context, whatever they wait for.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	blocked := make(chan struct{}, 2*slots)
	hold, release := context.WithCancel(t.Context())
	url, ended := start(t, ctx, writer(func(b []byte) (int, error) {
		blocked <- struct{}{}
		<-hold.Done()
		return len(b), nil
	}))
	sent := make(chan error, 1)
	go func() { sent <- send(ctx, url, bytes.NewReader(make([]byte, 2*slots*slotSize))) }()
	<-blocked
	cancel()
	if err := <-sent; !errors.Is(err, context.Canceled) {
		t.Errorf("send: %v", err)
	}
	release()
	if err := <-ended; err == nil {
		t.Error("receive: no error")
	}
}

type writer func(b []byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

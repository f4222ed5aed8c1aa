package link

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// TestVet: who dials is refused for the listener's reason, and takes no memory for that, also
// if nothing is heard of it any more: the next one has it all.
func TestVet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 0)
		a, c, b := n.host(1, nil), n.host(3, nil), n.host(2, &Config{Memory: 1 << 20})
		var asked []dgrdma.PeerName
		l, err := b.Listen("port", &Options{Buffers: 10, Size: 1 << 16, Vet: func(p dgrdma.PeerName, private []byte) error {
			asked = append(asked, p)
			if string(private) == "friend" {
				return nil
			}
			return errors.New("who are you, " + string(private) + "?")
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		accepted := make(chan *Link)
		go func() {
			x, _ := l.Accept(context.Background())
			accepted <- x
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		before := b.Stats().Free
		for _, x := range []string{"stranger", ""} {
			if _, err = dial(ctx, a, 2, "port", &Options{Private: []byte(x)}); !errors.Is(err, ErrRefused) || !strings.HasSuffix(err.Error(), ": who are you, "+x+"?") {
				t.Errorf("%q: %v", x, err)
			}
			if free := b.Stats().Free; free != before {
				t.Errorf("%q took %d bytes", x, before-free)
			}
		}
		a.Close()
		out, err := dial(ctx, c, 2, "port", &Options{Private: []byte("friend")})
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		in := <-accepted
		defer in.Close()
		if len(asked) != 3 || asked[0].ID != 1 || asked[1].ID != 1 || asked[2] != in.Peer().Name() {
			t.Errorf("asked about %v", asked)
		}
	})
}

// TestVetTakesItsTime: whoever gives up its Dial meanwhile is passed over, as anybody who
// waits, and hears so at once; the next one is accepted.
func TestVetTakesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 0)
		a, b := n.host(1, nil), n.host(2, nil)
		l, err := b.Listen("port", &Options{Directions: Both, Buffers: 2, Size: 8, Vet: func(dgrdma.PeerName, []byte) error {
			time.Sleep(time.Second)
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		accepted := make(chan *Link, 1)
		go func() {
			x, _ := l.Accept(t.Context())
			accepted <- x
		}()
		before := a.Stats().Free
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if _, err := dial(ctx, a, 2, "port", &Options{Directions: Both, Private: []byte("hasty")}); !errors.Is(err, ErrNoAnswer) {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		if free := a.Stats().Free; free != before {
			t.Errorf("who gave up keeps %d bytes for as long as the listener thinks", before-free)
		}
		patient := make(chan *Link, 1)
		go func() {
			x, err := dial(t.Context(), a, 2, "port", &Options{Private: []byte("patient")})
			if err != nil {
				t.Error(err)
			}
			patient <- x
		}()
		in := <-accepted
		if who := string(in.Private()); who != "patient" {
			t.Fatalf("the %s one is accepted, of whom is known: %v", who, in.Err())
		}
		out := <-patient
		defer out.Close()
		defer in.Close()
	})
}

// textless is an error without a text.
type textless struct{ text string }

func (e *textless) Error() string { return e.text }

// TestVetThatDoesNotReturn: who dials is refused at once if the listener's Vet, or the text of its
// error, panics, or ends its goroutine; the panic is for who called Accept, and the port goes on.
func TestVetThatDoesNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 0)
		a, b := n.host(1, nil), n.host(2, nil)
		var nobody map[string]int
		l, err := b.Listen("port", &Options{Vet: func(_ dgrdma.PeerName, private []byte) error {
			switch string(private) {
			case "panics":
				nobody["x"]++
			case "text":
				return (*textless)(nil)
			case "exits":
				runtime.Goexit()
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		before := b.Stats().Free
		for _, how := range []string{"panics", "text", "exits"} {
			began, over := time.Now(), make(chan any)
			go func() {
				defer func() { over <- recover() }()
				x, err := l.Accept(t.Context())
				t.Errorf("%s: Accept returned %v, %v", how, x, err)
			}()
			_, err := dial(soon(t), a, 2, "port", &Options{Private: []byte(how)})
			if !errors.Is(err, ErrRefused) || !strings.HasSuffix(err.Error(), ": the listener failed when it was asked whether to accept") || time.Since(began) > time.Second {
				t.Errorf("%s: %v, after %v", how, err, time.Since(began))
			}
			if p := <-over; (p != nil) != (how != "exits") {
				t.Errorf("%s: recovered %v", how, p)
			}
			if free := b.Stats().Free; free != before {
				t.Errorf("%s took %d bytes", how, before-free)
			}
		}
		accepted := make(chan *Link)
		go func() {
			x, _ := l.Accept(t.Context())
			accepted <- x
		}()
		out, err := dial(soon(t), a, 2, "port", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		if in := <-accepted; in != nil {
			defer in.Close()
		}
	})
}

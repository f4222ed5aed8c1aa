package link

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// TestFilter checks that a dialer is refused for the listener's reason, and takes no memory for that,
// also if nothing is heard of it any more: the next one has it all.
func TestFilter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 0)
		a, c, b := n.host(1, nil), n.host(3, nil), n.host(2, &Config{Memory: 1 << 20})
		var asked []dgrdma.PeerName
		l, err := b.Listen("port", &Options{Buffers: 10, Size: 1 << 16, Filter: func(p dgrdma.PeerName, private []byte) error {
			asked = append(asked, p)
			if string(private) == "friend" {
				return nil
			}
			return errors.New("unknown, " + string(private) + "?")
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
			if _, err = dial(ctx, a, 2, "port", &Options{Private: []byte(x)}); !errors.Is(err, ErrRefused) || !strings.HasSuffix(err.Error(), ": unknown, "+x+"?") {
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

// TestFilterTakesItsTime checks that a dialer that gives up while Filter runs is passed over, as any
// one that waits, and hears so at once. The next one is accepted.
func TestFilterTakesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 0)
		a, b := n.host(1, nil), n.host(2, nil)
		l, err := b.Listen("port", &Options{Directions: Both, Buffers: 2, Size: 8, Filter: func(dgrdma.PeerName, []byte) error {
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
			t.Errorf("a dialer that gave up keeps %d bytes while Filter runs", before-free)
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
		if name := string(in.Private()); name != "patient" {
			t.Fatalf("the %s one is accepted: %v", name, in.Err())
		}
		out := <-patient
		defer out.Close()
		defer in.Close()
	})
}

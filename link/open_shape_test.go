package link

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestOneDialerDoesNotGetItAll: where a listener leaves open how many buffers there are,
// or how long they are, a dialer gets half of the memory at most; what the listener says
// itself, it gets (attack A14, SECURITY.md).
func TestOneDialerDoesNotGetItAll(t *testing.T) {
	const memory, some, long = 1 << 20, 8, 1 << 16 // 8 of these are half of it, and their flags more
	for _, c := range []struct {
		name     string
		listener Options
		dialer   Options
		accepted bool
	}{
		{"less than half, all open", Options{}, Options{Buffers: some - 2, Size: long}, true},
		{"more than half, all open", Options{}, Options{Buffers: some + 2, Size: long}, false},
		{"more than half, their number open", Options{Size: long}, Options{Buffers: some + 2, Size: long}, false},
		{"more than half, their length open", Options{Buffers: some + 2}, Options{Buffers: some + 2, Size: long}, false},
		{"more than half, nothing open", Options{Buffers: some + 2, Size: long}, Options{}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNet(t, 0)
				a, b := n.host(1, nil), n.host(2, &Config{Memory: memory})
				l, err := b.Listen("port", &c.listener)
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				go func() {
					for {
						if _, err := l.Accept(context.Background()); err != nil {
							return
						}
					}
				}()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, err = dial(ctx, a, 2, "port", &c.dialer)
				if c.accepted != (err == nil) || err != nil && !errors.Is(err, ErrRefused) {
					t.Errorf("%v", err)
				}
			})
		})
	}
}

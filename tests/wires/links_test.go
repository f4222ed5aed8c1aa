package wires

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/tests/netns"
)

// openHost opens a host of links on a side.
func openHost(t *testing.T, ns *netns.Namespace, local string, id uint16) *link.Host {
	t.Helper()
	var h *link.Host
	var err error
	ns.In(func() {
		h, err = link.Open(local, &link.Config{Memory: 8 << 20, Endpoint: dgrdma.Config{ID: dgrdma.EndpointID(id)}})
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// TestLinks: messages of all lengths over links in both directions, several at
// once, while the kernel loses frames.
func TestLinks(t *testing.T) {
	eachWire(t, func(t *testing.T, w wire) {
		for _, percent := range []int{0, 2} {
			t.Run(fmt.Sprintf("%d%%", percent), func(t *testing.T) {
				pair := netns.NewPair(t, 1500)
				if percent > 0 {
					pair[0].Lose(t, percent)
					pair[1].Lose(t, percent)
				}
				options := ""
				if w.datagrams {
					options = "gso=off" // else whole runs of frames are lost at once
				}
				a, b := openHost(t, pair[0], with(w.local(0), options), 1), openHost(t, pair[1], with(w.local(1), options), 2)
				const links = 3
				messages := quick(1500, 500)
				port, err := b.Listen("wires", &link.Options{Directions: link.Both, Buffers: 8, Size: 10_000})
				if err != nil {
					t.Fatal(err)
				}
				one := func(l *link.Link) error {
					return both(
						func() error { return sendNumbers(l.Out, messages) },
						func() error { return receiveNumbers(l.In, messages) })
				}
				ended := make(chan error, 2*links)
				for range links {
					go func() {
						l, err := port.Accept(t.Context())
						if err == nil {
							err = one(l)
						}
						ended <- err
					}()
					go func() {
						l, err := a.Dial(t.Context(), b.URL(), "wires", &link.Options{Directions: link.Both, Buffers: 5, Size: 4000})
						if err == nil {
							err = one(l)
						}
						ended <- err
					}()
				}
				for range 2 * links {
					if err := <-ended; err != nil {
						t.Error(err)
					}
				}
			})
		}
	})
}

// both runs two at once.
func both(f, g func() error) error {
	other := make(chan error, 1)
	go func() { other <- g() }()
	if err := f(); err != nil {
		return err
	}
	return <-other
}

func sendNumbers(p *link.Producer, n int) error {
	for k := range n {
		if err := sendNumber(p, k); err != nil {
			return err
		}
	}
	return p.Close()
}

// numbered returns how long message k is in buffers of that size.
func numbered(k, size int) int { return 4 + k*97%(size-3) }

func sendNumber(p *link.Producer, k int) error {
	b, err := p.Acquire(context.Background())
	if err != nil {
		return fmt.Errorf("message %d: %w", k, err)
	}
	length := numbered(k, len(b.Bytes))
	binary.LittleEndian.PutUint32(b.Bytes, uint32(k))
	b.Bytes[length-1] = byte(k)
	if err := p.Commit(b, uint8(k), length); err != nil {
		return fmt.Errorf("message %d: %w", k, err)
	}
	return nil
}

// receiveNumbers expects n messages and end of file; n < 0: any number.
func receiveNumbers(c *link.Consumer, n int) error {
	_, size := c.Buffers()
	k := 0
	for m, err := range c.Messages(context.Background()) {
		if err != nil {
			return fmt.Errorf("message %d: %w", k, err)
		}
		length := numbered(k, size)
		if len(m.Bytes) != length || m.Opcode != uint8(k) || m.Bytes[length-1] != byte(k) || length > 4 && binary.LittleEndian.Uint32(m.Bytes) != uint32(k) {
			return fmt.Errorf("message %d: %d bytes, want %d", k, len(m.Bytes), length)
		}
		k++
	}
	if n >= 0 && k != n {
		return fmt.Errorf("%d messages of %d", k, n)
	}
	return nil
}

package rpc

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/dgrdma/dgrdma/xdr"
)

// TestNullAndUnknownPrograms checks, in both directions, that NULL of each program takes anything and succeeds without the handler, also under a
// credential that the server does not take otherwise; that an unknown program is PROG_UNAVAIL, and an unknown version PROG_MISMATCH with the
// versions that there are (ONC-003, ONC-004).
func TestNullAndUnknownPrograms(t *testing.T) {
	inBothDirections(t, func(t *testing.T, b *both) {
		older := &Program{Number: testProgram.Number, Version: 1, Name: "TEST"}
		c := b.dial()
		check := func(ctx context.Context, direction string, c *Client) {
			junk := opaque(bytes.Repeat([]byte{255}, 900))
			if err := c.Bind(testProgram, None).Call(ctx, 0, &junk, nil, nil); err != nil {
				t.Errorf("%s: NULL: %v", direction, err)
			}
			if err := c.Bind(testProgram, Auth{Flavor: 4711, Body: []byte("1234")}).Call(ctx, 0, nil, nil, nil); err != nil {
				t.Errorf("%s: NULL with an unknown credential: %v", direction, err)
			}
			var e *ProgramError
			if err := c.Bind(&Program{Number: 9, Version: 1}, None).Call(ctx, 0, nil, nil, nil); !errors.As(err, &e) || !e.Unavailable {
				t.Errorf("%s: an unknown program: %v", direction, err)
			}
			if err := c.Bind(older, None).Call(ctx, 0, nil, nil, nil); !errors.As(err, &e) || *e != (ProgramError{Low: 3, High: 3}) {
				t.Errorf("%s: an unknown version: %v", direction, err)
			}
			if err := c.Bind(testProgram, None).Call(ctx, 99, nil, nil, nil); !errors.Is(err, ErrProcedureUnavailable) {
				t.Errorf("%s: an unknown procedure: %v", direction, err)
			}
		}
		check(t.Context(), "forward", c)
		b.call(c, func(ctx context.Context, back *Client) error {
			check(ctx, "reverse", back)
			return nil
		})
	})
}

// rawWords is arguments or results of these words.
type rawWords []uint32

func (v rawWords) MarshalXDR(e *xdr.Encoder) {
	for _, w := range v {
		e.Uint32(w)
	}
}

// TestInvalidArguments checks, in both directions, that lengths beyond the bound, beyond the message and beyond 32 bits are GARBAGE_ARGS, take no
// memory, and leave the connection as it was; and that the same in results is an error of the caller (ONC-008).
func TestInvalidArguments(t *testing.T) {
	bad := []rawWords{{}, {1}, {1, 1<<32 - 1}, {1, 1 << 31}, {1, 4<<20 + 1}, {1, 100, 0}, {1, 0}, {1, 0, 65}, {1, 0, 1<<32 - 1}, {1, 0, 8, 0}}
	inBothDirections(t, func(t *testing.T, b *both) {
		c := b.dial()
		check := func(ctx context.Context, direction string, c *Client) {
			p := c.Bind(testProgram, None)
			for _, w := range bad {
				if err := p.Call(ctx, procEcho, w, nil, nil); !errors.Is(err, ErrGarbageArgs) {
					t.Errorf("%s: arguments %x: %v", direction, w, err)
				}
			}
		}
		check(t.Context(), "forward", c)
		if err := b.call(c, func(ctx context.Context, back *Client) error {
			check(ctx, "reverse", back)
			return nil
		}); err != nil {
			t.Error(err)
		}
		for _, w := range bad {
			b.there.backBy(func(_ context.Context, c *Call) error { return c.Reply(w) })
			if err := c.Bind(testProgram, None).Call(t.Context(), procBack, nil, &data{}, nil); !errors.Is(err, xdr.ErrInvalid) || errors.Is(err, ErrTooLong) {
				t.Errorf("results %x: %v", w, err)
			}
		}
		if n := c.Stats().Connections; n != 1 {
			t.Errorf("%d connections", n)
		}
	})
}

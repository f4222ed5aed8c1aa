package rpc

import (
	"context"
	"slices"
	"testing"
)

// TestProcedures checks that a server counts calls, over each transport and in both directions, by procedure: those that fail as well, but none of
// an unknown procedure.
func TestProcedures(t *testing.T) {
	inBothDirections(t, func(t *testing.T, b *both) {
		b.there.fail = func() error { return ErrGarbageArgs }
		b.here.fail = b.there.fail
		want := func(name string, s *Server, count ...uint64) {
			var got []uint64
			for _, p := range s.Procedures() {
				n, none := p.TCP, p.RDMA
				if b.transport != overTCP {
					n, none = p.RDMA, p.TCP
				}
				if p.Program != testProgram || none != 0 || p.Name() != testProgram.Procedures[p.Number].Name {
					t.Errorf("%s: %s of %+v", name, p.Name(), p)
				}
				got = append(got, uint64(p.Number), n)
			}
			if !slices.Equal(got, count) {
				t.Errorf("%s: counted %v, want %v", name, got, count)
			}
		}
		calls := func(ctx context.Context, c *Client) {
			for _, number := range []uint32{0, procFail, procWhoami, procWhoami, 99} {
				c.Bind(testProgram, None).Call(ctx, number, nil, nil, nil)
			}
		}
		want("before", b.server)
		c := b.dial()
		calls(t.Context(), c)
		if err := b.call(c, func(ctx context.Context, back *Client) error { calls(ctx, back); return nil }); err != nil {
			t.Fatal(err)
		}
		want("forward", b.server, 0, 1, procFail, 1, procWhoami, 2, procBack, 1)
		want("reverse", b.callbacks, 0, 1, procFail, 1, procWhoami, 2)
	})
}

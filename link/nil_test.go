package link

import (
	"context"
	"errors"
	"io"
	"iter"
	"reflect"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/tests/fixture"
)

// TestNothingThere: all methods of what is not there, a half of a link least of all,
// fail with an error that says so, and none panics.
func TestNothingThere(t *testing.T) {
	arguments := map[reflect.Type]any{
		reflect.TypeFor[context.Context](): t.Context(),
		reflect.TypeFor[io.Reader]():       strings.NewReader("bytes"),
		reflect.TypeFor[io.Writer]():       io.Discard,
		reflect.TypeFor[[]byte]():          []byte("bytes"),
		reflect.TypeFor[string]():          "udp:127.0.0.1",
		reflect.TypeFor[Buffers]():         Buffers{N: 1, Size: 8},
	}
	for _, c := range []struct {
		nothing any
		want    error
	}{
		{(*Producer)(nil), ErrNoHalf}, {(*Consumer)(nil), ErrNoHalf}, {(*Link)(nil), ErrNil}, {(*Host)(nil), ErrNil}, {(*Listener)(nil), ErrNil},
		{new(Producer), ErrNoHalf}, {new(Consumer), ErrNoHalf}, {new(Link), ErrNil}, {new(Host), ErrNil}, {new(Listener), ErrNil},
	} {
		fixture.EachMethod(t, c.nothing, arguments, func(t *testing.T, method string, out reflect.Value) {
			switch x := out.Interface().(type) {
			case error:
				if !errors.Is(x, c.want) || errors.Is(x, ErrClosed) {
					t.Errorf("%v, want %v", x, c.want)
				}
			case iter.Seq2[Message, error]:
				n := 0
				for _, err := range x {
					if n++; !errors.Is(err, c.want) {
						t.Errorf("%v, want %v", err, c.want)
					}
				}
				if n != 1 {
					t.Errorf("%d pairs, want one with the error", n)
				}
			case <-chan struct{}:
				<-x
			default:
				if out.Type() == reflect.TypeFor[error]() {
					t.Error("no error")
				} else if !out.IsZero() && method != "String" {
					t.Errorf("%+v", x)
				}
			}
		})
	}
}

// TestOfferToNobody: a link needs a connection.
func TestOfferToNobody(t *testing.T) {
	h := newNet(t, 1).host(1, nil)
	if _, _, err := h.Offer(nil, 0, nil); !errors.Is(err, ErrNil) {
		t.Error(err)
	}
	_, _, err := h.Attach((*dgrdma.Conn)(nil), Buffers{N: 1, Size: 8}, nil)
	if !errors.Is(err, ErrNil) {
		t.Error(err)
	}
}

// TestOneErrorForNothing: whichever package a call on nil is of, one error tells.
func TestOneErrorForNothing(t *testing.T) {
	if err := (*Link)(nil).Close(); !errors.Is(err, dgrdma.ErrNil) {
		t.Error(err)
	}
}

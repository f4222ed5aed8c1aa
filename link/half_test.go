package link

import (
	"context"
	"errors"
	"io"
	"iter"
	"reflect"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/tests/fixture"
)

// TestMissingHalf checks that all methods of a half that a link lacks fail with ErrNoHalf.
func TestMissingHalf(t *testing.T) {
	arguments := map[reflect.Type]any{
		reflect.TypeFor[context.Context](): t.Context(),
		reflect.TypeFor[io.Reader]():       strings.NewReader("bytes"),
		reflect.TypeFor[io.Writer]():       io.Discard,
		reflect.TypeFor[[]byte]():          []byte("bytes"),
		reflect.TypeFor[string]():          "udp:127.0.0.1",
		reflect.TypeFor[Buffers]():         Buffers{N: 1, Size: 8},
	}
	for _, half := range []any{(*Producer)(nil), (*Consumer)(nil)} {
		fixture.EachMethod(t, half, arguments, func(t *testing.T, method string, out reflect.Value) {
			switch x := out.Interface().(type) {
			case error:
				if !errors.Is(x, ErrNoHalf) || errors.Is(x, ErrClosed) {
					t.Errorf("%v, want %v", x, ErrNoHalf)
				}
			case iter.Seq2[Message, error]:
				n := 0
				for _, err := range x {
					if n++; !errors.Is(err, ErrNoHalf) {
						t.Errorf("%v, want %v", err, ErrNoHalf)
					}
				}
				if n != 1 {
					t.Errorf("%d pairs, want one with the error", n)
				}
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

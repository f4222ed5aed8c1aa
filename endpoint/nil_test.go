package endpoint

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestNothingThere: no method panics on what a failed New, Connect or NewRegion leaves, nor
// on a value that nobody made, and all that can say so fail with ErrNil.
func TestNothingThere(t *testing.T) {
	called := 0
	arguments := map[reflect.Type]any{
		reflect.TypeFor[context.Context]():           t.Context(),
		reflect.TypeFor[*Transaction]():              &Transaction{Segments: []Segment{{Bytes: []byte("bytes")}}},
		reflect.TypeFor[func(*Transaction, error)](): func(*Transaction, error) { called++ },
		reflect.TypeFor[*frame.Message]():            &frame.Message{Len: 4},
		reflect.TypeFor[func(uint32) bool]():         func(uint32) bool { called++; return true },
		reflect.TypeFor[func() bool]():               func() bool { called++; return false },
		reflect.TypeFor[func()]():                    func() {},
		reflect.TypeFor[Peer]():                      Peer{ID: 2, Addr: addrB},
	}
	for _, nothing := range []any{
		(*Endpoint)(nil), (*Conn)(nil), (*Region)(nil), (*Channel)(nil), (*Flow)(nil), &Conn{}, &Channel{}, &Flow{},
	} {
		fixture.EachMethod(t, nothing, arguments, func(t *testing.T, method string, out reflect.Value) {
			switch x := out.Interface().(type) {
			case error:
				if !errors.Is(x, ErrNil) {
					t.Errorf("%v, want %v", x, ErrNil)
				}
			case Stats:
				if !x.Closed || x.Err != ErrNil {
					t.Errorf("%+v", x)
				}
			case ConnStats:
				if !x.Down || x.Err != ErrNil || x.Silent >= 0 || x.Ready() {
					t.Errorf("%+v", x)
				}
			case <-chan struct{}:
				if method == "Done" {
					<-x
				} else if x != nil {
					t.Error("a channel for a token that never comes")
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
	if called != 0 {
		t.Errorf("%d callbacks of calls that failed", called)
	}
}

// TestAfterBatchOfNothing: who waits for the end of a batch does not wait for ever.
func TestAfterBatchOfNothing(t *testing.T) {
	n := 0
	(*Endpoint)(nil).AfterBatch(func() { n++ })
	if n != 1 {
		t.Errorf("called %d times", n)
	}
}

// TestNothingToPost: a transaction that is none is refused, before and after the end of
// the connection, and nothing is counted; bytes that are none are no bytes.
func TestNothingToPost(t *testing.T) {
	n := simnet.New(1)
	defer n.Close()
	e, err := New(n.Attach(addrA, simnet.Config{}), &Config{ID: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	c, err := e.Connect(Peer{ID: 2, Addr: addrB})
	if err != nil {
		t.Fatal(err)
	}
	refused := func() {
		t.Helper()
		for call, err := range map[string]error{
			"Post": c.Post(nil), "PostTo": c.PostTo(c.Life(), nil), "Write": c.Write(t.Context(), nil),
			"PostWith": c.PostWith(nil, func(*Transaction, error) { t.Error("done was called") }),
		} {
			if !errors.Is(err, ErrNil) || !strings.Contains(err.Error(), "no transaction") {
				t.Errorf("%s: %v, want %v of a transaction", call, err, ErrNil)
			}
		}
	}
	refused()
	if s := c.Stats(); s.Queued != 0 {
		t.Errorf("%d transactions queued", s.Queued)
	}
	if err := c.Post(&Transaction{Segments: []Segment{{Addr: 8}}}); err != nil {
		t.Error(err)
	}
	c.Close()
	refused()
}

// TestNewOfNothing: an endpoint needs a transport, and memory that is there if it is
// given one.
func TestNewOfNothing(t *testing.T) {
	n := simnet.New(1)
	defer n.Close()
	var none *Region
	for _, c := range []struct {
		name string
		wire transport.Conn
		cfg  *Config
	}{
		{"nil", nil, &Config{ID: 1}},
		{"nil without configuration", nil, nil},
		{"a transport that is nil", (*simnet.Conn)(nil), &Config{ID: 1}},
		{"a region that is nil", n.Attach(addrA, simnet.Config{}), &Config{ID: 1, Memory: none}},
	} {
		e, err := New(c.wire, c.cfg)
		if e != nil || !errors.Is(err, ErrNil) {
			t.Errorf("%s: %v, %v, want %v", c.name, e, err, ErrNil)
		}
	}
}

// TestNewWithoutConfiguration: an id is needed, and said to be.
func TestNewWithoutConfiguration(t *testing.T) {
	n := simnet.New(1)
	defer n.Close()
	wire := n.Attach(addrA, simnet.Config{})
	for _, cfg := range []*Config{nil, {}} {
		if e, err := New(wire, cfg); e != nil || err == nil || !strings.Contains(err.Error(), "endpoint id is 0") {
			t.Errorf("%+v: %v, %v", cfg, e, err)
		}
	}
}

// TestTransportThatIsNoPointer: a transport may be of any type.
func TestTransportThatIsNoPointer(t *testing.T) {
	n := simnet.New(1)
	defer n.Close()
	e, err := New(struct{ transport.Conn }{n.Attach(addrA, simnet.Config{})}, &Config{ID: 1})
	if err != nil {
		t.Fatal(err)
	}
	e.Close()
}

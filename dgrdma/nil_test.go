package dgrdma_test

import (
	"errors"
	"net"
	"reflect"
	"testing"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/endpoint"
	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/transport"
)

// TestEndpointHasWhatTheEngineHas: no method of the engine's endpoint is missing here or
// differs, and on a nil or zero Endpoint each answers as the engine's does, which package
// endpoint tests.
func TestEndpointHasWhatTheEngineHas(t *testing.T) {
	called := 0
	arguments := map[reflect.Type]any{
		reflect.TypeFor[dgrdma.Peer](): dgrdma.Peer{ID: 2},
		reflect.TypeFor[func() bool](): func() bool { return false },
		reflect.TypeFor[func()]():      func() { called++ },
	}
	engine := reflect.ValueOf((*endpoint.Endpoint)(nil))
	for _, e := range []*dgrdma.Endpoint{nil, {}} {
		for i := range engine.NumMethod() {
			m := engine.Type().Method(i)
			of := reflect.ValueOf(e).MethodByName(m.Name)
			if !of.IsValid() || of.Type().NumIn() != m.Type.NumIn()-1 || of.Type().NumOut() != m.Type.NumOut() {
				t.Fatalf("%s is missing, or differs", m.Name)
			}
			call := func(f reflect.Value) []reflect.Value {
				var in []reflect.Value
				for k := range fixture.Arguments(f.Type()) {
					a := reflect.Zero(f.Type().In(k))
					if x, ok := arguments[f.Type().In(k)]; ok {
						a = reflect.ValueOf(x)
					}
					in = append(in, a)
				}
				return f.Call(in)
			}
			got, want := call(of), call(engine.Method(i))
			for k := range want {
				as := want[k]
				if as.Type() != got[k].Type() && as.Type().ConvertibleTo(got[k].Type()) {
					as = as.Convert(got[k].Type()) // a handle, or memory: ours in place of the engine's
				}
				if as.Type() != got[k].Type() && got[k].IsNil() && as.IsNil() {
					continue // a list of handles
				}
				if !reflect.DeepEqual(got[k].Interface(), as.Interface()) {
					t.Errorf("%s: %v, want %v", m.Name, got[k], as)
				}
			}
		}
		if url := e.URL(); url != "" {
			t.Errorf("URL %q", url)
		}
		for _, url := range []string{"udp:127.0.0.1:7100;4096.2.3", ""} {
			if c, err := e.Dial(url); c != nil || !errors.Is(err, dgrdma.ErrNil) {
				t.Errorf("Dial(%q): %v, %v", url, c, err)
			}
		}
	}
	if called != 4 {
		t.Errorf("AfterBatch called %d of 4 functions", called)
	}
}

// TestAfterFailure: a program that looks at no error learns of the failure from the
// next call, and does not panic.
func TestAfterFailure(t *testing.T) {
	e, err := dgrdma.Open("udp:nonsense:", nil)
	if err == nil {
		t.Fatal("opened")
	}
	c, _ := e.Dial("udp:127.0.0.1:7100;4096.2.3")
	q := dgrdma.NewCompletionQueue(1)
	region, err := dgrdma.NewRegion(-1)
	if err == nil {
		t.Fatal("a region of -1 bytes")
	}
	_, openErr := dgrdma.Open("udp:127.0.0.1", &dgrdma.Config{Memory: region})
	_, newErr := dgrdma.New(nil, nil)
	word := &dgrdma.Transaction{Completion: dgrdma.Word(0, 1)}
	_, nothing := e.Connect(dgrdma.Peer{ID: 2, Addr: transport.Addr{}})
	for call, err := range map[string]error{
		"Write": c.Write(t.Context(), word), "Post": c.Post(word), "queue": q.Post(c, word), "queue again": q.Post(c, nil),
		"Conn.Close": c.Close(), "Shutdown": e.Shutdown(t.Context()), "Close": e.Close(), "Connect": nothing,
		"Wait": region.WaitFor(t.Context(), 0, 1), "Open with a region that is nil": openErr, "New": newErr,
	} {
		if !errors.Is(err, dgrdma.ErrNil) {
			t.Errorf("%s: %v, want %v", call, err, dgrdma.ErrNil)
		}
	}
	<-c.Done()
}

// TestNoCompletionQueue: a queue that was not made fails, and says so; and so do bytes
// and reasons that are none.
func TestNoCompletionQueue(t *testing.T) {
	for _, q := range []*dgrdma.CompletionQueue{nil, {}} {
		if err := q.Post(nil, &dgrdma.Transaction{}); !errors.Is(err, dgrdma.ErrNil) {
			t.Errorf("Post: %v", err)
		}
		done := make([]dgrdma.Completion, 1)
		if n := q.Poll(done); n != 0 {
			t.Errorf("Poll: %d", n)
		}
		if n, err := q.Wait(t.Context(), done); n != 0 || !errors.Is(err, dgrdma.ErrNil) {
			t.Errorf("Wait: %d, %v", n, err)
		}
	}
	if n := (*dgrdma.Transaction)(nil).Bytes(); n != 0 {
		t.Errorf("%d bytes in no transaction", n)
	}
	if s := dgrdma.Swallow(nil).Error(); s == "" {
		t.Error("Swallow(nil) does not say what it is")
	}
}

// TestNothingIsNotClosed: a call on what is not there is no ordinary end, for which
// programs test to go on.
func TestNothingIsNotClosed(t *testing.T) {
	err := (*dgrdma.Endpoint)(nil).Close()
	if !errors.Is(err, dgrdma.ErrNil) || errors.Is(err, dgrdma.ErrClosed) || errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

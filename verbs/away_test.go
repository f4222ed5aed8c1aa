package verbs_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/verbs"
)

// request is what a peer sends that asks for a connection with private data.
func request(private string) []byte {
	return append([]byte("MPA ID Req Frame\x40\x01\x00"+string(rune(len(private)))), private...)
}

// Attack R7: strangers that are turned away, and do not close their connections, keep nobody waiting, cost no more
// goroutines than are said, and are told why, however many they are.
func TestTurnAway(t *testing.T) {
	fixture.NoGoroutineOfItsOwnLeft(t)
	h, l := listen(t)
	ctx := t.Context()
	turned := make(chan error, 4*verbs.MostTurnedAway)
	go func() {
		for {
			r, err := l.Accept(ctx)
			if err != nil {
				return
			}
			if len(r.Private) > 0 {
				turned <- r.TurnAway([]byte("go away"))
			} else if _, err := r.Accept(ctx, nil); err != nil {
				t.Error(err)
			}
		}
	}()
	most, stacks := 0, make([]byte, 16<<20)
	var strangers []net.Conn
	for i := range 3 * verbs.MostTurnedAway {
		nc := dial(t, l)
		if _, err := nc.Write(request("it is me")); err != nil {
			t.Fatal(err)
		}
		strangers = append(strangers, nc)
		if err := <-turned; err != nil {
			t.Fatal(err)
		}
		if i%64 == 63 {
			most = max(most, bytes.Count(stacks[:runtime.Stack(stacks, true)], []byte("mpa.(*Request).Part(")))
		}
	}
	if most == 0 || most > verbs.MostTurnedAway {
		t.Errorf("%d are waited for, want 1 to %d", most, verbs.MostTurnedAway)
	}
	q, err := h.Dial(ctx, l.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Abort()
	for i, nc := range strangers {
		nc.SetReadDeadline(time.Now().Add(30 * time.Second))
		if b, err := io.ReadAll(nc); err != nil || !strings.HasSuffix(string(b), "go away") {
			t.Fatalf("stranger %d is told %q, %v", i, b, err)
		}
	}
}

// TestTurnAwayAtTheEnd: the end of a listener waits for nobody who was turned away, and those that are turned away behind it are
// told as well.
func TestTurnAwayAtTheEnd(t *testing.T) {
	fixture.NoGoroutineOfItsOwnLeft(t)
	took := time.Duration(0)
	for range 5 { // on a busy machine any takes long
		_, l := listen(t)
		var last *verbs.Request
		var strangers []net.Conn
		for range 20 {
			nc := dial(t, l)
			nc.Write(request("it is me"))
			r, err := l.Accept(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			strangers = append(strangers, nc)
			if last != nil {
				if err := last.TurnAway([]byte("go away")); err != nil {
					t.Fatal(err)
				}
			}
			last = r
		}
		began := time.Now()
		l.Close()
		took = time.Since(began)
		if err := last.TurnAway([]byte("too late")); err != nil {
			t.Error(err)
		}
		for i, nc := range strangers {
			says := "go away"
			if i == len(strangers)-1 {
				says = "too late"
			}
			nc.SetReadDeadline(time.Now().Add(30 * time.Second))
			if b, err := io.ReadAll(nc); err != nil || !strings.HasSuffix(string(b), says) {
				t.Errorf("stranger %d is told %q, %v", i, b, err)
			}
		}
		if took < 500*time.Millisecond {
			return
		}
	}
	t.Errorf("the end took %v", took)
}

// TestTurnAwayTooMuch: what is too long to be told is not sent, and the request can be answered still.
func TestTurnAwayTooMuch(t *testing.T) {
	_, l := listen(t)
	nc := dial(t, l)
	nc.Write(request("it is me"))
	r, err := l.Accept(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.TurnAway(make([]byte, verbs.MaxPrivate+1)); !errors.Is(err, verbs.ErrOption) {
		t.Error(err)
	}
	if err := r.TurnAway([]byte("go away")); err != nil {
		t.Error(err)
	}
}

// TestAnsweredTwice: a request counts once, whatever is done about it behind its answer.
func TestAnsweredTwice(t *testing.T) {
	t.Parallel()
	h, l := listen(t)
	for name, c := range map[string]struct {
		first func(r *verbs.Request) error
		want  verbs.HostStats
	}{
		"rejected":    {func(r *verbs.Request) error { return r.Reject(t.Context(), nil) }, verbs.HostStats{Rejected: 1}},
		"turned away": {func(r *verbs.Request) error { return r.TurnAway(nil) }, verbs.HostStats{Rejected: 1}},
		"closed":      {func(r *verbs.Request) error { return r.Close() }, verbs.HostStats{Rejected: 1}},
		"accepted": {func(r *verbs.Request) error {
			_, err := r.Accept(t.Context(), nil)
			return err
		}, verbs.HostStats{Accepted: 1}},
		"not agreed": {func(r *verbs.Request) error {
			_, err := r.Accept(t.Context(), &verbs.Options{Private: make([]byte, verbs.MaxPrivate+1)})
			if !errors.Is(err, verbs.ErrOption) {
				return errors.Join(errors.New("it is not the option"), err)
			}
			return r.TurnAway(nil)
		}, verbs.HostStats{Rejected: 1}},
	} {
		before := h.Stats()
		nc := dial(t, l)
		nc.Write(request("it is me"))
		r, err := l.Accept(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := c.first(r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		r.Close()
		r.TurnAway(nil)
		after := h.Stats()
		got := verbs.HostStats{Accepted: after.Accepted - before.Accepted, Rejected: after.Rejected - before.Rejected, SetUpFails: after.SetUpFails - before.SetUpFails}
		if got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

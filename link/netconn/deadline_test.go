package netconn

import (
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// TestDeadlines checks that a call that waits ends when the deadline passes that was set last,
// whenever that was, and that the connection stays as it is.
func TestDeadlines(t *testing.T) {
	for _, c := range []struct {
		name string
		set  []time.Duration // one after the other, each a second after the one before; 0: none
		want time.Duration   // after the first
	}{
		{"once", []time.Duration{3 * time.Second}, 3 * time.Second},
		{"past", []time.Duration{-time.Hour}, 0},
		{"later", []time.Duration{2 * time.Second, 5 * time.Second}, 6 * time.Second},
		{"earlier", []time.Duration{time.Hour, 2 * time.Second}, 3 * time.Second},
		{"none, then past", []time.Duration{0, -1}, time.Second},
		{"taken away, and set", []time.Duration{2 * time.Second, 0, 4 * time.Second}, 6 * time.Second},
		{"far", []time.Duration{1<<63 - 1, time.Second}, 2 * time.Second},
	} {
		for _, op := range []string{"read", "write"} {
			t.Run(op+" "+c.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, 1)
					a, b := w.pair()
					call, set := func() (int, error) { return a.Read(make([]byte, 1)) }, a.SetReadDeadline
					full := 63 * DefaultSize
					if op == "write" {
						call, set = func() (int, error) { return a.Write([]byte("x")) }, a.SetWriteDeadline
						if _, err := a.Write(make([]byte, full)); err != nil {
							t.Fatal(err)
						}
					}
					at := func(d time.Duration) time.Time {
						if d == 0 {
							return time.Time{}
						}
						return time.Now().Add(d)
					}
					began := time.Now()
					if err := set(at(c.set[0])); err != nil {
						t.Fatal(err)
					}
					go func() {
						for _, d := range c.set[1:] {
							time.Sleep(time.Second)
							if err := set(at(d)); err != nil {
								t.Error(err)
							}
						}
					}()
					n, err := call()
					if took := time.Since(began); n != 0 || took < c.want || took > c.want+5*time.Millisecond {
						t.Errorf("%d bytes after %v, want none after %v", n, took, c.want)
					}
					wants(t, "in time", a, op, err, os.ErrDeadlineExceeded)
					_, err = call()
					wants(t, "again", a, op, err, os.ErrDeadlineExceeded)
					if err := set(time.Time{}); err != nil {
						t.Error(err)
					}
					go func() {
						b.Write([]byte("y"))
						io.Copy(io.Discard, b)
					}()
					if n, err := call(); n != 1 || err != nil {
						t.Errorf("without a deadline: %d, %v", n, err)
					}
				})
			})
		}
	}
}

// TestDeadlineHidesNothing checks that what came is read after the deadline was moved, and none of it
// while the deadline is past, as with TCP.
func TestDeadlineHidesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newWorld(t, 1).pair()
		a.Write([]byte("here"))
		a.Close()
		time.Sleep(time.Second)
		b.SetReadDeadline(time.Now())
		got := make([]byte, 9)
		n, err := b.Read(got)
		wants(t, "past", b, "read", err, os.ErrDeadlineExceeded)
		if k, err := b.WriteTo(io.Discard); n != 0 || k != 0 || err == nil {
			t.Errorf("%d and %d bytes, %v", n, k, err)
		}
		b.SetReadDeadline(time.Now().Add(time.Second))
		if n, err := b.Read(got); string(got[:n]) != "here" || err != nil {
			t.Errorf("%q, %v", got[:n], err)
		}
		if _, err := b.Read(got); err != io.EOF {
			t.Error(err)
		}
	})
}

// TestDeadlineByOneClock checks that a deadline of a time without a monotonic reading, as one that was
// parsed, passes as well.
func TestDeadlineByOneClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := newWorld(t, 1).pair()
		began := time.Now()
		a.SetDeadline(began.Add(time.Second).Round(0).UTC())
		_, err := a.Read(make([]byte, 1))
		wants(t, "Read", a, "read", err, os.ErrDeadlineExceeded)
		if took := time.Since(began); took < time.Second || took > time.Second+5*time.Millisecond {
			t.Errorf("after %v", took)
		}
	})
}

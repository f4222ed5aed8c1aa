package metrics

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// TestPlaces: of connections that say nothing no more are open than there are places, the others are
// closed and counted, and who reads finds a place when one has left.
func TestPlaces(t *testing.T) {
	c := New(Counted{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: c.Places(l), Config: &http.Server{Handler: c.Handler()}}
	s.Start()
	defer s.Close()
	const more = 10
	var all []net.Conn
	for range MostReaders + more {
		nc, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		all = append(all, nc)
	}
	for i, nc := range all {
		nc.SetReadDeadline(time.Now().Add(30 * time.Second))
		if i < MostReaders {
			nc.SetReadDeadline(time.Now().Add(time.Millisecond))
		}
		if _, err := nc.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) != (i < MostReaders) {
			t.Fatalf("connection %d: %v", i, err)
		}
	}
	all[0].Close()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for until := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		r, err := client.Get(s.URL + TextPath)
		if err != nil { // the server has not seen yet that one left
			if time.Now().After(until) {
				t.Fatal(err)
			}
			continue
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		if _, n, _ := strings.Cut(string(b), "\ndgrdma_metrics_turned_away_total "); !strings.HasPrefix(n, "1") {
			t.Errorf("%d or more were turned away: %q", more, n[:min(len(n), 10)])
		}
		if n := c.turnedAway.Load(); n < more {
			t.Errorf("%d are counted, want %d", n, more)
		}
		return
	}
}

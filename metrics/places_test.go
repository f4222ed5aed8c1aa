package metrics

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// TestPlaces: of connections that say nothing no more are open than there are places. Those there longest are
// closed for newcomers, and counted, and who reads finds a place though none of the others leaves.
func TestPlaces(t *testing.T) {
	c := New(Counted{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	places := c.Places(l).(*places)
	s := &httptest.Server{Listener: places, Config: &http.Server{Handler: c.Handler()}}
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
	open := func(i int, want bool) {
		t.Helper()
		wait := 30 * time.Second
		if want {
			wait = time.Millisecond
		}
		all[i].SetReadDeadline(time.Now().Add(wait))
		if _, err := all[i].Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) != want {
			t.Fatalf("connection %d: %v", i, err)
		}
	}
	for i := range all {
		open(i, i >= more)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := client.Get(s.URL + TextPath)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("\ndgrdma_metrics_turned_away_total %d\n", more+1); !strings.Contains(string(b), want) {
		t.Errorf("no %q in %s", want, b)
	}
	open(more, false)
	for _, nc := range all {
		nc.Close()
	}
	taken := func() int {
		places.mu.Lock()
		defer places.mu.Unlock()
		return places.readers.Len()
	}
	for until := time.Now().Add(30 * time.Second); taken() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("%d places are taken, and all have left", taken())
		}
	}
}

package metrics

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// slow is a source that takes a second to look at, and counts how many look at once.
type slow struct {
	mu               sync.Mutex
	looks, now, most int
}

func (s *slow) Of() any { return s }

func (s *slow) Look() (Endpoint, bool) {
	s.mu.Lock()
	s.looks++
	s.now++
	s.most = max(s.most, s.now)
	s.mu.Unlock()
	time.Sleep(time.Second)
	s.mu.Lock()
	s.now--
	s.mu.Unlock()
	return Endpoint{Name: "slow"}, true
}

// unread is a reader that takes nothing until its time is over.
type unread struct {
	httptest.ResponseRecorder
	cut chan struct{}
}

func (u *unread) Write([]byte) (int, error) {
	<-u.cut
	return 0, os.ErrDeadlineExceeded
}

func (u *unread) SetWriteDeadline(time.Time) error {
	close(u.cut)
	return nil
}

// TestAnswersAreShared checks that readers of metrics share few answers however many they are, and that only the slowest are cut short
// for a newcomer.
func TestAnswersAreShared(t *testing.T) {
	for _, path := range []string{TextPath, ViewPath} {
		for _, encoding := range []string{"identity", "gzip"} {
			t.Run(path+" "+encoding, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { shareAnswers(t, path, encoding) }) })
		}
	}
}

func shareAnswers(t *testing.T, path, encoding string) {
	c, s := New(Counted{}), new(slow)
	c.Add(s)
	h := c.Handler()
	get := func(w http.ResponseWriter) {
		r := httptest.NewRequestWithContext(context.Background(), "GET", path, nil)
		r.Header.Set("Accept-Encoding", encoding)
		h.ServeHTTP(w, r)
	}
	before := s.looks
	var all sync.WaitGroup
	answered := make([]*httptest.ResponseRecorder, 50)
	for i := range answered {
		answered[i] = httptest.NewRecorder()
		all.Go(func() { get(answered[i]) })
	}
	all.Wait()
	// The first one makes an answer for itself, and the others share the next one.
	if n := s.looks - before; n > 2 || s.most > 1 {
		t.Errorf("%d requests at once are %d looks, %d at once", len(answered), n, s.most)
	}
	for i, w := range answered {
		if w.Code != http.StatusOK || w.Body.Len() < 100 {
			t.Errorf("reader %d: %d, %d bytes", i, w.Code, w.Body.Len())
		}
	}
	// Readers that never read.
	silent := make([]*unread, 20)
	for i := range silent {
		silent[i] = &unread{*httptest.NewRecorder(), make(chan struct{})}
		all.Go(func() { get(silent[i]) })
		time.Sleep(2 * time.Second)
	}
	cut := 0
	for i, u := range silent {
		select {
		case <-u.cut:
			if cut++; i >= len(silent)-mostAnswers {
				t.Errorf("reader %d of %d is cut short", i, len(silent))
			}
		default:
		}
	}
	if want := len(silent) - mostAnswers; cut != want || c.cutShort.Load() != uint64(want) {
		t.Errorf("%d are cut short, %d counted, want %d", cut, c.cutShort.Load(), want)
	}
	w := httptest.NewRecorder()
	if get(w); w.Code != http.StatusOK || w.Body.Len() < 100 {
		t.Errorf("one who reads: %d, %d bytes", w.Code, w.Body.Len())
	}
	for _, u := range silent[len(silent)-mostAnswers+1:] {
		close(u.cut)
	}
	all.Wait()
}

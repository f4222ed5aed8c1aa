package metrics

import (
	"bytes"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// mostAnswers is how many answers of a kind a collector keeps that are being written. Each has a line for each counter of each peer: with
// 4096 peers 16 MB, and 180 MB while it is made. Arbitrary: a reader has as long as it takes to make this many.
const mostAnswers = 3

var cutShort = prometheus.NewDesc("dgrdma_metrics_cut_short_total", "Answers with these metrics that were cut short, because their readers were slower than others asked again.", nil, nil)

// answers are the answers of one kind. Requests that come while another answer is made share the next one.
// So what they take does not depend on how many readers there are, or how slowly they read.
type answers struct {
	make  http.Handler
	turn  chan struct{}  // of all kinds: one answer is made at a time
	short *atomic.Uint64 // readers that were cut short

	mu    sync.Mutex
	next  *answer   // not begun; nil: no request waits for it
	alive []*answer // begun, and not written to all of its readers; the oldest first
}

type answer struct {
	made    chan struct{} // closed when it is
	header  http.Header
	status  int
	body    bytes.Buffer
	readers map[*http.ResponseController]bool
}

// ServeHTTP implements [http.Handler].
func (s *answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	to := http.NewResponseController(w)
	a, first := s.join(to)
	defer s.leave(a, to)
	if first {
		s.build(a, r)
	}
	<-a.made
	for name, values := range a.header {
		w.Header()[name] = values
	}
	w.WriteHeader(a.status)
	w.Write(a.body.Bytes()) // an error is the reader's affair
}

// build makes an answer, in its turn.
func (s *answers) build(a *answer, r *http.Request) {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	defer close(a.made)
	s.begin(a)
	s.make.ServeHTTP(a, r)
}

// join makes a reader one of the next answer, which the first of them makes.
func (s *answers) join(to *http.ResponseController) (a *answer, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if first = s.next == nil; first {
		s.next = &answer{made: make(chan struct{}), header: make(http.Header), status: http.StatusOK, readers: make(map[*http.ResponseController]bool)}
	}
	s.next.readers[to] = true
	return s.next, first
}

// begin says that an answer is made now, and cuts the readers of the oldest one short if there are too many.
func (s *answers) begin(a *answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = nil
	if len(s.alive) == mostAnswers {
		for to := range s.alive[0].readers {
			if to.SetWriteDeadline(time.Unix(1, 0)) == nil {
				s.short.Add(1)
			}
		}
		s.alive = s.alive[1:]
	}
	s.alive = append(s.alive, a)
}

// leave says that a reader is through.
func (s *answers) leave(a *answer, to *http.ResponseController) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(a.readers, to)
	if len(a.readers) > 0 {
		return
	}
	for i := range s.alive {
		if s.alive[i] == a {
			s.alive = append(s.alive[:i:i], s.alive[i+1:]...)
			return
		}
	}
}

// An answer is the [http.ResponseWriter] of the handler that makes it.

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }

// byEncoding answers as text, with gzip or without, as the reader wishes. Other formats are none of its kinds.
type byEncoding struct{ plain, zipped *answers }

func (e byEncoding) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind, encoding := e.plain, "identity"
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		kind, encoding = e.zipped, "gzip"
	}
	same := r.Clone(r.Context()) // for all readers of the kind
	same.Header = http.Header{"Accept": {"text/plain"}, "Accept-Encoding": {encoding}}
	kind.ServeHTTP(w, same)
}

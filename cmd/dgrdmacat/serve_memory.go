package main

import (
	"errors"
	"sync/atomic"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// served is the memory that peers write into. It tells the journal about watched
// words, on the goroutine that receives: nothing else is written meanwhile.
type served struct {
	*dgrdma.Region
	watched []*watched
	until   *wordIs
	reached chan struct{} // closed when until is so
	over    atomic.Bool   // the same: nothing more is taken
	journal *journal
	file    *servedFile // nil: the memory is no file's
}

// watched is words that are watched, one behind the other.
type watched struct {
	from  uint32
	words []watchedWord
}

type watchedWord struct {
	value uint32 // as last seen
	late  int    // place among the journal's late changes, counted from 1; 0: not there
}

func newServed(r *dgrdma.Region, o *serveOptions, j *journal) *served {
	s := &served{Region: r, until: o.until, reached: make(chan struct{}), journal: j}
	for _, w := range o.watch {
		words := make([]watchedWord, (w.to-w.from)/4)
		for i := range words {
			words[i].value = r.Load32(uint32(w.from) + uint32(4*i))
		}
		s.watched = append(s.watched, &watched{from: uint32(w.from), words: words})
	}
	s.look()
	return s
}

// look ends serving when the word of --until has its value.
func (s *served) look() {
	if s.until != nil && s.Load32(s.until.addr) == s.until.value && s.over.CompareAndSwap(false, true) {
		close(s.reached)
	}
}

// wrote looks at the watched words among the n bytes at addr.
func (s *served) wrote(peer dgrdma.PeerName, addr uint32, n int) {
	at, end := int64(addr), int64(addr)+int64(n)
	for _, w := range s.watched {
		// Words that share a byte with what was written.
		from := int64(w.from)
		first := max((at-from)/4, 0)
		behind := min((end-from+3)/4, int64(len(w.words)))
		for i := first; i < behind; i++ {
			value := s.Load32(w.from + uint32(4*i))
			if word := &w.words[i]; word.value != value {
				word.value = value
				s.journal.changed(peer, w.from+uint32(4*i), word)
			}
		}
	}
	if u := s.until; u != nil && at < int64(u.addr)+4 && end > int64(u.addr) {
		s.look()
	}
}

// For implements [dgrdma.PerConn].
func (s *served) For(c *dgrdma.Conn) dgrdma.Memory { return &view{s, c.Name()} }

// view is the memory as one peer sees it.
type view struct {
	*served
	peer dgrdma.PeerName
}

var errOver = errors.New("nothing is taken any more: the word has its value")

func (v *view) Admit(src dgrdma.EndpointID, m *dgrdma.Message) ([]byte, error) {
	if v.over.Load() {
		return nil, errOver
	}
	b, err := v.Region.Admit(src, m)
	if err == nil {
		err = v.file.has(b, v.completion(m))
	}
	return b, err
}

// completion returns the completion word of a message that was admitted, or nothing.
func (v *view) completion(m *dgrdma.Message) []byte {
	if !m.Completes() {
		return nil
	}
	return v.Bytes()[m.CompletionAddr:][:4]
}

func (v *view) Complete(src dgrdma.EndpointID, m *dgrdma.Message) {
	v.file.touch(func() {
		v.Region.Complete(src, m)
		v.wrote(v.peer, m.CompletionAddr, 4)
	})
}

func (v *view) Placed(src dgrdma.EndpointID, m *dgrdma.Message) {
	v.file.touch(func() {
		v.Region.Placed(src, m)
		v.wrote(v.peer, m.Addr, int(m.Len))
	})
}

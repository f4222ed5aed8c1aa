package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// streamResult is the object that --json prints for each stream. Bytes are those
// of both directions, each as seen here.
type streamResult struct {
	Peer      string  `json:"peer"`
	File      string  `json:"file,omitempty"`
	Sent      int64   `json:"sent"`
	Received  int64   `json:"received"`
	Seconds   float64 `json:"seconds"`
	MBPerS    float64 `json:"mb_per_s"`
	SentSum   string  `json:"sent_sha256,omitempty"`
	RecvSum   string  `json:"received_sha256,omitempty"`
	Whole     bool    `json:"whole"`
	Confirmed bool    `json:"confirmed"`
	Error     string  `json:"error,omitempty"`

	sends, receives bool
}

// result is what there is to be said of a stream that is over; err is why it is
// not whole.
func (s *transfer) result(file string, err error) *streamResult {
	took := time.Since(s.out.began)
	r := &streamResult{
		Peer: s.link.Peer().Name().String(), File: file,
		Sent: s.out.moved.Load(), Received: s.in.moved.Load(), Seconds: took.Seconds(),
		Whole: err == nil, Confirmed: err == nil && s.unconfirmed == nil,
		sends: s.from != nil, receives: s.into != nil,
	}
	r.MBPerS = perSecond(uint64(r.Sent+r.Received), took) / 1e6
	if err != nil {
		r.Error = err.Error()
	} else if s.checksum {
		r.SentSum, r.RecvSum = hexOrNothing(s.outSum), hexOrNothing(s.inSum)
	}
	return r
}

func hexOrNothing(sum []byte) string { return fmt.Sprintf("%x", sum) }

// String is the summary for people.
func (r *streamResult) String() string {
	var parts []string
	part := func(verb string, n int64, sum string) {
		p := fmt.Sprintf("%s %d bytes", verb, n)
		if sum != "" {
			p += ", SHA-256 " + sum
		}
		parts = append(parts, p)
	}
	if r.sends {
		part("sent", r.Sent, r.SentSum)
	}
	if r.receives {
		part("received", r.Received, r.RecvSum)
	}
	s := strings.Join(parts, ", ") + fmt.Sprintf(" in %.2f s, %.0f MB/s", r.Seconds, r.MBPerS)
	switch {
	case !r.Whole:
		s += ", not whole"
	case !r.Confirmed:
		s += "; the sender did not confirm that it knows"
	}
	return s
}

// print writes the summary: the object to stdout, words to stderr.
func (r *streamResult) print(asJSON bool, std *stdio) error {
	if asJSON {
		return json.NewEncoder(std.out).Encode(r)
	}
	_, err := fmt.Fprintln(std.err, r)
	return err
}

// mayShow reports whether progress on stderr disturbs nothing that a person types
// or reads on the same terminal.
func (s *transfer) mayShow(std *stdio) bool {
	if s.from != nil && s.from.poll != nil && isTerminal(s.from.poll) {
		return false
	}
	out, toStdout := s.into.(*output)
	return !toStdout || !isTerminal(out.Writer)
}

// runShown is run with progress.
func (s *transfer) runShown(run func() error, std *stdio) error {
	if !s.mayShow(std) {
		return run()
	}
	m := s.out
	if s.from == nil {
		m = s.in
	}
	stop := m.show(std.err)
	defer stop()
	return run()
}

// closerOf returns what closes a writer that is a file.
func closerOf(w io.Writer) io.Closer {
	c, _ := w.(io.Closer)
	return c
}

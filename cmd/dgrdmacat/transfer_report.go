package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// streamResult is the object that --json prints for each stream. Bytes are those
// of both directions, each as seen here.
type streamResult struct {
	builtFrom
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

// result sums up a stream that has ended; err is why it is not whole.
func (t *transfer) result(file string, err error) *streamResult {
	took, got := time.Since(t.meter.began), t.Result()
	r := &streamResult{
		Peer: t.Link().Peer().Name().String(), File: file,
		Sent: got.Sent, Received: got.Received, Seconds: took.Seconds(),
		MBPerS: perSecond(uint64(got.Sent+got.Received), took) / 1e6,
		Whole:  err == nil, Confirmed: err == nil && got.Confirmed,
		sends: t.from != nil, receives: t.into != nil || t.from == nil, // though it be into nothing
	}
	if err != nil {
		r.Error = err.Error()
	} else {
		r.SentSum, r.RecvSum = fmt.Sprintf("%x", got.SentSum), fmt.Sprintf("%x", got.ReceivedSum)
	}
	return r
}

// String is the summary for people.
func (r *streamResult) String() string {
	var parts []string
	part := func(verb string, n int64, sum string) {
		p := verb + " " + count(n, "byte")
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
	s := strings.Join(parts, ", ") + fmt.Sprintf(" in %.2f s, %s MB/s", r.Seconds, threeDigits(r.MBPerS))
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
		r.builtFrom = thisBuild()
		return json.NewEncoder(std.out).Encode(r)
	}
	_, err := fmt.Fprintln(std.err, r)
	return err
}

package main

import (
	"fmt"

	"github.com/dgrdma/dgrdma/bench"
	"github.com/dgrdma/dgrdma/verbs/latency"
)

// strangerTCP says of a client that a server rejects whose it is, as far as its private data tells. ours are the server's.
func strangerTCP(ours string, private []byte, err error) error {
	text := string(private)
	switch {
	case len(private) == 0:
		text = "it has no private data, as clients of rping"
	case latency.Asks(private):
		text = "it is one of ping --op"
	case bench.AsksForVerbs(private):
		text = "it is one of bench --op"
	case text == printableASCII(text):
		text = fmt.Sprintf("it comes with private data, %q", text[:min(len(text), mostPrivateSaid)])
	default:
		text = fmt.Sprintf("it comes with private data that is no text, of %s", count(len(private), "byte"))
	}
	return &tcpError{fmt.Sprintf("the client is none of %s: %s", ours, text), err}
}

// mostPrivateSaid is how much of a stranger's private data a line has. Arbitrary.
const mostPrivateSaid = 64

package stream

import "io"

// Sink takes what is received.
type Sink interface {
	io.Writer
	// Commit is called when all was written and is what was sent. When it returns nil the sender is told
	// that.
	Commit() error
	// Discard drops what was not committed. It may be called more than once, and after Commit, when it
	// does nothing.
	Discard()
	// String returns the sink's name for errors, also those that the peer is told.
	String() string
}

// Writer makes a sink of any writer. What was written to it cannot be taken back.
func Writer(w io.Writer) Sink { return writer{w} }

type writer struct{ io.Writer }

func (writer) Commit() error  { return nil }
func (writer) Discard()       {}
func (writer) String() string { return "the output" }

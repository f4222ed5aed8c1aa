package stream

import "io"

// Sink is where what is received goes.
type Sink interface {
	io.Writer
	// Commit is called when all was written and is what was sent. When it returns
	// nil the sender is told so.
	Commit() error
	// Discard gives up what was not committed. It may be called more than once, and
	// after Commit, when it does nothing.
	Discard()
	// String is what it is called in errors, which the peer is told.
	String() string
}

// Writer makes a sink of any writer: what it was given cannot be taken back.
func Writer(w io.Writer) Sink { return writer{w} }

type writer struct{ io.Writer }

func (writer) Commit() error  { return nil }
func (writer) Discard()       {}
func (writer) String() string { return "the output" }

package stream

import (
	"bufio"
	"context"
	"io"
)

// Source is a reader that may have to wait for what it reads, as a pipe. It waits in Wait, not in
// Read: so no buffer of the link is kept while nothing comes, and the end of the context is noticed.
// Send and Exchange take any reader. A reader that waits in Read leaves a goroutine in it if the
// stream fails in that time.
type Source interface {
	io.Reader
	// Wait returns when a Read would return at once, or an error if there is no need to read.
	Wait(ctx context.Context) error
	// More reports whether one more Read would bring something at once, for the
	// same message. A source that cannot tell returns false.
	More() bool
	// String returns the source's name for errors, also those that the peer is told.
	String() string
}

// sourceOf makes a source of any reader.
func sourceOf(r io.Reader, duplex bool) Source {
	switch x := r.(type) {
	case nil:
		return nil
	case Source:
		return x
	}
	if duplex {
		// While a buffer of the link is filled no receipt can be sent.
		return &waitingReader{Reader: bufio.NewReaderSize(r, bufferSize)}
	}
	return reader{r}
}

const anonymous = "the input"

// reader waits in Read, which is good where nothing else is to be sent.
type reader struct{ io.Reader }

func (reader) Wait(ctx context.Context) error { return context.Cause(ctx) }
func (reader) More() bool                     { return false }
func (reader) String() string                 { return anonymous }

// waitingReader reads ahead while it waits.
type waitingReader struct {
	*bufio.Reader
	err error // Peek's error, which it would not return again
}

func (w *waitingReader) Wait(ctx context.Context) error {
	if w.err == nil {
		_, w.err = w.Peek(1)
	}
	return context.Cause(ctx)
}

func (w *waitingReader) Read(b []byte) (int, error) {
	if w.Buffered() == 0 && w.err != nil {
		return 0, w.err
	}
	return w.Reader.Read(b)
}

func (w *waitingReader) More() bool     { return w.Buffered() > 0 }
func (w *waitingReader) String() string { return anonymous }

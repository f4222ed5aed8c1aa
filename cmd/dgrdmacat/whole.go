package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/dgrdma/dgrdma/link/stream"
)

// writeWhole writes a file that gets its name only when it is whole, so that nobody reads a
// part of it. With replace it may take the name of another one.
func writeWhole(name string, replace bool, content func(io.Writer) error) error {
	s, err := stream.CreateFile(name, replace)
	if err != nil {
		return err
	}
	defer s.Discard()
	if err := buffered(s, content); err != nil {
		return err
	}
	return s.Commit()
}

// writeWholeText is writeWhole of a text that replaces what has that name.
func writeWholeText(name, text string) error {
	return writeWhole(name, true, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

func buffered(w io.Writer, content func(io.Writer) error) error {
	b := bufio.NewWriterSize(w, 64<<10)
	if err := content(b); err != nil {
		return err
	}
	return b.Flush()
}

// orForce adds what to do about a file that exists.
func orForce(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w; --force replaces it", err)
	}
	return err
}

package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// bytesFlag is a flag whose value is what to write; empty: not given.
type bytesFlag string

func (f *bytesFlag) String() string { return string(*f) }

// Set implements [flag.Value]. An empty text is likely a variable that is not set.
func (f *bytesFlag) Set(s string) error {
	if s == "" {
		return errors.New("it is empty (unset variable?); for a flag alone leave it out")
	}
	*f = bytesFlag(s)
	return nil
}

// source has the bytes that are written, the same each time.
type source struct {
	io.ReaderAt
	size uint64
	name string
	file *input // to be closed; nil if there is none
}

func bytesSource(name string, b []byte) *source {
	return &source{ReaderAt: bytes.NewReader(b), size: uint64(len(b)), name: name}
}

// openSource opens what has the bytes. An input whose size is not known is read by [source.read].
func (o *writeOptions) openSource(ctx context.Context, stdin io.Reader) (*source, error) {
	switch {
	case o.text != "":
		return bytesSource("--text", []byte(o.text)), nil
	case o.data != "":
		b, err := hex.DecodeString(strings.Join(strings.Fields(strings.TrimPrefix(string(o.data), "0x")), ""))
		if err != nil {
			return nil, badUsage("--data: need pairs of hexadecimal digits: %w", err)
		}
		return bytesSource("--data", b), nil
	case o.file == "" && !o.stdin:
		return bytesSource("", nil), nil
	}
	name := o.file
	if o.stdin {
		name = "-"
	}
	in, err := openInput(ctx, name, stdin)
	if err != nil {
		return nil, err
	}
	if f, ok := in.from.(*os.File); ok && in.size >= 0 && !o.stdin {
		return &source{ReaderAt: f, size: uint64(in.size), name: name, file: in}, nil
	}
	return &source{name: name, file: in}, nil
}

// read reads an input whose size is not known, which may have most bytes.
func (s *source) read(most uint64) error {
	if s.ReaderAt != nil {
		return nil
	}
	in := s.file
	b, err := io.ReadAll(io.LimitReader(in, int64(most)+1))
	switch {
	case errors.Is(err, errInterrupted):
		return fmt.Errorf("%w before all bytes to be written were read", errInterrupted)
	case err != nil:
		return fmt.Errorf("read %s: %w", in.name, err)
	case uint64(len(b)) > most:
		return badUsage("%s has more than the %s that can be written there", in.name, count(most, "byte"))
	}
	s.ReaderAt, s.size = bytes.NewReader(b), uint64(len(b))
	return nil
}

func (s *source) close() {
	if s.file != nil {
		s.file.Close()
	}
}

// fill reads all of b.
func (s *source) fill(b []byte, at uint64) error {
	n, err := s.ReadAt(b, int64(at))
	switch {
	case n == len(b):
		return nil
	case err == io.EOF:
		return fmt.Errorf("%s became shorter while it was read: it had %s, now at most %d", s.name, count(s.size, "byte"), at+uint64(n))
	}
	return fmt.Errorf("read %s: %w", s.name, err)
}

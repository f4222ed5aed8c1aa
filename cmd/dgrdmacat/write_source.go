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

// source is the bytes that are written, each time anew.
type source struct {
	io.ReaderAt
	size uint64
	name string
	file *os.File // to be closed; nil if there is none
}

func bytesSource(name string, b []byte) *source {
	return &source{ReaderAt: bytes.NewReader(b), size: uint64(len(b)), name: name}
}

// openSource finds the bytes. Of what has no size of its own, no more than most
// are read.
func (o *writeOptions) openSource(ctx context.Context, stdin io.Reader, most uint64) (*source, error) {
	switch {
	case o.text != "":
		return bytesSource("--text", []byte(o.text)), nil
	case o.data != "":
		b, err := hex.DecodeString(strings.Join(strings.Fields(strings.TrimPrefix(o.data, "0x")), ""))
		if err != nil {
			return nil, badUsage("--data: need pairs of hexadecimal digits: %w", err)
		}
		return bytesSource("--data", b), nil
	case o.file == "" && !o.stdin:
		return bytesSource("", nil), nil
	}
	type found struct {
		*source
		err error
	}
	// Pipes and terminals keep us waiting, and do not know about ctx.
	ready := make(chan found, 1)
	go func() {
		var f found
		if o.stdin {
			f.source, f.err = readSource("standard input", stdin, most)
		} else {
			f.source, f.err = openFile(o.file, most)
		}
		ready <- f
	}()
	select {
	case f := <-ready:
		return f.source, f.err
	case <-ctx.Done():
		return nil, errors.New("interrupted before all bytes to be written were read")
	}
}

func openFile(name string, most uint64) (*source, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() {
		return &source{ReaderAt: f, size: uint64(info.Size()), name: name, file: f}, nil
	}
	defer f.Close()
	if err != nil {
		return nil, err
	}
	return readSource(name, f, most)
}

func readSource(name string, r io.Reader, most uint64) (*source, error) {
	b, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if uint64(len(b)) > most {
		return nil, badUsage("%s has more than the %d bytes that can be written there", name, most)
	}
	return bytesSource(name, b), nil
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
		return fmt.Errorf("%s became shorter while it was read: it had %d bytes, now %d", s.name, s.size, at+uint64(n))
	}
	return fmt.Errorf("read %s: %w", s.name, err)
}

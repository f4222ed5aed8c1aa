package main

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/dgrdma/dgrdma/inspect/text"
)

// fileFlag is a flag whose value is the name of a file; empty: not given.
type fileFlag string

func (f *fileFlag) String() string { return string(*f) }

// Set implements [flag.Value]. An empty name is likely a variable that is not set.
func (f *fileFlag) Set(name string) error {
	if name == "" {
		return errors.New("the name of a file is empty")
	}
	*f = fileFlag(name)
	return nil
}

// inPlain is an error in lines that do nothing to a terminal, whatever is in the names of files, and in the arguments that it repeats. Lines of its own stay lines.
func inPlain(err error, args []string) string {
	s := err.Error()
	for _, arg := range args {
		_, value, _ := strings.Cut(arg, "=")
		s = plainIn(plainIn(s, arg), value)
	}
	s = plainPaths(s, err)
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = text.Plain(lines[i])
	}
	return strings.Join(lines, "\n")
}

// plainPaths puts the names of files that errors of the system are about in plain.
func plainPaths(s string, err error) string {
	switch e := err.(type) {
	case *fs.PathError:
		s = plainIn(s, e.Path)
	case *os.LinkError:
		s = plainIn(plainIn(s, e.Old), e.New)
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		if within := e.Unwrap(); within != nil {
			s = plainPaths(s, within)
		}
	case interface{ Unwrap() []error }:
		for _, within := range e.Unwrap() {
			s = plainPaths(s, within)
		}
	}
	return s
}

// plainIn puts a name in plain wherever it is in s.
func plainIn(s, name string) string {
	if plain := text.Plain(name); plain != name {
		return strings.ReplaceAll(s, name, plain)
	}
	return s
}

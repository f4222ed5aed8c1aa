package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// replaceFile writes a file under another name and renames it when it is whole:
// who sees the file sees all of it.
func replaceFile(name string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(besides(name))
	if err != nil {
		return err
	}
	if err = errors.Join(write(f), f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// besides is where os.CreateTemp makes files that can be renamed to name.
func besides(name string) (dir, pattern string) {
	return filepath.Dir(name), filepath.Base(name) + ".*"
}

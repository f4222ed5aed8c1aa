package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// pageFile is a file that has its name only once it is whole.
type pageFile struct {
	name  string // "-" is standard output
	force bool
	std   io.Writer
}

// check finds out before the work whether the file may be written.
func (o *pageFile) check() error {
	if o.name == "-" {
		return nil
	}
	info, err := os.Stat(o.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a directory", o.name)
	case info.Mode().IsRegular() && !o.force:
		return fmt.Errorf("%s exists; --force overwrites it", o.name)
	}
	return nil
}

// write has the content written beside the file, and then gives it its name.
func (o *pageFile) write(content func(io.Writer) error) error {
	if o.name == "-" {
		return buffered(o.std, content)
	}
	if info, err := os.Stat(o.name); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(o.name, os.O_WRONLY, 0) // a device or a pipe keeps its place
		if err != nil {
			return err
		}
		return errors.Join(buffered(f, content), f.Close())
	}
	f, err := os.OpenFile(o.partial(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	err = errors.Join(buffered(f, content), f.Close())
	if err == nil {
		err = o.check() // it may have come into being meanwhile
	}
	if err == nil {
		err = os.Rename(f.Name(), o.name)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// partial is a name beside the file that nobody else uses.
func (o *pageFile) partial() string {
	dir, base := filepath.Split(o.name)
	return fmt.Sprintf("%s.%s.%d.part", dir, base, os.Getpid())
}

func buffered(w io.Writer, content func(io.Writer) error) error {
	b := bufio.NewWriterSize(w, 64<<10)
	if err := content(b); err != nil {
		return err
	}
	return b.Flush()
}

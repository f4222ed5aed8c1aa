package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/link/stream"
)

// gathered is what is to be written in large pieces.
type gathered struct {
	to     io.Writer
	buf    []byte
	broken error // why nothing can be written any more
}

// flush writes what was gathered. Once that fails, it is enough.
func (g *gathered) flush() error {
	if len(g.buf) > 0 && g.broken == nil {
		_, g.broken = g.to.Write(g.buf)
	}
	g.buf = g.buf[:0]
	if g.broken != nil {
		return errEnough
	}
	return nil
}

// keptFile is a capture that is written. It grows meanwhile, by whole blocks, so that
// others can follow it, and what there is stays when the process is killed.
type keptFile struct {
	gathered
	writer    capture.Writer
	unwritten int // frames whose records wait
	dropped   int // as the file tells
}

func (f *keptFile) begin(to io.Writer, known []capture.Interface) error {
	f.to = to
	f.buf = f.writer.Begin(f.buf, known)
	return f.flush() // who reads from a pipe waits for it
}

func (f *keptFile) add(rec *capture.Record) { f.buf = f.writer.Append(f.buf, rec) }

// drops tells how many packets the capture had no room for until then, if that grew.
func (f *keptFile) drops(n int, at time.Time) {
	if f.to != nil && n > f.dropped {
		f.dropped = n
		f.buf = f.writer.Dropped(f.buf, n, at)
	}
}

func (f *keptFile) flush() error {
	err := f.gathered.flush()
	if err == nil {
		f.unwritten = 0
	}
	return err
}

// end returns why the file is not what it should be.
func (f *keptFile) end() error {
	file, ok := f.to.(*blockFile)
	if !ok {
		return f.broken
	}
	err := file.Close()
	switch {
	case f.broken == nil:
		return err
	case file.whole && file.size == 0:
		file.remove()
		return fmt.Errorf("%w; nothing was written", f.broken)
	case file.whole:
		return fmt.Errorf("%w; what was captured before is in it", f.broken)
	}
	return f.broken
}

// blockFile is a file that has all of each write, or nothing of it.
type blockFile struct {
	*os.File
	made  fs.FileInfo
	size  int64
	whole bool // if it ended within a write, that was taken back
}

func (f *blockFile) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	if err != nil {
		f.whole = f.File.Truncate(f.size) == nil // not of a device, or a pipe
		return 0, err
	}
	f.size += int64(n)
	return n, nil
}

// remove removes the file, unless its name is of another one, as of a link to it.
func (f *blockFile) remove() {
	named, err := os.Lstat(f.Name())
	if err == nil && os.SameFile(named, f.made) {
		os.Remove(f.Name())
	}
}

// checkFile reports why the file cannot be written, as far as that can be told before
// anything is read.
func (o *decodeOptions) checkFile(inputs []string, std *stdio) error {
	switch o.write {
	case "":
		return nil
	case "-":
		if isTerminal(std.out) {
			return badUsage("-w - would write a capture to a terminal: send it to a file or a pipe")
		}
		return nil
	}
	if err := orForce(stream.CheckFile(o.write, o.force)); err != nil {
		return err
	}
	out, err := os.Stat(o.write)
	if err != nil || !out.Mode().IsRegular() {
		return nil
	}
	for _, name := range inputs {
		in, err := os.Stat(name)
		if f, ok := std.in.(*os.File); ok && name == "-" {
			in, err = f.Stat()
		}
		if err == nil && os.SameFile(in, out) {
			return fmt.Errorf("-w %s would overwrite what is read", o.write)
		}
	}
	return nil
}

// openFile begins to write the file.
func (o *decodeOptions) openFile(std *stdio) (io.Writer, error) {
	if o.write == "-" {
		return std.out, nil
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if _, err := os.Stat(o.write); errors.Is(err, fs.ErrNotExist) && !o.force {
		flags |= os.O_EXCL // nor if it comes now
	}
	f, err := os.OpenFile(o.write, flags, 0o666)
	if err != nil {
		return nil, orForce(err)
	}
	made, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	return &blockFile{File: f, made: made}, nil
}

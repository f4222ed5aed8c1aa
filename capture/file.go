package capture

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// maxRecord is the longest packet that is read; libpcap has the same limit.
const maxRecord = 256 << 10

// input reads a file in pieces through one buffer.
type input struct {
	r     *bufio.Reader
	start int64 // of the record, or block, that is being read
	off   int64
	buf   []byte
}

// read returns the next n bytes, valid until the next read.
func (in *input) read(n int) ([]byte, error) {
	if n > cap(in.buf) {
		in.buf = make([]byte, max(n, 2*cap(in.buf), 4096))
	}
	got, err := io.ReadFull(in.r, in.buf[:n])
	in.off += int64(got)
	return in.buf[:n], err
}

func (in *input) skip(n int) error {
	got, err := in.r.Discard(n)
	in.off += int64(got)
	return inside(err)
}

// inside says that the end of the file is not expected here.
func inside(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// File is a capture in a file.
type File struct {
	in      input
	format  format
	records int   // read so far
	err     error // why there are no more
}

// format is one of those that files have.
type format interface {
	Source
	interfaces() []Interface
	dropped() int
}

var (
	errNotCapture = errors.New("neither pcap nor pcapng")
	errEmpty      = errors.New("it is empty, and a capture has at least a header")
)

// NewFile reads the header of a pcap or pcapng file, compressed by gzip or not.
// The error is an *[Error].
func NewFile(r io.Reader) (*File, error) {
	f := &File{in: input{r: bufio.NewReaderSize(r, 64<<10)}}
	if err := f.open(); err != nil {
		return nil, &Error{Err: err}
	}
	return f, nil
}

func (f *File) open() error {
	in := &f.in
	if magic, _ := in.r.Peek(2); len(magic) == 2 && magic[0] == 0x1F && magic[1] == 0x8B {
		z, err := gzip.NewReader(in.r)
		if err != nil {
			return err
		}
		in.r = bufio.NewReaderSize(z, 64<<10)
	}
	magic, err := in.r.Peek(4)
	if len(magic) < 4 {
		switch {
		case err != io.EOF:
			return err
		case len(magic) == 0:
			return errEmpty
		}
		return errNotCapture
	}
	if binary.LittleEndian.Uint32(magic) == ngSection {
		f.format = &pcapng{in: in}
		return nil
	}
	f.format, err = openPcap(in)
	return err
}

// Next implements [Source]. The error at a damaged place is an *[Error], and stays.
func (f *File) Next() (Record, error) {
	if f.err != nil {
		return Record{}, f.err
	}
	rec, err := f.format.Next()
	if err == nil {
		f.records++
		return rec, nil
	}
	if err != io.EOF {
		err = &Error{f.records + 1, f.in.start, err}
	}
	f.err = err
	return Record{}, err
}

// Interfaces returns those that the file has described so far: of pcapng, the ones of the
// section that is being read. It is valid until the next call of Next.
func (f *File) Interfaces() []Interface { return f.format.interfaces() }

// Dropped returns how many packets are not in the file because the host that captured had no room for them, as far as the file
// has said so by now: of pcapng, in its Interface Statistics Blocks; pcap never does.
func (f *File) Dropped() int { return f.format.dropped() }

// Error says where a file stops being readable, and why.
type Error struct {
	Record int   // the record that could not be read, from 1; 0: the file header
	Offset int64 // of the damaged piece in the file, as it is without compression
	Err    error
}

func (e *Error) Error() string {
	return fmt.Sprintf("capture: record %d at offset %d: %v", e.Record, e.Offset, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// fill reads the captured bytes; no more than limit can follow.
func (rec *Record) fill(in *input, captured, length uint32, limit int) (err error) {
	if captured > maxRecord || int(captured) > limit {
		return fmt.Errorf("record claims %d captured bytes", captured)
	}
	rec.Length = int(max(captured, min(length, 1<<30)))
	rec.Data, err = in.read(int(captured))
	return inside(err)
}

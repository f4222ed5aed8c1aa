package nfs3

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"slices"
	"sync"
)

const (
	// parallel is how many calls of one reading or writing are under way: arbitrary; with 1 MiB each
	// enough for 10 Gbit/s over 6 ms.
	parallel = 8
	// readAhead is how much one call reads for a Read that wants less: arbitrary.
	readAhead = 64 << 10
	// maxReadFile is how long a file is at most that is read at once, into memory.
	maxReadFile = 1<<31 - 1
	// maxClaim is how much memory is taken for what a server says that a file has, before any of it came. It is arbitrary.
	maxClaim = 16 << 20
	// maxUncommitted bounds the data that a File keeps because the server may still lose it: arbitrary.
	maxUncommitted = 16 << 20
)

// File is a file or directory of a [Volume] that is open. Its methods follow those of os.File.
//
// Long reads and writes are several calls that are under way at once. What is written is on the server's
// stable storage after Sync or Close. Until then the File keeps it, at most 16 MiB, and writes it again if the
// server restarts.
//
// A Read of less than 64 KiB reads as much at once, and the Reads that follow take from that, without a call. They may return what the
// file was at the first one: NFS promises no more to one that has opened a file before it was changed and closed. What this
// File writes they see, and Seek and the end of the file have the server asked again. ReadAt asks the server each time.
//
// ReadAt and WriteAt may be called by many goroutines.
type File struct {
	v      *Volume
	name   string
	object Object

	mu          sync.Mutex
	offset      int64 // of Read and Write
	entries     []fs.DirEntry
	listed      bool
	closed      bool
	uncommitted []written
	kept        int // octets of these
	failures    int // COMMITs of parts that have failed
	failure     error
	buffer      []byte // of what is read ahead
	ahead       []byte // in buffer: what follows at offset. Dropped by Seek, and by each change that this File makes
}

// written is data that is to be committed, with the verifier that the server had when it took it.
type written struct {
	offset   uint64
	data     []byte
	verifier uint64
}

func (f *File) failed(op string, err error) error {
	if err == io.EOF {
		return err
	}
	return failed(op, f.name, err)
}

// each calls do for each part of n octets that is at most size long, several at once. It returns the
// first part that failed, and its error.
func each(n, size int, do func(from, to int) error) (int, error) {
	if n <= size {
		if err := do(0, n); err != nil {
			return 0, err
		}
		return n, nil
	}
	var (
		mu     sync.Mutex
		all    sync.WaitGroup
		first  = n
		result error
		places = make(chan struct{}, parallel)
	)
	for from := 0; from < n; from += size {
		places <- struct{}{}
		mu.Lock()
		stop := result != nil
		mu.Unlock()
		if stop {
			break
		}
		all.Go(func() {
			defer func() { <-places }()
			if err := do(from, min(from+size, n)); err != nil {
				mu.Lock()
				defer mu.Unlock()
				if from < first {
					first, result = from, err
				}
			}
		})
	}
	all.Wait()
	return first, result
}

// errShort ends a reading where a file ends.
var errShort = errors.New("the file is shorter")

// readAt fills p, as far as the file goes.
func (f *File) readAt(p []byte, offset int64) (int, error) {
	if err := CheckRegular(&f.object.Attr); err != nil {
		return 0, err
	}
	if offset < 0 {
		return 0, fs.ErrInvalid
	}
	var mu sync.Mutex
	end := len(p)
	n, err := each(len(p), int(f.v.info.ReadMax), func(from, to int) error {
		n, _, err := f.v.fs.Read(f.v.ctx, f.v.cred, f.object.Handle, p[from:to], uint64(offset)+uint64(from))
		if err == nil && n < to-from {
			mu.Lock()
			end = min(end, from+n)
			mu.Unlock()
			return errShort
		}
		return err
	})
	if err == errShort {
		return end, io.EOF
	}
	return n, err
}

// ReadAt fills p with what is at an offset, as io.ReaderAt.
func (f *File) ReadAt(p []byte, offset int64) (int, error) {
	n, err := f.readAt(p, offset)
	return n, f.failed("read", err)
}

// Read reads from where the last Read or Write has ended.
func (f *File) Read(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return 0, f.failed("read", fs.ErrClosed)
	}
	var n int
	var err error
	if len(f.ahead) == 0 && len(p) > 0 && len(p) < readAhead {
		if f.buffer == nil {
			f.buffer = make([]byte, readAhead)
		}
		n, err = f.readAt(f.buffer, f.offset)
		f.ahead = f.buffer[:n]
	}
	if len(f.ahead) > 0 {
		n, err = copy(p, f.ahead), nil // an error comes again with the next call
		f.ahead = f.ahead[n:]
	} else if err == nil {
		n, err = f.readAt(p, f.offset)
	}
	f.offset += int64(n)
	if n > 0 && err == io.EOF {
		err = nil
	}
	return n, f.failed("read", err)
}

// ahead is a part of a file that is read ahead.
type ahead struct {
	b    []byte
	n    int
	err  error
	done chan struct{}
}

// WriteTo writes the rest of the file to w: io.Copy calls it. While w takes one part, the next ones are read.
func (f *File) WriteTo(w io.Writer) (sum int64, err error) {
	f.mu.Lock()
	offset, closed := f.offset, f.closed
	f.mu.Unlock()
	if closed {
		return 0, f.failed("read", fs.ErrClosed)
	}
	var parts [parallel]ahead // a ring
	begun, taken := 0, 0
	next := offset // of the part that begins
	begin := func() {
		p, at := &parts[begun%parallel], next
		if p.b == nil {
			p.b, p.done = make([]byte, f.v.info.ReadMax), make(chan struct{}, 1)
		}
		begun++
		next += int64(len(p.b))
		go func() {
			p.n, p.err = f.readAt(p.b, at)
			p.done <- struct{}{}
		}()
	}
	defer func() {
		for ; taken < begun; taken++ {
			<-parts[taken%parallel].done
		}
		f.mu.Lock()
		f.offset, f.ahead = offset+sum, nil
		f.mu.Unlock()
	}()
	for {
		// Past the size that the file had when it was opened, one part at a time looks whether it has grown.
		for begun == taken || begun-taken < parallel && next < int64(min(f.object.Attr.Size, math.MaxInt64)) {
			begin()
		}
		p := &parts[taken%parallel]
		<-p.done
		taken++
		n, writeErr := w.Write(p.b[:p.n])
		sum += int64(n)
		switch {
		case writeErr != nil:
			return sum, writeErr
		case p.err == io.EOF:
			return sum, nil
		case p.err != nil:
			return sum, f.failed("read", p.err)
		}
	}
}

// readAll returns all of the file, of which the size is known by its attributes, and may be another one by now.
func (f *File) readAll() ([]byte, error) {
	if f.object.Attr.Size > maxReadFile {
		return nil, f.failed("read", ErrFBig)
	}
	size := int(f.object.Attr.Size)
	var b []byte
	for {
		// As much as came is taken again for the rest. Behind the size it may have grown.
		b = slices.Grow(b, max(min(size-len(b), max(len(b), maxClaim)), 4096))
		n, err := f.ReadAt(b[len(b):cap(b)], int64(len(b)))
		b = b[:len(b)+n]
		switch {
		case err == io.EOF:
			return b, nil
		case err != nil:
			return b, err
		case len(b) > maxReadFile:
			return nil, f.failed("read", ErrFBig)
		}
	}
}

// Seek sets where Read and Write go on.
func (f *File) Seek(offset int64, whence int) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch whence {
	case io.SeekCurrent:
		offset += f.offset
	case io.SeekEnd:
		a, err := f.v.fs.GetAttr(f.v.ctx, f.v.cred, f.object.Handle)
		if err != nil {
			return 0, f.failed("seek", err)
		}
		offset += int64(a.Size)
	}
	if offset < 0 || whence < io.SeekStart || whence > io.SeekEnd {
		return 0, f.failed("seek", fs.ErrInvalid)
	}
	f.offset, f.ahead = offset, nil
	return offset, nil
}

// Stat returns what the file is now.
func (f *File) Stat() (fs.FileInfo, error) {
	a, err := f.v.fs.GetAttr(f.v.ctx, f.v.cred, f.object.Handle)
	return newInfo(f.name, &a), f.failed("stat", err)
}

// ReadDir returns the next n entries of a directory, or all if n is not above 0, as fs.ReadDirFile.
func (f *File) ReadDir(n int) ([]fs.DirEntry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, f.failed("readdir", fs.ErrClosed)
	}
	if !f.listed {
		entries, err := f.v.list(f.object.Handle)
		if err != nil {
			return nil, f.failed("readdir", err)
		}
		f.entries, f.listed = entries, true
	}
	if n <= 0 {
		n = len(f.entries)
	} else if len(f.entries) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(f.entries))
	some := f.entries[:n:n]
	f.entries = f.entries[n:]
	return some, nil
}

func (f *File) set(s *SetAttr) error {
	_, err := f.v.fs.SetAttr(f.v.ctx, f.v.cred, f.object.Handle, s, nil)
	return err
}

// Close commits what was written. The file cannot be used after that.
func (f *File) Close() error {
	err := f.Sync()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return f.failed("close", fs.ErrClosed)
	}
	f.closed = true
	f.buffer, f.ahead = nil, nil
	return err
}

package nfs3

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"sync"
)

// errLost says that a server has restarted again and again.
var errLost = errors.New("the server has lost it, and again when it was written again")

// WriteAt writes p to an offset, as io.WriterAt.
func (f *File) WriteAt(p []byte, offset int64) (int, error) {
	n, err := f.writeAt(p, offset)
	return n, f.failed("write", err)
}

// Write writes to where the last Read or Write has ended.
func (f *File) Write(p []byte) (int, error) {
	f.mu.Lock()
	offset := f.offset
	f.mu.Unlock()
	n, err := f.WriteAt(p, offset)
	f.mu.Lock()
	f.offset, f.ahead = offset+int64(n), nil
	f.mu.Unlock()
	return n, err
}

// ReadFrom writes all that r has: io.Copy calls it. While parts are written, the next one is read.
func (f *File) ReadFrom(r io.Reader) (sum int64, err error) {
	f.mu.Lock()
	offset, failures := f.offset, f.failures
	f.mu.Unlock()
	var (
		mu     sync.Mutex
		all    sync.WaitGroup
		failed = int64(-1) // where the first part begins that could not be written
		why    error
		places = make(chan struct{}, parallel)
	)
	for end := false; !end; {
		b := make([]byte, f.v.info.WriteMax)
		n, readErr := io.ReadFull(r, b)
		if end = readErr != nil; end && readErr != io.EOF && readErr != io.ErrUnexpectedEOF {
			err = readErr
		}
		if n == 0 {
			break
		}
		places <- struct{}{}
		mu.Lock()
		stop := failed >= 0
		mu.Unlock()
		if stop {
			break
		}
		at := sum
		sum += int64(n)
		all.Go(func() {
			defer func() { <-places }()
			_, err := f.writePart(b[:n:n], uint64(offset+at), true, failures)
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				if failed < 0 || at < failed {
					failed, why = at, err
				}
			}
		})
	}
	all.Wait()
	if failed >= 0 {
		sum, err = failed, f.failed("write", why)
	}
	f.mu.Lock()
	f.offset, f.ahead = offset+sum, nil
	f.mu.Unlock()
	return sum, err
}

// writeAt writes p as Unstable. What the server may still lose is kept, as a copy; or, of more than the
// File may keep, committed before writeAt returns.
func (f *File) writeAt(p []byte, offset int64) (int, error) {
	if offset < 0 {
		return 0, fs.ErrInvalid
	}
	f.mu.Lock()
	failures := f.failures
	f.mu.Unlock()
	if err := f.usable(failures); err != nil {
		return 0, err
	}
	for begun := 0; begun < len(p); begun += maxUncommitted {
		part := p[begun:min(begun+maxUncommitted, len(p))]
		if n, err := f.writePart(part, uint64(offset)+uint64(begun), false, failures); err != nil {
			return begun + n, err
		}
	}
	return len(p), nil
}

// usable says whether the file can be written by a part of a write that began after so many failures of COMMIT: after another one, all its
// parts fail. Each would wait for a server that does not answer.
func (f *File) usable(failures int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return fs.ErrClosed
	case f.failures != failures:
		return f.failure
	}
	return CheckRegular(&f.object.Attr)
}

// writePart writes p, which is at most maxUncommitted long. own says that it is the File's from then on.
func (f *File) writePart(p []byte, offset uint64, own bool, failures int) (int, error) {
	if err := f.usable(failures); err != nil {
		return 0, err
	}
	var mu sync.Mutex
	var unsafe []written // what the server may still lose
	n, err := each(len(p), int(f.v.info.WriteMax), func(from, to int) error {
		for from < to {
			w, _, err := f.v.fs.Write(f.v.ctx, f.v.cred, f.object.Handle, p[from:to], offset+uint64(from), Unstable)
			if err != nil {
				return err
			}
			if w.Count == 0 {
				return io.ErrShortWrite
			}
			if w.Stable == Unstable {
				mu.Lock()
				unsafe = append(unsafe, written{offset + uint64(from), p[from:][:w.Count], w.Verifier})
				mu.Unlock()
			}
			from += int(w.Count)
		}
		return nil
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ahead = nil // what a Read has read while p was written as well
	before := len(f.uncommitted)
	f.uncommitted = append(f.uncommitted, unsafe...)
	for i := range unsafe {
		f.kept += len(unsafe[i].data)
	}
	switch {
	case err != nil: // COMMIT would wait for the same server again
	case f.kept <= maxUncommitted && len(p) <= int(f.v.info.WriteMax):
	case f.failures != failures:
		err = f.failure
	default:
		if err = f.commit(); err != nil {
			f.failures, f.failure = f.failures+1, err
		}
	}
	for i := before; i < len(f.uncommitted) && !own; i++ { // p is the caller's again
		f.uncommitted[i].data = bytes.Clone(f.uncommitted[i].data)
	}
	return n, err
}

// Sync returns when what was written is on the server's stable storage.
func (f *File) Sync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed("sync", f.commit())
}

// commit commits what is kept, and writes again what the server has lost. f.mu is held.
func (f *File) commit() error {
	for try := 0; len(f.uncommitted) > 0; try++ {
		verifier, _, err := f.v.fs.Commit(f.v.ctx, f.v.cred, f.object.Handle, 0, 0)
		if err != nil {
			return err
		}
		lost := false
		for i := range f.uncommitted {
			lost = lost || f.uncommitted[i].verifier != verifier
		}
		if !lost {
			break
		}
		if try == 8 { // arbitrary
			return errLost
		}
		// In the order in which it was written: of two that overlap the second one counts.
		for i := range f.uncommitted {
			if err := f.writeAgain(&f.uncommitted[i]); err != nil {
				return err
			}
		}
	}
	f.uncommitted, f.kept = nil, 0
	return nil
}

// writeAgain writes all of w, and notes the verifier of its first part: if the server restarts before
// the last one, that differs from the one of COMMIT.
func (f *File) writeAgain(w *written) error {
	for done := 0; done < len(w.data); {
		again, _, err := f.v.fs.Write(f.v.ctx, f.v.cred, f.object.Handle, w.data[done:], w.offset+uint64(done), Unstable)
		if err != nil {
			return err
		}
		if again.Count == 0 {
			return io.ErrShortWrite
		}
		if done == 0 {
			w.verifier = again.Verifier
		}
		done += int(again.Count)
	}
	return nil
}

// Truncate changes the size of the file.
func (f *File) Truncate(size int64) error {
	if size < 0 {
		return f.failed("truncate", fs.ErrInvalid)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ahead = nil
	err := f.commit() // what is written again later would lengthen it
	if err == nil {
		to := uint64(size)
		err = f.set(&SetAttr{Size: &to})
	}
	return f.failed("truncate", err)
}

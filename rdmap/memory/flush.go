package memory

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// Flush brings n bytes from the TO on to where how says: FlushPersistent, their storage;
// FlushGlobal, everybody on the machine; or both. When it returns nil, all of them are there
// (COMMIT-010). It takes as long as the disk, and ends early when ctx does: it is not for the
// goroutine that receives. Unless ctx ended, the error has a [ddp.Fault] in it.
func (s *Stream) Flush(ctx context.Context, stag uint32, to uint64, n uint32, how Rights) error {
	if how == 0 || how&^(FlushPersistent|FlushGlobal) != 0 {
		return ErrNoFlush
	}
	g, span, err := s.request(stag, to, n, how)
	if err != nil {
		return err
	}
	// What was placed before is visible to all processors after an atomic operation, and
	// there is no other way to memory.
	if !span.Enter() {
		return ddp.ProtectionSTag
	}
	span.Leave()
	if how&FlushPersistent == 0 || n == 0 {
		return nil
	}
	return g.lost(g.region.file.flush(ctx, span.Bytes), ddp.OperationStream)
}

// mapping is a part of a file that is mapped.
type mapping struct {
	file   *os.File // ours
	offset int64    // of bytes, in the file
	end    int64    // of bytes, in the file
	pages  []byte   // whole pages of the file, the last one excepted
	skip   int      // where bytes begin in pages
	bytes  []byte

	// mu is held for reading while somebody works with the pages or the file: to unmap them
	// waits for that, as withdrawing the bytes need not.
	mu     sync.RWMutex
	closed bool

	failure struct {
		sync.Mutex
		err error
	}
}

func (m *mapping) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	var err error
	if m.pages != nil {
		err = os.NewSyscallError("munmap", unix.Munmap(m.pages))
	}
	return errors.Join(err, m.file.Close())
}

// flush brings a part of the bytes to storage.
func (m *mapping) flush(ctx context.Context, part []byte) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.closed {
		return ddp.ProtectionSTag
	}
	return m.sync(ctx, part)
}

// stride is how much is brought to storage between two looks at the context.
const stride = 256 << 20

// sync is called with the lock for reading.
func (m *mapping) sync(ctx context.Context, part []byte) error {
	from := m.skip + offset(&m.bytes[0], part)
	to := from + len(part)
	from -= from % os.Getpagesize()
	for ; from < to; from += stride {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := m.failed(retry(func() error { return unix.Msync(m.pages[from:min(from+stride, to)], unix.MS_SYNC) })); err != nil {
			return err
		}
	}
	return m.whole()
}

// failed keeps the first error of the disk: the kernel tells of each once, and takes what was
// not written for clean after that.
func (m *mapping) failed(err error) error {
	m.failure.Lock()
	defer m.failure.Unlock()
	if err != nil && m.failure.err == nil {
		m.failure.err = fmt.Errorf("%s: what was written may not be in storage: %w: %w", m.file.Name(), err, ddp.OperationStream)
	}
	return m.failure.err
}

// whole says that the file has all the bytes still. What was written behind the end of a
// file, in its last page, is in no storage.
func (m *mapping) whole() error {
	info, err := m.file.Stat()
	if err != nil {
		return fmt.Errorf("%w: %w", err, ddp.OperationStream)
	}
	if info.Size() < m.end {
		return fmt.Errorf("the file has %d bytes, not %d: %w", info.Size(), m.end, ErrLost)
	}
	return nil
}

// retry repeats a system call that a signal interrupted.
func retry(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

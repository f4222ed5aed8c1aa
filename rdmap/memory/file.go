package memory

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// RegisterFile grants length bytes of a file, from the one at offset on, to the streams of the
// domain. It maps them: peers write into the file itself, and every process sees it. The file may
// be closed after that. [Region.Close] ends it.
//
// With a right to write, the file must be open for both reading and writing, and grows if it
// ends before; the disk's space for all of it is taken at once, where the file system can do
// that, so that a full disk is an error here, and not when a peer writes. Without such
// a right the file must have the bytes, and the program cannot write to [Grant.Bytes] either.
//
// The file should keep its length while it is registered. What peers do with bytes that are
// gone is a [LostError]; to touch them without [ddp.Span.Touch] ends the program.
func (d *Domain) RegisterFile(file *os.File, offset, length int64, rights Rights, o *Options) (*Region, error) {
	m, err := mapFile(file, offset, length, rights)
	if err != nil {
		return nil, err
	}
	r, err := d.register(m.bytes, m, rights, o)
	if err != nil {
		m.close()
		return nil, err
	}
	return r, nil
}

func mapFile(file *os.File, offset, length int64, rights Rights) (*mapping, error) {
	if offset < 0 || length < 0 || offset+length < 0 || int64(int(length)) != length {
		return nil, fmt.Errorf("%w: %d bytes of a file from %d on", ErrBounds, length, offset)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: is no ordinary file, which alone can be memory", file.Name())
	}
	own, err := duplicate(file)
	if err != nil {
		return nil, err
	}
	m := &mapping{file: own, end: offset + length}
	if err := m.open(offset, length, info.Size(), rights); err != nil {
		own.Close()
		return nil, err
	}
	return m, nil
}

// duplicate gives a file a descriptor that is ours.
func duplicate(file *os.File) (*os.File, error) {
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd, failed := -1, error(nil)
	err = raw.Control(func(theirs uintptr) { fd, failed = unix.FcntlInt(theirs, unix.F_DUPFD_CLOEXEC, 0) })
	if err := errors.Join(err, failed); err != nil {
		return nil, &fs.PathError{Op: "duplicate", Path: file.Name(), Err: err}
	}
	return os.NewFile(uintptr(fd), file.Name()), nil
}

func (m *mapping) open(offset, length, size int64, rights Rights) error {
	fd, name := int(m.file.Fd()), m.file.Name()
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil {
		return &fs.PathError{Op: "look at", Path: name, Err: err}
	}
	protection := unix.PROT_READ
	switch mode := flags & unix.O_ACCMODE; {
	case mode == unix.O_WRONLY:
		return fmt.Errorf("%w: %s: is open for writing only: open it with os.O_RDWR", ErrRights, name)
	case rights&modifying == 0 && size < m.end:
		return fmt.Errorf("%w: %s: has %d bytes, not %d", ErrBounds, name, size, m.end)
	case rights&modifying == 0:
	case mode != unix.O_RDWR:
		return fmt.Errorf("%w: %s: is open for reading only, and %v needs os.O_RDWR", ErrRights, name, rights&modifying)
	default:
		protection |= unix.PROT_WRITE
	}
	if rights&FlushPersistent != 0 {
		if err := storage(fd, name); err != nil {
			return err
		}
	}
	if protection&unix.PROT_WRITE != 0 {
		if err := occupy(m.file, offset, length, size); err != nil {
			return err
		}
	}
	if rights&FlushPersistent != 0 {
		// From here on a Flush needs to bring pages to storage only: where they are there, and
		// how long the file is, storage knows already.
		if err := m.file.Sync(); err != nil {
			return err
		}
	}
	if length == 0 {
		return nil
	}
	skip := offset % int64(os.Getpagesize())
	if m.pages, err = unix.Mmap(fd, offset-skip, int(skip+length), protection, unix.MAP_SHARED); err != nil {
		return &fs.PathError{Op: "mmap", Path: name, Err: err}
	}
	m.bytes = m.pages[skip:]
	m.skip, m.offset = int(skip), offset
	return nil
}

// volatile are file systems that keep files in memory.
var volatile = map[uint32]string{unix.TMPFS_MAGIC: "tmpfs", unix.RAMFS_MAGIC: "ramfs", unix.HUGETLBFS_MAGIC: "hugetlbfs"}

// storage checks that a file's bytes outlive the machine's power (COMMIT-038).
func storage(fd int, name string) error {
	var on unix.Statfs_t
	if err := unix.Fstatfs(fd, &on); err != nil {
		return &fs.PathError{Op: "statfs", Path: name, Err: err}
	}
	if where := volatile[uint32(on.Type)]; where != "" {
		return fmt.Errorf("%w: %s: %s keeps its files in memory: use a file on a disk, or do without FlushPersistent", ErrNotPersistent, name, where)
	}
	return nil
}

// occupy takes the space that the bytes need, and makes the file that long. If it cannot, the
// file keeps its size.
func occupy(f *os.File, offset, length, size int64) error {
	var err error = unix.EOPNOTSUPP
	if length > 0 {
		err = retry(func() error { return unix.Fallocate(int(f.Fd()), 0, offset, length) })
	}
	switch grows := offset+length > size; {
	case err == unix.EOPNOTSUPP || err == unix.ENOSYS:
		if grows {
			if err := f.Truncate(offset + length); err != nil {
				return err
			}
		}
	case err != nil:
		if grows {
			f.Truncate(size)
		}
		return &fs.PathError{Op: "allocate", Path: f.Name(), Err: err}
	}
	return nil
}

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/url"
)

// region returns the memory to be served, and what gives it back.
func (o *serveOptions) region() (r *dgrdma.Region, release func(), err error) {
	if o.file == "" {
		r, err = dgrdma.NewRegion(int(o.size.value))
		return r, func() {}, err
	}
	mem, err := o.mapFile()
	if err != nil {
		return nil, nil, err
	}
	r, err = dgrdma.RegionOver(mem)
	return r, func() { unix.Munmap(mem) }, err
}

func (o *serveOptions) mapFile() (mem []byte, err error) {
	f, err := os.OpenFile(o.file, os.O_RDWR, 0)
	created := false
	if errors.Is(err, fs.ErrNotExist) {
		if !o.create {
			return nil, fmt.Errorf("--file %s: does not exist; --create makes it", o.file)
		}
		f, err = os.OpenFile(o.file, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
		created = true
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size := int64(o.size.value)
	if !created {
		info, err := f.Stat()
		if err != nil {
			return nil, err
		}
		switch n := info.Size(); {
		case !info.Mode().IsRegular():
			return nil, fmt.Errorf("--file %s: is no ordinary file, which alone can be memory", o.file)
		case o.size.given && n != size:
			return nil, fmt.Errorf("--file %s: has %s, and shall have %d", o.file, count(n, "byte"), size)
		case n < 1 || n > url.MaxSize:
			return nil, fmt.Errorf("--file %s: has %s, need 1 to %d", o.file, count(n, "byte"), uint64(url.MaxSize))
		default:
			size = n
		}
	}
	if err := occupy(f, size, created); err != nil {
		if created {
			os.Remove(o.file)
		}
		return nil, err
	}
	mem, err = unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		if created {
			os.Remove(o.file)
		}
		return nil, &fs.PathError{Op: "mmap", Path: o.file, Err: err}
	}
	return mem, nil
}

// occupy takes all the space that a file needs: a disk that is full when a peer
// writes would end the process.
func occupy(f *os.File, size int64, created bool) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, size)
	if created && (err == unix.EOPNOTSUPP || err == unix.ENOSYS) {
		_, err := io.CopyN(f, zeros{}, size)
		return err
	}
	if err == nil || err == unix.EOPNOTSUPP || err == unix.ENOSYS {
		return nil
	}
	return &fs.PathError{Op: "allocate", Path: f.Name(), Err: err}
}

// zeros is an endless source of them.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

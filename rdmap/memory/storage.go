package memory

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"os"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// read writes a part of the bytes to h as storage has them, while the grant is valid.
func (m *mapping) read(ctx context.Context, g *Grant, part []byte, h hash.Hash) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.closed {
		return ddp.ProtectionSTag
	}
	if len(part) == 0 {
		return nil
	}
	if err := m.sync(ctx, part); err != nil {
		return err
	}
	from := m.offset + int64(offset(&m.bytes[0], part))
	err := m.direct(ctx, g, from, len(part), h)
	if errors.Is(err, errNotDirect) {
		h.Reset()
		err = m.pieces(ctx, g, int(m.file.Fd()), 1, from, len(part), h)
	}
	return err
}

var errNotDirect = errors.New("the file system does not read past its copies")

// block is what offsets, lengths and addresses of direct reads must be multiples of, on
// every disk that there is.
const block = 4096

func (m *mapping) direct(ctx context.Context, g *Grant, from int64, n int, h hash.Hash) error {
	f, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", m.file.Fd()), os.O_RDONLY|unix.O_DIRECT, 0)
	if err != nil {
		return errNotDirect // the file system says so; or the file may be read only as it was opened
	}
	defer f.Close()
	err = m.pieces(ctx, g, int(f.Fd()), block, from, n, h)
	if errors.Is(err, unix.EINVAL) {
		return errNotDirect
	}
	return err
}

// pieces reads n bytes of a file in pieces whose edges are multiples of align.
func (m *mapping) pieces(ctx context.Context, g *Grant, fd int, align, from int64, n int, h hash.Hash) error {
	const most = 1 << 20
	buf, err := unix.Mmap(-1, 0, min(most, (n+2*block)/block*block), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON) // at a block's edge
	if err != nil {
		return fmt.Errorf("%w: %w", os.NewSyscallError("mmap", err), ddp.OperationStream)
	}
	defer unix.Munmap(buf)
	end := from + int64(n)
	for from < end {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !g.Valid() {
			return ddp.ProtectionSTag
		}
		skip := from % align
		got := 0
		err := retry(func() (err error) { got, err = unix.Pread(fd, buf, from-skip); return err })
		if err != nil {
			return fmt.Errorf("%w: %w", err, ddp.OperationStream)
		}
		if int64(got) <= skip {
			return fmt.Errorf("the file ends at %d, not %d: %w", from, m.end, ErrLost)
		}
		ready := buf[skip:min(int64(got), skip+end-from)]
		h.Write(ready)
		from += int64(len(ready))
	}
	return nil
}

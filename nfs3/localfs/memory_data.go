package localfs

import (
	"context"

	"github.com/dgrdma/dgrdma/nfs3"
)

// maxMemoryFile bounds the size of a file: holes take no memory, but clients compute with sizes.
const maxMemoryFile = 1 << 40

// pageSize is how much of a file has memory of its own, or none where nothing was written.
const pageSize = 1 << 16

// pages is the data of a file. The last page that was written may be shorter.
type pages struct {
	of    map[uint64][]byte // by number; never longer than pageSize
	taken uint64            // their capacities
}

// read copies what there is at an offset; where nothing was written there are zeros.
func (p *pages) read(dst []byte, offset uint64) {
	for len(dst) > 0 {
		at := int(offset % pageSize)
		part := dst[:min(len(dst), pageSize-at)]
		page := p.of[offset/pageSize]
		n := copy(part, page[min(at, len(page)):])
		clear(part[n:])
		dst, offset = dst[len(part):], offset+uint64(len(part))
	}
}

// write copies data to an offset, as long as it takes no more than room octets of new memory. It
// returns how much was written, and how much memory was taken.
func (p *pages) write(data []byte, offset, room uint64) (written int, took uint64) {
	if p.of == nil {
		p.of = map[uint64][]byte{}
	}
	for len(data) > 0 {
		at := int(offset % pageSize)
		part := data[:min(len(data), pageSize-at)]
		page := p.of[offset/pageSize]
		if end := at + len(part); end > cap(page) {
			size := 512
			for size < end {
				size *= 2
			}
			if took+uint64(size-cap(page)) > room {
				break
			}
			took += uint64(size - cap(page))
			longer := make([]byte, end, size)
			copy(longer, page)
			page = longer
		} else if end > len(page) {
			page = page[:end]
		}
		copy(page[at:], part)
		p.of[offset/pageSize] = page
		data, offset, written = data[len(part):], offset+uint64(len(part)), written+len(part)
	}
	p.taken += took
	return written, took
}

// truncate forgets what is beyond size, and returns how much memory that was.
func (p *pages) truncate(size uint64) (freed uint64) {
	for number, page := range p.of {
		switch begins := number * pageSize; {
		case begins >= size:
			freed += uint64(cap(page))
			delete(p.of, number)
		case begins+uint64(len(page)) > size:
			clear(page[size-begins:]) // a longer page shows it again
			p.of[number] = page[:size-begins]
		}
	}
	p.taken -= freed
	return freed
}

// Read is the method of FS.
func (m *Memory) Read(_ context.Context, c *nfs3.Cred, h nfs3.Handle, dst []byte, offset uint64) (int, bool, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	n, err := m.node(h)
	if err == nil {
		err = (*caller)(c).readable(&n.attr)
	}
	if err != nil {
		return 0, false, err
	}
	size := n.attr.Size
	if offset >= size {
		return 0, true, nil
	}
	dst = dst[:min(uint64(len(dst)), size-offset)]
	n.data.read(dst, offset)
	return len(dst), offset+uint64(len(dst)) == size, nil
}

// Write is the method of FS. Memory is the storage: all data is as stable as the file system.
func (m *Memory) Write(_ context.Context, c *nfs3.Cred, h nfs3.Handle, data []byte, offset uint64, _ nfs3.Stable) (nfs3.Written, nfs3.WCC, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.node(h)
	if err != nil {
		return nfs3.Written{}, nfs3.WCC{}, err
	}
	by, w := (*caller)(c), n.wcc()
	written := 0
	if err = by.writable(&n.attr); err == nil {
		if offset > maxMemoryFile || offset+uint64(len(data)) > maxMemoryFile {
			err = nfs3.ErrFBig
		} else if len(data) > 0 {
			var took uint64
			if written, took = n.data.write(data, offset, m.maxBytes-min(m.bytes, m.maxBytes)); written == 0 {
				err = nfs3.ErrNoSpc
			}
			m.bytes += took
		}
	}
	if written > 0 {
		n.attr.Size = max(n.attr.Size, offset+uint64(written))
		n.attr.Used = n.data.taken
		n.attr.Mode = by.modeWritten(&n.attr)
		n.attr.Mtime = m.change()
		n.attr.Ctime = n.attr.Mtime
	}
	w.After = nfs3.Post(n.attr)
	return nfs3.Written{Count: uint32(written), Stable: nfs3.FileSync, Verifier: m.verifier}, w, err
}

// Commit is the method of FS.
func (m *Memory) Commit(_ context.Context, _ *nfs3.Cred, h nfs3.Handle, _ uint64, _ uint32) (uint64, nfs3.WCC, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	n, err := m.node(h)
	if err != nil {
		return 0, nfs3.WCC{}, err
	}
	if err := nfs3.CheckRegular(&n.attr); err != nil {
		return 0, nfs3.WCC{}, err
	}
	w := n.wcc()
	w.After = nfs3.Post(n.attr)
	return m.verifier, w, nil
}

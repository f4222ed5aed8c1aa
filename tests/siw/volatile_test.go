package siw

import (
	"context"
	"math/rand/v2"
	"sync"

	"github.com/dgrdma/dgrdma/nfs3"
)

// volatile is a file system that loses what was written and not committed when it crashes, and only that.
type volatile struct {
	nfs3.FS

	mu       sync.Mutex
	verifier uint64
	undo     []overwritten // in the order of the writes
	commits  int
}

// overwritten is what a write has changed.
type overwritten struct {
	file   nfs3.Handle
	offset uint64
	data   []byte
	size   uint64
}

func newVolatile(fs nfs3.FS) *volatile { return &volatile{FS: fs, verifier: rand.Uint64()} }

func (v *volatile) Write(ctx context.Context, c *nfs3.Cred, h nfs3.Handle, data []byte, offset uint64, stable nfs3.Stable) (nfs3.Written, nfs3.WCC, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	before, err := v.FS.GetAttr(ctx, nil, h)
	if err != nil {
		return nfs3.Written{}, nfs3.WCC{}, err
	}
	old := make([]byte, len(data))
	n, _, err := v.FS.Read(ctx, nil, h, old, offset)
	if err != nil {
		return nfs3.Written{}, nfs3.WCC{}, err
	}
	w, wcc, err := v.FS.Write(ctx, c, h, data, offset, stable)
	if err != nil {
		return w, wcc, err
	}
	w.Verifier, w.Stable = v.verifier, stable
	if stable == nfs3.Unstable {
		v.undo = append(v.undo, overwritten{h, offset, old[:n], before.Size})
	} else {
		v.settle(h)
	}
	return w, wcc, nil
}

func (v *volatile) Commit(ctx context.Context, c *nfs3.Cred, h nfs3.Handle, offset uint64, count uint32) (uint64, nfs3.WCC, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.settle(h)
	v.commits++
	_, wcc, err := v.FS.Commit(ctx, c, h, offset, count)
	return v.verifier, wcc, err
}

// SetAttr commits: what is undone later must not lengthen a file that was cut.
func (v *volatile) SetAttr(ctx context.Context, c *nfs3.Cred, h nfs3.Handle, set *nfs3.SetAttr, guard *nfs3.Time) (nfs3.WCC, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.settle(h)
	return v.FS.SetAttr(ctx, c, h, set, guard)
}

// settle has all writes into a file stay. v.mu is held.
func (v *volatile) settle(h nfs3.Handle) {
	kept := v.undo[:0]
	for _, u := range v.undo {
		if u.file != h {
			kept = append(kept, u)
		}
	}
	v.undo = kept
}

// crash loses what was not committed, and returns how many writes that were. No call may be in work.
func (v *volatile) crash() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	ctx := context.Background()
	lost := len(v.undo)
	for i := lost - 1; i >= 0; i-- {
		u := v.undo[i]
		v.FS.Write(ctx, nil, u.file, u.data, u.offset, nfs3.FileSync)
		v.FS.SetAttr(ctx, nil, u.file, &nfs3.SetAttr{Size: &u.size}, nil)
	}
	v.undo = nil
	v.verifier = rand.Uint64()
	return lost
}

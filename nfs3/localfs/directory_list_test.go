package localfs_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/nfs3"
)

// TestListingDuringARename checks that a READDIRPLUS does not tell the table of places where an entry was before a rename that it overlapped with: the
// handle of what was renamed would be stale.
func TestListingDuringARename(t *testing.T) {
	u, d, _ := directoryUser(t, nil)
	u.Create(u.Root, "f", 0o644)
	var renames atomic.Bool
	_, err := u.FS.ReadDir(u.Ctx, nil, u.Root, nfs3.DirPosition{}, true, func(e *nfs3.DirEntry) bool {
		switch e.Name {
		case "f":
			if renames.Load() {
				t.Error("the entry was looked at during a rename")
			}
		default:
			if renames.CompareAndSwap(false, true) {
				end := d.BeginMove()
				time.AfterFunc(50*time.Millisecond, func() {
					renames.Store(false)
					end()
				})
			}
		}
		return true
	})
	u.Must(err)
}

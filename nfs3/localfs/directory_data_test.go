package localfs_test

import (
	"os"
	"sync"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/nfs3/nfs3test"
)

// TestModeDuringAWrite checks that a write which takes the set-user-id bit of a file leaves a mode that its owner has set in between.
func TestModeDuringAWrite(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root's server acts for two users")
	}
	u, _, _ := directoryUser(t, nil)
	owner, other := u.As(1000, 1000), u.As(1001, 1001)
	f := u.Create(u.Root, "f", 0o666)
	u.Must(u.As(0, 0).SetAttr(f.Handle, nfs3.SetAttr{UID: new(uint32(1000))}))
	data := make([]byte, 1<<19) // which takes a while
	for i := range 100 {
		owner.Must(owner.SetAttr(f.Handle, nfs3test.Mode(0o4666)))
		var both sync.WaitGroup
		both.Go(func() { other.FS.Write(u.Ctx, other.Cred, f.Handle, data, 0, nfs3.Unstable) })
		both.Go(func() { owner.SetAttr(f.Handle, nfs3test.Mode(0o600)) })
		both.Wait()
		if m := u.GetAttr(f.Handle).Mode; m != 0o600 {
			t.Fatalf("try %d: the mode is %o", i, m)
		}
	}
}

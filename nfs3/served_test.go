package nfs3_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/nfs3/localfs"
)

// TestDone checks what ServerOptions.Done hears of each call: for whom it was done, of what, with which status, and how much was moved; and
// that it hears of MOUNT and of refusals.
func TestDone(t *testing.T) {
	var mu sync.Mutex
	var lines []string
	names := map[nfs3.Handle]string{"": ""}
	address := serve(t, localfs.NewMemory(nil), &nfs3.ServerOptions{Done: func(s *nfs3.Served) {
		mu.Lock()
		defer mu.Unlock()
		uid := "-"
		if s.Cred != nil {
			uid = fmt.Sprint(s.Cred.UID)
		}
		if s.Found != "" {
			names[s.Found] = s.Name
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s/%s %s/%s %d+%d %v", s.Call.Program.Procedures[s.Call.Procedure].Name, uid, names[s.Handle], s.Name, names[s.ToDir], s.To, s.Offset, s.Count, s.Status)))
		if s.Took < 0 || s.Err != nil {
			t.Errorf("%+v", s)
		}
	}})
	c := dial(t, address, "/")
	ctx := context.Background()
	root, err := c.Root(ctx)
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	lines = nil
	mu.Unlock()
	cred := &nfs3.Cred{UID: 7, GID: 8}
	f, _, err := c.Create(ctx, &nfs3.Cred{}, root.Handle, "f", &nfs3.CreateHow{})
	if err != nil {
		t.Fatal(err)
	}
	c.Write(ctx, &nfs3.Cred{}, f.Handle, make([]byte, 9), 3, nfs3.FileSync)
	c.Read(ctx, &nfs3.Cred{}, f.Handle, make([]byte, 100), 5)
	c.Write(ctx, cred, f.Handle, make([]byte, 9), 3, nfs3.FileSync)
	c.Lookup(ctx, cred, root.Handle, "none")
	c.Rename(ctx, cred, root.Handle, "f", root.Handle, "g")
	c.Link(ctx, cred, f.Handle, root.Handle, "h")
	c.Symlink(ctx, cred, root.Handle, "l", "to", &nfs3.SetAttr{})
	mu.Lock()
	defer mu.Unlock()
	for i, want := range []string{
		"CREATE 65534 //f / 0+0 no error", "WRITE 65534 f/ / 3+9 no error", "READ 65534 f/ / 5+7 no error", "WRITE 7 f/ / 3+0 permission denied",
		"LOOKUP 7 //none / 0+0 no such file", "RENAME 7 //f //g 0+0 ", "LINK 7 f/ //h 0+0 ", "SYMLINK 7 //l /to 0+0 ",
	} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], want) {
			t.Errorf("no %s in %q", want, lines)
		}
	}
}

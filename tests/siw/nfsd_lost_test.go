package siw

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/rpc"
	"github.com/dgrdma/dgrdma/tests/siw/exercise"
)

// eachProxied runs a test over both transports, with a proxy before Linux's server.
func eachProxied(t *testing.T, f func(t *testing.T, p *proxy, c *nfs3.Client, o *rpc.ClientOptions)) {
	for _, transport := range []string{"rdma", "tcp"} {
		t.Run(transport, func(t *testing.T) {
			p := newProxy(t, nfsd(transport))
			o := &rpc.ClientOptions{Resend: true}
			f(t, p, dialNFSD(t, transport, p.l.Addr().String(), o), o)
		})
	}
}

// TestConnectionsToNFSDAreKilled checks that nothing is lost and nothing is done twice while the connection of our client to Linux's server
// is killed again and again.
func TestConnectionsToNFSDAreKilled(t *testing.T) {
	eachProxied(t, func(t *testing.T, p *proxy, c *nfs3.Client, _ *rpc.ClientOptions) {
		v, dir := volume(t, t.Context(), c)
		kills := 0
		during(t, time.Second, func() { kills += p.kill() }, func() {
			for round := 0; round < 2 || kills < 5; round++ {
				if err := exercise.Files(v, fmt.Sprintf("%s/files%d", dir, round), 100, 16); err != nil {
					t.Error(err)
				}
				if err := random(v, fmt.Sprintf("%s/random%d", dir, round)).Run(300); err != nil {
					t.Error(err)
				}
			}
		})
		t.Logf("%d connections were killed, %d made", kills, p.connections())
	})
}

// TestRepliesOfNFSDAreLost checks that our client sends a call again with the same XID when the connection is lost, so that Linux's server
// answers it by the reply that it has kept.
func TestRepliesOfNFSDAreLost(t *testing.T) {
	eachProxied(t, func(t *testing.T, p *proxy, c *nfs3.Client, _ *rpc.ClientOptions) {
		ctx := deadline(t)
		_, name := volume(t, ctx, c)
		root, err := c.Root(ctx)
		if err != nil {
			t.Fatal(err)
		}
		o, err := c.Lookup(ctx, nil, root.Handle, name)
		if err != nil {
			t.Fatal(err)
		}
		dir := o.Handle
		changes := []struct {
			name string
			do   func() error
		}{
			{"MKDIR", func() error { _, _, err := c.Mkdir(ctx, nil, dir, "d", &nfs3.SetAttr{}); return err }},
			{"CREATE", func() error {
				o, _, err = c.Create(ctx, nil, dir, "a", &nfs3.CreateHow{Mode: nfs3.Guarded})
				return err
			}},
			{"LINK", func() error { _, _, err := c.Link(ctx, nil, o.Handle, dir, "b"); return err }},
			{"RENAME", func() error { _, _, err := c.Rename(ctx, nil, dir, "a", dir, "c"); return err }},
			{"SYMLINK", func() error { _, _, err := c.Symlink(ctx, nil, dir, "l", "target", &nfs3.SetAttr{}); return err }},
			{"REMOVE", func() error { _, err := c.Remove(ctx, nil, dir, "l"); return err }},
			{"RMDIR", func() error { _, err := c.Rmdir(ctx, nil, dir, "d"); return err }},
		}
		before := p.connections()
		for _, change := range changes {
			p.loseNext()
			if err := change.do(); err != nil {
				t.Errorf("%s: %v", change.name, err)
			}
		}
		if n := p.connections() - before; n != len(changes) {
			t.Errorf("%d connections were made after %d were lost", n, len(changes))
		}
		if got := guest(t, "ls /export/"+name); got != "b\nc\n" {
			t.Errorf("the guest sees %q", got)
		}
	})
}

// TestNFSDRestarts checks that our client goes on when Linux's server has restarted, and writes again what was not committed by then.
func TestNFSDRestarts(t *testing.T) {
	eachProxied(t, func(t *testing.T, p *proxy, c *nfs3.Client, _ *rpc.ClientOptions) {
		v, dir := volume(t, t.Context(), c)
		f, err := v.Create(dir + "/file")
		if err != nil {
			t.Fatal(err)
		}
		data := exercise.Pattern(1, 3<<20+1)
		half := len(data) / 2
		for at := 0; at < half; at += 1 << 16 { // short ones are kept until they are committed
			if _, err := f.WriteAt(data[at:min(at+1<<16, half)], int64(at)); err != nil {
				t.Fatal(err)
			}
		}
		guest(t, "rpc.nfsd 0; nfsd-rdma")
		if _, err := f.WriteAt(data[half:], int64(half)); err != nil {
			t.Error(err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if got, err := v.ReadFile(dir + "/file"); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d octets of %d are there, or other ones: %v", len(got), len(data), err)
		}
		t.Logf("%d connections", p.connections())
	})
}

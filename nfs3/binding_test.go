package nfs3_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/nfs3/localfs"
	"github.com/dgrdma/dgrdma/rpc"
)

// overAll runs a test over all transports, with an FS that both sides have.
func overAll(t *testing.T, f func(t *testing.T, c *nfs3.Client, root nfs3.Handle, r *rpc.Client)) {
	for _, x := range []struct {
		name     string
		serve    func(testing.TB, nfs3.FS, *nfs3.ServerOptions) string
		versions rpc.Versions
	}{{"tcp", serve, 0}, {"rdma v1", serveRDMA, rpc.V1}, {"rdma v2", serveRDMA, rpc.V2}} {
		t.Run(x.name, func(t *testing.T) {
			address := x.serve(t, localfs.NewMemory(nil), &nfs3.ServerOptions{Squash: nfs3.SquashNone})
			r, err := rpc.Dial(t.Context(), address, &rpc.ClientOptions{Versions: x.versions})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { r.Close() })
			root, err := nfs3.Mount(t.Context(), r, "/", rpc.None)
			if err != nil {
				t.Fatal(err)
			}
			c, err := nfs3.NewClient(t.Context(), r, root, nil)
			if err != nil {
				t.Fatal(err)
			}
			f(t, c, root, r)
		})
	}
}

// TestDataOfReadAndWrite checks that the data of WRITE and READ arrive whatever their length is, also at an odd offset, and that a READ which
// fails, or is past the end, leaves the memory as it was that was offered for its data (NFSB-01, NFSB-02).
func TestDataOfReadAndWrite(t *testing.T) {
	overAll(t, func(t *testing.T, c *nfs3.Client, root nfs3.Handle, _ *rpc.Client) {
		ctx := t.Context()
		made, _, err := c.Create(ctx, nil, root, "file", &nfs3.CreateHow{})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{0, 1, 2, 3, 4, 5, 3900, 9001, 70003} {
			data := bytes.Repeat([]byte{1, byte(n), 3}, n/3+1)[:n]
			for _, offset := range []uint64{0, 7} {
				if w, _, err := c.Write(ctx, nil, made.Handle, data, offset, nfs3.FileSync); err != nil || int(w.Count) != n {
					t.Fatalf("WRITE of %d at %d: %+v, %v", n, offset, w, err)
				}
				got := make([]byte, n)
				if m, _, err := c.Read(ctx, nil, made.Handle, got, offset); err != nil || m != n || !bytes.Equal(got, data) {
					t.Fatalf("READ of %d at %d: %d octets, %v", n, offset, m, err)
				}
			}
		}
		untouched := bytes.Repeat([]byte{0xEE}, 9000)
		got := bytes.Clone(untouched)
		if m, eof, err := c.Read(ctx, nil, made.Handle, got, 1<<30); err != nil || m != 0 || !eof || !bytes.Equal(got, untouched) {
			t.Errorf("READ behind the end: %d octets, end %v, %v", m, eof, err)
		}
		if _, err := c.Remove(ctx, nil, root, "file"); err != nil {
			t.Fatal(err)
		}
		if m, _, err := c.Read(ctx, nil, made.Handle, got, 0); !errors.Is(err, nfs3.ErrStale) || m != 0 || !bytes.Equal(got, untouched) {
			t.Errorf("READ of what is gone: %d octets, %v", m, err)
		}
	})
}

// TestNoGSS checks that no transport takes RPCSEC_GSS: a server that took it over RDMA would have to serve TCP at port 2049 as well (RPC2-098).
func TestNoGSS(t *testing.T) {
	overAll(t, func(t *testing.T, _ *nfs3.Client, root nfs3.Handle, r *rpc.Client) {
		gss := r.Bind(nfs3.Program, rpc.Auth{Flavor: 6, Body: make([]byte, 20)})
		err := gss.Call(t.Context(), nfs3.ProcGetAttr, &nfs3.GetAttrArgs{Object: root}, nil, nil)
		var denied *rpc.AuthError
		if !errors.As(err, &denied) || denied.Status != rpc.Rejected {
			t.Error(err)
		}
	})
}

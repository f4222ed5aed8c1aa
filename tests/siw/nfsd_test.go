package siw

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/rpc"
	"github.com/dgrdma/dgrdma/rpc/portmap"
	"github.com/dgrdma/dgrdma/tests/siw/exercise"
)

const nfsdPort = "20049"

// nfsd returns the address of Linux's server.
func nfsd(transport string) string {
	port := nfsdPort
	if transport == "tcp" {
		port = "2049"
	}
	return net.JoinHostPort(guestAddr, port)
}

// dialNFSD starts Linux's server in the guest, and mounts what it exports, by way of an address that leads to it.
func dialNFSD(t *testing.T, transport, address string, o *rpc.ClientOptions) *nfs3.Client {
	t.Helper()
	guest(t, "nfsd-rdma")
	ctx := deadline(t)
	mapper, err := rpc.Dial(ctx, "tcp:"+net.JoinHostPort(guestAddr, portmap.Port), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer mapper.Close()
	port, err := portmap.GetPort(ctx, mapper, nfs3.MountProgram, portmap.TCP)
	if err != nil {
		t.Fatal(err)
	}
	c, err := nfs3.Dial(ctx, transport+":"+address, "/export", &nfs3.ClientOptions{MountAddress: fmt.Sprintf("tcp:%s:%d", guestAddr, port), RPC: o})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// volume makes an empty directory of Linux's server, which stays when the test has failed. It returns the name that the
// directory has in the guest, too.
func volume(t *testing.T, ctx context.Context, c *nfs3.Client) (v *nfs3.Volume, dir string) {
	t.Helper()
	v, err := nfs3.NewVolume(ctx, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir = fmt.Sprintf("t%x", rand.Uint64())
	if err := v.Mkdir(dir, 0777); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !t.Failed() {
			guest(t, "rm -rf /export/"+dir)
		}
	})
	return v, dir
}

// eachTransport runs a test over all ways to Linux's server: it speaks version 1 only, so that version 2 is offered and refused
// (LX-13).
func eachTransport(t *testing.T, f func(t *testing.T, c *nfs3.Client)) {
	for _, w := range []struct {
		name string
		o    rpc.ClientOptions
		crc  string
	}{
		{"rdma,versions=1", rpc.ClientOptions{Versions: rpc.V1}, "0"},
		{"rdma,versions=1+2", rpc.ClientOptions{}, "1"},
		{"rdma,versions=1+2,nocrc", rpc.ClientOptions{NoCRC: true}, "0"},
		{"tcp", rpc.ClientOptions{}, "0"},
	} {
		t.Run(w.name, func(t *testing.T) {
			parameter(t, "mpa_crc_required", w.crc)
			w.o.NoReconnect = true // a server that does not take an offer of version 2 says so on that connection
			transport, _, _ := strings.Cut(w.name, ",")
			f(t, dialNFSD(t, transport, nfsd(transport), &w.o))
		})
	}
}

// TestClientOfNFSD checks what our client does with files of Linux's server: it falls back to version 1 on the connection on which it
// offered version 2 (RPCN-02, RPCN-03, LX-13), and reads and writes data of all lengths by chunks (LX-03, LX-19, LX-20, LX-21).
func TestClientOfNFSD(t *testing.T) {
	eachTransport(t, func(t *testing.T, c *nfs3.Client) {
		ctx := deadline(t)
		v, dir := volume(t, ctx, c)
		blob, err := v.ReadFile("blob")
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(blob, pattern(1, 65536)) {
			t.Error("/export/blob is not the pattern")
		}

		lengths := []int{0, 1, 2, 3, 5, 3800, 4096, 4097, 65537, 1<<20 - 1, 1 << 20, 1<<20 + 3, 3<<20 + 1}
		var sums strings.Builder
		for _, n := range lengths {
			name := fmt.Sprintf("%s/%d", dir, n)
			data := pattern(n, n)
			if err := v.WriteFile(name, data, 0644); err != nil {
				t.Fatal(err)
			}
			got, err := v.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, data) {
				t.Errorf("%d octets come back as %d others", n, len(got))
			}
			fmt.Fprintf(&sums, "%x  /export/%s\n", sha256.Sum256(data), name)
		}
		guest(t, fmt.Sprintf("cat > /tmp/sums <<'.'\n%s.\nsha256sum -c /tmp/sums", &sums))

		// A File would hide what the server says of one call.
		root, err := c.Root(ctx)
		if err != nil {
			t.Fatal(err)
		}
		hello, err := c.Lookup(ctx, nil, root.Handle, "hello")
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{1, 7, 18, 19, 20, 4099} { // less than, as much as and more than the file has
			b := make([]byte, n)
			got, eof, err := c.Read(ctx, nil, hello.Handle, b, 0)
			if want := "hello-from-siw-nfs\n"; err != nil || string(b[:got]) != want[:min(n, len(want))] || eof != (n >= len(want)) {
				t.Errorf("Read of %d: %q, %v, %v", n, b[:got], eof, err)
			}
		}

		names(t, v, dir)
	})
}

// names changes names in a directory of Linux's server, and has the guest look.
func names(t *testing.T, v *nfs3.Volume, dir string) {
	t.Helper()
	do := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	do("Mkdir", v.Mkdir(dir+"/d", 0755))
	do("WriteFile", v.WriteFile(dir+"/d/a", []byte("text"), 0600))
	do("Rename", v.Rename(dir+"/d/a", dir+"/b"))
	do("Symlink", v.Symlink("b", dir+"/l"))
	do("Symlink", v.Symlink(strings.Repeat("x", 1000), dir+"/long"))
	do("Chmod", v.Chmod(dir+"/b", 0640))
	if to, err := v.ReadLink(dir + "/long"); err != nil || to != strings.Repeat("x", 1000) {
		t.Errorf("ReadLink: %q, %v", to, err)
	}
	if got := guest(t, "cd /export/"+dir+" && readlink l && cat l && stat -c ' %a' b && ls d | wc -l"); got != "b\ntext 640\n0\n" {
		t.Errorf("the guest sees %q", got)
	}
	do("Remove", v.Remove(dir+"/l"))
	do("Remove", v.Remove(dir+"/d"))
	if _, err := v.Stat(dir + "/d"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Stat of what was removed: %v", err)
	}
	if _, err := v.Stat(dir + "/" + strings.Repeat("n", 256)); !errors.Is(err, nfs3.ErrNameTooLong) {
		t.Errorf("Stat of a name of 256 octets: %v", err)
	}
}

// TestFilesOfNFSD checks small files of one directory, whose list is longer than a reply, odd offsets and lengths, and what chance says.
func TestFilesOfNFSD(t *testing.T) {
	eachTransport(t, func(t *testing.T, c *nfs3.Client) {
		v, dir := volume(t, t.Context(), c)
		if err := exercise.Files(v, dir+"/files", *manyFiles, 32); err != nil {
			t.Error(err)
		}
		if err := v.WriteFile(dir+"/odd", nil, 0o644); err != nil {
			t.Fatal(err)
		}
		f, err := v.OpenFile(dir + "/odd")
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(exercise.Odd(f), f.Close()); err != nil {
			t.Error(err)
		}
		if err := random(v, dir+"/random").Run(*operations); err != nil {
			t.Error(err)
		}
	})
}

// random works with two files of a volume that are the same one.
func random(v *nfs3.Volume, name string) *exercise.Random {
	open := func() (exercise.File, error) {
		f, err := v.OpenFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			return v.Create(name)
		}
		return f, err
	}
	return &exercise.Random{Seed: *seed, Most: 256 << 10, Open: []func() (exercise.File, error){open, open}}
}

// TestManyCallsOfNFSD has more calls at once than the server grants (LX-10, LX-11): each gets its own reply, and the connection
// stays.
func TestManyCallsOfNFSD(t *testing.T) {
	eachTransport(t, func(t *testing.T, c *nfs3.Client) {
		ctx := deadline(t)
		root, err := c.Root(ctx)
		if err != nil {
			t.Fatal(err)
		}
		blob, err := c.Lookup(ctx, nil, root.Handle, "blob")
		if err != nil {
			t.Fatal(err)
		}
		want := pattern(1, 65536)
		var all sync.WaitGroup
		for i := range 200 {
			all.Go(func() {
				for j := range 4 {
					at, n := 300*i+j, []int{1, 100, 4093, 5001}[j]
					got := make([]byte, n)
					switch k, _, err := c.Read(ctx, nil, blob.Handle, got, uint64(at)); {
					case err != nil:
						t.Errorf("Read of %d at %d: %v", n, at, err)
					case !bytes.Equal(got[:k], want[at:min(at+n, len(want))]):
						t.Errorf("Read of %d at %d: not what is there", n, at)
					}
				}
			})
		}
		all.Wait()
	})
}

package main

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/rpc"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/willscott/go-nfs/helpers"
)

// written is called with what is written.
type written func(string)

func (w written) Write(b []byte) (int, error) { w(string(b)); return len(b), nil }

// TestGoNFSOverRDMA checks that a directory which go-nfs serves is read, listed and written over RDMA, in both versions.
func TestGoNFSOverRDMA(t *testing.T) {
	dir := t.TempDir()
	data := bytes.Repeat([]byte("0123456789abcde"), 40000)
	if err := os.WriteFile(filepath.Join(dir, "file"), data, 0o666); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	says := make(chan string, 1)
	served := make(chan error, 1)
	handler := helpers.NewCachingHandler(helpers.NewNullAuthHandler(osfs.New(dir)), 1024)
	go func() { served <- serve(ctx, "tcp:127.0.0.1", "0", handler, written(func(s string) { says <- s })) }()
	where := strings.TrimPrefix(strings.TrimSpace(<-says), "serving on ")
	for _, v := range []rpc.Versions{rpc.V1, rpc.V2} {
		c, err := nfs3.Dial(t.Context(), where, "/", &nfs3.ClientOptions{RPC: &rpc.ClientOptions{Versions: v}})
		if err != nil {
			t.Fatal(err)
		}
		volume, err := nfs3.NewVolume(t.Context(), c, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := fs.ReadFile(volume, "file"); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%v: read %d octets, %v", v, len(got), err)
		}
		entries, err := fs.ReadDir(volume, ".")
		if err != nil || len(entries) != 1 || entries[0].Name() != "file" {
			t.Errorf("%v: listed %v, %v", v, entries, err)
		}
		root, err := c.Root(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		file, err := c.Lookup(t.Context(), nil, root.Handle, "file")
		if err != nil {
			t.Fatal(err)
		}
		copy(data[100:], bytes.Repeat([]byte{byte(v)}, 9001))
		if w, _, err := c.Write(t.Context(), nil, file.Handle, data[100:9101], 100, nfs3.FileSync); err != nil || w.Count != 9001 {
			t.Errorf("%v: wrote %+v, %v", v, w, err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%v: the file is another one: %v", v, err)
		}
		c.Close()
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
